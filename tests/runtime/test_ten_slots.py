"""More slots than this machine has cores: slower, and as right as with two."""

import pytest
from process_slots import run_processes

SLOTS = 10


@pytest.mark.parametrize(
    ("workload", "protocol", "hot"),
    [pytest.param("q3", "uncoordinated", 0, marks=pytest.mark.slow), ("q12", "aligned", 50)],
)
def test_ten_slots_are_right_even_if_one_is_killed(tmp_path, workload, protocol, hot):
    outcome = run_processes(
        tmp_path, protocol, "kill slot=7 at=2s", workload=workload, slots=SLOTS, hot=hot,
        duration_ms=4_000,
    )  # fmt: skip
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [7]
    assert outcome.commits
    assert len(outcome.driver.job.slots) == SLOTS
