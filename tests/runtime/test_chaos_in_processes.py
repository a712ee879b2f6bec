"""Chaos on real processes: what `--chaos` draws, done to whole runs; the output stays right."""

import pytest
from process_slots import run_processes

from snapline.chaos.faults import describe
from snapline.chaos.soak import soak
from snapline.journal.fault_happenings import FaultHappening

pytestmark = pytest.mark.slow

DURATION_MS = 20_000


@pytest.mark.parametrize(
    ("protocol", "chaos"),
    [
        ("aligned", "seed=3 intensity=high"),
        ("uncoordinated", "seed=8 intensity=high"),
        ("unaligned", "seed=11 intensity=high"),
        ("hmnr", "seed=2 intensity=low"),
    ],
)
def test_whatever_breaks_every_record_counts_once(tmp_path, protocol, chaos):
    plan = soak(chaos, 3, DURATION_MS)
    assert plan
    outcome = run_processes(tmp_path, protocol, describe(plan), duration_ms=DURATION_MS, slots=3)
    assert (outcome.problem, outcome.problems) == (None, [])
    struck = {
        entry.what.fault for entry in outcome.happened if isinstance(entry.what, FaultHappening)
    }
    assert struck == {str(fault) for fault in plan}, "each was written down"
    if "low" in chaos:
        assert len(outcome.lost) <= 1, "all but the kill is below the time-out"
