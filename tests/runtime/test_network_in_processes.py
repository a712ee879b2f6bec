"""Slow and cut networks of real processes: below the time-out nobody is lost, beyond it one is, once."""

import time
from dataclasses import replace

import pytest
from process_slots import PATIENT, run_processes

from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    FaultMissed,
    ProcessContinued,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import JobRunning, SlotCutOff
from snapline.metrics.failures import detections
from snapline.runtime.driver.driver import Timeouts

QUICK = Timeouts(heartbeat_s=0.1, silence_s=1.0, lease_s=5)
"""Silence is noticed soon. A busy machine may also make others seem silent: only slot 1 is asserted on."""


def statements(outcome, what):
    return [entry.what.fault for entry in outcome.what(what)]


EACH_WAY = ["aligned", pytest.param("uncoordinated", marks=pytest.mark.slow)]


@pytest.mark.parametrize("protocol", EACH_WAY)
def test_a_delay_below_the_time_out_costs_latency_and_no_slot(tmp_path, protocol):
    fault = "delay slot=1 500ms at=700ms for=1300ms"
    outcome = run_processes(tmp_path, protocol, fault, duration_ms=2_200, timeouts=PATIENT)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    assert statements(outcome, Slowed) == statements(outcome, FaultEnded) == [fault]
    assert detections(outcome.happened) == []
    [slow], [healed] = outcome.what(Slowed), outcome.what(FaultEnded)
    assert healed.at_us - slow.at_us > 1.2e6
    latency = [second.p99_ms for second in outcome.driver.timeline.seconds]
    assert max(ms for ms in latency if ms is not None) > 500, latency
    assert outcome.complaints == []


@pytest.mark.parametrize("protocol", EACH_WAY)
def test_a_delay_beyond_the_time_out_is_noticed_as_silence_once(tmp_path, protocol):
    """Also if it is shorter than that: what it has held up comes too late."""
    fault = f"delay slot=1 1500ms at=1s for={'200ms' if protocol == 'aligned' else '6s'}"
    outcome = run_processes(tmp_path, protocol, fault, duration_ms=2_500, timeouts=QUICK)
    assert (outcome.problem, outcome.problems, outcome.lost.count(1)) == (None, [], 1)
    assert detections(outcome.happened)
    assert outcome.commits > 0


@pytest.mark.parametrize("other", ["coordinator", pytest.param("0", marks=pytest.mark.slow)])
def test_a_short_cut_holds_everything_up_and_costs_no_slot(tmp_path, other):
    fault = f"cut slot=1 from={other} at=800ms for=700ms"
    outcome = run_processes(tmp_path, "uncoordinated", fault, duration_ms=1_800, timeouts=PATIENT)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    assert statements(outcome, ConnectionCut) == statements(outcome, FaultEnded) == [fault]


@pytest.mark.parametrize("other", ["0", pytest.param("coordinator", marks=pytest.mark.slow)])
def test_a_long_cut_is_noticed_after_the_time_out_and_costs_the_slot_once(tmp_path, other):
    fault = f"cut slot=1 from={other} at=1s for=2200ms"
    outcome = run_processes(tmp_path, "aligned", fault, duration_ms=3_400, timeouts=QUICK)
    assert (outcome.problem, outcome.problems, outcome.lost.count(1)) == (None, [], 1)
    assert len(outcome.what(SlotCutOff)) == (other == "0")
    assert detections(outcome.happened)
    assert statements(outcome, FaultEnded) == [fault]


def test_a_slot_that_loses_its_connection_to_the_driver_leaves_and_is_replaced(tmp_path):
    fault = "cut slot=1 from=coordinator at=1s"
    outcome = run_processes(tmp_path, "aligned", fault, duration_ms=1_500, timeouts=PATIENT)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [1])
    [detected_s] = detections(outcome.happened)
    assert detected_s < PATIENT.silence_s, "at once, not by its silence"
    assert outcome.complaints == []


def test_who_is_on_the_wrong_side_of_a_partition_is_replaced_on_the_right_one(tmp_path):
    fault = "cut slot=0,1 from=2,coordinator at=1s for=2s"
    outcome = run_processes(tmp_path, "aligned", fault, duration_ms=3_200, slots=3, timeouts=QUICK)
    assert (outcome.problem, outcome.problems) == (None, [])
    assert (outcome.lost.count(0), outcome.lost.count(1)) == (1, 1)
    assert statements(outcome, ConnectionCut) == [fault, fault]


@pytest.mark.slow
def test_a_driver_that_stands_still_for_a_moment_blames_nobody_for_it(tmp_path):
    fault = "pause coordinator at=800ms for=1500ms"
    outcome = run_processes(tmp_path, "aligned", fault, duration_ms=2_000, timeouts=QUICK)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    [paused], [again] = outcome.what(ProcessPaused), outcome.what(ProcessContinued)
    assert again.at_us - paused.at_us >= 1.5e6
    assert not [entry for entry in outcome.happened if paused.at_us < entry.at_us < again.at_us]


def test_a_driver_that_was_busy_hears_the_others_before_it_judges_their_silence(tmp_path):
    """In the middle of what a slot has told it: what the others say meanwhile waits in their sockets."""

    timeouts = replace(PATIENT)

    def be_busy(driver, entry):
        """Only now is the driver impatient: a busy machine may make anybody seem silent."""
        if isinstance(entry.what, JobRunning):
            timeouts.silence_s = 2.0
            time.sleep(3)
            driver.loop.after(0.5, lambda: setattr(timeouts, "silence_s", PATIENT.silence_s))

    outcome = run_processes(
        tmp_path, "aligned", duration_ms=1_000, slots=3, timeouts=timeouts, on_event=be_busy
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])


@pytest.mark.slow
def test_a_fault_that_finds_nobody_says_so(tmp_path):
    faults = (
        "kill slot=1 at=1s; delay slot=1 100ms at=1200ms for=1s; cut slot=1 from=0 at=1210ms for=1s"
    )
    outcome = run_processes(tmp_path, "aligned", faults, duration_ms=1_500)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [1])
    assert len(outcome.what(FaultMissed)) == 2
