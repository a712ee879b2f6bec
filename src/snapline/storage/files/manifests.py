"""The chain of manifests as files.

The manifests are objects numbered 1, 2, 3 in the order in which they were published, whatever the numbers
their publishers use: the next one is written only if nobody wrote it before. So two publishers
that race can never both continue at the same row.

Old ones are gathered into *bundles*: one object for places 1 to 128, one for the next 128, and so on, with
the same content. A bundle is durable BEFORE its members are deleted, so a reader that does not find a place
looks into its bundle. A publisher that stood still may write a deleted place again: by what was decided,
and so the same as in the bundle.

Where output is kept for a while only, the oldest are deleted. A floor (`storage/floor.py`) is an object
beside the chain, named after its place: it is durable BEFORE anything below it is deleted, and the highest
one counts, whoever wrote the others. So a reader that does not find a place looks for a floor above it. A
lower floor, or a manifest below the floor, of a driver that stood still changes nothing, and goes with the
next deletion.

A manifest that is gone in the middle is told from the end of the chain when the chain is first read: the
next places are looked at, too. The loss of the last ones only shows to whoever knows what was decided
(`ManifestChain.hold_against`).
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import TaskId
from snapline.storage.api import Extent
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.store import FileStore
from snapline.storage.floor import Floor
from snapline.storage.manifest import ManifestChain

WINDOW = 64
"""How many places behind the apparent end are looked at: a shorter gap is never taken for the end."""


BUNDLE = 128
"""How many manifests are gathered into one object."""

DELETED_AT_ONCE = 64
"""How many manifests are deleted at once at most, so that no decision has to wait long for its write."""

_OBJECT = re.compile(r"(?:\d+-)?(?P<last>\d+)\.obj")  # a manifest, a bundle, or a floor


class _Manifest(NamedTuple):
    """A manifest as it lies there."""

    number: int
    extents: dict[TaskId, Extent]
    at_ms: int  # when it was published: Unix time; beyond all times if nobody wrote it down


FLOORS = "floors"
"""The directory beside that of the manifests in which the floors lie."""


class FileManifests:
    """The manifests in a directory, and the chain of those that were read so far."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.chain = ManifestChain()
        self._store = FileStore(directory)
        self._floors = FileStore(directory.parent / FLOORS)
        self._looked_beyond = False  #: whether the end of the chain is known to be its end
        self._bundle: tuple[str, list[Any]] = ("", [])  #: the bundle that was read last

    def add(self, number: int, extents: Mapping[TaskId, Extent], at_ms: int) -> bool:
        """Write the next manifest of the chain; False if somebody else has written one first."""
        data = _encode(number, extents, at_ms)
        if not self._store.put_if_absent(str(len(self.chain) + 1), data):
            return False
        self.chain.add(number, extents)
        return True

    def read(self, place: int) -> tuple[int, dict[TaskId, Extent]]:
        """The number of the manifest at a place, and what it publishes. ObjectMissing, ObjectDamaged."""
        found = _decode(self._get(place))
        return found.number, found.extents

    def file(self, place: int) -> Path:
        """The file in which a manifest lies, or should lie: its own, or that of its bundle."""
        own, bundle = self._store.path(str(place)), self._store.path(bundle_of(place))
        return bundle if bundle.exists() and not own.exists() else own

    def at(self, place: int) -> Mapping[TaskId, Extent] | None:
        """The manifest at a place of the chain, counted from 1; None if it is yet to come.

        Raises RowsDeleted if it was deleted.
        """
        try:
            return self.read(place)[1]
        except ObjectMissing:
            if self._highest_floor() >= place:
                raise self.read_floor().deleted(place - 1) from None
            return None

    def refresh(self) -> None:
        """Read what others have published since. Raises ObjectMissing or ObjectDamaged."""
        if not self._looked_beyond:
            self._raise_floor()
        self._read_on()
        while not self._looked_beyond:
            place = len(self.chain) + 1
            later = next((n for n in range(place + 1, place + 1 + WINDOW) if self._has(n)), None)
            self._looked_beyond = later is None
            if later is not None:
                self._read_on()  # another may have published it since, or deleted it with all before
                if len(self.chain) < place:
                    where = self._store.path(str(place))
                    raise ObjectMissing(f"{where} is gone: manifests behind it are there")

    def _read_on(self) -> None:
        while True:
            place = str(len(self.chain) + 1)
            try:
                manifest = self._get(int(place))
            except ObjectMissing:
                # AFTER it was not found: a floor is durable before what lies below it is deleted.
                self._raise_floor()
                if len(self.chain) < int(place):
                    return
                continue
            where = self._store.path(place)
            try:
                number, extents, _ = _decode(manifest)
                if self.chain.judge(number, extents) is not None:
                    raise ObjectDamaged(f"manifest {number} is there twice")
            except (ValueError, LookupError, TypeError, ObjectDamaged) as error:
                raise ObjectDamaged(f"{where} is not what was published: {error}") from error
            self.chain.add(number, extents)

    def _get(self, place: int) -> bytes:
        """A manifest as it was stored, by itself or in a bundle."""
        try:
            return self._store.get(str(place))
        except ObjectMissing as missing:
            # AFTER it was not found: a bundle is durable before its members are deleted.
            return self._bundled(place, missing)

    def _bundled(self, place: int, missing: ObjectMissing) -> bytes:
        key = bundle_of(place)
        if self._bundle[0] != key:
            try:
                self._bundle = key, _decode_bundle(self._store.get(key))
            except ObjectMissing:
                raise missing from None
        return json.dumps(self._bundle[1][(place - 1) % BUNDLE]).encode()

    def compact(self, through: int) -> None:
        """Gather the manifests up to a place into bundles, oldest first, from where it was done before.

        Of those that are partly deleted none is made: they go soon.
        """
        last = first = through - through % BUNDLE
        while first > self.chain.floor.place and self._is_alone(first):
            first -= BUNDLE
        for end in range(first + BUNDLE, last + 1, BUNDLE):
            if end - BUNDLE < self.chain.floor.place:
                continue
            places = range(end - BUNDLE + 1, end + 1)
            members = [json.loads(self._get(place)) for place in places]
            self._store.put_if_absent(bundle_of(end), json.dumps({"bundle": members}).encode())
            for place in places:  # the last one goes last: it tells whether all is done
                self._store.delete(str(place))

    def _is_alone(self, place: int) -> bool:
        try:
            self._store.get(str(place))
        except ObjectMissing:
            return False
        return True

    def _has(self, place: int) -> bool:
        try:
            self._get(place)
        except ObjectMissing:
            return False
        except ObjectDamaged:
            return True
        return True

    # What was deleted.

    def read_floor(self) -> Floor:
        """The highest floor. Raises ObjectMissing or ObjectDamaged."""
        last = 0
        while place := self._highest_floor():
            try:
                return Floor.decode(self._floors.get(str(place)))
            except ObjectMissing:  # a higher one has taken its place
                if place == last:
                    raise
                last = place
        return Floor()

    def floor_file(self) -> Path:
        """The file in which the highest floor lies."""
        return self._floors.path(str(self._highest_floor()))

    def _highest_floor(self) -> int:
        return max((place for place, _ in _objects(self._floors.path("1").parent)), default=0)

    def _raise_floor(self) -> None:
        if self._highest_floor() > self.chain.floor.place:
            self.chain.raise_floor(self.read_floor())

    def next_floor(self, until_ms: int, through: int) -> Floor:
        """The floor above the manifests that were published until a moment, up to a place; a few."""
        floor = self.chain.floor
        last = min(through, len(self.chain), floor.place + DELETED_AT_ONCE)
        for place in range(floor.place + 1, last + 1):
            found = _decode(self._get(place))
            if found.at_ms > until_ms:
                break
            gone = {task: extent.stop for task, extent in found.extents.items()}
            rows = {**floor.rows, **gone}
            floor = replace(floor, place=place, number=found.number, rows=rows, at_ms=found.at_ms)
        return floor

    def write_floor(self, floor: Floor) -> None:
        """Make a floor durable, and begin at it."""
        self._floors.put_if_absent(str(floor.place), floor.encode())
        self.chain.raise_floor(floor)

    def delete_below(self) -> None:
        """Delete manifests below the floor, whoever wrote them, and bundles that lie wholly below it."""
        with unavailable_on_os_error(f"delete manifests in {self.path}"):
            for last, path in _objects(self.path):
                if last <= self.chain.floor.place:
                    path.unlink(missing_ok=True)

    def delete_lower_floors(self) -> None:
        """Delete all floors but the highest."""
        folder = self._floors.path("1").parent
        floors = sorted(_objects(folder))
        with unavailable_on_os_error(f"delete floors in {folder}"):
            for _, path in floors[:-1]:
                path.unlink(missing_ok=True)


def _objects(folder: Path) -> list[tuple[int, Path]]:
    """The manifests and bundles in a folder, or the floors, each with its last place."""
    with unavailable_on_os_error(f"list {folder}"):
        paths = list(folder.iterdir()) if folder.is_dir() else []
    matches = ((_OBJECT.fullmatch(path.name), path) for path in paths)
    return [(int(match["last"]), path) for match, path in matches if match]


def bundle_of(place: int) -> str:
    """The name of the bundle to which a place belongs."""
    first = (place - 1) // BUNDLE * BUNDLE + 1
    return f"{first}-{first + BUNDLE - 1}"


def _decode_bundle(data: bytes) -> list[Any]:
    try:
        members: list[Any] = json.loads(data)["bundle"]
        if len(members) != BUNDLE:
            raise ValueError(f"it has {len(members)} manifests")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ObjectDamaged(f"it is no bundle of manifests: {error}") from error
    return members


def _encode(number: int, extents: Mapping[TaskId, Extent], at_ms: int) -> bytes:
    rows = {task: [extent.file, extent.start, extent.stop] for task, extent in extents.items()}
    return json.dumps({"number": number, "extents": rows, "at": at_ms}).encode()


def _decode(data: bytes) -> _Manifest:
    try:
        manifest = json.loads(data)
        extents = {TaskId(task): Extent(*extent) for task, extent in manifest["extents"].items()}
        return _Manifest(manifest["number"], extents, manifest.get("at", sys.maxsize))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ObjectDamaged(f"it is no manifest: {error}") from error
