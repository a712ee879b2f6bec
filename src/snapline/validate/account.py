"""A judgement that is made in steps: counts are added up, and of each cause the lowest witness is kept.

Whether a window that never came out is *missing* or the output is *truncated* there depends on what comes
after it, so such windows are kept apart, one entry each, until an output of a later window comes.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from snapline.ids import Millis
from snapline.validate.causes import Cause
from snapline.validate.facts import NUMBER
from snapline.validate.findings import Findings, starts_of
from snapline.validate.judged import Judged, Witness
from snapline.validate.lineage import LineageColumns
from snapline.wording import plural

_NUMBERS: Final = (
    "inputs",
    "outputs",
    "late",
    "lost",
    "repeated",
    "reliable",
    "counted",
    "late_events",
    "unsure_outputs",
    "unsure_late",
)


@dataclass(slots=True)
class Account:
    """The sums and the witnesses of all that was judged so far."""

    inputs: int = 0
    outputs: int = 0
    late: int = 0
    lost: int = 0
    repeated: int = 0
    reliable: int = 0
    counted: int = 0
    late_events: int = 0
    causes: Counter[Cause] = field(default_factory=Counter)
    witnesses: dict[Cause, Witness] = field(default_factory=dict)
    #: windows without output that lie after the last output: how many resources, and the lowest witness
    silent: dict[Millis, tuple[int, Witness]] = field(default_factory=dict)
    unsure_outputs: int = 0
    unsure_late: int = 0

    def enter(self, found: Findings, tables: LineageColumns, last_output: Millis) -> None:
        """Add findings. `last_output` is the latest window of any output so far."""
        missing, truncated = NUMBER[Cause.MISSING], NUMBER[Cause.TRUNCATED]
        silent = (found.cause == missing) | (found.cause == truncated)
        ended = np.where(found.window > last_output, truncated, missing)
        found = replace(found, cause=np.where(silent, ended, found.cause))
        order = found.order()
        cause = found.cause[order]
        window = np.where(cause == truncated, found.window[order], 0)
        starts = np.union1d(starts_of(cause), starts_of(window))
        for start, count in zip(starts, np.diff(starts, append=len(order)), strict=True):
            self._add(found.witness(int(order[start]), tables), int(count))

    def _add(self, witness: Witness, count: int) -> None:
        if witness.cause is Cause.TRUNCATED and witness.window is not None:
            before, lowest = self.silent.get(witness.window, (0, witness))
            self.silent[witness.window] = (before + count, min(lowest, witness, key=_rank))
        else:
            self.causes[witness.cause] += count
            lowest = self.witnesses.get(witness.cause, witness)
            self.witnesses[witness.cause] = min(lowest, witness, key=_rank)

    def settle(self, last_output: Millis) -> None:
        """Call the windows before the last output missing: the output has gone on without them."""
        for window in [window for window in self.silent if window <= last_output]:
            count, witness = self.silent.pop(window)
            self._add(replace(witness, cause=Cause.MISSING), count)

    def merge(self, step: "Account") -> None:
        """Add another account."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(step, name))
        for cause, witness in step.witnesses.items():
            self._add(witness, step.causes[cause])
        for count, witness in step.silent.values():
            self._add(witness, count)

    def judged(self) -> Judged:
        """The judgement so far."""
        causes, witnesses = dict(self.causes), dict(self.witnesses)
        if self.silent:
            causes[Cause.TRUNCATED] = sum(count for count, _ in self.silent.values())
            witnesses[Cause.TRUNCATED] = self.silent[min(self.silent)][1]
        return Judged(
            self.inputs,
            self.outputs,
            self.late,
            self.lost,
            self.repeated,
            self.reliable,
            self.counted,
            self.late_events,
            causes,
            witnesses,
            self._undecided(),
        )

    def _undecided(self) -> str | None:
        if not self.unsure_outputs + self.unsure_late:
            return None
        return (
            f"{plural(self.unsure_outputs, 'output')} and {plural(self.unsure_late, 'row')} of the late "
            "output came after "
            "their windows were judged, and may be what was called lost there, or a part of what came out "
            "before; judge the whole to know"
        )


def _rank(witness: Witness) -> tuple[Any, ...]:
    """A key by which witnesses are ordered; None comes last."""
    values = (witness.window, witness.resource, witness.position, witness.id)
    return tuple((value is None, value) for value in values)
