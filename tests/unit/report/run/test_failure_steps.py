"""The steps of a failure, from entries written by hand: each has its time, and they follow each other."""

from dataclasses import replace

import pytest

from reported_runs import crashed_run
from snapline.batch import Batch
from snapline.core.effects import Rollback
from snapline.core.events import SnapshotStored, TasksLost
from snapline.core.messages import CheckpointMeta, Message, RecoveryLine
from snapline.ids import ChannelId, TaskId
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobRunning, LineDecided, MessageReplayed, SlotLost
from snapline.metrics.recovery import Back, FailureFigures, SlotsLatency, Until
from snapline.report.run.failure_steps import explained_failures

A, B = TaskId("a/0"), TaskId("b/1")
SECOND = 1_000_000
NOBODY = SlotsLatency(0, 0, None, None, 0)


def happened(at_s, what, actor=COORDINATOR, epoch=1):
    return Happened(round(at_s * SECOND), actor, epoch, what)


def stored(at_s, task, checkpoint):
    event = SnapshotStored(CheckpointMeta(task, checkpoint))
    return Handled(round(at_s * SECOND), COORDINATOR, 1, 0, event, ())


def replayed(at_s):
    message = Message(ChannelId("a/0>b/1"), 3, 2, Batch({}, 1))
    return happened(at_s, MessageReplayed(message), actor=A, epoch=2)


LINE = RecoveryLine({A: 2, B: 1})
DRIVER = [
    happened(0, JobRunning()),
    stored(1, A, 1),
    stored(2, B, 1),
    stored(3, A, 2),
    stored(4, B, 2),
    happened(8, ProcessKilled("kill slot=1 at=8s"), actor="slot/1"),
    happened(8.5, SlotLost(1, 1)),
    Handled(8_500_000, COORDINATOR, 1, 0, TasksLost((B,)), (Rollback(LINE),)),
    happened(8.6, LineDecided(3, 2, LINE.checkpoints)),
    happened(9.5, JobRunning(), epoch=2),
]
SLOTS = [
    Built(9_200_000, B, 2, 2, "seed", None),
    replayed(9.6),
    replayed(9.75),
]


def run_of(entries, journal, back=None):
    figures = crashed_run().figures
    known = ()
    if back is not None:
        until = Until(1.0, False)
        known = (FailureFigures(8.5, (1,), 0.5, until, back, None, NOBODY, NOBODY),)
    whole = sorted((*entries, *journal), key=lambda entry: entry.at_us)
    return replace(
        crashed_run(),
        entries=entries,
        journal=whole,
        seconds=(),
        figures=replace(figures, failures=known),
    )


def steps(run):
    (failure,) = explained_failures(run)
    return [(s.name, round(s.begin_s, 3), round(s.end_s, 3), s.told, s.open) for s in failure.steps]


def test_each_step_ends_with_its_entry():
    back = Back(Until(2.0, False), Until(2.5, False), Until(4.0, False))
    assert steps(run_of(DRIVER, SLOTS, back)) == [
        ("detect", 0.0, 0.5, "500 ms", False),
        ("decide", 0.5, 0.6, "100 ms", False),
        ("launch", 0.6, 1.2, "600 ms", False),
        ("restore", 1.2, 1.5, "300 ms", False),
        ("replay", 1.5, 1.75, "250 ms", False),
        ("catch up", 1.75, 3.0, "1250 ms", False),
    ]


def test_a_step_whose_end_nobody_wrote_down_is_joined_with_the_next():
    assert steps(run_of(DRIVER, [])) == [
        ("detect", 0.0, 0.5, "500 ms", False),
        ("decide", 0.5, 0.6, "100 ms", False),
        ("launch + restore", 0.6, 1.5, "900 ms", False),
    ]


def test_what_was_not_over_when_the_run_ended_is_open():
    back = Back(Until(2.0, True), Until(1.0, False), Until(4.0, False))
    assert steps(run_of(DRIVER, SLOTS, back))[-1] == ("catch up", 1.75, 2.5, "> 750 ms", True)
    never = [*DRIVER[:-1], happened(12, LineDecided(4, 1, {}))]
    assert steps(run_of(never, []))[-1] == ("launch + restore", 0.6, 4.0, "> 3400 ms", True)


def test_a_loss_without_a_fault_is_counted_from_its_detection():
    unasked = [entry for entry in DRIVER if not is_kill(entry)]
    (failure,) = explained_failures(run_of(unasked, SLOTS))
    assert not failure.from_fault
    assert [step.name for step in failure.steps] == ["decide", "launch", "restore", "replay"]
    assert failure.steps[0].end_s == pytest.approx(0.1)


def is_kill(entry):
    return isinstance(entry, Happened) and isinstance(entry.what, ProcessKilled)


def test_the_rollback_has_its_line_and_what_was_stored_until_then():
    (failure,) = explained_failures(run_of([*DRIVER, stored(11, A, 9)], SLOTS))
    rollback = failure.rollback
    assert rollback.line == LINE
    assert [(meta.task, meta.checkpoint) for meta in rollback.stored] == [
        (A, 1),
        (B, 1),
        (A, 2),
        (B, 2),
    ]
