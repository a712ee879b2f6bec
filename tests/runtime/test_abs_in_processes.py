"""The job with three shuffles in real processes, one of which is killed."""

import pytest
from process_slots import run_processes


@pytest.mark.parametrize(
    "protocol", [pytest.param("aligned", marks=pytest.mark.slow), "uncoordinated"]
)
def test_three_shuffles_survive_the_death_of_a_process(tmp_path, protocol):
    outcome = run_processes(
        tmp_path, protocol, "kill slot=1 at=900ms", workload="abs", duration_ms=2_000
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    assert outcome.commits > 0
    assert len(outcome.outputs["results"]) == 1_200
