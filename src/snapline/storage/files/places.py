"""Where files and directories are made, and who may read them.

What is made is as private as the directory in which it is made. Where only the owner may enter that one, it
is made for its owner alone, whatever the umask; elsewhere the umask decides. So whoever makes a directory
decides for all that any process will ever put into it, and no process has to be told.

Names come from files, too: a manifest names an egress file, the description of an input its segments. Such
a name never leads out of its directory, and whoever makes a file follows no link that lies in its place.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from snapline.errors import ObjectDamaged

_OTHERS = 0o077
# How names of unfinished files begin. Whoever lists files ignores them: a killed writer leaves them behind.
_DRAFT = ".new-"


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
