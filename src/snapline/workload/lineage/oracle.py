"""What is right: every event once, in the output of its resource and window, or among the late.

Which events are late depends on how far the watermark had come when they arrived. So an event may be late
if the watermark can have passed its window (`model` says how far it can be), and the outputs are compared
with the input without the late events. The judge of `snapline.validate` does all the work, as it does for
outputs of other systems; here its causes become problems, one for each, with the smallest example.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.validate.causes import BREAKS, Cause
from snapline.validate.check import judge
from snapline.validate.judged import Judged, Witness
from snapline.validate.sentences import event_of, sentence
from snapline.workload.common.base import Params, Problem
from snapline.workload.lineage.echoes import wrong_echoes
from snapline.workload.lineage.model import event_label, lineage_of, shape_of
from snapline.workload.lineage.stays import excused
from snapline.workload.oracles.verdict import Kind

SINK: Final = "counts"
LATE: Final = "late"

KINDS: Final[Mapping[Cause, Kind]] = MappingProxyType(
    {
        Cause.INVENTED: "invented",
        Cause.WRONG_WINDOW: "wrong",
        Cause.WRONG_PAIR: "wrong",
        Cause.MISPLACED: "wrong",
        Cause.TWICE_INSIDE: "duplicate",
        Cause.WRONG_VALUE: "wrong",
        Cause.DUPLICATE: "duplicate",
        Cause.SPLIT: "wrong",
        Cause.LATE_AND_WINDOWED: "duplicate",
        Cause.LATE_TWICE: "duplicate",
        Cause.NOT_LATE: "missing",
        Cause.TRUNCATED: "missing",
        Cause.MISSING: "missing",
        Cause.INCOMPLETE: "missing",
    }
)


_ALL_COUNTS: Final = (Guarantee.NOTHING, Guarantee.BOUNDED_LOSS)
"""Levels at which everything is reported: nothing was promised, or all that is not excused."""


def judge_sst(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the counts of GETs, and the late GETs, with the GETs that went in."""
    return _judge(params, output, level, with_posts=False)


def judge_mst(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the counts of GETs and POSTs, and the late events, with the events that went in."""
    return _judge(params, output, level, with_posts=True)


def _judge(
    params: Params, output: Mapping[str, Batch], level: Guarantee, *, with_posts: bool
) -> list[Problem]:
    events, shape = lineage_of(params, with_posts=with_posts), shape_of(params)
    size_ms, lateness_ms = shape.window_ms, shape.lateness_ms
    counts, late = (output[sink] if output.get(sink) else None for sink in (SINK, LATE))
    told, told_late = counts or Batch({}, 0), late or Batch({}, 0)
    sinks = (SINK, LATE)
    events, counts, late = excused(params, events, counts, late, sinks, with_posts=with_posts)

    def tell(witness: Witness) -> str:
        return sentence(witness, size_ms, event=event_of(events, witness.id), label=event_label)

    judged = judge(events, counts, late, size_ms, lateness_ms=lateness_ms)
    found = problems(judged, level, tell)
    return [*found, *wrong_echoes(events, told, told_late, size_ms)]


def problems(judged: Judged, level: Guarantee, tell: Callable[[Witness], str]) -> list[Problem]:
    """The problems that a guarantee level forbids, the leading cause first; all if nothing was promised.

    `tell` makes the sentence of a witness.
    """
    found = []
    for cause in Cause:
        if cause in judged.causes and (level in BREAKS[cause] or level in _ALL_COUNTS):
            witness, count = judged.witnesses[cause], judged.causes[cause]
            more = f" ({cause}: {count:,} in all)" if count > 1 else ""
            found.append(Problem(KINDS[cause], _record(witness), tell(witness) + more))
    return found


def _record(witness: Witness) -> str:
    """The name of the event of a witness, or of the output if it has no event."""
    if isinstance(witness.id, int):
        return event_label(witness.id)
    return f"resource {witness.resource} in window {witness.window}"
