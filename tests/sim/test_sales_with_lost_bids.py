"""Sales of which some bids were lost: they come out for less, but they come out."""

import numpy as np
from loss_runs import recorded

from snapline.sim.case import Case
from snapline.workload.nexmark import dashboard_oracle
from snapline.workload.nexmark.dashboard_losses import loose_sales


def test_a_sale_is_missing_only_if_all_of_its_bids_may_be(monkeypatch):
    """A bid that no loss touched is still there, and is the highest one then."""
    kept = []

    def keeping(*given):
        kept.append(loose_sales(*given))
        return kept[-1]

    monkeypatch.setattr(dashboard_oracle, "loose_sales", keeping)
    tried = 0
    for seed in range(1, 9):
        case = Case("none", "q6", seed, guarantee="bounded-loss", faults="kill slot=1 at=1200ms")
        it = recorded(monkeypatch, case)
        assert it.outcome.violation is None
        sales, sink = dashboard_oracle.right_sales(case.params), it.public["results"]
        cheaper = kept[-1].lower & ~kept[-1].gone
        for auction in sales["auction"][cheaper].tolist():
            tried += 1
            without = sink.take(np.flatnonzero(sink["auction"] != auction))
            assert len(without) < len(sink), "it has come out"
            problems = it.judged(public={"results": without})
            assert [problem.kind for problem in problems] == ["missing"]
    assert tried > 5
