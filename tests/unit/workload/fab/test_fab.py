"""FAB: its forms give the same, its models learn, and what each of them says is reproducible."""

from fractions import Fraction

import numpy as np
import pytest

from interleaver import run
from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.fab import model
from snapline.workload.fab.oracle import determinant, expected
from snapline.workload.fab.query import ROWS
from snapline.workload.fab.regression import YieldModel, solved

FAB = WORKLOADS["fab"]
FULL = Params(records=171_000, duration_ms=1_800_000, full=True)


def test_it_has_10_operators_or_79():
    for operators in (10, 79):
        flow = FAB.build(Params(settings=(("operators", operators),)))
        assert len(flow.graph.nodes) == operators


def test_its_sizes_are_those_of_the_paper():
    """9,000 wafers, 107 full lots, windows of 512,000 and 128,000 rows, which a run fills."""
    assert model.shape_of(FULL).wafers * FULL.partitions == 9_000
    lots = expected(FULL)
    assert (len(lots), int((lots["wafers"] == 84).sum())) == (108, 107)
    assert [rows * model.CELLS for rows in ROWS.values()] == [512_000, 128_000]
    for step in model.STEPS:
        assert 0.9 < model.readings(FULL, step).records * 3 / (ROWS[step] * model.CELLS) < 1.1


def test_its_models_learn():
    """The first lot is predicted as nothing; later ones within some points of a hundred."""
    quality = expected(FULL)["quality"] / 100
    assert quality[0] < -25
    assert np.abs(quality[10:107]).mean() < 5


def test_with_79_operators_the_same_comes_out():
    params = Params(seed=4, records=12, settings=(("operators", 79),))
    result = run(FAB, params, 4)
    assert FAB.judge(params, result.output, result.state, Guarantee.EXACTLY_ONCE) == []
    assert expected(params).to_pydict() == expected(Params(seed=4, records=12)).to_pydict()


def test_each_model_has_a_pool_of_its_own():
    deployed = deploy(FAB.build(Params(settings=(("pools", 1),))), 3)
    slots = {task: plan.slot for task, plan in deployed.plans.items()}
    models = {slot for task, slot in slots.items() if "-model/" in task}
    others = {slot for task, slot in slots.items() if "-model/" not in task}
    assert len(models) == 2
    assert not models & others


def reading(**columns):
    whole = {"closes": 10, "lot": 0, "wafer": 0, "sensor": 0, "value": 0, "yield": 0} | columns
    return Batch.of(**{name: [value] for name, value in whole.items()})


def test_a_lot_that_ended_while_the_model_was_away_is_forgotten():
    operator = YieldModel(1)
    operator.process("in", reading(closes=10, lot=0))
    operator.process("in", reading(closes=20, lot=1))
    assert operator.expire(10) == 1
    operator.process("in", reading(closes=10, lot=0))
    ((_, rows),) = operator.on_watermark(30)
    assert rows["lot"].tolist() == [1]


def test_a_model_predicts_with_what_it_knew_before_the_lot():
    operator = YieldModel(1)
    for lot in range(3):
        operator.process("in", reading(closes=lot, lot=lot, value=500, **{"yield": 4_000}))
    ((_, rows),) = operator.on_watermark(9)
    first, *later = rows["predicted"].tolist()
    assert first == 0
    assert all(3_900 < predicted <= 4_000 for predicted in later)


@pytest.mark.parametrize("seed", range(5))
def test_equations_are_solved_exactly(seed):
    dice = np.random.default_rng(seed)
    half = dice.integers(-50, 50, (4, 4))
    rows, right = (half @ half.T + 3 * np.eye(4, dtype=int)).tolist(), [5, -7, 11, 0]
    line = solved(rows, right)
    for row, value in zip(rows, right, strict=True):
        assert sum(Fraction(a) * b for a, b in zip(row, line, strict=True)) == value
    assert determinant(rows) == round(np.linalg.det(np.array(rows, float)))
