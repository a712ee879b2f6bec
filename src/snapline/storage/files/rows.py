"""A file of numbered rows: each frame has a batch, the number of its first row, and when it was written."""

import os
import struct
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from snapline.batch import Batch, decode, pieces_of
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.storage.codec import FRAME_OVERHEAD, unframe
from snapline.storage.files.frames import (
    Appender,
    FileSync,
    scan,
    unavailable_on_os_error,
    walk,
    walk_from,
)

_FIRST = struct.Struct("<QIQ")  # number of the first row, number of rows, when: Unix time in ms


class WrittenRows(NamedTuple):
    """Rows that follow each other, and were written at once."""

    first: int  # the number of the first of them
    at_ms: int  # Unix time
    rows: Batch


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


class RowReader:
    """A reader of a file of rows, which may still grow."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0  #: of the bytes that were scanned
        self._starts: list[int] = []  #: number of the first row, per frame
        self._places: list[tuple[int, int]] = []  #: place and length, per frame
        self._damaged = False
        self.stop = 0  #: behind the last row that was found

    def refresh(self) -> None:
        """Look for rows that were added since."""
        if not self._path.exists():
            raise ObjectMissing(f"there is no {self._path}")
        found = scan(self._path, self._end)
        for at, payload in found.frames:
            first, count, _ = _FIRST.unpack_from(payload)
            self._starts.append(first)
            self._places.append((at, len(payload)))
            self.stop = first + count
        self._end, self._damaged = found.end, found.damaged

    @property
    def damaged(self) -> bool:
        """Whether what stands behind the rows that were found was durable once, and is broken now."""
        return self._damaged

    @property
    def start(self) -> int:
        """The number of the first row that was found."""
        return self._starts[0] if self._starts else 0

    def make_durable(self) -> None:
        """Sync what the file holds by now: its writer may have died before it could."""
        with unavailable_on_os_error(f"sync {self._path}"):
            fd = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def rows(self, start: int, stop: int) -> list[Batch]:
        """The rows start <= n < stop, as slices of what was appended."""
        if stop > self.stop and start < stop:
            self._explain(stop)
        parts = []
        with unavailable_on_os_error(f"read {self._path}"), self._path.open("rb") as file:
            for i in range(max(0, bisect_right(self._starts, start) - 1), len(self._starts)):
                first = self._starts[i]
                if first >= stop:
                    break
                place, length = self._places[i]
                file.seek(place)
                batch = self._decode(file.read(FRAME_OVERHEAD + length), place)
                part = batch.slice(max(0, start - first), stop - first)
                if len(part):
                    parts.append(part)
        return parts

    def all(self) -> list[Batch]:
        """All rows that were found."""
        return self.rows(self.start, self.stop)

    def _decode(self, data: bytes, place: int) -> Batch:
        payload = unframe(data)
        if payload is None:
            raise ObjectDamaged(f"the rows at byte {place} of {self._path} are damaged")
        return decode(payload[_FIRST.size :])

    def _explain(self, stop: int) -> None:
        if self._damaged:
            raise ObjectDamaged(f"{self._path} is damaged at byte {self._end}")
        raise ObjectMissing(f"{self._path} ends before row {stop}, at row {self.stop}")


def walk_rows(path: Path, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
    """The rows start <= n < stop frame by frame, or all that are whole: however large the file.

    Raises ObjectDamaged at the end if rows before `stop` are not there.
    """
    return (written.rows for written in walk_written(path, start, stop))


def walk_written(path: Path, start: int = 0, stop: int | None = None) -> Iterator[WrittenRows]:
    """The same, with the number of the first row of each frame, and when it was written."""
    at = start
    for payload in walk(path):
        first, count, at_ms = _FIRST.unpack_from(payload)
        if stop is not None and first >= stop:
            break
        if first + count > start:
            batch = decode(payload[_FIRST.size :])
            part = batch.slice(max(0, start - first), len(batch) if stop is None else stop - first)
            yield WrittenRows(max(start, first), at_ms, part)
            at = max(start, first) + len(part)
    if stop is not None and at < stop:
        raise ObjectDamaged(f"{path} has no whole rows behind row {at}, and {stop} were written")


class RowTail:
    """Reads a file of rows while it grows: every row at most once, every byte about once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0  #: of the first frame that was not wholly read
        self._next = 0  #: the first row that was not read

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[WrittenRows]:
        """The rows from `start` on that were not read before, up to `stop`, or all that are whole by now.

        Raises ObjectDamaged at the end if rows before `stop` are not there.
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
            told = f"{self._path} has no whole rows behind row {self._next}"
            raise ObjectDamaged(f"{told}, and {stop} were published")
