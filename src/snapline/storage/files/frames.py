"""Append-only files of frames: how they are written, and what may be found after a crash.

A crash leaves a *torn tail*: frames that were appended and not synced may be there, in part, or not at
all. That is legal, and reading stops before it. *Damage* is different: a frame that was durable and no
longer is what it was. To tell them apart, a writer adds a mark after every fsync, which says how far the
file was durable then: a broken frame before that place is damage. What stands between that place and the
mark was appended while the fsync was under way, and may be torn. A mark may itself be lost in a crash;
then damage shortly before it passes for a torn tail, and what it held is reported as missing.

A sync has three parts, because disks are slow and the writer has other things to do: the writer says how
far it has come, any thread hands that to the operating system and waits for the disk, and the writer adds
the mark. Even a write that is only buffered may wait for the disk, while another file is synced.
"""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from snapline.batch import Buffer, bytes_of, size_of
from snapline.errors import ObjectDamaged, StorageError, StoreUnavailable
from snapline.storage.codec import FRAME_OVERHEAD, frame, frame_head, payload_size, unframe
from snapline.storage.files.places import make_directory, make_file, sync_directory

_MARK = b"snapline: synced through"
# The mark's own place, so that no record is taken for a mark; and how far the file was durable.
_MARK_PLACES = struct.Struct("<QQ")
_BUFFER_BYTES_MAX = 1 << 20
_BUFFER_BYTES_WHILE_BUSY = 1 << 24  # the limit as long as another thread is writing
_JOIN_BELOW = 4096  # smaller frames are copied into one piece: that costs less than naming each
_PIECES_MAX = min(os.sysconf("SC_IOV_MAX"), 1024)


class Descriptor:
    """An open file that is closed when its owner says so, or when nothing refers to it any more."""

    def __init__(self, fd: int) -> None:
        self.fd: int | None = fd

    def close(self) -> None:
        """Close the file; closing it again is no error."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class Appender:
    """A new file of frames with one writer."""

    def __init__(self, path: Path) -> None:
        with unavailable_on_os_error(f"create {path}"):
            make_directory(path.parent)
            self._file = Descriptor(make_file(path, os.O_EXCL | os.O_APPEND))
        self.path = path
        self.size = 0  #: bytes appended, written or not
        self._buffer: list[Buffer] = []
        self._buffered = 0
        self._changing = threading.Lock()  #: held for a moment by whoever changes the buffer
        self._writing = threading.Lock()  #: held by whoever takes the buffer, until it is written
        self._marked = 0  #: how far the file is durable, as its last mark says
        self._disk = threading.Lock()  #: held by whoever waits for the disk
        self._named = False  #: whether the directory entry is durable
        self._failed = False  #: after a failed write nobody knows what stands in the file

    def append(self, *payload: Buffer) -> int:
        """Add a frame and return its place. It leaves the process with the next flush or sync.

        The payload may come in pieces. Large ones are not copied and must not change any more: who writes
        into one of the arrays gets an error, and not a damaged file.
        """
        place = self.size
        self._add(payload)
        busy = self._writing.locked()
        if self._buffered > (_BUFFER_BYTES_WHILE_BUSY if busy else _BUFFER_BYTES_MAX):
            self.flush()
        return place

    def _add(self, payload: Sequence[Buffer]) -> None:
        size = sum(map(size_of, payload))
        pieces: Sequence[Buffer]
        if size < _JOIN_BELOW:
            whole = b"".join(payload)  # type: ignore[arg-type]  # arrays are buffers
            pieces = (frame(whole),)
        else:
            for piece in payload:
                if isinstance(piece, np.ndarray):
                    piece.flags.writeable = False
            pieces = (frame_head(payload, size), *payload)
        with self._changing:
            self._buffer += pieces
            self._buffered += FRAME_OVERHEAD + size
        self.size += FRAME_OVERHEAD + size

    def flush(self) -> None:
        """Hand everything to the operating system: readers see it, a crash may still take it."""
        self._write(self._usable())

    def _write(self, fd: int) -> None:
        """Write what was appended. Any thread may call this; a second one writes what came meanwhile."""
        with self._writing:
            with self._changing:
                pieces, self._buffer = self._buffer, []
                size, self._buffered = self._buffered, 0
            with self._failing("write"):
                _write_all(fd, pieces, size)

    def sync(self) -> None:
        """Make everything appended so far durable, here and now."""
        sync = self.start_sync()
        sync.wait()
        sync.finish()

    def start_sync(self) -> "FileSync":
        """Begin to make everything appended so far durable."""
        with unavailable_on_os_error(f"sync {self.path}"):
            return FileSync(self, Descriptor(os.dup(self._usable())), self.size)

    def reach_disk(self, file: Descriptor) -> None:
        """Wait until all that was appended is on disk. Threads that call this take turns."""
        assert file.fd is not None, "a sync is waited for once"
        with self._disk:
            self._check()  # BEFORE: the fsync after a failed one may report success for lost pages
            self._write(file.fd)
            with self._failing("sync"):
                os.fsync(file.fd)
                if not self._named:
                    sync_directory(self.path.parent)
                    self._named = True

    def mark(self, place: int) -> None:
        """Write down that everything before `place` is durable, unless an earlier call said so."""
        self._check()
        if place > self._marked:
            self._add([_MARK + _MARK_PLACES.pack(self.size, place)])
            self.flush()  # at once: a mark in our memory proves nothing to others
            self._marked = place

    def close(self) -> None:
        """Let go of the file. What was not flushed is gone."""
        self._file.close()

    def _usable(self) -> int:
        self._check()
        if self._file.fd is None:
            raise StorageError(f"{self.path} is closed")
        return self._file.fd

    def _check(self) -> None:
        if self._failed:
            raise StorageError(f"an earlier write to {self.path} failed; it takes nothing more")

    @contextmanager
    def _failing(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failed = True
            raise StoreUnavailable(f"cannot {verb} {self.path}: {error}") from error


def _write_all(fd: int, pieces: list[Buffer], left: int) -> None:
    """Write pieces of so many bytes with as few calls as possible; the list is used up in doing so."""
    first = 0  #: the first piece that is not wholly written
    while left:
        count = os.writev(fd, pieces[first : first + _PIECES_MAX])  # type: ignore[arg-type]
        left -= count
        while left and first < len(pieces) and (size := size_of(pieces[first])) <= count:
            count -= size
            first += 1
        if left and count:
            pieces[first] = bytes_of(pieces[first])[count:]


class FileSync:
    """A `PendingSync` of all that stands before a place in one file."""

    def __init__(self, appender: Appender, file: Descriptor, place: int) -> None:
        self._appender = appender
        self._file = file  # a duplicate: the writer may close its own descriptor meanwhile
        self.place = place
        self._durable = False

    def wait(self) -> None:
        """Wait for the disk, in any thread, once."""
        try:
            self._appender.reach_disk(self._file)
        finally:
            self._file.close()
        self._durable = True

    def finish(self) -> None:
        """Mark what is durable; the writer calls this, when `wait` has returned."""
        if not self._durable:
            raise StorageError(f"{self._appender.path} was not synced")
        self._appender.mark(self.place)


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
        if _synced_through(payload, start + at) is None:
            frames.append((start + at, payload))
        at += FRAME_OVERHEAD + len(payload)
    return Scan(frames, start + at, _was_durable(data, at, start))


def walk(path: Path) -> Iterator[memoryview]:
    """The frames of a file, one at a time, up to the first that is not whole: however large the file."""
    return (payload for _, payload in walk_from(path, 0))


def walk_from(path: Path, start: int) -> Iterator[tuple[int, memoryview]]:
    """The frames of a file from the one at `start` on, each with the place where it ends."""
    with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(start)
        at = start
        while len(head := file.read(FRAME_OVERHEAD)) == FRAME_OVERHEAD:
            length = payload_size(head)
            if at + FRAME_OVERHEAD + length > size:
                return
            payload = unframe(head + file.read(length))
            if payload is None:
                return
            place, at = at, at + FRAME_OVERHEAD + length
            if _synced_through(payload, place) is None:
                yield at, payload


def _synced_through(payload: memoryview, place: int) -> int | None:
    """How far the file was durable, if this frame is a mark."""
    if len(payload) != len(_MARK) + _MARK_PLACES.size or payload[: len(_MARK)] != _MARK:
        return None
    stands, synced = _MARK_PLACES.unpack_from(payload, len(_MARK))
    return int(synced) if stands == place else None


def _was_durable(data: bytes, at: int, start: int) -> bool:
    """Whether a mark behind this place says that what stands here was durable."""
    found = data.find(_MARK, at)
    while found >= 0:
        place = found - FRAME_OVERHEAD
        payload = unframe(data, place) if place >= at else None
        if payload is not None and (_synced_through(payload, start + place) or 0) > start + at:
            return True
        found = data.find(_MARK, found + 1)
    return False


@contextmanager
def unavailable_on_os_error(what: str) -> Iterator[None]:
    """Turn an OSError into an error of `snapline.errors` that says what could not be done."""
    try:
        yield
    except IsADirectoryError as error:  # definite: waiting turns no directory into a file
        raise ObjectDamaged(f"cannot {what}: {error}") from error
    except OSError as error:
        raise StoreUnavailable(f"cannot {what}: {error}") from error
