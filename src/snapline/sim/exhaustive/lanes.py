"""Lanes: where things wait to happen, and the account of what has happened that recognises a state.

In the exhaustive search there is no time. Whatever the simulator would plan for a moment waits in a *lane*
instead: the frames of one link in one lane, in their order; each call to storage, and each timer,
in a lane of its own. A step takes the first item of one lane. Which lane is taken next is the only
choice there is.

Two runs in which the same steps were taken in another order, where the order made no difference, are in
the same state. To see that, the world is cut into parts (a task, the coordinator, a link, a checkpoint
on its way to the store), and each part has a number that stands for what it has been through: a hash
over its steps, in order. What a part does depends only on its own past and on what other parts have
sent it, so equal numbers of all parts mean equal states. A rollback makes the past of a part worthless:
from then on its number stands for what it was restored from. A state that was met before is not
followed again.
"""

import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

_MASK = (1 << 64) - 1


class Lane(NamedTuple):
    """A place where things wait, by its name."""

    kind: str
    actor: str  # whose step it is: `slot/1`, or the coordinator
    name: str = ""

    def __str__(self) -> str:
        return " ".join(self)

    @staticmethod
    def parse(text: str) -> "Lane":
        """Read a lane from its text form, which `str` gives."""
        kind, actor, name = (*text.split(" ", 2), "", "")[:3]
        return Lane(kind, actor, name)


def number_of(*content: object) -> int:
    """A number for what something is, however it came about."""
    data = pickle.dumps(content)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


@dataclass(slots=True)
class Item:
    """Something that waits in a lane."""

    action: Callable[[], None]
    payload: Any  # what is shown of it: a frame, an order, a report, a ticket, an alarm
    _number: int = 0  # 0 until it is asked for

    def number(self) -> int:
        """A number for what is in it."""
        if not self._number:
            self._number = number_of(self.payload)
        return self._number


class Past:
    """What every part of a world has been through, as numbers."""

    def __init__(self) -> None:
        self.parts: dict[str, int] = {}
        self.total = 0  #: over all parts, kept up to date
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """A number for a name: the same one in every process."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = zlib.crc32(text.encode())
        return code

    def goes_through(self, part: str, event: int) -> None:
        """Note an event in the past of a part; the order of such events makes a difference."""
        before = self.parts.get(part, 0)
        self._set(part, before, hash((before, event)))

    def gathers(self, part: str, event: int) -> None:
        """Note an event in the past of a part; the order of such events makes no difference."""
        before = self.parts.get(part, 0)
        self._set(part, before, (before + hash((event, 1))) & _MASK)

    def begins_anew(self, part: str, content: int) -> None:
        """Let the number of a part stand for what it is now: its past does not matter any more."""
        self._set(part, self.parts.get(part, 0), content)

    def ends(self, part: str) -> None:
        """Remove a part that is gone; what it did is in the numbers of other parts."""
        self._set(part, self.parts.get(part, 0), 0)
        del self.parts[part]

    def waits(self, lane: str, more: int) -> None:
        """Note that so many more things wait in a lane; fewer, if negative."""
        self.total = (self.total + more * hash((self.code(lane), 2))) & _MASK

    def _set(self, part: str, before: int, after: int) -> None:
        name = self.code(part)
        self.parts[part] = after
        self.total = (self.total - hash((name, before)) + hash((name, after))) & _MASK
