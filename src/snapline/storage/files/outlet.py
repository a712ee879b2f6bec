"""Output as files: one file of rows per life of a sink, and a chain of manifests that publishes rows."""

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import Epoch, TaskId
from snapline.storage.api import Extent, Life, PendingSync
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.manifests import FileManifests
from snapline.storage.files.places import named_in, sync_directory
from snapline.storage.files.rows import RowScan, RowWriter

SUFFIX = ".egress"
_LIFE = re.compile(r".+\.e(\d+)\.i\d+")


def egress_path(output: Path, file: str) -> Path:
    """The path of the egress file of this name. ObjectDamaged if the name leads elsewhere."""
    return named_in(output, f"{file}{SUFFIX}")


class FileOutlet:
    """An `Outlet` in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileManifests(directory / "manifests")
        self._scans: dict[str, RowScan] = {}

    def open(self, life: Life, position: int) -> "FileEgress":
        """The egress of one life, which goes on at `position`."""
        path = self._path(life.name)
        if path.exists():
            raise StorageError(f"the egress of {life.name} was opened before: {path} exists")
        return FileEgress(life.name, RowWriter(path, position))

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        while True:
            self._manifests.refresh()
            verdict = self._manifests.chain.judge(number, extents)
            if verdict is not None:
                return verdict
            for task, extent in extents.items():
                self._require_durable(task, extent)
            if self._manifests.add(number, extents):
                return True

    def _require_durable(self, task: TaskId, extent: Extent) -> None:
        try:
            found = self._scan(extent.file)
        except ObjectMissing as error:
            raise ObjectMissing(
                f"{task} has no egress file {extent.file}: there is no {self._path(extent.file)}"
            ) from error
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
        found.make_durable()
        with unavailable_on_os_error(f"sync {self._directory}"):
            sync_directory(self._directory)

    def compact(self, through: int) -> None:
        """Keep the manifests up to a number in few files, and forget them."""
        self._manifests.compact(through)
        self._manifests.chain.forget(through)

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
        for file in [file for file in self._scans if _epoch(file) < before]:
            del self._scans[file]  # nothing more is published of it, unless it is held
        if not written:
            return
        self._manifests.refresh()
        needed = {*self._manifests.chain.files(), *held}
        with unavailable_on_os_error(f"sweep {self._directory}"):
            for path in self._directory.glob(f"*{SUFFIX}"):
                if _epoch(path.stem) < before and path.stem not in needed:
                    path.unlink(missing_ok=True)

    def _scan(self, file: str) -> RowScan:
        found = self._scans.get(file) or RowScan(self._path(file))
        found.refresh()
        self._scans[file] = found
        return found

    def _path(self, file: str) -> Path:
        return egress_path(self._directory, file)


def _epoch(file: str) -> Epoch:
    """The epoch of the life that wrote an egress file; that of a stranger's file is beyond all."""
    found = _LIFE.fullmatch(file)
    return int(found[1]) if found else sys.maxsize


class FileEgress:
    """An `Egress` in a file of rows."""

    def __init__(self, file: str, rows: RowWriter) -> None:
        self._file = file
        self._rows = rows

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
        self._rows.append(batch)

    def cut(self) -> None:
        """Do nothing: a manifest may end at any row of the file."""

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self._rows.sync()

    def flush(self) -> None:
        """Let everything appended so far be read by others, durable or not."""
        self._rows.flush()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        return self._rows.start_sync()

    def close(self) -> None:
        """Let go of the file. What was not synced may be gone."""
        self._rows.close()
