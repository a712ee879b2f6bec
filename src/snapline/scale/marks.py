"""How far a predicted figure can be trusted: every one has a mark.

*validated*: predictions of this kind were compared with real runs like this one, and all were within the
bar: with the same protocol, workload, cores, interval, rate and size of messages, on as many slots or more.
*extrapolated*: they were, but what was compared differs from this run in one of these, or in something else
that was asked for. *not validated*: nobody compared them, or one was beyond the bar.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from snapline.chaos.faults import Kill, parse
from snapline.rundir.spec import Spec
from snapline.scale.predict import Prediction
from snapline.scale.profile import BARS, Checked, PredictionCheck, Profile, batch_of, rate_of


class Mark(StrEnum):
    """How far a predicted figure can be trusted."""

    VALIDATED = "validated"
    EXTRAPOLATED = "extrapolated"
    NOT_VALIDATED = "not validated"


CHECKED_BY: Final[Mapping[str, Checked]] = {
    "bytes": Checked.BYTES,
    "restart_s": Checked.RESTART,
}
"""The figures that are compared with real runs. A rate is not: only its ratio to that of `none` is."""

_UNTOUCHED: Final = (
    *("size", "input", "hot", "hot_ms", "settings", "guarantee"),
    *("publish_lag", "pools", "save", "inputs"),
)
"""Fields of a run that change its figures, and have their defaults in all runs that are compared."""

_USUAL: Final = Spec("")
_WORDS: Final = {"cores": "number of cores", "interval_ms": "interval", "rate": "rate"}


def marks(prediction: Prediction, profile: Profile) -> dict[str, tuple[Mark, str]]:
    """The mark of each figure that can have one, and why it has it; all others are not validated."""
    return {figure: mark_of(what, prediction, profile) for figure, what in CHECKED_BY.items()}


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
    if spec.flow not in (others := sorted({check.workload for check in known})):
        return Mark.EXTRAPOLATED, f"compared with {', '.join(others)}"
    if not sized:
        return Mark.EXTRAPOLATED, "compared with messages of another size"
    if (why := _unlike(what, prediction, known)) is not None:
        return Mark.EXTRAPOLATED, why
    most = max(check.slots for check in known)
    return Mark.VALIDATED, f"compared with up to {most} slots; at worst {worst.error:+.1%}"


def _unlike(what: Checked, prediction: Prediction, known: Sequence[PredictionCheck]) -> str | None:
    """In what a run differs from all that were compared, in words; None: one of these was like it."""
    spec, alike = prediction.spec, list(known)
    most = max(check.slots for check in alike)
    if spec.all_slots > most:
        return f"compared with up to {most} slots"
    if prediction.dilution > 1:
        return "compared without dilution"
    if changed := [*_changed(what, spec)]:
        return f"compared without what was asked for here: {', '.join(changed)}"
    if prediction.cores is None:
        return "compared with slots that share cores"
    asked = {"cores": prediction.cores, "interval_ms": spec.interval_ms, "rate": rate_of(spec)}
    for name, own in asked.items():
        alike = [check for check in alike if getattr(check, name) == own]
        if not alike:
            return f"compared with another {_WORDS[name]}"
    return None


def _changed(what: Checked, spec: Spec) -> Iterator[str]:
    """What was asked for that no run which is compared has: fields, options, faults."""
    yield from (name for name in _UNTOUCHED if getattr(spec, name) != getattr(_USUAL, name))
    yield from (name for name, _ in spec.options if name != "batch")
    faults = parse(spec.faults)
    if what is not Checked.RESTART:
        yield from ["faults"] if faults else []
    elif not all(isinstance(each, Kill) and len(each.slots) == 1 for each in faults):
        yield "faults other than kills of one slot"
