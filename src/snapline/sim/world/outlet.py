"""Public output as later readers find it: numbered manifests, some perhaps damaged or gone.

The coordinator that publishes knows what it wrote; nobody who comes after it does. So what is read, at a
resume and at the end, is checked link by link: every manifest is there, each begins where the one before
it ended, and the last one is the last that was decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import Millis, TaskId
from snapline.storage.api import Extent
from snapline.storage.manifest import ManifestChain
from snapline.storage.memory_output import MemoryOutlet


@dataclass(slots=True)
class StoredManifest:
    """One manifest as it was written, and what became of it."""

    number: int
    extents: Mapping[TaskId, Extent]
    damaged: bool = False
    lost: bool = False


class SimOutlet(MemoryOutlet):
    """The outlet of a simulated run."""

    def __init__(self, clock: Callable[[], Millis] = lambda: 0) -> None:
        super().__init__(clock=clock)
        self.manifests: list[StoredManifest] = []  #: in the order in which they were written

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        known = len(self._chain)
        accepted = super().publish(number, extents)
        if len(self._chain) > known:
            self._write(StoredManifest(number, dict(extents)))
        return accepted

    def _write(self, manifest: StoredManifest) -> None:
        self.manifests.append(manifest)

    @property
    def last(self) -> int:
        """The number of the last manifest that is there; 0 if there is none."""
        return max((manifest.number for manifest in self.manifests if not manifest.lost), default=0)

    def spoil(self, *, lost: bool) -> int | None:
        """Damage or remove the newest manifest, unnoticed; its number, if there is one."""
        sound = [m for m in self.manifests if not (m.damaged or m.lost)]
        if not sound:
            return None
        sound[-1].lost, sound[-1].damaged = lost, not lost
        return sound[-1].number

    def reopen(self, published: int, redone: int) -> None:
        """Let the chain of manifests go on behind what can be read, as a new coordinator does.

        Of the manifests up to number `published` the last `redone` may never have been written, or be
        gone: they are written again. Raises StorageError if anything else is not as it was decided.
        """
        while self.manifests and self.manifests[-1].lost:
            self.manifests.pop()  # nothing tells that it was ever there
        chain = self.readable()
        if not published - redone <= self.last <= published:
            raise ObjectMissing(
                f"the ledger and the public output do not belong together: the ledger knows {published} "
                f"manifests, and the last that is there is manifest {self.last}"
            )
        self._chain = chain

    def require_all(self, published: int) -> None:
        """Raise StorageError unless all manifests up to this number are there and follow each other."""
        self.readable()
        if self.last != published:
            raise ObjectMissing(
                f"manifest {published} was decided, but the last that is there is manifest {self.last}"
            )

    def readable(self) -> ManifestChain:
        """All manifests as they can be read now, each checked against those before it."""
        chain = ManifestChain()
        for place, manifest in enumerate(self.manifests, start=1):
            if manifest.lost:
                raise ObjectMissing(f"manifest {place} of the public output is gone")
            if manifest.damaged:
                raise ObjectDamaged(f"manifest {place} of the public output is damaged")
            if chain.judge(manifest.number, manifest.extents) is not None:
                raise StorageError(
                    f"manifest {manifest.number} of the public output is there twice"
                )
            chain.add(manifest.number, manifest.extents)
        return chain
