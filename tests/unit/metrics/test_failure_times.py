"""Detection and restart on runs made by hand."""

import pytest

from metric_runs import SECOND, happened
from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    ProcessKilled,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.metrics.failures import detections, failures, restarts


def test_detection_is_the_time_from_the_kill_of_a_slot_to_its_loss():
    entries = [
        happened(1.0, ProcessKilled(pids=(7,)), "slot/1"),
        happened(1.2, ProcessKilled(pids=(8,)), "slot/0"),
        happened(1.25, SlotLost(0, 1)),
        happened(1.5, SlotLost(1, 1)),
    ]
    assert detections(entries) == pytest.approx([0.05, 0.5])


STATEMENT = "some statement"


@pytest.mark.parametrize(
    "what", [ProcessPaused(STATEMENT), Slowed(STATEMENT, 9), ConnectionCut(STATEMENT, (0,))]
)
def test_a_fault_that_does_not_kill_is_detected_when_its_slot_is_lost_and_only_then(what):
    begun, over = happened(1, what, "slot/1"), happened(2, FaultEnded(STATEMENT), "slot/1")
    assert detections([begun, over]) == []
    assert detections([begun, happened(3.2, SlotLost(1, 1)), over]) == pytest.approx([2.2])
    assert detections([begun, over, happened(3.2, SlotLost(1, 1))]) == pytest.approx([2.2])
    assert detections([begun, over, happened(30, SlotLost(1, 1))]) == [], "for another reason"


def test_a_loss_that_nobody_injected_has_no_detection_time():
    assert detections([happened(1, ProcessKilled(), "slot/1"), happened(2, SlotLost(0, 1))]) == []


def test_losses_until_all_run_again_are_one_failure():
    entries = [
        happened(0, JobRunning()),
        happened(3, SlotLost(1, 1)),
        happened(4, SlotLost(0, 1)),
        happened(5.5, JobRunning(), epoch=3),
        happened(8, SlotLost(0, 1)),
        happened(8.5, JobRunning(), epoch=4),
        happened(9, SlotLost(1, 1)),
    ]
    found = failures(entries)
    assert [failure.lost_us for failure in found] == [3 * SECOND, 8 * SECOND, 9 * SECOND]
    assert restarts(found) == pytest.approx([2.5, 0.5])
    assert [failure.slots for failure in found] == [(1, 0), (0,), (1,)]


def test_a_failure_was_caused_by_the_first_fault_before_its_detection():
    entries = [
        happened(1.0, ProcessKilled(pids=(7,)), "slot/1"),
        happened(1.2, ProcessKilled(pids=(8,)), "slot/0"),
        happened(1.25, SlotLost(0, 1)),
        happened(1.5, SlotLost(1, 1)),
        happened(2, JobRunning(), epoch=2),
        happened(5, SlotLost(0, 2)),
        happened(5.5, ProcessKilled(pids=(9,)), "slot/1"),
        happened(5.6, SlotLost(1, 2)),
    ]
    caused, by_itself = failures(entries)
    assert (caused.struck_us, caused.lost_us) == (SECOND, 1_250_000)
    assert by_itself.struck_us is None, "the fault came later, and strikes a job that had failed"
