"""A slot that is killed and kept away: nothing takes its place, and the others go on if they can."""

import pytest
from process_slots import run_processes, slot_journals

from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    InputSkipped,
    JobRunning,
    MessagesDiscarded,
    SecondMeasured,
    SlotLost,
    SlotRunning,
)


@pytest.mark.parametrize("spares", [0, 1])
def test_nothing_takes_the_place_of_a_slot_that_is_kept_away(tmp_path, spares):
    faults = "kill slot=1 at=800ms for=1500ms"
    outcome = run_processes(tmp_path, "aligned", faults, spares=spares)
    assert (outcome.problem, outcome.problems) == (None, [])
    (killed,) = outcome.what(ProcessKilled)
    back = [entry for entry in outcome.what(JobRunning) if entry.at_us > killed.at_us]
    assert back[0].at_us - killed.at_us >= 1_500_000


def test_two_faults_that_keep_a_slot_away_last_until_the_later_end(tmp_path):
    faults = "kill slot=1 at=800ms for=1500ms; kill slot=1 at=1s for=200ms"
    outcome = run_processes(tmp_path, "aligned", faults)
    assert (outcome.problem, outcome.problems) == (None, [])
    killed = outcome.what(ProcessKilled)[0]
    back = [entry for entry in outcome.what(JobRunning) if entry.at_us > killed.at_us]
    assert back[0].at_us - killed.at_us >= 1_500_000


def test_without_checkpoints_the_others_go_on_and_say_what_they_discarded(tmp_path):
    faults = "kill slot=1 at=800ms for=3s"
    outcome = run_processes(tmp_path, "none", faults, duration_ms=5_000, journal="full")
    assert outcome.problem is None
    (lost,), (back,) = outcome.what(SlotLost), outcome.what(SlotRunning)
    assert back.actor == "slot/1"
    assert back.at_us - lost.at_us > 2_500_000
    meanwhile = [
        second.what.read
        for second in outcome.what(SecondMeasured)
        if lost.at_us < second.what.at_s * 1_000_000 and second.at_us < back.at_us
    ]
    assert sum(meanwhile) > 400, (
        "the other slot stood still when a channel to the lost one was full"
    )
    inside = slot_journals(outcome.driver.directory)
    assert sum(e.what.records for e in inside if isinstance(e.what, MessagesDiscarded)) > 0
    assert any(isinstance(e.what, InputSkipped) for e in inside)
    assert len(outcome.driver.timeline.figures({}).restart_s) == 1
