"""Output as files: one file of rows per life of a sink, and a chain of manifests.

The manifests are objects numbered 1, 2, 3 in the order in which they were published, whatever the numbers
their publishers use: the next one is written only if nobody wrote it before. So two publishers
that race can never both continue at the same row.

A manifest that is gone in the middle is told from the end of the chain when the chain is first read: the
next places are looked at, too. The loss of the last ones only shows to whoever knows what was decided
(`check`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import TaskId, task_id
from snapline.storage.api import Extent, Life, PendingSync
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import named_in, sync_directory
from snapline.storage.files.rows import (
    RowReader,
    RowTail,
    RowWriter,
    WrittenRows,
    walk_rows,
    walk_written,
)
from snapline.storage.files.store import FileStore
from snapline.storage.manifest import ManifestChain

WINDOW = 64
"""So many places behind the apparent end are looked at: a shorter gap is never taken for the end."""

_NAME = re.compile(r"(?P<task>.+)\.e(?P<epoch>\d+)\.i(?P<incarnation>\d+)\.egress")


class FileOutlet:
    """An `Outlet` in a directory, and the place where sinks open their egress."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileStore(directory / "manifests")
        self._chain = ManifestChain()
        self._looked_beyond = False  #: whether the end of the chain is known to be its end
        self._readers: dict[str, RowReader] = {}

    def open(self, life: Life, position: int) -> "FileEgress":
        """The egress of one life, which goes on at `position`."""
        path = self._path(life.name)
        if path.exists():
            raise StorageError(f"the egress of {life.name} was opened before: {path} exists")
        return FileEgress(life.name, RowWriter(path, position))

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        while True:
            self._refresh()
            verdict = self._chain.judge(number, extents)
            if verdict is not None:
                return verdict
            for task, extent in extents.items():
                self._require_durable(task, extent)
            if self._manifests.put_if_absent(str(len(self._chain) + 1), _encode(number, extents)):
                self._chain.add(number, extents)
                return True

    def _require_durable(self, task: TaskId, extent: Extent) -> None:
        try:
            reader = self._reader(extent.file)
        except ObjectMissing as error:
            raise ObjectMissing(
                f"{task} has no egress file {extent.file}: there is no {self._path(extent.file)}"
            ) from error
        if extent.start == extent.stop:
            return
        if extent.start < reader.start:
            raise ObjectDamaged(
                f"{extent} of {task} begins before its file, {self._path(extent.file)}, at {reader.start}"
            )
        if extent.stop > reader.stop:
            where = self._path(extent.file)
            if reader.damaged:
                raise ObjectDamaged(f"{where} is damaged behind row {reader.stop}")
            raise ObjectMissing(
                f"{extent} of {task} is synced only through {reader.stop}: {where} ends there"
            )
        # What we can read may still be in the page cache alone: a lost mark proves nothing.
        reader.make_durable()
        with unavailable_on_os_error(f"sync {self._directory}"):
            sync_directory(self._directory)

    def committed(self, task: TaskId) -> Sequence[Batch]:
        """What was published of a sink task, in order."""
        self._refresh()
        return [
            part
            for extent in self._chain.extents(task)
            if extent.start < extent.stop
            for part in self._reader(extent.file).rows(extent.start, extent.stop)
        ]

    def uncommitted(self, task: TaskId) -> Sequence[Batch]:
        """All that any life of a sink task wrote and no crash took away."""
        return [batch for name in self.files().get(task, ()) for batch in self._reader(name).all()]

    def files(self) -> dict[TaskId, list[str]]:
        """The egress files of each sink task that ever wrote one, in the order of its lives."""
        lives = []
        for path in self._directory.glob("*.egress"):
            if match := _NAME.fullmatch(path.name):
                name, _, index = match["task"].rpartition("-")
                rank = int(match["epoch"]), int(match["incarnation"])
                lives.append((task_id(name, int(index)), rank, path.stem))
        files: dict[TaskId, list[str]] = {}
        for task, _, file in sorted(lives):
            files.setdefault(task, []).append(file)
        return files

    def extents(self, task: TaskId) -> list[Extent]:
        """The rows that were published of a sink task, in order: one extent per file."""
        self._refresh()
        merged: dict[str, Extent] = {}
        for extent in self._chain.extents(task):
            if extent.start < extent.stop:
                # The extents of a task continue each other, and a file that was left is left for good.
                first = merged.get(extent.file, extent)
                merged[extent.file] = Extent(extent.file, first.start, extent.stop)
        return list(merged.values())

    def walk(self, file: str, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Rows of an egress file, a few at a time; see `walk_rows`."""
        return walk_rows(self._path(file), start, stop)

    def walk_written(
        self, file: str, start: int = 0, stop: int | None = None
    ) -> Iterator[WrittenRows]:
        """The same, with the number of the first of them, and when they were written."""
        return walk_written(self._path(file), start, stop)

    def tail(self, file: str) -> RowTail:
        """Whoever reads the rows of an egress file as they come."""
        return RowTail(self._path(file))

    def manifest(self, place: int) -> Mapping[TaskId, Extent] | None:
        """What was published together as the first, the second, ...; None if that is yet to come."""
        try:
            return _decode(self._manifests.get(str(place)))[1]
        except ObjectMissing:
            return None

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is.

        It is for those who number their manifests 1, 2, 3: ObjectDamaged if these are not.
        """
        self._refresh()
        count, last = len(self._chain), self._chain.last
        if count != last:
            where = self._directory / "manifests"
            raise ObjectDamaged(
                f"{where}: {count} manifests end with number {last}: one was replaced"
            )
        return last

    def check(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Hold what is public against what was decided: see `ManifestChain.hold_against`."""
        self._refresh()
        try:
            self._chain.hold_against(decided, through, rows)
        except StorageError as error:
            raise type(error)(f"{self._directory / 'manifests'}: {error}") from error

    def _refresh(self) -> None:
        """Learn what others published since."""
        self._read_on()
        while not self._looked_beyond:
            place = len(self._chain) + 1
            later = next((n for n in range(place + 1, place + 1 + WINDOW) if self._has(n)), None)
            self._looked_beyond = later is None
            if later is not None:
                if not self._has(place):  # another may have published it since
                    where = self._manifests.path(str(place))
                    raise ObjectMissing(f"{where} is gone: manifests behind it are there")
                self._read_on()

    def _read_on(self) -> None:
        while True:
            place = str(len(self._chain) + 1)
            try:
                manifest = self._manifests.get(place)
            except ObjectMissing:
                return
            where = self._manifests.path(place)
            try:
                number, extents = _decode(manifest)
                if self._chain.judge(number, extents) is not None:
                    raise ObjectDamaged(f"manifest {number} is there twice")
            except (ValueError, LookupError, TypeError, ObjectDamaged) as error:
                raise ObjectDamaged(f"{where} is not what was published: {error}") from error
            self._chain.add(number, extents)

    def _has(self, place: int) -> bool:
        try:
            self._manifests.get(str(place))
        except ObjectMissing:
            return False
        except ObjectDamaged:
            return True
        return True

    def _reader(self, file: str) -> RowReader:
        reader = self._readers.get(file) or RowReader(self._path(file))
        reader.refresh()
        self._readers[file] = reader
        return reader

    def _path(self, file: str) -> Path:
        return named_in(self._directory, f"{file}.egress")


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


def _encode(number: int, extents: Mapping[TaskId, Extent]) -> bytes:
    rows = {task: [extent.file, extent.start, extent.stop] for task, extent in extents.items()}
    return json.dumps({"number": number, "extents": rows}).encode()


def _decode(data: bytes) -> tuple[int, dict[TaskId, Extent]]:
    try:
        manifest = json.loads(data)
        extents = {TaskId(task): Extent(*extent) for task, extent in manifest["extents"].items()}
        return manifest["number"], extents
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ObjectDamaged(f"it is no manifest: {error}") from error
