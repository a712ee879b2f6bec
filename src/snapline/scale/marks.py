"""How far a predicted figure can be trusted: every one has a mark.

*validated*: predictions of this kind were compared with real runs of this protocol, at this many slots or
more and with messages of the same size, and all were within the bar. *extrapolated*: they were, but with
fewer slots, or another workload, or messages of another size, or without dilution. *not validated*: nobody
compared them, or one was beyond the bar.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from snapline.scale.predict import Prediction
from snapline.scale.profile import BARS, Checked, Profile, batch_of


class Mark(StrEnum):
    """How far a predicted figure can be trusted."""

    VALIDATED = "validated"
    EXTRAPOLATED = "extrapolated"
    NOT_VALIDATED = "not validated"


CHECKED_BY: Final[Mapping[str, Checked]] = {
    "bytes": Checked.BYTES,
    "rate": Checked.CAPACITY,
    "restart_s": Checked.RESTART,
}
"""The figures that are compared with real runs; the rate is, where all records are due at once."""


def marks(prediction: Prediction, profile: Profile) -> dict[str, tuple[Mark, str]]:
    """The mark of each figure that can have one, and why it has it; all others are not validated."""
    found = {figure: mark_of(what, prediction, profile) for figure, what in CHECKED_BY.items()}
    if prediction.spec.rate != "max":
        found["rate"] = (
            Mark.NOT_VALIDATED,
            "the rate was given: only one at full speed (max) is compared",
        )
    return found


def mark_of(what: Checked, prediction: Prediction, profile: Profile) -> tuple[Mark, str]:
    """The mark of one kind of figure in a prediction, and why it has it."""
    spec = prediction.spec
    same = [c for c in profile.checks if c.what is what and c.protocol == spec.protocol]
    if not same:
        return Mark.NOT_VALIDATED, f"no {what} of {spec.protocol} was compared with real runs"
    batch = batch_of(spec)
    sized = same if what is Checked.RESTART else [c for c in same if c.batch == batch]
    known = sized or same
    known = [check for check in known if check.workload == spec.flow] or known
    worst = max(known, key=lambda check: abs(check.error))
    where = f"{worst.workload} on {worst.slots} slots"
    if not worst.holds:
        bar = f"more than {BARS[what]:.0%}"
        return Mark.NOT_VALIDATED, f"for {where} it was wrong by {worst.error:+.0%}, {bar}"
    most = max(check.slots for check in known)
    if spec.flow not in (others := sorted({check.workload for check in known})):
        return Mark.EXTRAPOLATED, f"compared with {', '.join(others)}"
    if not sized:
        return Mark.EXTRAPOLATED, "compared with messages of another size"
    if spec.all_slots > most:
        return Mark.EXTRAPOLATED, f"compared with up to {most} slots"
    if prediction.dilution > 1:
        return Mark.EXTRAPOLATED, "compared without dilution"
    return Mark.VALIDATED, f"compared with up to {most} slots; at worst {worst.error:+.1%}"
