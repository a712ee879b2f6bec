"""The verdict on output of which old rows were deleted: what is left is compared, what is gone is not."""

import pytest

from snapline.batch import concat
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.judge.verdict import judge_retained
from snapline.rundir.program import program_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

PARAMS = Params(1, 2, 200, 2_400)
#: PGVal's topologies are left out: their rows are judged by lineage
NAMES = [name for name, workload in WORKLOADS.items() if workload.lineage is None]


def judged(name, rows, deleted, promised=Guarantee.EXACTLY_ONCE):
    program = program_of(WORKLOADS[name], PARAMS)
    [sink] = program.sinks(1)
    problems_at = lambda level: program.judge({sink: rows}, level)  # noqa: E731
    return judge_retained(problems_at, promised, len(rows), deleted, "10:02:11")


def output_of(name):
    flow = WORKLOADS[name].build(PARAMS)
    [rows] = reference_output(deploy(flow, 2), 0).values()
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_is_right_or_wrong_whatever_was_deleted(name):
    rows = output_of(name)
    half = rows.slice(len(rows) // 2, len(rows))
    gone = len(rows) - len(half)
    right = judged(name, half, gone)
    assert right.kept == "unknown", right
    assert right.because == (
        f"the {len(half)} rows published since 10:02:11 are right; {gone} older ones were deleted by "
        "retain and could not be compared"
    )
    doubled = concat([half, half.slice(0, 1)])
    twice = judged(name, doubled, gone)
    assert (twice.kept, twice.guarantees["at-least-once"]) == ("no", "unknown"), twice
    assert judged(name, doubled, gone, Guarantee.AT_LEAST_ONCE).kept == "unknown"
