"""What the rest of a run proves about its ledger, which cannot show by itself that its end is gone."""

from dataclasses import dataclass

from snapline.engine.coordinator.ledger import Decision, decision_key
from snapline.ids import Epoch


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rest of a run proves about its ledger: each item came only after a decision was durable.

    Whoever gathers it does so BEFORE the ledger is read, or a decision that comes meanwhile looks lost.
    """

    number: int = 0  # a decision of this number was acted on, or named by a verdict
    epoch: Epoch = 0  # files of this epoch were opened
    manifest: int = 0  # a manifest of this number was published

    def objection(self, past: Decision | None) -> str | None:
        """Why this cannot be all of the ledger; None if nothing speaks against it."""
        last = past.number if past is not None else 0
        found = (
            (self.number, last, f"decision {self.number} was made"),
            (self.epoch, past.epoch if past else 0, f"epoch {self.epoch} had begun"),
            (self.manifest, past.published if past else 0, f"manifest {self.manifest} is public"),
        )
        for seen, known, told in found:
            if seen > known:
                lost = f"decision {last + 1} ({decision_key(last + 1)})"
                return f"{lost} is gone, if not more: the ledger ends before it, but {told}"
        return None
