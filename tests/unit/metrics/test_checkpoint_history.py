"""How the time of checkpoints was spent, and what became of each: from a coordinator's journal by hand."""

import itertools

import pytest

from snapline.core.effects import Commit, Order, Rollback, Scope
from snapline.core.events import JobStarted, SnapshotStored, TasksLost, TriggerRound
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId, first_checkpoint
from snapline.journal import codec
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.happenings import CheckpointMoments, CheckpointTimed, LineDecided
from snapline.metrics.checkpointing.account import CheckpointAccount
from snapline.metrics.checkpointing.history import (
    COLUMNS,
    PHASES,
    Phases,
    checkpoint_rows,
    flat,
    phases_of,
)

A, B = TaskId("a/0"), TaskId("b/0")
FIRST = first_checkpoint(1)


def moments(round_no=None, due_us=None, begun=20, taken=30, captured=45, durable=90):
    return CheckpointMoments(round_no, due_us, begun, taken, captured, durable)


# Phases.


def test_the_phases_of_a_round_begin_with_the_order():
    found = phases_of(moments(round_no=7), ordered_us=5, reported_us=100)
    assert found == Phases(5, 15, 10, 15, 45, 10)
    assert found.whole_us == 95


def test_the_phases_of_a_task_on_its_own_begin_when_its_timer_was_to_fire():
    found = phases_of(moments(due_us=12), ordered_us=None, reported_us=100)
    assert (found.start_us, found.start_delay_us, found.whole_us) == (12, 8, 88)


@pytest.mark.parametrize("told", [moments(), moments(round_no=7)])
def test_a_checkpoint_of_which_nobody_knows_when_it_was_due_begins_with_the_task(told):
    assert phases_of(told, None, 100) == Phases(20, 0, 10, 15, 45, 10)


def test_phases_add_up_exactly_however_the_clocks_of_processes_differ():
    for marks in itertools.product((0, 40, 95), repeat=3):
        ordered_us, durable, reported_us = marks
        found = phases_of(moments(round_no=7, durable=durable), ordered_us, reported_us)
        each = [getattr(found, f"{name}_us") for name in PHASES]
        assert min(each) >= 0
        assert sum(each) == found.whole_us == max(*marks, 45) - ordered_us


# Rows.


class Journal:
    """What a coordinator would have written, entry by entry."""

    def __init__(self):
        self.entries = []
        self.at_us = 0

    def add(self, entry_of):
        self.at_us += 10
        self.entries.append(entry_of(self.at_us))

    def handled(self, event, *effects):
        self.add(lambda at_us: Handled(at_us, COORDINATOR, 1, 0, event, effects))

    def stored(self, task, number, *effects, told=None, **fields):
        checkpoint = FIRST - 1 + number
        if told is not None:
            timed = CheckpointTimed(task, checkpoint, told)
            self.add(lambda at_us: Happened(at_us, COORDINATOR, 1, timed))
        meta = CheckpointMeta(task, checkpoint, epoch=1, **fields)
        self.handled(SnapshotStored(meta), *effects)

    def decided(self, line, epoch=1):
        what = LineDecided(1, epoch, line)
        self.add(lambda at_us: Happened(at_us, COORDINATOR, 1, what))

    def rows(self):
        return checkpoint_rows(codec.read(codec.lines(self.entries)))


def numbers(rows, flag):
    return {(row.task, row.number) for row in rows if getattr(row, flag)}


def test_every_stored_checkpoint_has_a_row_with_its_size_and_its_time():
    journal = Journal()
    journal.handled(JobStarted(FIRST), Order((A,), TriggerRound(FIRST)))
    journal.stored(A, 1, told=moments(round_no=FIRST), bytes=70)
    journal.stored(B, 2, parent=FIRST, bytes=7, forced=True)
    first, second = journal.rows()
    assert (first.task, first.checkpoint, first.epoch, first.number) == (A, FIRST, 1, 1)
    assert (first.kind, first.forced, first.bytes, first.stored_us) == ("full", False, 70, 30)
    assert first.phases == Phases(10, 10, 10, 15, 45, 0)  # told at 20, by a clock that goes behind
    assert (second.kind, second.forced, second.bytes, second.phases) == ("delta", True, 7, None)


def test_a_row_says_whether_its_checkpoint_was_committed_or_skipped():
    journal = Journal()
    for number in (1, 2, 3):
        journal.stored(A, number)
        journal.stored(B, number)
    journal.decided({A: FIRST, B: FIRST})
    journal.decided({A: FIRST + 1, B: FIRST}, epoch=2)  # it begins an epoch, and commits nothing
    line = RecoveryLine({A: FIRST + 1, B: FIRST})
    journal.handled(TasksLost((A,)), Rollback(line))
    journal.handled(TasksLost((A,)), Rollback(line))
    rows = journal.rows()
    assert numbers(rows, "committed") == {(A, 1), (B, 1)}
    assert numbers(rows, "skipped") == {(A, 3), (B, 2), (B, 3)}
    assert numbers(rows, "useless") == set()


def test_a_resumed_coordinator_skips_what_lies_beyond_its_line():
    journal = Journal()
    journal.add(lambda at_us: Built(at_us, COORDINATOR, 0, 0, "seed", b""))
    journal.stored(A, 1)
    journal.stored(A, 2)
    journal.stored(B, 1)
    metas = (CheckpointMeta(A, FIRST, epoch=1),)
    journal.add(lambda at_us: Built(at_us, COORDINATOR, 1, 0, "seed", b"", line=metas))
    assert numbers(journal.rows(), "skipped") == {(A, 2), (B, 1)}


def test_who_restarts_alone_skips_nothing_and_nobody_knows_what_is_useless():
    journal = Journal()
    journal.stored(A, 1)
    journal.handled(TasksLost((A,)), Rollback(RecoveryLine({A: 0}), Scope.LOST))
    (row,) = journal.rows()
    assert (row.skipped, row.useless) == (False, None)


def z_cycle(journal):
    """A's first checkpoint is on a Z-cycle: B's message and A's cross each other around it."""
    journal.stored(A, 1, sent={"a>b": 0}, received={"b>a": 1})
    journal.stored(B, 1, sent={"b>a": 1}, received={"a>b": 1})


def test_a_row_says_whether_a_consistent_line_could_ever_contain_its_checkpoint():
    journal = Journal()
    z_cycle(journal)
    rows = journal.rows()
    assert numbers(rows, "useless") == {(A, 1)}


def test_a_row_is_flat_in_the_table_and_times_are_in_milliseconds():
    journal = Journal()
    journal.stored(A, 1, told=moments(due_us=10), bytes=70)
    journal.stored(A, 2)
    first, second = flat(journal.rows())
    assert list(first) == list(second) == list(COLUMNS)
    phases = {f"{name}_ms": first[f"{name}_ms"] for name in PHASES}
    assert phases == {
        "start_delay_ms": 0.01,
        "alignment_ms": 0.01,
        "blocked_ms": 0.015,
        "background_ms": 0.045,
        "reporting_ms": 0.0,
    }
    assert (first["start_ms"], first["time_ms"]) == (0.01, pytest.approx(0.08))
    assert (second["start_ms"], second["time_ms"], second["blocked_ms"]) == (None, None, None)


# The account that figures are made of.


def account_of(journal):
    account = CheckpointAccount()
    for entry in journal.entries:
        account.see(entry)
    return account


def test_the_account_has_the_same_phases_as_the_rows():
    journal = Journal()
    journal.handled(JobStarted(FIRST), Order((A,), TriggerRound(FIRST)))
    journal.stored(A, 1, told=moments(round_no=FIRST))
    line = RecoveryLine({A: FIRST, B: FIRST})
    journal.stored(B, 1, Commit(line), told=moments(round_no=FIRST, begun=25))
    rows = journal.rows()
    assert account_of(journal).phases == [row.phases for row in rows]
    assert [row.phases.start_us for row in rows] == [10, 10]


def test_what_is_useless_and_skipped_is_invalid_once():
    journal = Journal()
    z_cycle(journal)
    journal.stored(A, 2, sent={"a>b": 1}, received={"b>a": 1})
    journal.handled(TasksLost((A,)), Rollback(RecoveryLine({A: 0, B: 0})))
    account = account_of(journal)
    useless = account.useless.found()
    assert (account.skipped, useless, account.invalid(useless)) == (3, {(A, FIRST)}, 3)
    z_cycle(journal)
    account = account_of(journal)
    assert account.invalid({(A, FIRST), (B, 99)}) == 4
