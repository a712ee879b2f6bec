"""The judge in process: Algorithms 1 to 3 of PGVal over whole columns, and what they miss.

PGVal walks over the outputs and asks of each id whether it is expected (1), walks over the late events (2),
and counts what was never met (3). Here all claims are held against the events at once. `causes` has the
rules; the steps are `lineage` (tables become numbers), `facts` (what can be said of every claim, output and
event) and `findings` (what is wrong, and the lowest example of it).
"""

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.validate.columns import Bools
from snapline.validate.facts import facts
from snapline.validate.findings import judgements
from snapline.validate.judged import Judged
from snapline.validate.lineage import lineage


def judge(
    inputs: Batch,
    outputs: Batch | None,
    late: Batch | None,
    size_ms: Millis,
    *,
    undecided: str | None = None,
) -> Judged:
    """Judge an output. `undecided` says why it is incomplete, if it is. Raises UsageError."""
    tables = lineage(inputs, outputs, late, size_ms)
    return judgements(tables, facts(tables), undecided)[0]


def judge_each(
    inputs: Batch, outputs: Batch | None, late: Batch | None, size_ms: Millis
) -> tuple[Judged, Bools]:
    """Judge an output, and say of every event whether it was processed reliably."""
    tables = lineage(inputs, outputs, late, size_ms)
    known = facts(tables)
    return judgements(tables, known)[0], known.reliable


def judge_cases(
    inputs: Batch, outputs: Batch | None, late: Batch | None, size_ms: Millis
) -> dict[int, Judged]:
    """Judge many cases at once, each for itself: those of the column `case` of the three tables."""
    tables = lineage(inputs, outputs, late, size_ms, cases=True)
    return dict(zip(tables.cases.tolist(), judgements(tables, facts(tables)), strict=True))
