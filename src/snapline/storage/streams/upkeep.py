"""Keeps what a stream leaves on disk small: bundles manifests, raises the floor, and deletes what is void.

Anybody may do this at any time, several at once, and may die or stand still between any two steps:
`manifests` shows why. What is to be deleted is found by names alone, so whoever comes next finishes what
another began.

*Leftovers* are folders of attempts at a micro-batch that another attempt has won, or whose writer was
killed. Once the micro-batch has its manifest, no manifest will ever name them: a writer that is still at
work there fails, because the folder is not made again, or finds that its micro-batch is there. They are
looked for when a query starts, in the bundle that is not full yet, and when a bundle is made. A folder that
a writer makes even later, and is killed before it drops it, stays until the floor has passed it.
"""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import sync_directory
from snapline.storage.streams.manifests import (
    BATCHES,
    BUNDLE,
    BatchManifest,
    InputDeleted,
    Manifests,
    batches_of,
    bundle_of,
    names_in,
)

PASSED_AT_ONCE: Final = 1024
"""The floor passes at most so many micro-batches at a time: nothing here takes long."""


class StreamUpkeep:
    """The upkeep of one stream."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.manifests = Manifests(place)

    def bundle(self) -> None:
        """Gather manifests into bundles, the oldest first, but never the last one of the chain (M5)."""
        numbers, _ = names_in(self.manifests.folder)
        last = self.manifests.last_number()
        floor = self.manifests.floor()
        for first in sorted({n - (n - 1) % BUNDLE for n in numbers}):
            if floor < first + BUNDLE <= last:
                self._bundle(range(first, first + BUNDLE))

    def _bundle(self, numbers: range) -> None:
        members: list[BatchManifest | None] = []
        for number in numbers:
            try:
                found = self.manifests.read(number)
            except InputDeleted:
                members.append(None)
                continue
            if found is None:
                return  # a gap: whoever opens the stream says so
            members.append(found)
        said = [None if found is None else found.to_json() for found in members]
        self._drop_leftovers(members)
        encoded = json.dumps({"bundle": said}).encode()
        self.manifests.own.put_if_absent(bundle_of(numbers[0]), encoded)
        # AFTER the bundle is durable: M1.
        _unlink(self.manifests.own.path(str(number)) for number in numbers)

    def drop_leftovers(self) -> None:
        """Delete leftovers among the micro-batches that are in no bundle yet."""
        last = self.manifests.last_number()
        floor = max(self.manifests.floor(), last - (last - 1) % BUNDLE if last else 1)
        with suppress(InputDeleted):
            self._drop_leftovers([*self.manifests.since(floor)])

    def _drop_leftovers(self, known: Sequence[BatchManifest | None]) -> None:
        found = {manifest.number: manifest.folder for manifest in known if manifest is not None}
        if not found:
            return
        for folder in _listed(batches_of(self.place, max(found))):
            number = _number_of(folder)
            if number in found and folder.name != found[number]:
                shutil.rmtree(folder, ignore_errors=True)

    def raise_floor(self, passed: Sequence[int], before_ms: int) -> None:
        """Let the input begin behind what nobody needs: old micro-batches that every kept line has passed.

        `passed`: the offsets that all lines have passed to which anybody may go back, per partition. Only
        what was written before `before_ms`, Unix time, goes. Nothing is deleted yet: `tidy` does that.
        """
        floor, last = self.manifests.floor(), self.manifests.last_number()
        number = floor
        while number < min(last, floor + PASSED_AT_ONCE):
            found = self.manifests.read(number)
            if found is None or found.at_ms >= before_ms:
                break
            if any(end > at for end, at in zip(found.after.offsets, passed, strict=True)):
                break
            number += 1
        if number > floor:
            self.manifests.floors.put_if_absent(str(number), b"{}")

    def tidy(self) -> None:
        """Delete what is void, and all that lies below the floor."""
        floor = self.manifests.floor()
        numbers, bundles = names_in(self.manifests.folder)
        void = [str(n) for n in numbers if n < floor or n - (n - 1) % BUNDLE in bundles]
        void += [bundle_of(first) for first in bundles if first + BUNDLE <= floor]
        folders = self._folders_below(floor) if floor > 1 else []
        floors = sorted(names_in(self.manifests.floors_folder)[0])
        if not void and not folders and len(floors) < 3:
            return
        # What was seen here may not be durable yet; it has to be, BEFORE anything is deleted (M1).
        for folder in (self.manifests.folder, self.manifests.floors_folder):
            if folder.is_dir():
                with unavailable_on_os_error(f"sync {folder}"):
                    sync_directory(folder)
        _unlink(self.manifests.own.path(name) for name in void)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        _unlink(self.manifests.floors.path(str(number)) for number in floors[:-2])

    def _folders_below(self, floor: int) -> list[Path]:
        whole = [each for each in _listed(self.place / BATCHES) if _last_of(each) < floor]
        here = _listed(batches_of(self.place, floor))
        return [*whole, *(each for each in here if 0 < _number_of(each) < floor)]


def _number_of(folder: Path) -> int:
    """The number of the manifest that may name a folder of segments; 0: it is no such folder."""
    batch = folder.name.partition("-")[0]
    return int(batch) + 1 if batch.isdecimal() else 0


def _last_of(folder: Path) -> float:
    """The last number of the bundle whose micro-batches lie in a folder."""
    last = folder.name.partition("-")[2]
    return int(last) if last.isdecimal() else inf


def _listed(folder: Path) -> list[Path]:
    """What lies in a folder; nothing if there is none, or somebody has just deleted it."""
    with unavailable_on_os_error(f"list {folder}"):
        try:
            return [folder / name for name in os.listdir(folder)]
        except FileNotFoundError:
            return []


def _unlink(paths: Iterable[Path]) -> None:
    """Delete files. Should a failure of the machine bring some back, they are void as before."""
    for path in paths:
        with unavailable_on_os_error(f"delete {path}"):
            path.unlink(missing_ok=True)
