"""What was published, as a chain of manifests.

A manifest says which rows of which files become public together. The extents of a sink must continue
exactly where the manifest before ended: a gap would lose output, an overlap would publish it twice. The
rule is here once; the forms of the outlet only differ in where they keep the chain. Where old output was
deleted, the chain begins at a floor (`floor.py`).
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import TaskId
from snapline.storage.api import Extent, OutputPiece
from snapline.storage.floor import Floor


class ManifestChain:
    """The manifests so far, in order."""

    def __init__(self) -> None:
        self.floor = Floor()  #: what was deleted before the first of them
        self._manifests: dict[int, dict[TaskId, Extent]] = {}
        self._forgotten = 0  #: how many of the first are not in memory any more
        self._last = 0  #: the highest number; numbers rise, but need not be consecutive
        self._published: dict[TaskId, int] = {}  #: rows of each sink that are public
        #: the files of which rows are public, also by forgotten manifests, and the last place of each
        self._files: dict[str, int] = {}

    def __len__(self) -> int:
        return self._forgotten + len(self._manifests)

    def forget(self, through: int) -> None:
        """Drop the manifests up to a number from memory; whoever publishes needs only the last ones.

        The names of their files stay: whoever sweeps must know of every file of which rows are public.
        """
        old = [number for number in self._manifests if number <= through]
        for number in old:
            del self._manifests[number]
        self._forgotten += len(old)

    def raise_floor(self, floor: Floor) -> None:
        """Begin at a floor: all below it was deleted. A lower one than is known changes nothing."""
        if floor.place <= self.floor.place:
            return
        if floor.place > len(self):
            self._last, self._published = floor.number, dict(floor.rows)
        for number in list(islice(self._manifests, max(0, floor.place - self._forgotten))):
            del self._manifests[number]
        self._forgotten = max(self._forgotten, floor.place)
        self._files = {file: last for file, last in self._files.items() if last > floor.place}
        self.floor = floor

    def judge(self, number: int, extents: Mapping[TaskId, Extent]) -> bool | None:
        """Whether this manifest is in the chain (True), its number is taken (False), or it may be added.

        One below the floor was in it, before it was deleted. Raises ObjectDamaged for a manifest that can
        never be added: it contradicts the chain, and waiting does not change that.
        """
        if number <= self.floor.number:
            return True
        known = self._manifests.get(number)
        if known is not None:
            return known == dict(extents)
        if number <= self._last:
            raise ObjectDamaged(f"manifest {number} comes too late: {self._last} is public")
        for task, extent in extents.items():
            published = self._published.get(task, 0)
            if extent.start != published or extent.stop < extent.start:
                raise ObjectDamaged(
                    f"manifest {number}: {extent} of {task} does not continue at row {published}"
                )
        return None

    @property
    def last(self) -> int:
        """The highest number that is public; 0 if nothing is."""
        return self._last

    def hold_against(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Compare the chain with what a publisher has decided so far.

        `decided` are the manifests of its last decision, which may be public or not, `through` is the
        number of the last of them, and `rows` what is public of each sink once all of them are. All earlier
        ones must be public. Manifests after `through` are ignored. Raises ObjectMissing or ObjectDamaged.
        """
        floor = self.floor
        if floor.number > through:
            raise ObjectDamaged(
                f"manifest {floor.number} was deleted, and only {through} are decided"
            )
        public = {n: extents for n, extents in self._manifests.items() if n <= through}
        before = through - len(decided)
        if max((n for n in public if n <= before), default=floor.number) < before:
            raise ObjectMissing(f"manifest {before} is gone: it was published, and is not public")
        for number, extents in decided.items():
            if number <= floor.number:
                continue
            if public.setdefault(number, dict(extents)) != dict(extents):
                raise ObjectDamaged(
                    f"manifest {number} is public with other rows than were decided"
                )
        found: dict[TaskId, int] = dict(floor.rows)
        for number in sorted(public):
            found.update({task: extent.stop for task, extent in public[number].items()})
        for task in {**found, **rows}:
            if found.get(task, 0) != rows.get(task, 0):
                raise ObjectDamaged(
                    f"the manifests through {through} make {found.get(task, 0)} rows of {task} public, and "
                    f"the decisions {rows.get(task, 0)}: a manifest was replaced"
                )

    def add(self, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Add a manifest that was judged to be the next."""
        self._manifests[number] = dict(extents)
        self._last = number
        self._published.update({task: extent.stop for task, extent in extents.items()})
        self._files.update({extent.file: len(self) for extent in extents.values()})

    def files(self) -> set[str]:
        """The files of which rows are public."""
        return {*self._files}

    def pieces(self, task: TaskId) -> list[OutputPiece]:
        """The public rows of a sink, in order; those that follow each other in a file are one piece."""
        return self.between(task, self.floor.place, len(self))

    def between(self, task: TaskId, after: int, through: int) -> list[OutputPiece]:
        """As `pieces`, of the manifests behind the first `after`, up to the one in place `through`.

        Raises RowsDeleted if some of them were deleted, ObjectMissing if they are yet to come.
        """
        if after < self.floor.place and after < through:
            raise self.floor.deleted(after)
        if through > len(self):
            raise ObjectMissing(f"manifest {through} is not public: there are {len(self)}")
        found: list[OutputPiece] = []
        first, last = (max(0, place - self._forgotten) for place in (after, through))
        for extents in islice(self._manifests.values(), first, last):
            extent = extents.get(task)
            if extent is not None and extent.start < extent.stop:
                joins = bool(found) and found[-1].file == extent.file
                start = found.pop().start if joins else extent.start
                found.append(OutputPiece(extent.file, start, extent.stop))
        return found

    def since(self, count: int) -> Iterator[Mapping[TaskId, Extent]]:
        """The manifests after the first `count`. Raises RowsDeleted if one of them was deleted."""
        if count < self.floor.place:
            raise self.floor.deleted(count)
        return iter(list(self._manifests.values())[count - self._forgotten :])
