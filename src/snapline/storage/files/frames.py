"""Append-only files of frames: how they are written, and what may be found after a crash.

A crash leaves a *torn tail*: frames that were appended and not synced may be there, in part, or not at
all. That is legal, and reading stops before it. *Damage* is different: a frame that was durable and no
longer is what it was. To tell them apart, a writer adds a mark after every fsync: whatever stands before
a mark was durable, so a broken frame before one is damage. A mark may itself be lost in a crash; then
damage shortly before it passes for a torn tail, and what it held is reported as missing.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from snapline.errors import StorageError, StoreUnavailable
from snapline.storage.codec import FRAME_OVERHEAD, frame, unframe

_MARK = b"snapline: all before this was synced"
_MARK_PLACE = struct.Struct("<Q")  # where the mark stands, so that no record is taken for one
_BUFFER_BYTES_MAX = 1 << 20


class Appender:
    """A new file of frames with one writer."""

    def __init__(self, path: Path) -> None:
        with unavailable_on_os_error(f"create {path}"):
            make_directory(path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._fd: int | None = os.open(path, flags, 0o644)
        self.path = path
        self.size = 0  #: bytes appended, written or not
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._named = False  #: whether the directory entry is durable
        self._failed = False  #: after a failed write nobody knows what stands in the file

    def append(self, payload: bytes) -> int:
        """Add a frame and return its place. It leaves the process with the next flush or sync."""
        place = self.size
        self._add(frame(payload))
        if self._buffered > _BUFFER_BYTES_MAX:
            self.flush()
        return place

    def _add(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffered += len(data)
        self.size += len(data)

    def flush(self) -> None:
        """Hand everything to the operating system: readers see it, a crash may still take it."""
        fd = self._usable()
        data = memoryview(b"".join(self._buffer))
        with self._failing("write"):
            while data:
                data = data[os.write(fd, data) :]
        self._buffer.clear()
        self._buffered = 0

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.flush()
        with self._failing("sync"):
            os.fsync(self._usable())
            if not self._named:
                sync_directory(self.path.parent)
                self._named = True
        self._add(frame(_MARK + _MARK_PLACE.pack(self.size)))
        self.flush()  # at once: a mark in our memory proves nothing to others

    def close(self) -> None:
        """Let go of the file. What was not flushed is gone."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _usable(self) -> int:
        if self._fd is None:
            raise StorageError(f"{self.path} is closed")
        if self._failed:
            raise StorageError(f"an earlier write to {self.path} failed; it takes nothing more")
        return self._fd

    @contextmanager
    def _failing(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failed = True
            raise StoreUnavailable(f"cannot {verb} {self.path}: {error}") from error


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found in a file of frames from some place on."""

    frames: list[tuple[int, memoryview]]  #: place and payload
    end: int  #: behind the last whole frame
    damaged: bool  #: whether the frame at `end` was durable once


def scan(path: Path, start: int = 0) -> Scan:
    """Read the frames of a file, from the frame at `start` on."""
    with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
        file.seek(start)
        data = file.read()
    frames: list[tuple[int, memoryview]] = []
    at = 0
    while (payload := unframe(data, at)) is not None:
        if not _is_mark(payload, start + at):
            frames.append((start + at, payload))
        at += FRAME_OVERHEAD + len(payload)
    return Scan(frames, start + at, _has_mark(data, at, start))


def _is_mark(payload: memoryview, place: int) -> bool:
    return bytes(payload[: len(_MARK)]) == _MARK and payload[len(_MARK) :] == _MARK_PLACE.pack(
        place
    )


def _has_mark(data: bytes, at: int, start: int) -> bool:
    """Whether a mark stands anywhere behind a place."""
    found = data.find(_MARK, at)
    while found >= 0:
        place = found - FRAME_OVERHEAD
        payload = unframe(data, place) if place >= at else None
        if payload is not None and _is_mark(payload, start + place):
            return True
        found = data.find(_MARK, found + 1)
    return False


def make_directory(path: Path, *, inside: Path | None = None) -> None:
    """Create a directory durably, with those above it; `inside` is never made, but must be there."""
    if path.is_dir():
        return
    if path == inside:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_directory(path.parent, inside=inside)
    path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def unavailable_on_os_error(what: str) -> Iterator[None]:
    """Say what could not be done, in the words of the error tree."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"cannot {what}: {error}") from error
