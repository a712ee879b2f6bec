"""The verdict on output of which old rows were deleted: what is left, their number, and an account."""

from dataclasses import replace

import numpy as np
import pytest

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.judge.verdict import RetainedRows, judge_retained
from snapline.rundir.program import program_of
from snapline.storage.row_account import account_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

EXACTLY = Guarantee.EXACTLY_ONCE
PARAMS = Params(1, 2, 200, 2_400)
#: PGVal's topologies are left out: their rows are judged by lineage
NAMES = [name for name, workload in WORKLOADS.items() if workload.lineage is None]


def judged(name, rows, retained, promised=EXACTLY):
    program = program_of(WORKLOADS[name], PARAMS)
    [sink] = program.sinks(1)
    return judge_retained(lambda level: program.judge({sink: rows}, level), promised, retained)


def output_of(name):
    flow = WORKLOADS[name].build(PARAMS)
    [rows] = reference_output(deploy(flow, 2), 0).values()
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_is_right_or_wrong_whatever_was_deleted(name):
    rows = output_of(name)
    half = rows.slice(len(rows) // 2, len(rows))
    retained = RetainedRows(len(half), len(rows) - len(half), "10:02:11", len(rows))
    right = judged(name, half, retained)
    assert right.kept == "unknown", right
    assert right.because == (
        f"the {len(half)} rows published since 10:02:11 are right; {len(rows) - len(half)} older ones "
        "were deleted by retain and not compared, only counted"
    )
    twice = judged(name, concat([half, half.slice(0, 1)]), replace(retained, expected=None))
    assert twice.kept == "no", twice


def test_a_wrong_number_of_rows_is_a_no():
    rows = output_of("q1").slice(100, 400)
    base = RetainedRows(300, 100, "10:02:11", 400)
    few = judged("q1", rows, replace(base, deleted=99))
    assert (few.kept, few.because) == (
        "no",
        "400 rows should have come out, and there were 300 that are left and 99 that were deleted",
    )
    assert few.guarantees == {
        "at-most-once": "unknown",
        "at-least-once": "no",
        "exactly-once": "no",
    }
    many = judged("q1", rows, replace(base, deleted=101), Guarantee.AT_LEAST_ONCE)
    assert many.kept == "unknown"
    assert many.guarantees["at-most-once"] == "no"


def test_an_account_of_the_deleted_rows_proves_them_or_breaks_them():
    rows = output_of("q1")
    gone, left = rows.slice(0, 100), rows.slice(100, len(rows))
    missing = account_of(rows) - account_of(left)
    base = RetainedRows(len(left), 100, "10:02:11", len(rows), account_of(gone), missing)
    assert judged("q1", left, base).kept == "yes"
    prices = gone["price"] + (np.arange(100) == 7)
    wrong = account_of(Batch({**gone.columns, "price": prices}))
    found = judged("q1", left, replace(base, account=wrong))
    assert (found.kept, found.guarantees["exactly-once"]) == ("no", "no")
    assert "by their account they were not those that are expected" in found.because
    assert judged("q1", left, replace(base, missing=None)).kept == "unknown"
