import pytest
from scenes import A, B, CoordinatorScene, TaskScene, line

from snapline.core.effects import (
    Abandon,
    CancelTimer,
    Commit,
    Continue,
    Halt,
    Order,
    Record,
    Rollback,
    Seal,
    SetTimer,
    Snapshot,
)
from snapline.core.events import AbortRound, NextRound, Paused, RoundDeadline, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.errors import ProtocolViolation
from snapline.protocols.synchronous import SYNCHRONOUS, CaptureWorld, Proceed, StopWorld

NEXT = SetTimer(NextRound(), 1_000)
ALL = ("a", "b", "t")


def paused(job, task, sent=None, received=None):
    return job.protocol.handle(Paused(task, sent or {}, received or {}))


def test_a_task_halts_captures_and_continues_as_ordered():
    """ABS section 2: stop, capture what is under way, go on when durable."""
    task = TaskScene(SYNCHRONOUS, "A B")
    assert task.command(StopWorld(1)) == (Halt(),)
    assert task.command(CaptureWorld(1, {A: 5, B: 0})) == (
        Snapshot(1, open=True),
        Record(A, 5),
        Record(B, 0),
        Seal(1),
    )
    assert task.command(Proceed(1)) == (Continue(),)
    assert task.command(StopWorld(2)) == (Halt(),)


def test_an_abort_forgets_the_snapshot_and_goes_on():
    task = TaskScene(SYNCHRONOUS, "A")
    task.command(StopWorld(1))
    assert task.command(AbortRound(1)) == (Abandon(1), Continue())
    assert task.command(StopWorld(2)) == (Halt(),)


def test_at_most_once_saves_no_channel():
    task = TaskScene(SYNCHRONOUS, "A", guarantee=Guarantee.AT_MOST_ONCE)
    task.command(StopWorld(1))
    assert task.command(CaptureWorld(1, {A: 5})) == (Snapshot(1),)


@pytest.mark.parametrize(
    "command", [CaptureWorld(1, {}), Proceed(1), AbortRound(1), TriggerRound(1)], ids=repr
)
def test_a_running_task_can_only_be_paused(command):
    with pytest.raises(ProtocolViolation):
        TaskScene(SYNCHRONOUS, "A").command(command)


@pytest.mark.parametrize("command", [StopWorld(2), CaptureWorld(2, {}), Proceed(2)], ids=repr)
def test_a_halted_task_holds_one_round_only(command):
    task = TaskScene(SYNCHRONOUS, "A")
    task.command(StopWorld(1))
    with pytest.raises(ProtocolViolation):
        task.command(command)


def test_the_world_stops_is_captured_and_goes_on_when_durable():
    job = CoordinatorScene(SYNCHRONOUS)
    assert job.timer(NextRound()) == (Order(ALL, StopWorld(1)), SetTimer(RoundDeadline(1), 9_000))
    assert paused(job, "a", {A: 5}) == ()
    assert paused(job, "t", {}, {A: 3}) == ()
    assert paused(job, "b") == (
        Order(("a",), CaptureWorld(1, {})),
        Order(("b",), CaptureWorld(1, {})),
        Order(("t",), CaptureWorld(1, {A: 5, B: 0})),
    )
    assert job.stored("a", 1, sent={A: 5}) == ()
    assert job.stored("b", 1) == ()
    assert job.stored("t", 1, received={A: 3}) == (
        CancelTimer(RoundDeadline(1)),
        Commit(line(a=1, b=1, t=1)),
        Order(ALL, Proceed(1)),
        NEXT,
    )


def test_a_deadline_or_a_failed_store_lets_the_world_go_on():
    job = CoordinatorScene(SYNCHRONOUS)
    job.timer(NextRound())
    assert job.timer(RoundDeadline(1)) == (Order(ALL, AbortRound(1)), NEXT)
    job.timer(NextRound())
    assert job.store_failed("a", 2) == (
        CancelTimer(RoundDeadline(2)),
        Order(ALL, AbortRound(2)),
        NEXT,
    )


def test_reports_of_an_aborted_round_do_not_count_for_the_next():
    job = CoordinatorScene(SYNCHRONOUS)
    job.timer(NextRound())
    paused(job, "a", {A: 5})
    paused(job, "b")
    job.timer(RoundDeadline(1))
    assert paused(job, "t") == ()  # late: nothing is to be captured any more
    job.timer(NextRound())
    paused(job, "b")
    assert paused(job, "t") == ()  # task a has not stopped for this round


def test_a_snapshot_of_an_aborted_round_says_nothing_about_the_next():
    job = CoordinatorScene(SYNCHRONOUS)
    job.timer(NextRound())
    job.timer(RoundDeadline(1))
    job.timer(NextRound())
    for task in ALL:
        paused(job, task)
    job.stored("a", 1, sent={A: 5})
    job.stored("a", 2)
    job.stored("b", 2)
    assert Commit(line(a=2, b=2, t=2)) in job.stored("t", 2)


def test_counters_of_an_aborted_round_cannot_be_committed():
    job = CoordinatorScene(SYNCHRONOUS)
    job.timer(NextRound())
    job.timer(RoundDeadline(1))
    job.timer(NextRound())
    paused(job, "a", {A: 5})  # late, of round 1: since then a has sent more
    paused(job, "b")
    paused(job, "t")
    assert paused(job, "a", {A: 8}) == ()
    job.stored("a", 2, sent={A: 8})
    job.stored("b", 2)
    assert job.stored("t", 2) == (
        CancelTimer(RoundDeadline(2)),
        Order(ALL, AbortRound(2)),
        NEXT,
    )
    assert job.lost("a") == (Rollback(line(a=0, b=0, t=0)),)


def test_the_newest_report_of_a_task_counts_while_others_are_awaited():
    job = CoordinatorScene(SYNCHRONOUS)
    job.timer(NextRound())
    paused(job, "a", {A: 5})
    paused(job, "a", {A: 8})
    paused(job, "b")
    assert paused(job, "t")[-1] == Order(("t",), CaptureWorld(1, {A: 8, B: 0}))
