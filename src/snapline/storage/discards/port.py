"""The port for records that are discarded, and its form in memory.

A record that a task does not send, because its receiver is away, is gone. What remains is its identity: the
number in its column `id`, or a hash of all its columns where it has none. So anybody can tell later which
records these were. A life writes a file of its own, a frame for each message; the file is made with the
first of them, so a run that discards nothing has none.

Nothing waits for the disk: identities leave the process when the receiver is back, and with every flush. A
process that dies before takes them with it, and its own loss is declared: all that its tasks had taken in
since their checkpoints counts as lost then, what they had discarded included.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.ids import ChannelId, Seq
from snapline.storage.api import Life

Identities: TypeAlias = npt.NDArray[np.int64]
IdentityKind: TypeAlias = Literal["id", "hash"]
"""What identities are: values of the column `id`, or hashes of whole rows."""


@dataclass(frozen=True, slots=True)
class Discard:
    """The records of one message that was not sent."""

    channel: ChannelId
    seq: Seq  # the number that the message had, or would have had
    kind: IdentityKind
    identities: Identities


class Discards(Protocol):
    """Where one life of a task writes down what it discards."""

    def append(self, discard: Discard) -> None:
        """Take down a message; others see it after the next flush."""
        ...

    def flush(self) -> None:
        """Hand all that was taken down to the operating system: it survives the end of the process."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class DiscardStore(Protocol):
    """All that the tasks of a run have discarded."""

    def open(self, life: Life) -> Discards:
        """Where a life of a task writes."""
        ...

    def read(self) -> Iterator[tuple[str, Discard]]:
        """Everything that was taken down, with the name of the life; raises ObjectDamaged."""
        ...


class MemoryDiscards:
    """`Discards` in a list."""

    def __init__(self, written: list[Discard]) -> None:
        self._written = written
        self._waiting: list[Discard] = []

    def append(self, discard: Discard) -> None:
        """Take down a message."""
        self._waiting.append(discard)

    def flush(self) -> None:
        """Let others see it."""
        self._written += self._waiting
        self._waiting = []

    def close(self) -> None:
        """Forget what was not flushed, as the end of a process does."""
        self._waiting = []


class MemoryDiscardStore:
    """A `DiscardStore` in memory."""

    def __init__(self) -> None:
        self._lives: dict[str, list[Discard]] = {}

    def open(self, life: Life) -> MemoryDiscards:
        """Where a life of a task writes."""
        return MemoryDiscards(self._lives.setdefault(life.name, []))

    def read(self) -> Iterator[tuple[str, Discard]]:
        """Everything that was flushed."""
        for life, written in sorted(self._lives.items()):
            for discard in written:
                yield life, discard
