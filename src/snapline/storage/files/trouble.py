"""A store that is slow, or that fails now and then, on purpose and in every process at once.

A file beside the store says how it is at present, and until when (by the wall clock): whoever is about to
call the store looks there first. No process needs to be told, not even one that starts meanwhile, and the
trouble ends by itself. Without trouble there is no such file, and a call costs one look for it more.
"""

import json
import os
import random
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from snapline.errors import StoreUnavailable
from snapline.ids import Millis
from snapline.storage.codec import Pieces
from snapline.storage.files.places import write_whole
from snapline.storage.files.store import FileStore

_T = TypeVar("_T")


class Trouble:
    """The file that says what goes wrong with a store, and until when."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def slow(self, delay_ms: Millis, for_ms: Millis) -> None:
        """Make every call take longer, for some time."""
        self._add("slow_s", delay_ms / 1000, for_ms)

    def fail(self, percent: int, for_ms: Millis) -> None:
        """Make every call fail with this chance, for some time."""
        self._add("failing", percent / 100, for_ms)

    def end(self) -> None:
        """End all trouble: the store works as usual again."""
        self._path.unlink(missing_ok=True)

    def _add(self, what: str, how_much: float, for_ms: Millis) -> None:
        known = {**self._read(), what: (how_much, time.time() + for_ms / 1000)}
        write_whole(self._path, json.dumps(known))

    def _read(self) -> dict[str, tuple[float, float]]:
        try:
            with open(self._path, encoding="utf-8") as file:
                known: dict[str, tuple[float, float]] = json.load(file)
        except FileNotFoundError:
            return {}
        return known

    def now(self) -> tuple[float, float]:
        """How many seconds longer a call takes at present, and the chance that it fails."""
        if not os.path.exists(self._path):  # quicker than an exception
            return 0.0, 0.0
        found = self._read()
        now_s = time.time()
        values = (found.get(what, (0.0, 0.0)) for what in ("slow_s", "failing"))
        slow_s, failing = (value if now_s < until_s else 0.0 for value, until_s in values)
        return slow_s, failing


class TroubledStore:
    """A `Store` as files whose calls are slow, or fail, on purpose."""

    def __init__(self, store: FileStore, trouble: Trouble) -> None:
        self._store = store
        self._trouble = trouble
        self._rng = random.Random()

    def put(self, key: str, data: bytes | Pieces) -> str:
        """Store an object and return its digest. The same object again is no error."""
        return self._call(f"store {key}", lambda: self._store.put(key, data))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store an object unless the name is taken; in a race exactly one caller gets True."""
        return self._call(f"store {key}", lambda: self._store.put_if_absent(key, data))

    def get(self, key: str, digest: str | None = None) -> bytes:
        """The object, checked against its digest."""
        return self._call(f"read {key}", lambda: self._store.get(key, digest))

    def delete(self, key: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        self._call(f"delete {key}", lambda: self._store.delete(key))

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder."""
        return self._call(f"list {folder}", lambda: self._store.folders(folder))

    def clear(self, folder: str, keep: Collection[str]) -> None:
        """Delete all objects in a folder but those of these names."""
        self._call(f"clear {folder}", lambda: self._store.clear(folder, keep))

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back, as a failing disk does."""
        self._store.damage(key)

    def _call(self, what: str, act: Callable[[], _T]) -> _T:
        slow_s, failing = self._trouble.now()
        if slow_s:
            time.sleep(slow_s)
        if failing and self._rng.random() < failing:
            if self._rng.random() < 0.5:  # the caller cannot know whether a failed call took effect
                act()
            raise StoreUnavailable(f"cannot {what}: the store is made to fail")
        return act()
