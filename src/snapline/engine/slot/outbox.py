"""What waits on an output: first what is sent again after a rollback, then what was sent meanwhile.

A replay can be longer than memory is large, so its messages are read from where they are kept one by
one, as the receiver gives credit. That they are there was checked when the replay was prepared.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import Marker, Message
from snapline.dataflow.state.identity import identities_of


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


class SentBefore:
    """Rows that a task has sent on a channel since the checkpoint to which it went back alone.

    Its input is sent to it again, so it makes these rows again. They are in its log, and are sent from
    there: each of them is left out once. How they were cut into messages, and in which order they came,
    may differ from life to life, so rows are told by their identities. Those that do not come again within
    two checkpoints never will: they are forgotten, so that no later row is taken for one of them.
    """

    def __init__(self, batches: Iterable[Batch]) -> None:
        known = [identities_of(batch)[1] for batch in batches if batch.length]
        rows = np.concatenate(known) if known else np.zeros(0, np.int64)
        self._rows, self._left = np.unique(rows, return_counts=True)
        self._checkpoints = 0  #: that the task took since then

    def goes_on(self) -> bool:
        """Note that the task takes a checkpoint; False if the rows are to be forgotten."""
        self._checkpoints += 1
        return self._checkpoints < 2 and self.left > 0

    @property
    def left(self) -> int:
        """How many of them did not come again yet."""
        return int(self._left.sum())

    def without(self, batch: Batch) -> Batch:
        """The rows that were not sent before."""
        if not batch.length or not len(self._rows):
            return batch
        rows = identities_of(batch)[1]
        at = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        known = np.flatnonzero(self._rows[at] == rows)
        known = known[np.argsort(at[known], kind="stable")]
        place = at[known]
        nth = np.arange(len(known)) - np.searchsorted(place, place)  # of its identity in this batch
        again = known[nth < self._left[place]]
        np.subtract.at(self._left, at[again], 1)
        return batch.take(np.delete(np.arange(batch.length), again)) if len(again) else batch
