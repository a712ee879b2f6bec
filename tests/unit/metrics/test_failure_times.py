"""Detection, restart and recovery on runs made by hand."""

from dataclasses import replace

import pytest

from metric_runs import SECOND, happened, second, seconds
from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    ProcessKilled,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.metrics.failures import Failure, detections, failures, recoveries, restarts

BACK = Failure(12_300_000, 13_000_000)


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


def test_recovery_ends_with_the_first_of_five_calm_seconds():
    run = seconds(*[20] * 12, 300, 900, 35, *[20] * 6)
    assert recoveries(run, [BACK]) == pytest.approx([14 - 12.3])


def test_five_calm_seconds_must_follow_each_other():
    run = seconds(*[20] * 12, 300, *[20] * 4, 300, *[20] * 5)
    assert recoveries(run, [BACK]) == pytest.approx([18 - 12.3])


def test_a_run_that_ends_too_early_has_not_recovered():
    assert recoveries(seconds(*[20] * 12, 300, *[20] * 4), [BACK]) == [None]


def test_a_second_without_output_is_not_recovered():
    run = seconds(*[20] * 12, None, None, None, *[20] * 6)
    assert recoveries(run, [BACK]) == pytest.approx([15 - 12.3])


def test_a_backlog_of_more_than_twice_what_was_usual_is_not_recovered():
    run = seconds(*[20] * 22, backlog=400)
    run[14] = replace(run[14], backlog=801)
    assert recoveries(run, [BACK]) == pytest.approx([15 - 12.3])
    run[14] = replace(run[14], backlog=800)
    assert recoveries(run, [BACK]) == pytest.approx([13 - 12.3])


@pytest.mark.parametrize("missing", [{"running": 1}, {"backlog": None}])
def test_a_second_with_a_slot_missing_is_not_recovered(missing):
    run = seconds(*[20] * 22)
    run[13] = replace(run[13], **missing)
    assert recoveries(run, [BACK]) == pytest.approx([14 - 12.3])


def test_only_the_last_ten_seconds_before_the_loss_say_what_is_usual():
    run = seconds(*[500] * 8, *[20] * 10, 45, *[20] * 8)
    lost = Failure(18 * SECOND, 18_500_000)
    assert recoveries(run, [lost]) == pytest.approx([1])
    assert recoveries([*run[:12], second(12), *run[13:]], [BACK]) == pytest.approx([0.7])


def test_twice_nothing_is_not_the_bound():
    run = seconds(*[0.1] * 12, 500, *[9.9] * 5, backlog=0)
    run[14] = replace(run[14], backlog=100)
    assert recoveries(run, [BACK]) == pytest.approx([0.7])


def test_what_is_usual_after_a_second_failure_is_what_was_usual_before_the_first():
    run = seconds(*[20] * 12, *[900] * 8, *[20] * 5)
    later = Failure(18_500_000, 19_000_000)
    assert recoveries(run, [BACK, later]) == pytest.approx([20 - 12.3, 20 - 18.5])


def test_a_job_that_never_ran_again_or_never_ran_before_has_not_recovered():
    run = seconds(*[20] * 30)
    assert recoveries(run, [Failure(500_000, 600_000)]) == [None]
    assert recoveries(run, [Failure(12 * SECOND)]) == [None]
