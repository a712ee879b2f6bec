"""A connection between two slots breaks though both live: one is given up, and no record is lost."""

import pytest
from process_slots import run_processes

from snapline.journal.happenings import SlotCutOff


def test_without_faults_nobody_is_lost(tmp_path):
    outcome = run_processes(tmp_path, "aligned", duration_ms=1_500)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    assert outcome.complaints == []
    assert outcome.commits > 0


@pytest.mark.parametrize(
    "protocol", ["aligned", pytest.param("uncoordinated", marks=pytest.mark.slow)]
)
def test_of_two_slots_that_lose_each_other_one_is_given_up_and_output_stays_right(
    tmp_path, protocol
):
    outcome = run_processes(tmp_path, protocol, "cut slot=1 from=0 at=1500ms")
    assert (outcome.problem, outcome.problems) == (None, [])
    assert [entry.actor for entry in outcome.what(SlotCutOff)] == ["slot/1"]
    assert outcome.lost == [1]
    assert outcome.complaints == []
