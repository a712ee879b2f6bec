"""The manifests of a stream: each in a file of its own at first, then in bundles, and from a floor on.

manifests/129.obj           one manifest
manifests/1-128.obj         a bundle: the manifests 1 to 128, in one file
floors/300.obj              a floor: what lies below this number was deleted, or is about to be

A manifest is written under its number, only if that is free. So a micro-batch that is repeated adds
nothing, as long as the numbers that were used stay refused.

The hazard. A manifest that was bundled or deleted leaves its name free. A writer that stood still for long
enough would win it, and believe that its rows are new.

M1  A bundle is durable BEFORE its members are deleted, and a floor BEFORE anything below it is. Nothing
    else is deleted but lower floors. So the highest floor never falls, and a lower one changes nothing.
M2  If a number is free at some moment, then at that moment nobody ever had it, or its bundle is durable, or
    a floor above it: a bundle is deleted only below a floor.
M3  The rule. Who has read the file of a number THEN looks for its bundle, and THEN for the floor. If there
    is no bundle, and no floor above the number, then by M2 nobody had deleted the number before: what was
    read is what was first written. Otherwise the file is *void*: the bundle counts, or nothing does. A
    writer reads, too, AFTER it has written, and has added its micro-batch if it finds its own folder.
M4  A void file lies beside its bundle or below the floor. Nobody heeds it (M3), and whoever tidies up
    deletes it by its name alone.
M5  The last manifest is in no bundle, and not below the floor. It says all that the next one depends on:
    the query, the number, and how many records there were before, however many manifests are gone.
M6  Who bundles, or raises the floor, may stand still as well. A bundle says what the manifests said, with
    nothing for those that were below the floor by then. So one that is written again, after it was deleted,
    is void; and what is deleted by a lower floor lies below the highest, too.

A reader finds the place of a record without reading all manifests, because each one says at which offsets
it begins. Names are listed when a stream is opened: one for 128 micro-batches. A gap above the floor is
damage. Of the floors the highest two are kept, so that whoever lists them meanwhile sees one.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import Millis
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.ingress import Segment
from snapline.storage.files.places import named_in
from snapline.storage.files.store import FileStore

BUNDLE: Final = 128
"""How many manifests are gathered into one file."""

BATCHES = "batches"
_NONSENSE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class InputDeleted(ObjectMissing):
    """Input lies below the floor: it was deleted on purpose. Definite."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a stream, between two manifests."""

    offsets: tuple[int, ...]  # the records before it, per partition
    highest: Millis | None = None  # of their times


@dataclass(frozen=True, slots=True)
class BatchManifest:
    """One link of the chain: a micro-batch, or the seal."""

    number: int
    at_ms: int  # when it was written: Unix time
    before: Position  # where it begins
    query: str = ""
    folder: str = ""
    segments: Mapping[int, Segment] | None = None  # by partition; None: the chain is sealed

    @property
    def sealed(self) -> bool:
        """Whether it is the end of the chain."""
        return self.segments is None

    @property
    def after(self) -> Position:
        """Where the next one begins."""
        segments, highest = self.segments or {}, self.before.highest
        times = [block.time_max for segment in segments.values() for block in segment.blocks]
        offsets = [
            offset + (segments[partition].records if partition in segments else 0)
            for partition, offset in enumerate(self.before.offsets)
        ]
        known = times if highest is None else [*times, highest]
        return Position(tuple(offsets), max(known, default=None))

    def files(self, place: Path) -> list[tuple[Path, Segment]]:
        """The files of its segments."""
        if not self.segments:
            return []
        folder = named_in(batches_of(place, self.number), self.folder)
        return [(named_in(folder, segment.file), segment) for segment in self.segments.values()]

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON can hold it."""
        before = self.before
        said: dict[str, Any] = {"number": self.number, "at_ms": self.at_ms}
        said |= {"offsets": list(before.offsets), "highest": before.highest}
        if self.segments is not None:
            segments = {str(p): segment.to_json() for p, segment in self.segments.items()}
            said |= {"query": self.query, "folder": self.folder, "segments": segments}
        return said

    @staticmethod
    def from_json(said: dict[str, Any], number: int) -> "BatchManifest":
        """Read the manifest of a number from what `to_json` made. Raises ObjectDamaged."""
        try:
            if said["number"] != number:
                raise ValueError(f"manifest {said['number']} lies in the place of {number}")
            before = Position(tuple(said["offsets"]), said["highest"])
            if "segments" not in said:
                return BatchManifest(number, said["at_ms"], before)
            segments = {int(p): Segment.from_json(fields) for p, fields in said["segments"].items()}
            return BatchManifest(
                number, said["at_ms"], before, said["query"], said["folder"], segments
            )
        except _NONSENSE as error:
            raise ObjectDamaged(f"manifest {number} is not what was written: {error}") from error


def bundle_of(number: int) -> str:
    """The name of the bundle to which a number belongs."""
    first = (number - 1) // BUNDLE * BUNDLE + 1
    return f"{first}-{first + BUNDLE - 1}"


def batches_of(place: Path, number: int) -> Path:
    """The directory with the folders of the micro-batches that are bundled together with this one."""
    return place / BATCHES / bundle_of(number)


class Manifests:
    """Reads the manifests in a directory; in any thread."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place / "manifests"
        self.floors_folder = place / "floors"
        self.own = FileStore(self.folder)
        self.floors = FileStore(self.floors_folder)
        self._bundle: tuple[str, list[Any]] = ("", [])  #: the one that was read last

    # What is there, by names alone.

    def floor(self) -> int:
        """The number below which everything was deleted; 1: nothing was."""
        return max(names_in(self.floors_folder)[0], default=1)

    def last_number(self) -> int:
        """The highest number of a manifest; 0 if there is none."""
        numbers, bundles = names_in(self.folder)
        return max((*numbers, *(first + BUNDLE - 1 for first in bundles)), default=0)

    def check_no_gap(self) -> None:
        """Raise ObjectMissing if a manifest is gone: one between the floor and the last."""
        floor = self.floor()
        numbers, bundles = names_in(self.folder)
        last = max((*numbers, *(first + BUNDLE - 1 for first in bundles)), default=0)
        for first in range(floor - (floor - 1) % BUNDLE, last + 1, BUNDLE):
            if first not in bundles:
                wanted = range(max(first, floor), min(first + BUNDLE, last + 1))
                for number in (n for n in wanted if n not in numbers):
                    self._check(number)

    def _check(self, number: int) -> None:
        """Raise ObjectMissing if a manifest is not there, nor was bundled or deleted just now."""
        with suppress(InputDeleted):
            if self.read(number) is None:
                where = self.own.path(str(number))
                raise ObjectMissing(f"{where} is gone: manifests behind it are there")

    def file(self, number: int) -> Path:
        """The file in which a manifest lies, or should lie: its own, or that of its bundle."""
        own, bundle = self.own.path(str(number)), self.own.path(bundle_of(number))
        return bundle if bundle.exists() else own

    # Reading.

    def read(self, number: int) -> BatchManifest | None:
        """One manifest; None if it is yet to come. Raises InputDeleted, StorageError."""
        name, members = self._bundle
        if name != bundle_of(number):
            own = _got(self.own, str(number))
            # AFTER that, and in this order: M3.
            bundle = self._read_bundle(number)
            if bundle is None:
                if number < self.floor():
                    raise self._deleted(number)
                return None if own is None else self._decoded(own, number)
            members = bundle
            self._bundle = bundle_of(number), members
        said = members[(number - 1) % BUNDLE]
        if said is None:
            raise self._deleted(number)
        return BatchManifest.from_json(said, number)

    def _deleted(self, number: int) -> InputDeleted:
        return InputDeleted(
            f"micro-batch {number - 1} of {self.place} was deleted: its input begins with micro-batch "
            f"{self.floor() - 1}"
        )

    def _read_bundle(self, number: int) -> list[Any] | None:
        """The bundle to which a number belongs, if there is one."""
        data = _got(self.own, bundle_of(number))
        if data is None:
            return None
        try:
            members: list[Any] = json.loads(data)["bundle"]
            if len(members) != BUNDLE:
                raise ValueError(f"it has {len(members)} manifests")
        except _NONSENSE as error:
            where = self.own.path(bundle_of(number))
            raise ObjectDamaged(f"{where} is no bundle of manifests: {error}") from error
        return members

    def _decoded(self, data: bytes, number: int) -> BatchManifest:
        try:
            return BatchManifest.from_json(json.loads(data), number)
        except (ObjectDamaged, *_NONSENSE) as error:
            where = self.own.path(str(number))
            raise ObjectDamaged(f"{where} is not what was written: {error}") from error

    def newest(self) -> BatchManifest | None:
        """The last manifest; None if there is none."""
        while (number := self.last_number()) > 0:
            try:
                if (found := self.read(number)) is not None:
                    return found
            except InputDeleted:
                if number == self.last_number():
                    raise
        return None

    def since(self, first: int) -> Iterator[BatchManifest]:
        """The manifests from a number on, as far as they are there."""
        while (found := self.read(first)) is not None:
            yield found
            if found.sealed:
                return
            first += 1

    def locate(self, partition: int, offset: int) -> int:
        """The number of the last manifest that begins at an offset, or before it. Raises InputDeleted.

        It is searched for: as many manifests are read as the number of all of them has digits.
        """
        while True:
            floor = low = self.floor()
            try:
                return self._search(partition, offset, low, self.last_number())
            except InputDeleted:  # the floor may have been raised meanwhile
                if self.floor() == floor:
                    raise

    def _search(self, partition: int, offset: int, low: int, high: int) -> int:
        if (first := self.read(low)) is not None and offset < first.before.offsets[partition]:
            raise InputDeleted(
                f"record {offset} of partition {partition} of {self.place} was deleted: its input begins "
                f"with record {first.before.offsets[partition]}, in micro-batch {low - 1}. No line that is "
                "kept goes back so far"
            )
        while low < high:
            middle = (low + high + 1) // 2
            found = self.read(middle)
            if found is not None and found.before.offsets[partition] <= offset:
                low = middle
            else:
                high = middle - 1
        return low


def names_in(folder: Path) -> tuple[set[int], set[int]]:
    """The numbers that have a file in a folder, and the first numbers of the bundles in it."""
    with unavailable_on_os_error(f"list {folder}"):
        names = os.listdir(folder) if folder.is_dir() else []
    stems = {name.removesuffix(".obj") for name in names}
    numbers = {int(stem) for stem in stems if stem.isdecimal()}
    firsts = {int(first) for stem in stems if (first := stem.partition("-")[0]).isdecimal()}
    bundles = {n for n in firsts if n % BUNDLE == 1 and bundle_of(n) in stems}
    return numbers, bundles


def _got(store: FileStore, key: str) -> bytes | None:
    try:
        return store.get(key)
    except ObjectMissing:
        return None
