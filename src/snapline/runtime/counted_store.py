"""A store that counts what it is asked for, in whichever thread."""

from collections.abc import Collection, Sequence
from threading import Lock
from typing import NamedTuple

from snapline.storage.api import Store
from snapline.storage.codec import Pieces


class Requests(NamedTuple):
    """What was asked of a store, whether it could do it or not."""

    puts: int = 0
    put_bytes: int = 0
    gets: int = 0
    get_bytes: int = 0  # of what it gave
    deletes: int = 0
    lists: int = 0  # folders that were listed, or cleared


class CountedStore:
    """A `Store` that passes everything on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._asked = Requests()

    @property
    def asked(self) -> Requests:
        """All that was asked so far."""
        return self._asked

    def _count(self, more: Requests) -> None:
        with self._lock:
            both = zip(self._asked, more, strict=True)
            self._asked = Requests(*(before + one for before, one in both))

    def put(self, key: str, data: bytes | Pieces) -> str:
        """Store an object and return its digest."""
        size = data.size if isinstance(data, Pieces) else len(data)
        self._count(Requests(puts=1, put_bytes=size))
        return self._store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store an object unless the name is taken."""
        self._count(Requests(puts=1, put_bytes=len(data)))
        return self._store.put_if_absent(key, data)

    def get(self, key: str, digest: str | None = None) -> bytes:
        """The object, checked against its digest."""
        self._count(Requests(gets=1))
        found = self._store.get(key, digest)
        self._count(Requests(get_bytes=len(found)))
        return found

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._count(Requests(deletes=1))
        self._store.delete(key)

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder."""
        self._count(Requests(lists=1))
        return self._store.folders(folder)

    def clear(self, folder: str, keep: Collection[str]) -> None:
        """Delete all objects in a folder but those of these names."""
        self._count(Requests(lists=1))
        self._store.clear(folder, keep)

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back: a fault, and no request."""
        self._store.damage(key)
