"""Objects as files.

An object is written under a temporary name, synced, and then linked to its own name: a link fails when
the name is taken, so of racing processes exactly one wins, and nobody ever sees half an object. Behind
the data stands its digest, so damage is found even by a reader that was not told the digest.

A directory that is not there may be an empty store, or a store that is away (not mounted, renamed). Where
somebody else makes the directory, `must_exist` says so: then its absence is an outage, and it is neither
made anew nor taken for proof that an object is missing.
"""

import os
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.storage.codec import Pieces, digest_of
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import is_draft, make_directory, make_draft, sync_directory
from snapline.storage.uncached import write_to

_DIGEST_BYTES = len(digest_of(b"")) // 2
_SUFFIX = ".obj"


class FileStore:
    """A `Store` in a directory."""

    def __init__(self, directory: Path, *, must_exist: bool = False) -> None:
        self._directory = directory
        self._must_exist = must_exist

    def put(self, key: str, data: bytes | Pieces) -> str:
        """Store an object and return its digest. The same object again is no error."""
        pieces = data if isinstance(data, Pieces) else Pieces([data])
        if not self._put(key, pieces) and digest_of(self.get(key)) != pieces.digest:
            raise StorageError(f"{key} is stored with other content, and objects never change")
        return pieces.digest

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store an object unless the name is taken; in a race exactly one caller gets True."""
        return self._put(key, Pieces([data]))

    def _put(self, key: str, data: Pieces) -> bool:
        path = self._path(key)
        with unavailable_on_os_error(f"store {key} in {self._directory}"):
            if path.exists():
                return self._lost(path)
            make_directory(path.parent, inside=self._directory if self._must_exist else None)
            temporary = _write_temporary(path, data)
            try:
                os.link(temporary, path)
            except FileExistsError:
                return self._lost(path)
            finally:
                os.unlink(temporary)
            sync_directory(path.parent)
            return True

    def _lost(self, path: Path) -> bool:
        # Another writer has the name. It must be durable BEFORE the caller acts on having lost.
        sync_directory(path.parent)
        return False

    def get(self, key: str, digest: str | None = None) -> bytes:
        """The object, checked against its digest."""
        with unavailable_on_os_error(f"read {key} in {self._directory}"):
            data, stored = self._read(key)
        if digest_of(data) != stored or digest not in (None, stored):
            raise ObjectDamaged(f"{self._path(key)} is not what was stored")
        return data

    def _read(self, key: str) -> tuple[bytes, str]:
        """Read data and digest. The directory is opened first, because it may be renamed meanwhile."""
        path = self._path(key)
        missing = ObjectMissing(f"nothing is stored as {key}: there is no {path}")
        name = path.relative_to(self._directory)
        try:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if self._must_exist:
                raise
            raise missing from None
        try:
            file = os.open(name, os.O_RDONLY, dir_fd=directory)
        except (FileNotFoundError, NotADirectoryError):
            raise missing from None
        finally:
            os.close(directory)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            raise ObjectDamaged(f"{path} is no file, and so not what was stored")
        with os.fdopen(file, "rb") as opened:
            return opened.read(max(0, status.st_size - _DIGEST_BYTES)), opened.read().hex()

    def delete(self, key: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        path = self._path(key)
        with unavailable_on_os_error(f"delete {key} in {self._directory}"):
            if path.exists():
                path.unlink(missing_ok=True)
                sync_directory(path.parent)

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder. Some may hold nothing any more."""
        with unavailable_on_os_error(f"list {folder} in {self._directory}"):
            return [unquote(path.name) for path in self._list(folder) if path.is_dir()]

    def clear(self, folder: str, keep: Collection[str]) -> None:
        """Delete all objects in a folder but those of these names, drafts, and an empty folder itself."""
        kept = {self._path(key).name for key in keep if key.startswith(f"{folder}/")}
        with unavailable_on_os_error(f"clear {folder} in {self._directory}"):
            for path in self._list(folder):
                if path.name not in kept and (path.suffix == _SUFFIX or is_draft(path)):
                    path.unlink(missing_ok=True)
            if not kept:
                with suppress(OSError):  # something else lies there, or it is gone
                    self._folder(folder).rmdir()

    def _list(self, folder: str) -> list[Path]:
        """What lies in a folder; nothing if there is none. Raises OSError if the whole store is away."""
        if self._must_exist:
            os.stat(self._directory)
        try:
            return list(self._folder(folder).iterdir())
        except FileNotFoundError:
            return []

    def _folder(self, folder: str) -> Path:
        return self._path(f"{folder}/x").parent

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back, as a failing disk does."""
        with self._path(key).open("r+b") as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 0xFF]))

    def path(self, key: str) -> Path:
        """The path of an object, for messages to people who have to mend it."""
        return self._path(key)

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if not all(parts) or any(part[0] == "." or part.endswith(_SUFFIX) for part in parts):
            raise StorageError(f"{key!r} is no name for an object")
        *folders, name = (quote(part, safe="") for part in parts)
        return self._directory.joinpath(*folders, name + _SUFFIX)


def _write_temporary(path: Path, data: Pieces) -> Path:
    fd, temporary = make_draft(path)
    try:
        write_to(fd, Pieces([*data.buffers, bytes.fromhex(data.digest)]))
        os.fsync(fd)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    return temporary
