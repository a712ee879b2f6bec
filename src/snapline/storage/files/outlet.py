"""Output as files: rows of each life of a sink, and a chain of manifests that publishes them.

Where output is kept for a while only, what is older is deleted from the first row on, in four steps: the
floor is written, which says how far it will be deleted, THEN the manifests below it go, THEN files of which
no row is left, THEN lower floors. Whoever is killed in between leaves what the next one deletes.
"""

import time
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from pathlib import Path

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import Epoch, Millis, TaskId
from snapline.storage.api import Extent, Life, PendingSync
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.manifests import DELETED_AT_ONCE, FileManifests
from snapline.storage.files.places import sync_directory
from snapline.storage.files.rows import (
    LifeScan,
    RowWriter,
    egress_path,
    epoch_of,
    later_path,
    lives_in,
    segments_of,
)

SEGMENTS = 8
"""Into how many files the rows are cut that a life writes while output is kept."""

LOOKS = 16
"""How many times, while output is kept, somebody looks for what is older."""


def unix_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class FileOutlet:
    """An `Outlet` in a directory; `retain_ms` is for how long output is kept, None for ever."""

    def __init__(
        self,
        directory: Path,
        retain_ms: Millis | None = None,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        self._directory = directory
        self._retain_ms = retain_ms
        self._clock = clock
        self._manifests = FileManifests(directory / "manifests")
        self._scans: dict[str, LifeScan] = {}
        self._past: tuple[Epoch, Collection[str]] = (0, ())  #: what the last sweep was told
        self._looked_ms: int | None = None  #: when all that was older was deleted

    def open(self, life: Life, position: int) -> "FileEgress":
        """The egress of one life, which goes on at `position`."""
        if files := segments_of(self._directory, life.name):
            raise StorageError(
                f"the egress of {life.name} was opened before: {files[0].path} exists"
            )
        roll_ms = None if self._retain_ms is None else self._retain_ms // SEGMENTS
        return FileEgress(self._directory, life.name, position, roll_ms, self._clock)

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        while True:
            self._manifests.refresh()
            verdict = self._manifests.chain.judge(number, extents)
            if verdict is not None:
                return verdict
            for task, extent in extents.items():
                self._require_durable(task, extent)
            if self._manifests.add(number, extents, self._clock()):
                return True

    def _require_durable(self, task: TaskId, extent: Extent) -> None:
        found = self._scans.setdefault(extent.file, LifeScan(self._directory, extent.file))
        try:
            found.reach(extent.stop)
        except ObjectMissing as error:
            raise ObjectMissing(f"{task} has no egress file {extent.file}: {error}") from error
        if extent.start == extent.stop:
            return
        if extent.start < found.start:
            raise ObjectDamaged(
                f"{extent} of {task} begins before its file, {self._path(extent.file)}, at {found.start}"
            )
        if extent.stop > found.stop:
            where = self._path(extent.file)
            if found.damaged:
                raise ObjectDamaged(f"{where} is damaged behind row {found.stop}")
            raise ObjectMissing(
                f"{extent} of {task} is synced only through {found.stop}: {where} ends there"
            )
        # What can be read may still be in the page cache alone: sync it BEFORE it becomes public.
        found.make_durable(extent.start)
        with unavailable_on_os_error(f"sync {self._directory}"):
            sync_directory(self._directory)

    def compact(self, through: int) -> None:
        """Keep the manifests up to a number in few files, forget them, and delete what is too old."""
        self._manifests.compact(through)
        self._manifests.chain.forget(through)
        if self._retain_ms is not None:
            self._delete_old(self._retain_ms, through)

    def _delete_old(self, retain_ms: Millis, through: int) -> None:
        """Delete what was published too long ago, a little at a time, up to a manifest."""
        now_ms = self._clock()
        looked_ms = self._looked_ms
        if looked_ms is not None and 0 <= now_ms - looked_ms < retain_ms // LOOKS:
            return
        self._manifests.refresh()
        before = self._manifests.chain.floor.place
        floor = self._manifests.next_floor(now_ms - retain_ms, through)
        if floor.place > before:
            self._manifests.write_floor(floor)  # BEFORE anything is deleted
        if floor.place > before or looked_ms is None:  # another may have died in the middle of it
            self._manifests.delete_below()
            self._delete_rows()
            self._manifests.delete_lower_floors()
        self._looked_ms = now_ms if floor.place < before + DELETED_AT_ONCE else self._looked_ms

    def _delete_rows(self) -> None:
        """Delete the files of which no row is left above the floor, oldest first.

        No row below the floor is ever read or published again, in whichever life it was written: so a file
        can go as soon as the next one of its life begins below the floor, or at it.
        """
        rows = self._manifests.chain.floor.rows
        with unavailable_on_os_error(f"delete rows in {self._directory}"):
            for life, files in lives_in(self._directory).items():
                for file, later in pairwise(files):
                    if later.first <= rows.get(life.task, 0):
                        file.path.unlink(missing_ok=True)
        self._delete_past()

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is.

        Whoever asks numbers manifests 1, 2, 3 and so on: ObjectDamaged if these are not numbered so.
        """
        self._manifests.refresh()
        count, last = len(self._manifests.chain), self._manifests.chain.last
        if count != last:
            raise ObjectDamaged(
                f"{self._manifests.path}: {count} manifests end with number {last}: one was replaced"
            )
        return last

    def check(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Compare what is public with what was decided: see `ManifestChain.hold_against`."""
        self._manifests.refresh()
        try:
            self._manifests.chain.hold_against(decided, through, rows)
        except StorageError as error:
            raise type(error)(f"{self._manifests.path}: {error}") from error

    def sweep(self, before: Epoch, held: Collection[str], *, written: bool) -> None:
        """Delete the files of past epochs of which nothing is, or will be, public."""
        for file in [file for file in self._scans if epoch_of(file) < before]:
            del self._scans[file]  # nothing more is published of it, unless it is held
        self._past = (before, held)
        if written or self._retain_ms is not None:
            self._manifests.refresh()
            self._delete_past()

    def _delete_past(self) -> None:
        """Delete all files of lives of past epochs of which nothing is, or will be, public."""
        before, held = self._past
        needed = {*self._manifests.chain.files(), *held}
        with unavailable_on_os_error(f"sweep {self._directory}"):
            for life, files in lives_in(self._directory).items():
                if life.epoch < before and life.name not in needed:
                    for file in files:
                        file.path.unlink(missing_ok=True)

    def _path(self, file: str) -> Path:
        return egress_path(self._directory, file)


class FileEgress:
    """An `Egress` in a file of rows, or in several: it goes on to another one after `roll_ms`.

    It does so at a checkpoint, never within what is written at once.
    """

    def __init__(
        self,
        directory: Path,
        file: str,
        position: int,
        roll_ms: Millis | None = None,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        self._directory = directory
        self._file = file
        self._roll_ms = roll_ms
        self._clock = clock
        self._rows = RowWriter(egress_path(directory, file), position)
        self._left: list[RowWriter] = []  #: files that it has left, and that may not be durable yet
        self._begun_ms: int | None = None  #: when the file got its first row
        self._full = False  #: whether the next row begins another file

    @property
    def file(self) -> str:
        """The name of the file, unique to this life."""
        return self._file

    @property
    def position(self) -> int:
        """Rows of this timeline that were appended, earlier lives included."""
        return self._rows.position

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        if not len(batch) or self._roll_ms is None:
            self._rows.append(batch)
            return
        if self._full:
            self._roll()
        self._rows.append(batch)
        self._begun_ms = self._clock() if self._begun_ms is None else self._begun_ms

    def _roll(self) -> None:
        self._rows.flush()  # so that no crash of this process takes rows before those that follow
        path = later_path(self._directory, self._file, self.position)
        rows = RowWriter(path, self.position)
        self._left.append(self._rows)
        self._rows, self._begun_ms, self._full = rows, None, False

    def cut(self) -> None:
        """Let the next row begin another file, if this one is old enough."""
        if self._roll_ms is not None and self._begun_ms is not None:
            self._full = self._full or self._clock() - self._begun_ms >= self._roll_ms

    def sync(self) -> None:
        """Make everything appended so far durable."""
        pending = self.start_sync()
        pending.wait()
        pending.finish()

    def flush(self) -> None:
        """Let everything appended so far be read by others, durable or not."""
        self._rows.flush()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        if not self._left:
            return self._rows.start_sync()
        left = tuple(self._left)
        return _SegmentSync([rows.start_sync() for rows in (*left, self._rows)], self, left)

    def leave(self, left: Collection[RowWriter]) -> None:
        """Let go of files that are durable, and to which nothing is added any more."""
        self._left = [rows for rows in self._left if rows not in left]

    def close(self) -> None:
        """Let go of the files. What was not synced may be gone."""
        for rows in (*self._left, self._rows):
            rows.close()


class _SegmentSync:
    """A `PendingSync` of the files that an egress has left, and of the one that it is at."""

    def __init__(
        self, syncs: Collection[PendingSync], egress: FileEgress, left: Collection[RowWriter]
    ) -> None:
        self._syncs = syncs
        self._egress = egress
        self._left = left

    def wait(self) -> None:
        """Wait for the disk."""
        for sync in self._syncs:
            sync.wait()

    def finish(self) -> None:
        """Note that all of it is durable."""
        for sync in self._syncs:
            sync.finish()
        self._egress.leave(self._left)
