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

A file may have been another one before: its writer begins at its first byte, and what stood there is
overwritten bit by bit. The frames and marks that are still there are whole, but were written with another
*seed*, on which all checksums of a file depend. So they are no frames of this file: a torn tail.
"""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import numpy as np

from snapline.batch import Buffer, bytes_of, size_of
from snapline.errors import ObjectDamaged, StorageError, StoreUnavailable
from snapline.storage.codec import FRAME_OVERHEAD, frame, frame_head, payload_size, unframe
from snapline.storage.files.places import (
    Descriptor,
    make_directory,
    make_file,
    sync_directory,
)

_MARK = b"snapline: synced through"
# The mark's own place, so that no record is taken for a mark; and how far the file was durable.
_MARK_PLACES = struct.Struct("<QQ")
_MARK_BYTES = len(_MARK) + _MARK_PLACES.size
_BUFFER_BYTES_MAX = 1 << 20
_BUFFER_BYTES_WHILE_BUSY = 1 << 24  # the limit as long as another thread is writing
_JOIN_BELOW = 4096  # smaller frames are copied into one piece: that costs less than naming each
_PIECES_MAX = min(os.sysconf("SC_IOV_MAX"), 1024)
_READ_BYTES = 1 << 20  # at once, if a frame is not larger
_SEARCH_BYTES = 1 << 18  # fits into a processor's cache: twice as fast as a megabyte


class Appender:
    """A new file of frames with one writer, or a used one (`file`, at its first byte) with a new seed."""

    def __init__(self, path: Path, seed: int = 0, file: Descriptor | None = None) -> None:
        self._file = file or _make(path)
        self._seed = seed
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
        size = sum([size_of(piece) for piece in payload])
        pieces: Sequence[Buffer]
        if size < _JOIN_BELOW:
            whole = b"".join(payload)  # type: ignore[arg-type]  # arrays are buffers
            pieces = (frame(whole, self._seed),)
        else:
            for piece in payload:
                if isinstance(piece, np.ndarray):
                    piece.setflags(write=False)  # a fifth of the time of `flags.writeable`
            pieces = (frame_head(payload, size, self._seed), *payload)
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
            self._usable()  # BEFORE: what is in the buffer, any sync of this file may write
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


def _make(path: Path) -> Descriptor:
    with unavailable_on_os_error(f"create {path}"):
        make_directory(path.parent)
        return Descriptor(make_file(path, os.O_EXCL | os.O_APPEND))


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


def scan(path: Path, start: int = 0, seed: int = 0) -> Scan:
    """Read the frames of a file, from the frame at `start` on."""
    frames: list[tuple[int, memoryview]] = []
    with unavailable_on_os_error(f"read {path}"), FileIO(path) as file:
        end = start
        for place, payload in _whole_frames(file, start, seed):
            if _synced_through(payload, place) is None:
                frames.append((place, payload))
            end = place + FRAME_OVERHEAD + len(payload)
        return Scan(frames, end, _was_durable(file, end, seed))


def walk(path: Path, seed: int = 0) -> Iterator[memoryview]:
    """The frames of a file, one at a time, up to the first that is not whole: however large the file."""
    return (payload for _, payload in walk_from(path, 0, seed))


def walk_from(path: Path, start: int, seed: int = 0) -> Iterator[tuple[int, memoryview]]:
    """The frames of a file from the one at `start` on, each with the place where it ends."""
    with unavailable_on_os_error(f"read {path}"), FileIO(path) as file:
        for place, payload in _whole_frames(file, start, seed):
            if _synced_through(payload, place) is None:
                yield place + FRAME_OVERHEAD + len(payload), payload


def _whole_frames(file: FileIO, at: int, seed: int) -> Iterator[tuple[int, memoryview]]:
    """The frames and marks from this place on, each with its own place, up to the first broken one."""
    size = os.fstat(file.fileno()).st_size
    data, first = b"", at  #: a part of the file, and where it begins
    while True:
        here = at - first
        needed = FRAME_OVERHEAD
        if len(data) - here >= needed:
            needed += payload_size(data[here : here + FRAME_OVERHEAD])
        if len(data) - here < needed:
            if at + needed > size:
                return
            data, first = os.pread(file.fileno(), max(needed, _READ_BYTES), at), at
            if len(data) < needed:  # somebody has cut the file meanwhile
                return
            continue
        payload = unframe(data, here, seed)
        if payload is None:
            return
        yield at, payload
        at += needed


def skim(path: Path) -> Iterator[tuple[int, bytes]]:
    """The frames of a file without what they hold: the place of each, and its payload's first bytes.

    A frame costs one small read, however large it is, so nobody checks whether it is whole.
    """
    with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
        at, size = 0, os.fstat(file.fileno()).st_size
        while at < size:
            start = os.pread(file.fileno(), FRAME_OVERHEAD + _MARK_BYTES, at)
            if len(start) < FRAME_OVERHEAD:
                return
            length = payload_size(start)
            payload = start[FRAME_OVERHEAD : FRAME_OVERHEAD + length]
            if len(payload) == length and _synced_through(memoryview(payload), at) is not None:
                pass  # a mark is no frame of the writer's
            elif at + FRAME_OVERHEAD + length <= size:
                yield at, payload
            at += FRAME_OVERHEAD + length


def check_frames(path: Path, start: int = 0, seed: int = 0) -> int:
    """Read a file frame by frame from `start` on; return the place behind which is at most a torn tail.

    Raises ObjectDamaged if a mark says that what stands there was durable.
    """
    end = start
    for behind, _ in walk_from(path, start, seed):
        end = behind
    found = scan(path, end, seed)
    if found.damaged:
        raise ObjectDamaged(f"{path} is damaged at byte {found.end}, which was durable once")
    return found.end


def _synced_through(payload: memoryview, place: int) -> int | None:
    """How far the file was durable, if this frame is a mark."""
    if len(payload) != _MARK_BYTES or payload[: len(_MARK)] != _MARK:
        return None
    stands, synced = _MARK_PLACES.unpack_from(payload, len(_MARK))
    return int(synced) if stands == place else None


def _was_durable(file: FileIO, end: int, seed: int) -> bool:
    """Whether a mark behind this place says that what stands here was durable."""
    buffer = bytearray(_SEARCH_BYTES)
    at = end
    while file.seek(at) == at and (count := file.readinto(buffer)) >= len(_MARK):
        found = buffer.find(_MARK, 0, count)
        while found >= 0:
            place = at + found - FRAME_OVERHEAD
            if place >= end and _vouches(file, place, end, seed):
                return True
            found = buffer.find(_MARK, found + 1, count)
        at += count - len(_MARK) + 1  # a mark may begin in one part and end in the next
    return False


def _vouches(file: FileIO, place: int, end: int, seed: int) -> bool:
    data = os.pread(file.fileno(), FRAME_OVERHEAD + len(_MARK) + _MARK_PLACES.size, place)
    payload = unframe(data, 0, seed)
    return payload is not None and (_synced_through(payload, place) or 0) > end


@contextmanager
def unavailable_on_os_error(what: str) -> Iterator[None]:
    """Turn an OSError into an error of `snapline.errors` that says what could not be done."""
    try:
        yield
    except IsADirectoryError as error:  # definite: waiting turns no directory into a file
        raise ObjectDamaged(f"cannot {what}: {error}") from error
    except OSError as error:
        raise StoreUnavailable(f"cannot {what}: {error}") from error
