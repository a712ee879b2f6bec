"""Files of numbered rows: each frame has a batch, the number of its first row, and when it was written.

One life of a sink begins with the file `<life>.egress`. Where output is kept for a while only, it goes on
to another file now and then: `<life>.r<row>.egress`, whose first row is that one. So old rows are deleted
file by file. Manifests and extents name the life alone, and know nothing of this.
"""

import os
import re
import struct
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from snapline.batch import Batch
from snapline.batch_form import decode, pieces_of
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import Epoch, TaskId, task_id
from snapline.storage.api import WrittenRows
from snapline.storage.files.frames import (
    Appender,
    FileSync,
    check_frames,
    scan,
    skim,
    unavailable_on_os_error,
    walk_from,
)
from snapline.storage.files.places import named_in

SUFFIX = ".egress"
_SEGMENT = re.compile(
    r"(?P<life>(?P<sink>.+)-(?P<index>\d+)\.e(?P<epoch>\d+)\.i(?P<incarnation>\d+))"
    r"(?:\.r(?P<first>\d+))?" + re.escape(SUFFIX)
)
_FIRST = struct.Struct("<QIQ")  # number of the first row, number of rows, when: Unix time in ms


class RowWriter:
    """The one writer of a file of rows, which begins at row `position` of its timeline."""

    def __init__(self, path: Path, position: int) -> None:
        self._appender = Appender(path)
        self.position = position  #: the number of the next row

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        if len(batch):
            first = _FIRST.pack(self.position, len(batch), time.time_ns() // 1_000_000)
            self._appender.append(*pieces_of(batch, first))
            self.position += len(batch)

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self._appender.sync()

    def flush(self) -> None:
        """Let everything appended so far be read by others, durable or not."""
        self._appender.flush()

    def start_sync(self) -> FileSync:
        """Begin to make everything appended so far durable, in the background."""
        return self._appender.start_sync()

    def close(self) -> None:
        """Let go of the file. What was not flushed is gone."""
        self._appender.close()


class RowScan:
    """Finds out which rows stand in a file that may still grow, without keeping the rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0  #: how many bytes were scanned
        self.start = 0  #: the number of the first row that was found
        self.stop = 0  #: behind the last row that was found
        self.damaged = False  #: whether what stands behind them was durable once, and is broken now

    def refresh(self) -> None:
        """Look for rows that were added since."""
        if not self._path.exists():
            raise ObjectMissing(f"there is no {self._path}")
        found = scan(self._path, self._end)
        for at, payload in found.frames:
            first, count, _ = _FIRST.unpack_from(payload)
            self.start = self.start if at else first
            self.stop = first + count
        self._end, self.damaged = found.end, found.damaged

    def make_durable(self) -> None:
        """Sync what the file holds by now: its writer may have died before it could."""
        with unavailable_on_os_error(f"sync {self._path}"):
            fd = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def walk_written(path: Path, start: int = 0, stop: int | None = None) -> Iterator[WrittenRows]:
    """The rows start <= n < stop frame by frame, or all that are whole: however large the file.

    Frames before `start` are skipped unread. Raises ObjectMissing or ObjectDamaged at the end if rows
    before `stop` are not there.
    """
    if not path.exists():
        raise ObjectMissing(f"there is no {path}")
    at, place = start, _place_of(path, start)
    for behind, payload in walk_from(path, place):
        first, count, at_ms = _FIRST.unpack_from(payload)
        if stop is not None and first >= stop:
            break
        if first + count > start:
            batch = decode(payload[_FIRST.size :])
            part = batch.slice(max(0, start - first), len(batch) if stop is None else stop - first)
            yield WrittenRows(max(start, first), at_ms, part)
            at = max(start, first) + len(part)
        place = behind
    if stop is not None and at < stop:
        raise _lacking(path, place, at, stop)


def _place_of(path: Path, row: int) -> int:
    """The place of the first frame that reaches beyond a row.

    If none does, or one is damaged, that of the first frame: whoever reads on from there finds out why.
    """
    if row:
        for at, start in skim(path):
            if len(start) < _FIRST.size:
                break
            first, count, _ = _FIRST.unpack_from(start)
            if first + count > row:
                return at
    return 0


def check_rows(path: Path, start: int, stop: int) -> None:
    """Read a whole file of rows, and see that the rows start <= n < stop stand in it without a gap.

    Raises ObjectMissing or ObjectDamaged. Rows are not decoded: the checksum of a frame covers them.
    """
    if not path.exists():
        raise ObjectMissing(f"there is no {path}")
    at = place = 0
    for behind, payload in walk_from(path, 0):
        if len(payload) < _FIRST.size:
            raise ObjectDamaged(f"{path} is no file of rows")
        first, count, _ = _FIRST.unpack_from(payload)
        if first != at and (place or first > start):
            raise ObjectDamaged(f"{path}: row {first} stands where row {max(at, start)} should")
        at, place = first + count, behind
    check_frames(path, place)
    if at < stop:
        raise ObjectMissing(f"{path} ends before row {stop}, at row {at}")


def _lacking(path: Path, place: int, row: int, stop: int) -> StorageError:
    """Why the rows from `row` to `stop` are not there, in a file that is whole up to `place`."""
    found = scan(path, place)
    if found.damaged:
        return ObjectDamaged(f"{path} is damaged at byte {found.end}, behind row {row} of {stop}")
    return ObjectMissing(f"{path} ends before row {stop}, at row {row}")


class RowTail:
    """Reads a file of rows while it grows: every row at most once, every byte about once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0  #: of the first frame that was not wholly read
        self._next = 0  #: the first row that was not read

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[WrittenRows]:
        """The rows from `start` on that were not read before, up to `stop`, or all that are whole by now.

        Raises ObjectMissing or ObjectDamaged at the end if rows before `stop` are not there.
        """
        self._next = max(self._next, start)
        for behind, payload in walk_from(self._path, self._place):
            first, count, at_ms = _FIRST.unpack_from(payload)
            until = first + count if stop is None else min(first + count, stop)
            if until > self._next:
                begin, self._next = max(self._next, first), until
                rows = decode(payload[_FIRST.size :]).slice(begin - first, until - first)
                yield WrittenRows(begin, at_ms, rows)
            if until < first + count:
                break
            self._place = behind
        if stop is not None and self._next < stop:
            raise _lacking(self._path, self._place, self._next, stop)


# The files of a life.


class RowFile(NamedTuple):
    """One of the files of a life."""

    first: (
        int  # the number of its first row; 0 for the first file of a life, whatever it begins with
    )
    path: Path


class FileRows(NamedTuple):
    """Rows start <= n < stop of one file; a stop of None means all that are whole by now."""

    path: Path
    start: int
    stop: int | None


class WrittenLife(NamedTuple):
    """A life of a sink task that has files."""

    task: TaskId
    epoch: Epoch
    incarnation: int
    name: str


def egress_path(output: Path, life: str) -> Path:
    """The path of the first file of a life. ObjectDamaged if its name leads elsewhere."""
    return named_in(output, f"{life}{SUFFIX}")


def later_path(output: Path, life: str, first: int) -> Path:
    """The path of a later file of a life, which begins with row `first`."""
    return named_in(output, f"{life}.r{first}{SUFFIX}")


def epoch_of(life: str) -> Epoch:
    """The epoch of a life, by its name."""
    found = _SEGMENT.fullmatch(f"{life}{SUFFIX}")
    return int(found["epoch"]) if found else sys.maxsize


def task_of(life: str) -> TaskId:
    """The task of a life, by its name; empty if it is a stranger's."""
    found = _SEGMENT.fullmatch(f"{life}{SUFFIX}")
    return task_id(found["sink"], int(found["index"])) if found else TaskId("")


def lives_in(output: Path) -> dict[WrittenLife, list[RowFile]]:
    """All lives that have files, in order, each with its files in the order of their rows."""
    found: dict[WrittenLife, list[RowFile]] = {}
    for path, match in _matches(output):
        task = task_id(match["sink"], int(match["index"]))
        life = WrittenLife(task, int(match["epoch"]), int(match["incarnation"]), match["life"])
        found.setdefault(life, []).append(RowFile(int(match["first"] or 0), path))
    return {life: sorted(found[life]) for life in sorted(found)}


def segments_of(output: Path, life: str) -> list[RowFile]:
    """The files of a life, in the order of their rows."""
    egress_path(output, life)  # raises if this is no name
    matches = ((path, match) for path, match in _matches(output, life) if match["life"] == life)
    return sorted(RowFile(int(match["first"] or 0), path) for path, match in matches)


def _matches(output: Path, begin: str = "") -> Iterator[tuple[Path, re.Match[str]]]:
    with unavailable_on_os_error(f"list {output}"):
        there = os.listdir(output) if output.is_dir() else []
    names = [name for name in there if name.startswith(begin)]
    for name in names:
        if match := _SEGMENT.fullmatch(name):
            yield output / name, match


def stretches(output: Path, life: str, start: int, stop: int | None) -> list[FileRows]:
    """Where the rows start <= n < stop of a life lie, in order.

    Where there is no file for the first of them, the first file of the life is named, which is missing.
    """
    if stop is not None and start >= stop:
        return []
    found, files = [], segments_of(output, life)
    if not files or (stop is not None and files[0].first > start):
        files.insert(0, RowFile(0, egress_path(output, life)))
    ends = [*(later.first for _, later in pairwise(files)), None]
    for (first, path), end in zip(files, ends, strict=True):
        if (end is not None and end <= start) or (stop is not None and first >= stop):
            continue
        until = stop if stop is None or end is None else min(stop, end)
        found.append(FileRows(path, max(start, first), until))
    return found


class LifeScan:
    """Finds out which rows of a life stand in its files, which may still grow, without keeping them."""

    def __init__(self, output: Path, life: str) -> None:
        self._output = output
        self._life = life
        self._scans: list[RowScan] = []
        self._firsts: list[int] = []

    def reach(self, row: int) -> None:
        """Look for rows that were added since, up to this one. ObjectMissing if there is no file."""
        if self._scans:
            self._scans[-1].refresh()
        if not self._scans or (self.stop < row and not self.damaged):
            for first, path in segments_of(self._output, self._life):
                if not self._firsts or first > self._firsts[-1]:
                    self._firsts.append(first)
                    self._scans.append(RowScan(path))
                    self._scans[-1].refresh()
        if not self._scans:
            raise ObjectMissing(f"there is no {egress_path(self._output, self._life)}")

    @property
    def start(self) -> int:
        """The first row that was found."""
        return self._scans[0].start

    @property
    def stop(self) -> int:
        """Behind the last row that was found without a gap."""
        stop = self._scans[0].stop
        for first, each in zip(self._firsts[1:], self._scans[1:], strict=True):
            if first != stop:
                break
            stop = max(stop, each.stop)
        return stop

    @property
    def damaged(self) -> bool:
        """Whether what stands behind these rows was durable once, and is broken now."""
        return any(each.damaged for each in self._scans)

    def make_durable(self, start: int) -> None:
        """Sync the files that have rows from this one on: their writer may have died before it could."""
        for each in self._scans:
            if each.stop > start:
                each.make_durable()
