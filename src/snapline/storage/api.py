"""The four ports to the outside. Each has a conformance suite that every form passes.

"Durable" names the loss survived. In the file forms `sync` means fsync: a machine may fail. What was
appended and not synced survives neither a machine nor, in the simulator, its slot. After a failed sync
nothing of that file is ever called durable.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from snapline.batch import Batch, Schema
from snapline.core.messages import Message
from snapline.ids import ChannelId, Epoch, Incarnation, Millis, Seq, TaskId


class Store(Protocol):
    """Named objects, written whole and never changed. Every call that returns has happened, durably."""

    def put(self, key: str, data: bytes) -> str:
        """Store an object and return its digest."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store an object unless the name is taken; in a race exactly one caller gets True."""
        ...

    def get(self, key: str, digest: str | None = None) -> bytes:
        """The object, checked against its digest. Raises ObjectMissing or ObjectDamaged."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        ...


class PendingSync(Protocol):
    """A sync that does not hold up the owner of the file, who may append meanwhile.

    What was appended before `start_sync` is durable once `finish` has returned; what came later is not
    its business. If a part raises StorageError, or is not called, nothing is promised.
    """

    def wait(self) -> None:
        """Wait for the disk. Called once, in any thread."""
        ...

    def finish(self) -> None:
        """Take note that it is durable. Called by the owner of the file, when `wait` has returned."""
        ...


class MessageLog(Protocol):
    """The sender-side log of one task in one life, and what its earlier lives left behind.

    A log is opened for (task, epoch, incarnation) and writes only into segments of that name, so a zombie
    never disturbs its successor. Where several lives logged the same seq, the highest epoch counts.
    """

    def append(self, message: Message) -> None:
        """Add a message; durable only after the next `sync`."""
        ...

    def sync(self) -> None:
        """Make everything appended so far durable."""
        ...

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        ...

    def read(self, channel: ChannelId, *, after: Seq, through: Seq) -> Iterator[Message]:
        """The messages after < seq <= through, in order, each read when it is asked for.

        Raises ObjectMissing at once if one is not there. What is there stays readable, whatever is pruned
        meanwhile, by whomever; that it is damaged may be found only when it is its turn.
        """
        ...

    def prune(self, channel: ChannelId, *, through: Seq) -> None:
        """Messages up to here are not needed any more; they may be dropped, now or later."""
        ...


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows [start, stop) of a sink's output in one egress file, numbered over the whole timeline."""

    file: str
    start: int
    stop: int


class Egress(Protocol):
    """The output of one sink task in one life: written at once, public only when published.

    It is opened for (task, epoch, incarnation) at a position: the number of rows of this timeline that
    earlier files hold.
    """

    @property
    def file(self) -> str:
        """The name of the file, unique to this life."""
        ...

    @property
    def position(self) -> int:
        """Rows of this timeline that were appended, earlier lives included."""
        ...

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        ...

    def flush(self) -> None:
        """Let everything appended so far be read by others, durable or not."""
        ...

    def sync(self) -> None:
        """Make everything appended so far durable."""
        ...

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        ...


class Outlet(Protocol):
    """Where published output is read. Only the coordinator publishes."""

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent. False: another manifest has that number."""
        ...

    def committed(self, task: TaskId) -> Sequence[Batch]:
        """What was published of a sink task, in order."""
        ...

    def uncommitted(self, task: TaskId) -> Sequence[Batch]:
        """All that any life of a sink task ever wrote."""
        ...


class Ingress(Protocol):
    """A replayable input: partitions of numbered records, each with the time at which it is due."""

    @property
    def schema(self) -> Schema:
        """The kinds of the columns. `time` (int64, milliseconds) is the record's time."""
        ...

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        ...

    def end(self, partition: int) -> int | None:
        """The number of records in the partition; None if it never ends."""
        ...

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due. Never falls with the offset."""
        ...

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now: the first offset that is not."""
        ...

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop: always the same, whoever asks, as often as they ask."""
        ...

    def watermark(self, partition: int, offset: int) -> Millis:
        """No record at `offset` or later has a time below this; one that has may be late."""
        ...


@runtime_checkable
class Identified(Protocol):
    """An input with a text of its own that tells it from every other input."""

    @property
    def identity(self) -> str:
        """A text that differs for different inputs; making it reads no records."""
        ...


@dataclass(frozen=True, slots=True)
class Life:
    """Whose files these are: one task in one epoch and one incarnation of its slot."""

    task: TaskId
    epoch: Epoch
    incarnation: Incarnation

    @property
    def name(self) -> str:
        """A name for files; lives sort by epoch."""
        return f"{self.task.replace('/', '-')}.e{self.epoch}.i{self.incarnation}"
