import pytest
from scenes import A, B, CoordinatorScene, TaskScene, edge, line, message, meta

from snapline.core.effects import (
    Abandon,
    Block,
    CancelTimer,
    Commit,
    Deliver,
    Forward,
    Order,
    Rollback,
    SetTimer,
    Snapshot,
    Unblock,
)
from snapline.core.events import (
    AbortRound,
    LocalCheckpoint,
    NextRound,
    Quiet,
    RoundDeadline,
    SnapshotUnreadable,
    TriggerRound,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.errors import ProtocolViolation
from snapline.ids import first_checkpoint
from snapline.protocols.aligned import ALIGNED
from snapline.protocols.synchronous import StopWorld

# The task side.


def test_a_source_snapshots_and_sends_the_marker():
    """ABS algorithm 1, lines 6 and 7: a marker from nowhere blocks nothing."""
    source = TaskScene(ALIGNED)
    assert source.command(TriggerRound(1)) == (Snapshot(1), Forward(Marker(1)))
    assert source.command(TriggerRound(2)) == (Snapshot(2), Forward(Marker(2)))


def test_a_task_snapshots_only_when_every_input_is_cut():
    """ABS algorithm 1, lines 8 to 15, twice."""
    join = TaskScene(ALIGNED, "A B")
    assert join.marker("A", 1) == (Block(A),)
    assert join.marker("B", 1) == (
        Block(B),
        Snapshot(1),
        Forward(Marker(1)),
        Unblock(A),
        Unblock(B),
    )
    assert join.marker("B", 2) == (Block(B),)
    assert join.marker("A", 2) == (
        Block(A),
        Snapshot(2),
        Forward(Marker(2)),
        Unblock(B),
        Unblock(A),
    )


def test_messages_are_delivered_as_they_come():
    """ABS algorithm 1, line 18."""
    join = TaskScene(ALIGNED, "A B")
    assert join.take(message("A")) == (Deliver(message("A")),)


def test_an_aborted_alignment_unblocks_and_its_late_markers_are_stale():
    join = TaskScene(ALIGNED, "A B")
    join.marker("A", 1)
    assert join.command(AbortRound(1)) == (Unblock(A),)
    assert join.marker("B", 1) == ()
    assert join.marker("B", 2) == (Block(B),)


def test_an_abort_that_comes_before_any_marker_makes_them_stale():
    join = TaskScene(ALIGNED, "A B")
    assert join.command(AbortRound(1)) == ()
    assert join.marker("A", 1) == ()
    source = TaskScene(ALIGNED)
    source.command(AbortRound(1))
    assert source.command(TriggerRound(1)) == ()
    assert source.command(TriggerRound(2)) == (Snapshot(2), Forward(Marker(2)))


def test_an_abort_abandons_a_snapshot_that_was_taken():
    source = TaskScene(ALIGNED)
    source.command(TriggerRound(1))
    assert source.command(AbortRound(1)) == (Abandon(1),)


def test_a_later_round_subsumes_the_one_being_aligned():
    join = TaskScene(ALIGNED, "A B")
    join.marker("A", 1)
    assert join.marker("B", 2) == (Unblock(A), Block(B))
    assert join.command(AbortRound(1)) == (Abandon(1),)  # late: round 2 goes on
    assert join.marker("A", 2) == (
        Block(A),
        Snapshot(2),
        Forward(Marker(2)),
        Unblock(B),
        Unblock(A),
    )


def test_at_least_once_markers_are_counted_and_nothing_is_blocked():
    join = TaskScene(ALIGNED, "A B", guarantee=Guarantee.AT_LEAST_ONCE)
    assert join.marker("A", 1) == ()
    assert join.marker("A", 2) == ()  # the faster input is a round ahead
    assert join.marker("B", 1) == ()
    assert join.marker("B", 2) == (Snapshot(2), Forward(Marker(2)))
    join.marker("A", 3)
    assert join.command(AbortRound(3)) == ()


def test_rounds_of_an_epoch_begin_at_its_first_number():
    first = first_checkpoint(3)
    task = TaskScene(ALIGNED, "A", first=first)
    assert task.marker("A", first - 1) == ()
    assert task.marker("A", first)[1] == Snapshot(first)


@pytest.mark.parametrize("command", [TriggerRound(1), StopWorld(1)])
def test_a_task_with_inputs_takes_no_such_order(command):
    with pytest.raises(ProtocolViolation):
        TaskScene(ALIGNED, "A").command(command)


def test_a_task_has_no_timers():
    with pytest.raises(ProtocolViolation):
        TaskScene(ALIGNED, "A").timer(LocalCheckpoint())


# The coordinator side.

NEXT = SetTimer(NextRound(), 1_000)


def completed(job: CoordinatorScene, number: int) -> None:
    job.timer(NextRound())
    for task in job.tasks:
        job.stored(task, number)


def test_a_round_is_committed_when_every_task_has_stored_it():
    job = CoordinatorScene(ALIGNED)
    assert job.began == (NEXT,)
    assert job.timer(NextRound()) == (
        Order(("a", "b"), TriggerRound(1)),
        SetTimer(RoundDeadline(1), 9_000),
    )
    assert job.stored("t", 1) == ()
    assert job.stored("a", 1) == ()
    assert job.stored("b", 1) == (
        CancelTimer(RoundDeadline(1)),
        Commit(line(a=1, b=1, t=1)),
        NEXT,
    )
    assert job.timer(NextRound())[0] == Order(("a", "b"), TriggerRound(2))


def test_a_round_that_takes_too_long_is_aborted():
    job = CoordinatorScene(ALIGNED)
    job.timer(NextRound())
    job.stored("a", 1)
    assert job.timer(RoundDeadline(1)) == (Order(("a", "b", "t"), AbortRound(1)), NEXT)
    assert job.stored("b", 1) == ()
    assert job.stored("t", 1) == ()
    job.timer(NextRound())
    assert job.stored("t", 1) == ()
    assert job.stored("a", 2) == ()
    assert job.stored("b", 2) == ()
    assert Commit(line(a=2, b=2, t=2)) in job.stored("t", 2)


def test_a_snapshot_that_cannot_be_stored_aborts_its_round_at_once():
    job = CoordinatorScene(ALIGNED)
    job.timer(NextRound())
    assert job.store_failed("t", 1) == (
        CancelTimer(RoundDeadline(1)),
        Order(("a", "b", "t"), AbortRound(1)),
        NEXT,
    )
    assert job.store_failed("a", 1) == ()
    job.timer(NextRound())
    assert job.store_failed("a", 1) == ()


def test_a_lost_task_takes_all_back_to_the_last_line():
    job = CoordinatorScene(ALIGNED)
    assert job.lost("t") == (Rollback(line(a=0, b=0, t=0)),)
    second = first_checkpoint(2)
    assert job.start(second) == (NEXT,)
    completed(job, second)
    job.timer(NextRound())
    job.stored("a", second + 1)
    job.stored("t", second + 1)
    assert job.lost("a") == (Rollback(line(a=second, b=second, t=second)),)
    assert job.lost("b", "t") == (Rollback(line(a=second, b=second, t=second)),)
    assert job.stored("b", second + 1) == ()
    third = first_checkpoint(3)
    assert job.start(third) == (NEXT,)
    assert job.timer(NextRound())[0] == Order(("a", "b"), TriggerRound(third))


def test_damage_falls_back_to_the_older_line_and_then_to_the_beginning():
    job = CoordinatorScene(ALIGNED)
    for number in (1, 2, 3):
        completed(job, number)
    unreadable = job.protocol.handle
    assert unreadable(SnapshotUnreadable("t", 3)) == (Rollback(line(a=2, b=2, t=2)),)
    assert unreadable(SnapshotUnreadable("a", 2)) == (Rollback(line(a=0, b=0, t=0)),)


def test_damage_to_a_base_gives_up_the_line_that_builds_on_it():
    job = CoordinatorScene(ALIGNED)
    for number in (1, 2, 3):
        completed(job, number)
    assert job.protocol.handle(SnapshotUnreadable("t", 1)) == (Rollback(line(a=2, b=2, t=2)),)
    assert job.protocol.handle(SnapshotUnreadable("t", 3)) == (Rollback(line(a=2, b=2, t=2)),)


def test_quiet_begins_a_round_unless_one_is_under_way():
    job = CoordinatorScene(ALIGNED)
    assert job.protocol.handle(Quiet()) == (
        CancelTimer(NextRound()),
        Order(("a", "b"), TriggerRound(1)),
        SetTimer(RoundDeadline(1), 9_000),
    )
    assert job.protocol.handle(Quiet()) == ()


def test_a_round_under_way_when_the_job_becomes_quiet_is_followed_by_another_at_once():
    job = CoordinatorScene(ALIGNED)
    job.timer(NextRound())
    job.protocol.handle(Quiet())
    job.stored("a", 1)
    job.stored("b", 1)
    assert job.stored("t", 1)[-2:] == (
        Order(("a", "b"), TriggerRound(2)),
        SetTimer(RoundDeadline(2), 9_000),
    )
    job.stored("a", 2)
    job.stored("b", 2)
    assert job.stored("t", 2)[-1] == NEXT


def test_a_resumed_coordinator_goes_back_to_the_line_it_is_given():
    job = CoordinatorScene(ALIGNED)
    job.protocol.restore(b"", (meta("a", 7), meta("b", 7), meta("t", 7)))
    assert job.lost("a") == (Rollback(line(a=7, b=7, t=7)),)
    job.protocol.restore(b"", ())
    assert job.lost("a") == (Rollback(line(a=0, b=0, t=0)),)


@pytest.mark.parametrize("timer", [RoundDeadline(1), LocalCheckpoint()])
def test_a_timer_that_cannot_be_set_is_a_violation(timer):
    with pytest.raises(ProtocolViolation):
        CoordinatorScene(ALIGNED).timer(timer)


def test_two_rounds_at_once_are_a_violation():
    job = CoordinatorScene(ALIGNED, channels=(edge("A"), edge("B")))
    job.timer(NextRound())
    with pytest.raises(ProtocolViolation):
        job.timer(NextRound())
