"""What waits on an output: first what is sent again after a rollback, then what was sent meanwhile.

A replay can be longer than memory is large, so its messages are read from where they are kept one by
one, as the receiver gives credit. That they are there was checked when the replay was prepared.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from snapline.core.messages import Marker, Message


class Outbox:
    """The queue of one output."""

    def __init__(self) -> None:
        self._replay: Iterator[Message] = iter(())
        self._replay_left = 0
        self._behind: deque[Message | Marker] = deque()

    def replay(self, messages: Iterable[Message], count: int) -> None:
        """Send so many messages again, behind those of earlier calls; each is asked for in its turn."""
        self._replay = chain(self._replay, messages)
        self._replay_left += count

    def put_first(self, messages: Iterable[Message]) -> None:
        """Send messages before all that waits, which is not sent again."""
        self._behind.extendleft(reversed(tuple(messages)))

    def append(self, payload: Message | Marker) -> None:
        """Send something behind all that waits."""
        self._behind.append(payload)

    def popleft(self) -> Message | Marker:
        """Take what is to be sent next."""
        if self._replay_left:
            self._replay_left -= 1
            return next(self._replay)
        return self._behind.popleft()

    @property
    def replays(self) -> bool:
        """Whether what is to be sent next was sent before the rollback."""
        return self._replay_left > 0

    @property
    def marker_is_next(self) -> bool:
        """Whether a marker is next; nothing is read for the answer."""
        return not self._replay_left and isinstance(self._behind[0], Marker)

    def messages(self) -> list[Message]:
        """All messages that wait, read into memory; they go on waiting."""
        left = list(self._replay)
        self._replay = iter(left)
        return left + [payload for payload in self._behind if isinstance(payload, Message)]

    def __len__(self) -> int:
        return self._replay_left + len(self._behind)
