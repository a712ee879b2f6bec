"""The judge in process: Algorithms 1 to 3 of PGVal over whole columns, and the faults that those miss.

PGVal walks over the outputs and asks of each id whether it is expected (1), walks over the late events (2),
and counts what was never met (3). Here all claims are held against the events at once. `causes` has the
rules; the steps are `lineage` (tables become numbers), `facts` (what can be said of every claim, output and
event), `findings` (what is wrong) and `judgements` (how often, and the lowest example of it).

`lateness_ms` is how long after its end a window is closed; it matters where the input has a `watermark`.
With `until_ms` only windows that end then or before are judged.
"""

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.validate.columns import Bools
from snapline.validate.facts import correct, facts
from snapline.validate.judged import Judged
from snapline.validate.judgements import judgements
from snapline.validate.lineage import lineage


def judge(
    inputs: Batch,
    outputs: Batch | None,
    late: Batch | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
    undecided: str | None = None,
) -> Judged:
    """Judge an output. `undecided` says why the output may be incomplete. Raises UsageError."""
    tables = lineage(inputs, outputs, late, size_ms, lateness_ms=lateness_ms)
    known = facts(tables)
    return judgements(tables, known, size_ms, until_ms=until_ms, undecided=undecided)[0]


def judge_each(
    inputs: Batch,
    outputs: Batch | None,
    late: Batch | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
) -> tuple[Judged, Bools, Bools]:
    """Judge an output, and say whether each event was processed reliably, and each output is correct."""
    tables = lineage(inputs, outputs, late, size_ms, lateness_ms=lateness_ms)
    known = facts(tables)
    judged = judgements(tables, known, size_ms, until_ms=until_ms)[0]
    return judged, known.reliable, correct(tables, known)


def judge_cases(
    inputs: Batch,
    outputs: Batch | None,
    late: Batch | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
) -> dict[int, Judged]:
    """Judge many cases at once, each for itself: those of the column `case` of the three tables."""
    tables = lineage(inputs, outputs, late, size_ms, lateness_ms=lateness_ms, cases=True)
    judged = judgements(tables, facts(tables), size_ms, until_ms=until_ms)
    return dict(zip(tables.cases.tolist(), judged, strict=True))
