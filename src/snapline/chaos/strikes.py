"""Whether the faults of a run proved anything: which of them struck, and was there something to lose?

A fault *struck* if it took effect, or found its target already down. It *never struck* if its moment did
not come: its time lies behind the end of the run, it waits for a recovery that never began, or for a step
that was never made. A run whose faults never struck says nothing about faults, however right its output
is; a judge that acquits it would acquit everything. The rule is here once, for both worlds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from snapline.ids import Millis
from snapline.wording import plural


@dataclass(frozen=True, slots=True)
class Strike:
    """What became of one fault of a plan."""

    statement: str
    struck: bool
    at_ms: Millis | None  # when it struck; None if it never did


def vacuous(
    strikes: Sequence[Strike],
    *,
    drawn: bool,
    losses_ms: Sequence[Millis],
    first_line_ms: Millis | None,
    rows: int,
) -> str | None:
    """Why a run proves nothing, in one sentence; None if it proves something.

    `drawn` faults come from a seed: some may miss, but one process must be lost after the first committed
    line. Faults that somebody named must all strike and, if processes were lost, one of them after that
    line. `first_line_ms` is the time of that line or, where a protocol has no lines, of the first output;
    None if it never came. A run without faults proves nothing about faults, but it must have some output.
    """
    if rows == 0:
        return "the run put out nothing"
    if not strikes:
        return None
    missed = [strike.statement for strike in strikes if not strike.struck]
    if missed and not drawn:
        names = ", ".join(f"'{statement}'" for statement in missed)
        return f"{len(missed)} of {plural(len(strikes), 'fault')} never struck: {names}"
    if not losses_ms:
        return "no process was lost, so nothing had to be recovered" if drawn else None
    if first_line_ms is None:
        return "processes were lost, but nothing was ever committed that they could have lost"
    if max(losses_ms) <= first_line_ms:
        return (
            f"the last loss came at {max(losses_ms)} ms, when there was nothing to lose yet: "
            f"the first line (or output) came at {first_line_ms} ms"
        )
    return None
