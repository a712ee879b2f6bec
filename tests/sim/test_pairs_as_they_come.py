"""Joins whose records meet as they come: after a loss nobody knows which pairs are due, but for some."""

import numpy as np
import pytest
from loss_runs import recorded

from snapline.batch import Batch, concat
from snapline.sim.case import Case
from snapline.sim.run import simulate

SETTINGS = (("ordered", 0), ("window", 400), ("keys", 3), ("asked", 3))


def case_of(workload, seed, faults, **given):
    given = {"guarantee": "bounded-loss", "settings": SETTINGS, **given}
    return Case("none", workload, seed, faults=faults, **given)


@pytest.mark.parametrize("workload", ["sjoin", "gjoin"])
def test_what_every_order_gives_must_be_there_and_nothing_else_is_proved(monkeypatch, workload):
    tried = 0
    for seed in range(1, 5):
        it = recorded(monkeypatch, case_of(workload, seed, "kill slot=1 at=2200ms"))
        assert it.declared
        assert it.outcome.violation is None, it.case.command()
        assert it.outcome.vacuous.startswith("not compared: records meet as they come here")
        pairs, lag_ms = it.public["pairs"], it.bound.lag_ms
        apart = pairs["time"] - pairs["time_right"] > lag_ms
        for n in np.flatnonzero(apart & (pairs["time"] < 2_200 - lag_ms - 50))[:20].tolist():
            tried += 1
            without = pairs.take(np.arange(len(pairs)) != n)
            (problem,) = it.judged(public={"pairs": without})
            assert problem.kind == "missing"
            twice = concat([pairs, pairs.slice(n, n + 1)])
            (problem,) = it.judged(public={"pairs": twice})
            assert problem.kind == "duplicate"
    assert tried > 20


def test_an_output_without_any_pair_is_not_excused_by_a_loss(monkeypatch):
    it = recorded(monkeypatch, case_of("gjoin", 1, "kill slot=1 at=2200ms"))
    assert it.judged(public={"pairs": Batch({}, 0)})


def test_where_nothing_was_lost_an_order_that_explains_all_pairs_is_proof():
    assert simulate(case_of("gjoin", 1, "")).vacuous is None
