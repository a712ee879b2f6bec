"""PGVal's topologies in real processes, one of which is killed: every event once, in its window or late."""

import pytest
from process_slots import run_processes

SLOTS, DURATION_MS = 2, 2_000
EVENTS = SLOTS * 300 * DURATION_MS // 1000
LATE = (("bound", 0), ("disorder", 1_500))
BATCH = 50
"""Also where much is due at once, after a recovery, watermarks come between: events are late anywhere."""


@pytest.mark.parametrize(("workload", "protocol"), [("sst", "uncoordinated"), ("mst", "aligned")])
def test_events_survive_the_death_of_a_process(tmp_path, workload, protocol):
    outcome = run_processes(
        tmp_path,
        protocol,
        "kill slot=1 at=900ms",
        workload=workload,
        duration_ms=DURATION_MS,
        settings=LATE,
        batch=BATCH,
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    counts, late = outcome.outputs["counts"], outcome.outputs["late"]
    columns = ("count",) if workload == "sst" else ("gets", "posts")
    assert sum(int(counts[name].sum()) for name in columns) + len(late) == EVENTS
    assert 0 < len(late) < EVENTS // 2
