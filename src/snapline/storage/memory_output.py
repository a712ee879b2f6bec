"""Output in memory: written, synced, published, read and followed, and lost in a crash if not synced."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from snapline.batch import Batch
from snapline.errors import ObjectMissing, StorageError
from snapline.ids import Epoch, Millis, TaskId
from snapline.storage.api import Extent, Life, OutputPiece, PendingSync, View, WrittenRows
from snapline.storage.floor import Floor
from snapline.storage.manifest import ManifestChain


@dataclass(frozen=True, slots=True)
class MemorySync:
    """A `PendingSync` that waits for nothing."""

    finish: Callable[[], None]

    def wait(self) -> None:
        """Do nothing: there is no disk to wait for."""


@dataclass(slots=True)
class _File:
    """What one life of a sink wrote."""

    life: Life
    first: int  #: rows of the timeline before this file
    position: int  #: rows of the timeline, this file's included
    synced: int  #: rows of the timeline that survive a crash
    starts: list[int] = field(default_factory=list)  #: number of the first row of each batch
    batches: list[Batch] = field(default_factory=list)
    times: list[int] = field(default_factory=list)  #: when each batch was appended

    def rows(self, start: int, stop: int) -> list[tuple[int, Batch]]:
        """The rows start <= n < stop, as slices of what was appended, and when it was."""
        parts = []
        for i in range(max(0, bisect_right(self.starts, start) - 1), len(self.starts)):
            first = self.starts[i]
            if first >= stop:
                break
            part = self.batches[i].slice(max(0, start - first), stop - first)
            if len(part):
                parts.append((self.times[i], part))
        return parts

    def drop(self, before: int) -> None:
        """Delete the batches of which all rows come before this one."""
        while len(self.starts) > 1 and self.starts[1] <= before:
            for each in (self.starts, self.batches, self.times):
                each.pop(0)


class MemoryOutlet:
    """An `Outlet` in memory, and the `OutputReader` of what was written to it.

    `retain_ms` is for how long output is kept by this clock, None for ever.
    """

    def __init__(
        self, retain_ms: Millis | None = None, clock: Callable[[], int] = lambda: 0
    ) -> None:
        self._retain_ms = retain_ms
        self._clock = clock
        self._files: dict[str, _File] = {}
        self._chain = ManifestChain()
        #: what is public and was not deleted: number, extents, and when it was published
        self._kept: list[tuple[int, Mapping[TaskId, Extent], int]] = []
        self._past: tuple[Epoch, Collection[str]] = (0, ())  #: what the last sweep was told

    def open(self, life: Life, position: int) -> "MemoryEgress":
        """The egress of one life, which goes on at `position`."""
        if life.name in self._files:
            raise StorageError(f"the egress of {life.name} was opened before")
        file = self._files[life.name] = _File(life, position, position, position)
        return MemoryEgress(file, self._clock)

    def crash(self, life: Life) -> None:
        """Drop what a life did not sync, as its crash would."""
        file = self._files.get(life.name)
        if file is None:
            return
        while file.starts and file.starts[-1] >= file.synced:
            for each in (file.starts, file.batches, file.times):
                each.pop()
        file.position = file.synced

    def synced(self, life: Life) -> int | None:
        """Rows of the timeline that are durable in the file of a life; None if it has none."""
        file = self._files.get(life.name)
        return None if file is None else file.synced

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        verdict = self._chain.judge(number, extents)
        if verdict is not None:
            return verdict
        for task, extent in extents.items():
            file = self._files.get(extent.file)
            if file is None:
                raise StorageError(f"{task} has no egress file {extent.file}")
            if extent.start == extent.stop:
                continue
            if extent.start < file.first:
                raise StorageError(f"{extent} of {task} begins before its file, at {file.first}")
            if extent.stop > file.synced:
                raise StorageError(f"{extent} of {task} is synced only through {file.synced}")
        self._chain.add(number, extents)
        if self._retain_ms is not None:
            self._kept.append((number, dict(extents), self._clock()))
        return True

    def compact(self, through: int) -> None:
        """Delete what is too old, up to a number."""
        until_ms = self._clock() - (self._retain_ms or 0)
        while self._kept and self._kept[0][0] <= through and self._kept[0][2] <= until_ms:
            number, extents, at_ms = self._kept.pop(0)
            rows = {task: extent.stop for task, extent in extents.items()}
            floor = self._chain.floor
            self._chain.raise_floor(Floor(floor.place + 1, number, {**floor.rows, **rows}, at_ms))
        for file in self._files.values():
            file.drop(self._chain.floor.rows.get(file.life.task, 0))
        if self._retain_ms is not None:
            self._delete_past()

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is."""
        return self._chain.last

    def check(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Compare what is public with what was decided: see `ManifestChain.hold_against`."""
        self._chain.hold_against(decided, through, rows)

    def sweep(self, before: Epoch, held: Collection[str], *, written: bool) -> None:
        """Delete the files of past epochs of which nothing is, or will be, public."""
        self._past = (before, held)
        if written or self._retain_ms is not None:
            self._delete_past()

    def _delete_past(self) -> None:
        before, held = self._past
        public = {*self._chain.files(), *held}
        for name, file in tuple(self._files.items()):
            if file.life.epoch < before and name not in public:
                del self._files[name]

    def epochs(self) -> Iterator[Epoch]:
        """The epochs in which lives opened an egress."""
        return (file.life.epoch for file in self._files.values())

    # For those who read the output.

    def readable(self) -> ManifestChain:
        """The manifests as readers find them."""
        return self._chain

    def tasks(self) -> Sequence[TaskId]:
        """The sink tasks that ever opened an egress, in order."""
        return sorted({file.life.task for file in self._files.values()})

    def pieces(self, task: TaskId, view: View) -> Sequence[OutputPiece]:
        """Where the rows of a sink task lie, in order."""
        if view == "committed":
            return self.readable().pieces(task)
        lives = [file.life for file in self._files.values() if file.life.task == task]
        lives.sort(key=lambda life: (life.epoch, life.incarnation))
        return [OutputPiece(life.name, 0, None) for life in lives]

    def published(self) -> int:
        """How many manifests are public by now."""
        return len(self.readable())

    def floor(self) -> Floor:
        """What was deleted by now."""
        return self.readable().floor

    def pieces_between(self, task: TaskId, after: int, through: int) -> Sequence[OutputPiece]:
        """Where the rows lie that the manifests after < n <= through made public, in order."""
        return self.readable().between(task, after, through)

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece, batch by batch."""
        file = self._files.get(piece.file)
        if file is None:
            raise ObjectMissing(f"there is no egress file {piece.file}")
        floor, task = self.readable().floor, file.life.task
        if piece.stop is not None and piece.start < floor.rows.get(task, 0):
            raise floor.deleted_rows(task, piece.start)
        at = max(piece.start, file.starts[0] if file.starts else file.first)
        for at_ms, rows in file.rows(at, file.position if piece.stop is None else piece.stop):
            yield WrittenRows(at, at_ms, rows)
            at += len(rows)
        if piece.stop is not None and at < piece.stop:
            raise ObjectMissing(f"{piece.file} ends before row {piece.stop}, at row {at}")

    def follow(self) -> "MemoryFollower":
        """Return a reader that begins at the first row and follows the output as it is written."""
        return MemoryFollower(self)


class MemoryFollower:
    """An `OutputFollower` of output in memory."""

    def __init__(self, outlet: MemoryOutlet) -> None:
        self._outlet = outlet
        self._manifests = 0  #: how many were read
        self._next: dict[str, int] = {}  #: the first row of each file that was not read

    def published(self) -> Iterator[Mapping[TaskId, Extent]]:
        """The manifests that came since the last call, one after the other."""
        for extents in self._outlet.readable().since(self._manifests):
            self._manifests += 1
            yield extents

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece that were not read before."""
        start = max(piece.start, self._next.get(piece.file, 0))
        for written in self._outlet.read(piece._replace(start=start)):
            self._next[piece.file] = written.first + len(written.rows)
            yield written


class MemoryEgress:
    """An `Egress` in a list."""

    def __init__(self, file: _File, clock: Callable[[], int]) -> None:
        self._file = file
        self._clock = clock

    @property
    def file(self) -> str:
        """The name of the file, unique to this life."""
        return self._file.life.name

    @property
    def position(self) -> int:
        """Rows of this timeline that were appended, earlier lives included."""
        return self._file.position

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        if len(batch):
            self._file.starts.append(self._file.position)
            self._file.batches.append(batch)
            self._file.times.append(self._clock())
            self._file.position += len(batch)

    def cut(self) -> None:
        """Do nothing: a manifest may end at any row."""

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.start_sync().finish()

    def flush(self) -> None:
        """Do nothing: others can read what was appended at once."""

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        position = self._file.position
        return MemorySync(lambda: self._settle(position))

    def _settle(self, position: int) -> None:
        file = self._file
        # After a crash `file.position` is lower than the position at which this sync began.
        file.synced = max(file.synced, min(position, file.position))
