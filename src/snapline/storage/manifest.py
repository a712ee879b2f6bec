"""What was published, as a chain of manifests.

A manifest says which rows of which files become public together. The extents of a sink must continue
exactly where the manifest before ended: a gap would lose output, an overlap would publish it twice. The
rule is here once; the forms of the outlet only differ in where they keep the chain.
"""

from collections.abc import Mapping

from snapline.errors import StorageError
from snapline.ids import TaskId
from snapline.storage.api import Extent


class Chain:
    """The manifests so far, in order."""

    def __init__(self) -> None:
        self._manifests: dict[int, dict[TaskId, Extent]] = {}
        self._last = 0  #: the highest number; numbers rise, but need not be consecutive
        self._published: dict[TaskId, int] = {}  #: rows of each sink that are public

    def __len__(self) -> int:
        return len(self._manifests)

    def judge(self, number: int, extents: Mapping[TaskId, Extent]) -> bool | None:
        """Whether this manifest is in the chain (True), its number is taken (False), or it may be added.

        Raises StorageError for a manifest that can never be added.
        """
        known = self._manifests.get(number)
        if known is not None:
            return known == dict(extents)
        if number <= self._last:
            raise StorageError(f"manifest {number} comes too late: {self._last} is public")
        for task, extent in extents.items():
            published = self._published.get(task, 0)
            if extent.start != published or extent.stop < extent.start:
                raise StorageError(
                    f"manifest {number}: {extent} of {task} does not continue at row {published}"
                )
        return None

    def add(self, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Add a manifest that was judged to be the next."""
        self._manifests[number] = dict(extents)
        self._last = number
        self._published.update({task: extent.stop for task, extent in extents.items()})

    def extents(self, task: TaskId) -> list[Extent]:
        """The public extents of a sink, in order."""
        return [manifest[task] for manifest in self._manifests.values() if task in manifest]
