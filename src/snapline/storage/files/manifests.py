"""The chain of manifests as files.

The manifests are objects numbered 1, 2, 3 in the order in which they were published, whatever the numbers
their publishers use: the next one is written only if nobody wrote it before. So two publishers
that race can never both continue at the same row.

A manifest that is gone in the middle is told from the end of the chain when the chain is first read: the
next places are looked at, too. The loss of the last ones only shows to whoever knows what was decided
(`ManifestChain.hold_against`).
"""

import json
from collections.abc import Mapping
from pathlib import Path

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import TaskId
from snapline.storage.api import Extent
from snapline.storage.files.store import FileStore
from snapline.storage.manifest import ManifestChain

WINDOW = 64
"""How many places behind the apparent end are looked at: a shorter gap is never taken for the end."""


class FileManifests:
    """The manifests in a directory, and the chain of those that were read so far."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.chain = ManifestChain()
        self._store = FileStore(directory)
        self._looked_beyond = False  #: whether the end of the chain is known to be its end

    def add(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Write the next manifest of the chain; False if somebody else has written one first."""
        if not self._store.put_if_absent(str(len(self.chain) + 1), _encode(number, extents)):
            return False
        self.chain.add(number, extents)
        return True

    def at(self, place: int) -> Mapping[TaskId, Extent] | None:
        """The manifest at a place of the chain, counted from 1; None if it is yet to come."""
        try:
            return _decode(self._store.get(str(place)))[1]
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
                manifest = self._store.get(place)
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

    def _has(self, place: int) -> bool:
        try:
            self._store.get(str(place))
        except ObjectMissing:
            return False
        except ObjectDamaged:
            return True
        return True


def read_manifest(directory: Path, place: int) -> tuple[int, dict[TaskId, Extent]]:
    """One manifest of a chain: its number, and what it publishes. Raises ObjectMissing, ObjectDamaged."""
    return _decode(FileStore(directory).get(str(place)))


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
