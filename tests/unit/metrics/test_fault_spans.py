"""When which fault was active, by a journal."""

import pytest

from metric_runs import happened
from snapline.metrics.fault_spans import fault_spans

DELAY = "delay slot=2 500ms at=1s for=2s"
KILL = "kill slot=0,1 at=4s"
CUT = "cut slot=0,1 from=2,coordinator at=1s for=5s"


def test_a_fault_that_lasts_is_active_until_its_end_is_written_down():
    entries = [
        happened(1, "slowed", "slot/2", delay_ms=500, fault=DELAY),
        happened(1.5, "paused", "slot/1", fault="pause slot=1 at=1500ms for=1s"),
        happened(2.5, "continued", "slot/1", fault="pause slot=1 at=1500ms for=1s"),
        happened(3, "healed", "slot/2", fault=DELAY),
        happened(9, "finished"),
    ]
    assert fault_spans(entries) == [
        (DELAY, 1_000, 3_000),
        ("pause slot=1 at=1500ms for=1s", 1_500, 2_500),
    ]


def test_a_kill_is_active_until_the_job_runs_again():
    entries = [
        happened(0, "running"),
        happened(4, "killed", "slot/0", pid=1, fault=KILL),
        happened(4, "killed", "slot/1", pid=2, fault=KILL),
        happened(4.1, "lost", slot=0),
        happened(6, "running"),
        happened(8, "running"),
    ]
    assert fault_spans(entries) == [(KILL, 4_000, 6_000)]


def test_a_slot_that_restarts_alone_ends_its_own_kill_only():
    entries = [
        happened(4, "killed", "slot/0", fault="kill slot=0 at=4s"),
        happened(4.5, "killed", "slot/1", fault="kill slot=1 at=4500ms"),
        happened(5, "running", "slot/1"),
        happened(6, "running", "slot/0"),
    ]
    assert [span.end_ms for span in fault_spans(entries)] == [6_000, 5_000]


def test_a_dead_driver_is_active_until_its_successor_runs_the_job():
    fault = {"fault": "kill driver at=2s"}
    entries = [
        happened(2, "coordinator-killed", **fault),
        happened(5, "coordinator-resumed"),
        happened(6, "running"),
    ]
    assert fault_spans(entries) == [("kill driver at=2s", 2_000, 6_000)]


def test_a_partition_of_several_slots_is_one_fault():
    entries = [
        happened(1, "cut", "slot/0", fault=CUT),
        happened(1, "cut", "slot/1", fault=CUT),
        happened(6, "healed", "slot/0", fault=CUT),
    ]
    assert fault_spans(entries) == [(CUT, 1_000, 6_000)]


def test_the_same_statement_twice_is_two_faults():
    entries = [
        happened(1, "slowed", "slot/2", fault=DELAY),
        happened(3, "healed", "slot/2", fault=DELAY),
        happened(5, "slowed", "slot/2", fault=DELAY),
        happened(7, "healed", "slot/2", fault=DELAY),
    ]
    assert [(span.start_ms, span.end_ms) for span in fault_spans(entries)] == [
        (1_000, 3_000),
        (5_000, 7_000),
    ]


@pytest.mark.parametrize("what", ["outage", "slowed", "failing"])
def test_what_has_no_end_lasts_until_the_end_of_the_journal(what):
    entries = [happened(1, what, "store", fault="store ..."), happened(4, "interrupted")]
    assert fault_spans(entries) == [("store ...", 1_000, 4_000)]


def test_damage_is_a_moment_and_a_fault_that_finds_nobody_is_none():
    entries = [
        happened(1, "damaged", "count/1", checkpoint=3, fault="damage slot=1 at=1s"),
        happened(2, "missed", "slot/1", signal=9, fault="kill slot=1 at=2s"),
        happened(3, "running"),
    ]
    assert fault_spans(entries) == [("damage slot=1 at=1s", 1_000, 1_000)]


def test_a_journal_without_faults_has_no_spans():
    assert (
        fault_spans([]) == fault_spans([happened(0, "running"), happened(3, "lost", slot=1)]) == []
    )
