"""A file of numbered rows: each frame has a batch, the number of its first row, and when it was written."""

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from snapline.batch import Batch
from snapline.batch_form import decode, pieces_of
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
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
