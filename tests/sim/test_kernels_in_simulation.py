"""Compiled kernels change nothing: a simulated run is the same, entry by entry, as with numpy."""

import pytest

from kernel_forms import installed
from snapline.sim.case import Case
from snapline.sim.run import simulate

CASES = [
    Case("aligned", "q12", 5),
    Case("uncoordinated", "q3", 6),
    Case("unaligned", "q8", 7),
    Case("hmnr", "reachability", 8),
    Case("bcs", "counting", 9),
    Case("synchronous", "q1", 10),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.protocol}-{case.workload}")
def test_a_run_has_the_same_journal_under_both_forms(case):
    told = []
    for form in ("numpy", "compiled"):
        with installed(form):
            outcome = simulate(case, journal=True)
        assert outcome.violation is None
        told.append((outcome.journal, outcome.problems))
    assert told[0][0], "a journal was kept"
    assert told[0] == told[1]
