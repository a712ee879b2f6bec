"""The chain of manifests as files.

The manifests are objects numbered 1, 2, 3 in the order in which they were published, whatever the numbers
their publishers use: the next one is written only if nobody wrote it before. So two publishers
that race can never both continue at the same row.

Old ones are gathered into *bundles*: one object for places 1 to 128, one for the next 128, and so on, with
the same content. A bundle is durable BEFORE its members are deleted, so a reader that does not find a place
looks into its bundle. A publisher that stood still may write a deleted place again: by what was decided,
and so the same as in the bundle.

A manifest that is gone in the middle is told from the end of the chain when the chain is first read: the
next places are looked at, too. The loss of the last ones only shows to whoever knows what was decided
(`ManifestChain.hold_against`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import TaskId
from snapline.storage.api import Extent
from snapline.storage.files.store import FileStore
from snapline.storage.manifest import ManifestChain

WINDOW = 64
"""How many places behind the apparent end are looked at: a shorter gap is never taken for the end."""


BUNDLE = 128
"""How many manifests are gathered into one object."""


class FileManifests:
    """The manifests in a directory, and the chain of those that were read so far."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.chain = ManifestChain()
        self._store = FileStore(directory)
        self._looked_beyond = False  #: whether the end of the chain is known to be its end
        self._bundle: tuple[str, list[Any]] = ("", [])  #: the bundle that was read last

    def add(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Write the next manifest of the chain; False if somebody else has written one first."""
        if not self._store.put_if_absent(str(len(self.chain) + 1), _encode(number, extents)):
            return False
        self.chain.add(number, extents)
        return True

    def read(self, place: int) -> tuple[int, dict[TaskId, Extent]]:
        """The number of the manifest at a place, and what it publishes. ObjectMissing, ObjectDamaged."""
        return _decode(self._get(place))

    def file(self, place: int) -> Path:
        """The file in which a manifest lies, or should lie: its own, or that of its bundle."""
        own, bundle = self._store.path(str(place)), self._store.path(bundle_of(place))
        return bundle if bundle.exists() and not own.exists() else own

    def at(self, place: int) -> Mapping[TaskId, Extent] | None:
        """The manifest at a place of the chain, counted from 1; None if it is yet to come."""
        try:
            return self.read(place)[1]
        except ObjectMissing:
            return None

    def refresh(self) -> None:
        """Read what others have published since. Raises ObjectMissing or ObjectDamaged."""
        self._read_on()
        while not self._looked_beyond:
            place = len(self.chain) + 1
            later = next((n for n in range(place + 1, place + 1 + WINDOW) if self._has(n)), None)
            self._looked_beyond = later is None
            if later is not None:
                if not self._has(place):  # another may have published it since
                    where = self._store.path(str(place))
                    raise ObjectMissing(f"{where} is gone: manifests behind it are there")
                self._read_on()

    def _read_on(self) -> None:
        while True:
            place = str(len(self.chain) + 1)
            try:
                manifest = self._get(int(place))
            except ObjectMissing:
                return
            where = self._store.path(place)
            try:
                number, extents = _decode(manifest)
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
        """Gather the manifests up to a place into bundles, oldest first, from where it was done before."""
        last = first = through - through % BUNDLE
        while first > 0 and self._is_alone(first):
            first -= BUNDLE
        for end in range(first + BUNDLE, last + 1, BUNDLE):
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


def _encode(number: int, extents: Mapping[TaskId, Extent]) -> bytes:
    rows = {task: [extent.file, extent.start, extent.stop] for task, extent in extents.items()}
    return json.dumps({"number": number, "extents": rows}).encode()


def _decode(data: bytes) -> tuple[int, dict[TaskId, Extent]]:
    try:
        manifest = json.loads(data)
        extents = {TaskId(task): Extent(*extent) for task, extent in manifest["extents"].items()}
        return manifest["number"], extents
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ObjectDamaged(f"it is no manifest: {error}") from error
