"""The ports to storage: interfaces that every form of storage implements, in memory or as files.

`Storage` makes all of them. A run asks its storage and never names a form, so another form (a bucket, a
broker) is another class with this shape. The same tests (the conformance suite) run against every form.

*Durable* data survives a failure: in file forms `sync` means fsync. What was not synced is lost with its
machine or, when simulated, with its slot. After a failed sync nothing of that file is called durable.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from snapline.batch import Batch, Schema
from snapline.core.messages import Message
from snapline.ids import ChannelId, Epoch, Incarnation, Millis, Seq, TaskId
from snapline.storage.codec import Pieces
from snapline.storage.floor import Floor


class Store(Protocol):
    """Named objects, written whole and never changed. Every call that returns has happened, durably."""

    def put(self, key: str, data: bytes | Pieces) -> str:
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

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder. Some may hold nothing, or nothing any more."""
        ...

    def clear(self, folder: str, keep: Collection[str]) -> None:
        """Delete all objects in a folder but those of these names, and what killed writers left there."""
        ...

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back, as a failing disk does: a fault."""
        ...


class PendingSync(Protocol):
    """A sync that does not hold up the owner of the file, who may append meanwhile.

    What was appended before `start_sync` is durable once `finish` has returned; nothing is promised about
    what came later. If one of the two raises StorageError, or is not called, nothing is promised at all.
    """

    def wait(self) -> None:
        """Wait for the disk. Called once, in any thread."""
        ...

    def finish(self) -> None:
        """Note that the data is durable. The owner of the file calls this after `wait` has returned."""
        ...


class MessageLog(Protocol):
    """The sender-side log of one task in one life, and what its earlier lives left behind.

    A log is opened for (task, epoch, incarnation) and writes only into segments of that name, so a zombie
    never disturbs its successor. Where several lives logged the same seq, the highest epoch counts.
    """

    def append(self, message: Message) -> int:
        """Add a message, durable only after the next `sync`; return how many bytes of it are kept."""
        ...

    def sync(self) -> None:
        """Make everything appended so far durable."""
        ...

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        ...

    def read(self, channel: ChannelId, *, after: Seq, through: Seq) -> Iterator[Message]:
        """The messages after < seq <= through, in order, each read when it is asked for.

        Raises ObjectMissing at once if one is not there. What is there stays readable, whatever is pruned;
        that it is damaged may be found only when it is its turn."""
        ...

    def tail(self, channel: ChannelId, *, after: Seq) -> tuple[Iterator[Message], int]:
        """All messages after this number, and how many: as `read`, with gaps between lives."""
        ...

    def prune(self, channel: ChannelId, *, through: Seq) -> None:
        """Allow messages up to `through` to be dropped, now or later: nobody needs them any more."""
        ...

    def close(self) -> None:
        """Let go of all that only this life needs. It appends nothing more; what was not synced is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows [start, stop) of a sink's output that lie in one egress file.

    Rows are numbered from the first one of the run on; a file of a later life goes on counting.
    """

    file: str
    start: int
    stop: int


class Egress(Protocol):
    """The output of one sink task in one life: written at once, public only when published.

    It is opened for (task, epoch, incarnation) at a position: the rows that earlier files hold of this
    timeline, which is the run's history without what rollbacks took back.
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

    def cut(self) -> None:
        """Note that what was appended so far may become public without what follows: a checkpoint."""
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


class Logs(Protocol):
    """The message logs of all tasks of a run."""

    def open(self, life: "Life", *, compress: bool = False) -> MessageLog:
        """The log of one life; with `compress` its messages are compressed, if they become bytes at all."""
        ...


class Outlet(Protocol):
    """Where output is written and published. Sinks open their egress; only the coordinator publishes."""

    def open(self, life: "Life", position: int) -> Egress:
        """The egress of one life, which goes on at `position`. StorageError if it was opened before."""
        ...

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent. False: another manifest has that number."""
        ...

    def compact(self, through: int) -> None:
        """Keep manifests up to a number, before all kept lines, in few objects; delete what is too old."""
        ...

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is."""
        ...

    def check(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Compare what is public with what was decided: see `ManifestChain.hold_against`."""
        ...

    def sweep(self, before: Epoch, held: Collection[str], *, written: bool) -> None:
        """Delete what lives of epochs before this one left of output that will never be public.

        `held` are files of which rows are still to be published. With `written`, files of which nothing is
        public are deleted, too."""
        ...


# Output as its readers find it.

View: TypeAlias = Literal["committed", "uncommitted"]
"""What was published of the output, or all that any life of a sink wrote and no crash took away."""


class OutputPiece(NamedTuple):
    """Rows start <= n < stop of one egress file; a stop of None means all that are whole by now."""

    file: str
    start: int
    stop: int | None


class WrittenRows(NamedTuple):
    """Rows that follow each other, and were written at once."""

    first: int  # the number of the first of them
    at_ms: int  # when: Unix time; in memory by the clock that it was given, or 0
    rows: Batch


class OutputFollower(Protocol):
    """Reads output while it is written: every row at most once, every byte about once."""

    def published(self) -> Iterator[Mapping[TaskId, Extent]]:
        """The manifests that came since the last call, one after the other."""
        ...

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece that were not read before. StorageError if rows before its stop are gone."""
        ...


class OutputReader(Protocol):
    """The output of a run, by sink task and in order, a few rows at a time: however large it is."""

    def tasks(self) -> Sequence[TaskId]:
        """The sink tasks that ever opened an egress, in order."""
        ...

    def pieces(self, task: TaskId, view: View) -> Sequence[OutputPiece]:
        """Where the rows of a sink task lie, in order; any process may read any piece."""
        ...

    def published(self) -> int:
        """How many manifests were published by now. They never change, and only become more."""
        ...

    def floor(self) -> Floor:
        """What was deleted of them by now."""
        ...

    def pieces_between(self, task: TaskId, after: int, through: int) -> Sequence[OutputPiece]:
        """Where the rows lie that the manifests after < n <= through made public, in order.

        The same places for ever. RowsDeleted if they are deleted, ObjectMissing if they are yet to come.
        """
        ...

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece. RowsDeleted, ObjectMissing, ObjectDamaged if one before its stop is gone."""
        ...

    def follow(self) -> OutputFollower:
        """Return a reader that begins at the first row and follows the output as it is written."""
        ...


def rows_of(output: OutputReader, tasks: Iterable[TaskId], view: View) -> Iterator[Batch]:
    """The rows of these sink tasks, one task after the other, a few at a time."""
    pieces = (piece for task in tasks for piece in output.pieces(task, view))
    return (written.rows for piece in pieces for written in output.read(piece))


# Input.


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
        """The watermark at `offset`: no record from there on has a time below it, but for late ones."""
        ...


@runtime_checkable
class Prefetched(Protocol):
    """An input that lies somewhere slow, in blocks that can be fetched before they are asked for.

    One thread reads from it and keeps what was fetched; any thread may fetch.
    """

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The blocks that are not at hand, and without which `read` and the times would have to wait.

        They hold the records from `offset` through `stop`, and those that are just due at `now_ms`.
        """
        ...

    def next_block(self, partition: int, stop: int) -> int | None:
        """The block behind the one in which `stop` lies; None if it is at hand, or there is none."""
        ...

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """A lower bound of `due_through` that is known without waiting for a block."""
        ...

    def fetch(self, partition: int, block: int) -> Any:
        """Load a block. Raises what `read` would raise."""
        ...

    def keep(self, partition: int, block: int, loaded: Any) -> None:
        """Keep a fetched block in memory, so that `read` finds it there."""
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


class Storage(Protocol):
    """Where one run keeps what it writes, and finds what it reads: it makes every port."""

    @property
    def store(self) -> Store:
        """The store of snapshots, decisions and verdicts."""
        ...

    @property
    def logs(self) -> Logs:
        """The senders' message logs."""
        ...

    @property
    def outlet(self) -> Outlet:
        """The output, for those who write and publish it."""
        ...

    @property
    def output(self) -> OutputReader:
        """The output, for those who read it."""
        ...

    def ingress(self, name: str) -> Ingress:
        """The stored input of this name. Opening it reads no records."""
        ...

    def last_epoch(self) -> Epoch:
        """The highest epoch in which a life opened a log or an egress; 0 if none did."""
        ...
