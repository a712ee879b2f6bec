"""When which fault was active, by a journal."""

import pytest

from metric_runs import happened
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    CoordinatorResumed,
    FaultEnded,
    FaultMissed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    RecordSpoiled,
    Slowed,
    SnapshotDamaged,
    StoreAway,
    StoreUnreliable,
)
from snapline.journal.happenings import (
    JobFinished,
    JobInterrupted,
    JobRunning,
    SlotLost,
    SlotRunning,
)
from snapline.metrics.fault_spans import fault_spans

DELAY = "delay slot=2 500ms at=1s for=2s"
KILL = "kill slot=0,1 at=4s"
CUT = "cut slot=0,1 from=2,coordinator at=1s for=5s"


def test_a_fault_that_lasts_is_active_until_its_end_is_written_down():
    entries = [
        happened(1, Slowed(delay_ms=500, fault=DELAY), "slot/2"),
        happened(1.5, ProcessPaused(fault="pause slot=1 at=1500ms for=1s"), "slot/1"),
        happened(2.5, ProcessContinued(fault="pause slot=1 at=1500ms for=1s"), "slot/1"),
        happened(3, FaultEnded(fault=DELAY), "slot/2"),
        happened(9, JobFinished()),
    ]
    assert fault_spans(entries) == [
        (DELAY, 1_000, 3_000),
        ("pause slot=1 at=1500ms for=1s", 1_500, 2_500),
    ]


def test_a_kill_is_active_until_the_job_runs_again():
    entries = [
        happened(0, JobRunning()),
        happened(4, ProcessKilled(pids=(1,), fault=KILL), "slot/0"),
        happened(4, ProcessKilled(pids=(2,), fault=KILL), "slot/1"),
        happened(4.1, SlotLost(0, 1)),
        happened(6, JobRunning()),
        happened(8, JobRunning()),
    ]
    assert fault_spans(entries) == [(KILL, 4_000, 6_000)]


def test_a_slot_that_restarts_alone_ends_its_own_kill_only():
    entries = [
        happened(4, ProcessKilled(fault="kill slot=0 at=4s"), "slot/0"),
        happened(4.5, ProcessKilled(fault="kill slot=1 at=4500ms"), "slot/1"),
        happened(5, SlotRunning(), "slot/1"),
        happened(6, SlotRunning(), "slot/0"),
    ]
    assert [span.end_ms for span in fault_spans(entries)] == [6_000, 5_000]


def test_a_dead_driver_is_active_until_its_successor_runs_the_job():
    fault = {"fault": "kill driver at=2s"}
    entries = [
        happened(2, CoordinatorKilled(**fault)),
        happened(5, CoordinatorResumed()),
        happened(6, JobRunning()),
    ]
    assert fault_spans(entries) == [("kill driver at=2s", 2_000, 6_000)]


def test_a_partition_of_several_slots_is_one_fault():
    entries = [
        happened(1, ConnectionCut(others=(0,), fault=CUT), "slot/0"),
        happened(1, ConnectionCut(others=(0,), fault=CUT), "slot/1"),
        happened(6, FaultEnded(fault=CUT), "slot/0"),
    ]
    assert fault_spans(entries) == [(CUT, 1_000, 6_000)]


def test_the_same_statement_twice_is_two_faults():
    entries = [
        happened(1, Slowed(delay_ms=1, fault=DELAY), "slot/2"),
        happened(3, FaultEnded(fault=DELAY), "slot/2"),
        happened(5, Slowed(delay_ms=1, fault=DELAY), "slot/2"),
        happened(7, FaultEnded(fault=DELAY), "slot/2"),
    ]
    assert [(span.start_ms, span.end_ms) for span in fault_spans(entries)] == [
        (1_000, 3_000),
        (5_000, 7_000),
    ]


STORE = "store ..."


@pytest.mark.parametrize("what", [StoreAway(STORE, 9), Slowed(STORE, 9), StoreUnreliable(STORE, 9)])
def test_what_has_no_end_lasts_until_the_end_of_the_journal(what):
    entries = [happened(1, what, "store"), happened(4, JobInterrupted())]
    assert fault_spans(entries) == [(STORE, 1_000, 4_000)]


def test_damage_is_a_moment_and_a_fault_that_finds_nobody_is_none():
    entries = [
        happened(1, SnapshotDamaged("damage slot=1 at=1s", 3), "count/1"),
        happened(1, RecordSpoiled("lose manifest at=1s", "manifest 3", True), "store"),
        happened(2, FaultMissed(fault="kill slot=1 at=2s"), "slot/1"),
        happened(3, JobRunning()),
    ]
    assert fault_spans(entries) == [
        ("damage slot=1 at=1s", 1_000, 1_000),
        ("lose manifest at=1s", 1_000, 1_000),
    ]


def test_a_journal_without_faults_has_no_spans():
    assert (
        fault_spans([])
        == fault_spans([happened(0, JobRunning()), happened(3, SlotLost(1, 1))])
        == []
    )
