"""Where files and directories are made, and who may read them.

What is made is as private as the directory in which it is made. Where only the owner may enter that one, it
is made for its owner alone, whatever the umask; elsewhere the umask decides. So whoever makes a directory
decides for all that any process will ever put into it, and no process has to be told.

Names come from files, too: a manifest names an egress file, the description of an input its segments. Such
a name never leads out of its directory, and whoever makes a file follows no link that lies in its place.
"""

import errno
import fcntl
import os
import secrets
import shutil
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from snapline.errors import ObjectDamaged

_OTHERS = 0o077
# How names of unfinished files begin. Whoever lists files ignores them: a killed writer leaves them behind.
_DRAFT = ".new-"
_COPIED_BYTES = 1 << 20


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


def is_private(directory: Path) -> bool:
    """Whether nobody but its owner may enter a directory, or look into it."""
    return not directory.stat().st_mode & _OTHERS


def make_top(path: Path, *, private: bool) -> None:
    """Make a directory whose privacy holds for all that is made in it. Raises FileExistsError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(0o700 if private else 0o777)


def make_directory(path: Path, *, inside: Path | None = None) -> None:
    """Make a directory, and those above it, durably. `inside` itself is not made: it must exist."""
    if path.is_dir():
        return
    if path == inside:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_directory(path.parent, inside=inside)
    path.mkdir(0o700 if is_private(path.parent) else 0o777, exist_ok=True)
    sync_directory(path.parent)


def make_file(path: Path, flags: int = os.O_EXCL) -> int:
    """Make a file and open it for writing; unless other flags are given, it must not be there yet."""
    mode = 0o600 if is_private(path.parent) else 0o666
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, mode)


def make_draft(path: Path) -> tuple[int, Path]:
    """Make a file beside a path, under a random name, and open it for writing."""
    draft = path.with_name(f"{_DRAFT}{path.name}-{secrets.token_hex(8)}")
    return make_file(draft), draft


def is_draft(path: Path) -> bool:
    """Whether a file is unfinished: its writer is at work, or was killed."""
    return path.name.startswith(_DRAFT)


@contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write into that takes its name at the end, whole or not at all; what was there is replaced.

    It is written under another name: whoever writes the same file again, or is killed, disturbs nobody.
    """
    fd, draft = make_draft(path)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def write_whole(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a small file, whole or not at all; what was there is replaced."""
    with whole_file(path, durable=durable) as file:
        file.write(text.encode())


def copy_file(source: Path, target: Path) -> None:
    """Make a durable copy of a file, with the time at which it was last changed."""
    with source.open("rb") as from_file, os.fdopen(make_file(target), "wb") as to_file:
        shutil.copyfileobj(from_file, to_file, _COPIED_BYTES)
        to_file.flush()
        os.fsync(to_file.fileno())
        changed = os.fstat(from_file.fileno())
    os.utime(target, ns=(changed.st_atime_ns, changed.st_mtime_ns))


def named_in(directory: Path, name: str) -> Path:
    """The path in a directory of a name that was read. ObjectDamaged if the name leads elsewhere."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ObjectDamaged(f"{name!r} is no name of a file in {directory}")
    return directory / name


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# Files that are written again.


class Spares:
    """Pruned segments of one life that wait to be written again, under the name of a new segment.

    To overwrite pages that the operating system has already costs half of the CPU of new ones, and fewer
    waits for the disk. Only a file that this log has written and that nobody reads is kept. It loses its
    name at once, so that nobody opens it any more, and it is overwritten only when that is durable: else
    its old name might come back after a failure of the machine, with marks that call the new data damage.

    Nobody needs a spare. Whoever finds one gone makes a new file, and what a killed process leaves is
    deleted by the next life of its task.
    """

    def __init__(self, directory: Path, most: int, left: list[Path]) -> None:
        self._directory = directory
        self._most = most  #: how many are kept
        self._left = left  #: by writers that are dead
        self.renamed: list[Path] = []  #: not to be overwritten yet: their old names may come back
        self._ready: list[Path] = []
        self.discard = weakref.finalize(self, _delete, self.renamed, self._ready)

    def keep(self, segment: Path) -> bool:
        """Take care of a segment that was pruned; False if it could not be done."""
        if len(self.renamed) + len(self._ready) >= self._most:
            return False
        spare = segment.with_suffix(".spare")
        try:
            segment.rename(spare)  # BEFORE the question who reads it: now nobody can begin to
        except OSError:
            return False
        if _is_read(spare):
            _delete([spare])
        else:
            self.renamed.append(spare)
        return True

    def tidy(self) -> None:
        """Delete what dead writers have left. Not when a log is opened: a restore waits for that."""
        _delete(self._left)

    def sync_names(self) -> bool:
        """Wait until names are durable, in any thread; False if that failed."""
        try:
            sync_directory(self._directory)
        except OSError:
            return False
        return True

    def settle(self, renamed: Sequence[Path]) -> None:
        """Allow to overwrite these: it is durable that they have other names now."""
        for spare in renamed:
            if spare in self.renamed:
                self.renamed.remove(spare)
                self._ready.append(spare)

    def take(self, path: Path) -> Descriptor | None:
        """Give a spare the name of a new segment, and open it at its first byte. None: there is none."""
        while self._ready:
            spare = self._ready.pop()  # the last one: its pages are most likely still in memory
            with suppress(OSError):
                file = Descriptor(os.open(spare, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
                os.link(spare, path)  # unlike a rename it fails if there is such a segment
                _delete([spare])
                return file
            _delete([spare])
        return None


def open_shared(path: Path) -> Descriptor:
    """Open a segment for reading; as long as it is open, nobody takes the file for another segment."""
    file = Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    assert file.fd is not None
    with suppress(OSError):  # where files cannot be locked, nobody finds that this one is not read
        fcntl.flock(file.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    path.stat()  # AFTER: raises if it was pruned before we had the lock
    return file


def _is_read(path: Path) -> bool:
    """Whether somebody may have opened a segment for reading."""
    try:
        with FileIO(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _delete(*groups: list[Path]) -> None:
    """Delete files, and forget them."""
    for paths in groups:
        while paths:
            with suppress(OSError):
                paths.pop().unlink()
