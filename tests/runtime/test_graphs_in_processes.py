"""The graph workloads as plain processes: paths go round between slots, one of which is killed."""

import pytest
from process_slots import run_processes


@pytest.mark.parametrize(
    ("workload", "protocol"),
    [
        ("nhop", "hmnr"),
        pytest.param("nhop", "unaligned", marks=pytest.mark.slow),
        ("reachability", "aligned-cyclic"),
    ],
)
def test_walks_and_paths_survive_a_kill(tmp_path, workload, protocol):
    outcome = run_processes(
        tmp_path, protocol, "kill slot=1 at=1200ms", workload=workload, duration_ms=2_500
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    assert sum(len(batch) for batch in outcome.outputs.values()) > 100
