"""A spare takes the place of a slot that was lost, and is replaced; no slot waits for one in vain."""

import logging
import re

import pytest
from process_slots import processes_of, run_processes


@pytest.mark.parametrize(
    ("faults", "lost"),
    [
        pytest.param("kill slot=1 at=1s", [1], marks=pytest.mark.slow),
        ("kill slot=0 at=1s\nkill slot=1 at=1s", [0, 1]),
    ],
    ids=["one slot", "both slots"],
)
def test_lost_slots_come_back_with_a_single_spare_and_it_is_replaced(
    tmp_path, faults, lost, caplog
):
    caplog.set_level(logging.INFO, logger="snapline")
    outcome = run_processes(
        *(tmp_path, "aligned", faults),
        spares=1,
        duration_ms=2_000,
        until=lambda driver, entry: len(processes_of(driver)) == 3 + len(lost),
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert sorted(outcome.lost) == lost
    assert len(processes_of(outcome.driver)) == 3 + len(lost)
    became = re.findall(r"is slot (\d) from now on, incarnation (\d)", caplog.text)
    assert set(became) == {("0", "1"), ("1", "1"), *((str(slot), "2") for slot in lost)}
