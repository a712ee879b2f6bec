"""Counts from before a loss: the loss may spoil those that come behind it, and none of these."""

import numpy as np
import pytest
from loss_runs import SLOTS, recorded

from snapline.kernels.routing import target_of
from snapline.sim.case import Case
from snapline.workload.abs.model import unpacked
from snapline.workload.counting.model import records

COUNTED = {
    "counting": ("counts", "key", "count", records),
    "abs": ("results", "second", "second_count", unpacked),
}


@pytest.mark.parametrize("workload", COUNTED)
def test_no_count_from_before_a_loss_is_larger_than_what_had_come(monkeypatch, workload):
    """The keys are of the lost slot, so from the loss on their counts may be wrong."""
    tried, (name, key, number, source) = 0, COUNTED[workload]
    for seed in range(1, 5):
        case = Case(
            "none", workload, seed, guarantee="bounded-loss", faults="kill slot=1 at=2200ms"
        )
        it = recorded(monkeypatch, case)
        assert it.outcome.violation is None
        sink, everything = it.public[name], source(case.params).everything()
        early = np.flatnonzero(sink["time"] < 2_200 - it.bound.lag_ms - 200)
        for n in early.tolist():
            same = everything[key] == sink[key][n]
            due = same & (everything["time"] <= sink["time"][n] + it.bound.lag_ms)
            if target_of(int(sink[key][n]), SLOTS) != 1 or same.sum() == due.sum():
                continue
            tried += 1
            numbers = sink[number].copy()
            numbers[n] = due.sum() + 1
            problems = it.judged(public={name: sink.with_columns(**{number: numbers})})
            because = f"{due.sum():,} records can have been counted"
            assert because in problems[0].because, case.command()
    assert tried > 20
