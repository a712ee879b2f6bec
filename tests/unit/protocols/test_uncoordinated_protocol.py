import pytest
from scenes import A, B, CoordinatorScene, L, TaskScene, edge, line, message, meta

from snapline.core.effects import (
    Commit,
    Deliver,
    Forward,
    Order,
    Rollback,
    Snapshot,
)
from snapline.core.events import (
    AbortRound,
    LocalCheckpoint,
    NextRound,
    Quiet,
    SnapshotUnreadable,
    TriggerRound,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker, Stamp
from snapline.errors import ProtocolViolation
from snapline.ids import first_checkpoint
from snapline.protocols.uncoordinated import UNCOORDINATED

# The task side.


def delays(task: TaskScene, count: int) -> list[int]:
    """The delays of the local timer: the first, then `count` more."""
    (first,) = task.start()
    rest = [task.timer(LocalCheckpoint())[-1] for _ in range(count)]
    assert all(effect.timer == LocalCheckpoint() for effect in (first, *rest))
    return [effect.delay_ms for effect in (first, *rest)]


def test_local_timers_are_jittered():
    first, *rest = delays(TaskScene(UNCOORDINATED, "A"), 200)
    assert 1 <= first <= 1_000
    assert 800 <= min(rest) < 850
    assert 1_150 < max(rest) <= 1_200


def test_the_shortest_interval_still_has_a_future():
    assert delays(TaskScene(UNCOORDINATED, interval_ms=1), 5) == [1] * 6


def test_local_checkpoints_are_counted_from_the_first_free_number():
    task = TaskScene(UNCOORDINATED, "A", first=first_checkpoint(4))
    task.start()
    taken = [task.timer(LocalCheckpoint())[0] for _ in range(2)]
    assert taken == [Snapshot(first_checkpoint(4)), Snapshot(first_checkpoint(4) + 1)]


@pytest.mark.parametrize(
    ("guarantee", "logged"),
    [
        (Guarantee.EXACTLY_ONCE, True),
        (Guarantee.AT_LEAST_ONCE, True),
        (Guarantee.AT_MOST_ONCE, False),
    ],
)
def test_messages_are_logged_unless_they_may_be_lost(guarantee, logged):
    task = TaskScene(UNCOORDINATED, "A", guarantee=guarantee)
    assert task.protocol.stamp(edge("X", "t", "u")) == Stamp(log=logged)


def test_the_first_marker_of_a_round_takes_a_checkpoint_from_any_input():
    task = TaskScene(UNCOORDINATED, "A B L*")
    assert task.marker("L", 7) == (Snapshot(1), Forward(Marker(7)))
    assert task.marker("A", 7) == ()
    assert task.command(TriggerRound(7)) == ()
    assert task.marker("B", 8) == (Snapshot(2), Forward(Marker(8)))
    assert task.marker("A", 7) == ()


def test_an_ordered_round_begins_at_a_source():
    source = TaskScene(UNCOORDINATED)
    assert source.command(TriggerRound(7)) == (Snapshot(1), Forward(Marker(7)))


def test_messages_are_delivered_without_ado():
    assert TaskScene(UNCOORDINATED, "A").take(message("A")) == (Deliver(message("A")),)


def test_there_are_no_other_orders_and_timers():
    task = TaskScene(UNCOORDINATED, "A")
    with pytest.raises(ProtocolViolation):
        task.command(AbortRound(1))
    with pytest.raises(ProtocolViolation):
        task.timer(NextRound())
    with pytest.raises(ProtocolViolation):
        CoordinatorScene(UNCOORDINATED).timer(NextRound())


# When a task checkpoints, beside its timer.


def test_a_task_that_took_enough_records_checkpoints_and_begins_to_count_anew():
    task = TaskScene(UNCOORDINATED, "A", every_records=10)
    assert task.protocol.wants_progress
    assert task.progress(6) == ()
    snapshot, timer = task.progress(4)
    assert (snapshot, timer.timer) == (Snapshot(1), LocalCheckpoint())
    assert 800 <= timer.delay_ms <= 1_200, "the interval begins anew"
    assert task.progress(9) == ()
    assert task.timer(LocalCheckpoint())[0] == Snapshot(2)
    assert task.progress(9) == ()
    assert task.progress(30)[0] == Snapshot(3)
    assert task.progress(9) == ()


def test_a_round_is_no_checkpoint_of_the_tasks_own():
    task = TaskScene(UNCOORDINATED, "A", every_records=10)
    task.progress(6)
    assert task.marker("A", 7) == (Snapshot(1), Forward(Marker(7)))
    assert task.progress(4)[0] == Snapshot(2)


def test_a_task_whose_operator_has_closed_a_window_checkpoints():
    task = TaskScene(UNCOORDINATED, "A", at_window_close=True)
    assert task.protocol.wants_progress
    assert task.progress(1_000_000) == ()
    snapshot, timer = task.progress(0, windows=2)
    assert (snapshot, timer.timer) == (Snapshot(1), LocalCheckpoint())
    assert task.progress(5, windows=0) == ()


def test_a_task_waits_until_its_last_checkpoint_is_durable_unless_it_is_time():
    task = TaskScene(UNCOORDINATED, "A", every_records=10, at_window_close=True)
    assert task.progress(40, windows=1, pending=1) == ()
    assert task.timer(LocalCheckpoint())[0] == Snapshot(1)
    assert task.progress(40, pending=2) == ()
    assert task.progress(1)[0] == Snapshot(2)


def test_a_task_that_has_only_its_timer_wants_to_know_nothing_else():
    task = TaskScene(UNCOORDINATED, "A")
    assert not task.protocol.wants_progress
    assert task.progress(1_000_000, windows=3) == ()


def test_an_operator_may_have_an_interval_of_its_own():
    own = {"intervals_ms": (("count", 100), ("bids", 7))}
    first, *rest = delays(TaskScene(UNCOORDINATED, "A", me="count/0", peers="count/0", **own), 50)
    assert 1 <= first <= 100
    assert 80 <= min(rest) < max(rest) <= 120
    _, *rest = delays(TaskScene(UNCOORDINATED, "A", me="sink/0", peers="sink/0", **own), 50)
    assert 800 <= min(rest) < max(rest) <= 1_200


# The coordinator side: A leads from a to t, B from b to t.


def test_the_line_is_committed_whenever_it_moves():
    job = CoordinatorScene(UNCOORDINATED)
    assert job.began == ()
    assert job.stored("t", 1, received={A: 4}) == ()  # an orphan: a has not saved that it sent
    assert job.stored("a", 1, sent={A: 3}) == (Commit(line(a=1, b=0, t=0)),)
    assert job.stored("a", 2, sent={A: 6}) == (Commit(line(a=2, b=0, t=1)),)


def test_a_lost_task_takes_all_back_to_the_line_and_ends_what_is_beyond():
    job = CoordinatorScene(UNCOORDINATED)
    job.stored("a", 1, sent={A: 3})
    job.stored("t", 1, received={A: 4})
    back = Rollback(line(a=1, b=0, t=0))
    assert job.lost("t") == (back,)
    assert job.lost("b") == (back,)
    second = first_checkpoint(2)
    job.start(second)
    # Checkpoint 1 of t is of a dead timeline: it must not join although a has sent enough by now.
    assert job.stored("a", second, sent={A: 9}) == (Commit(line(a=second, b=0, t=0)),)


def test_at_least_once_the_line_is_every_tasks_newest_checkpoint():
    job = CoordinatorScene(UNCOORDINATED, guarantee=Guarantee.AT_LEAST_ONCE)
    assert job.stored("t", 1, received={A: 4}) == (Commit(line(a=0, b=0, t=1)),)
    assert job.stored("t", 2, received={A: 8}) == (Commit(line(a=0, b=0, t=2)),)
    assert job.lost("a") == (Rollback(line(a=0, b=0, t=2)),)
    assert job.protocol.handle(SnapshotUnreadable("t", 2)) == (Rollback(line(a=0, b=0, t=1)),)


def test_at_most_once_the_line_has_no_orphans_either():
    job = CoordinatorScene(UNCOORDINATED, guarantee=Guarantee.AT_MOST_ONCE)
    assert job.stored("t", 1, received={A: 4}) == ()


def test_damage_is_as_if_the_checkpoint_had_never_been_stored():
    job = CoordinatorScene(UNCOORDINATED)
    for number in (1, 2, 3):
        job.stored("a", number, sent={A: number})
        job.stored("t", number, received={A: number})
    handle = job.protocol.handle
    assert handle(SnapshotUnreadable("t", 3)) == (Rollback(line(a=3, b=0, t=2)),)


def test_damage_to_both_lines_that_are_kept_leaves_the_beginning():
    job = CoordinatorScene(UNCOORDINATED)
    for number in (1, 2, 3):
        job.stored("a", number, sent={A: number})
        job.stored("b", number)
        job.stored("t", number, received={A: number})
    handle = job.protocol.handle
    assert handle(SnapshotUnreadable("t", 3)) == (Rollback(line(a=3, b=3, t=2)),)
    assert handle(SnapshotUnreadable("t", 2)) == (Rollback(line(a=0, b=0, t=0)),)
    assert job.stored("a", 9) == (Commit(line(a=9, b=0, t=0)),)


def test_damage_to_a_forgotten_base_gives_up_what_builds_on_it():
    job = CoordinatorScene(UNCOORDINATED)
    for number in (1, 2, 3, 4):
        job.stored("a", number, parent=number - 1)
        job.stored("b", number)
        job.stored("t", number)
    assert job.protocol.handle(SnapshotUnreadable("a", 1)) == (Rollback(line(a=3, b=4, t=4)),)


def test_lines_that_share_a_checkpoint_are_no_two_lines():
    """Only `a` moves: damage to its newest checkpoints still leaves an older one."""
    job = CoordinatorScene(UNCOORDINATED)
    for number in (1, 2, 3):
        job.stored("a", number, sent={A: number})
    handle = job.protocol.handle
    assert handle(SnapshotUnreadable("a", 3)) == (Rollback(line(a=2, b=0, t=0)),)
    assert handle(SnapshotUnreadable("a", 2)) == (Rollback(line(a=1, b=0, t=0)),)


def test_quiet_asks_every_task_for_a_last_checkpoint():
    job = CoordinatorScene(UNCOORDINATED)
    assert job.protocol.handle(Quiet()) == (Order(("a", "b", "t"), TriggerRound(1)),)
    assert job.protocol.handle(Quiet()) == (Order(("a", "b", "t"), TriggerRound(2)),)


def test_a_resumed_coordinator_knows_the_last_line():
    job = CoordinatorScene(UNCOORDINATED)
    job.protocol.restore(b"", (meta("a", 5, sent={A: 2}), meta("t", 6, received={A: 2})))
    assert job.lost("a") == (Rollback(line(a=5, b=0, t=6)),)


def test_without_the_option_no_round_is_ever_ordered():
    job = CoordinatorScene(UNCOORDINATED)
    assert [job.stored("t", number, received={A: 9}) for number in range(1, 9)] == [()] * 8


def test_a_line_that_falls_behind_orders_one_consistent_round():
    job = CoordinatorScene(UNCOORDINATED, line_max_lag=2)
    ordered = [job.stored("t", number, received={A: 9}) for number in range(1, 7)]
    first, second = (Order(("a", "b"), TriggerRound(number)) for number in (1, 2))
    # The third exceeds the lag. The round takes its time, and is not ordered again for a while.
    assert ordered == [(), (), (first,), (), (), (second,)]
    assert job.stored("a", 1, sent={A: 9}) == (Commit(line(a=1, b=0, t=6)),)
    again = [job.stored("t", number, received={A: 99}) for number in range(7, 10)]
    assert again == [(), (), (Order(("a", "b"), TriggerRound(3)),)]


def test_a_new_epoch_forgets_the_round_under_way():
    job = CoordinatorScene(UNCOORDINATED, line_max_lag=1)
    job.stored("t", 1, received={A: 9})
    job.stored("t", 2, received={A: 9})
    job.lost("t")
    second = first_checkpoint(2)
    job.start(second)
    job.stored("t", second, received={A: 9})
    order = Order(("a", "b"), TriggerRound(second))
    assert job.stored("t", second + 1, received={A: 9}) == (order,)


def test_the_checkpoints_of_a_round_are_a_line_even_on_a_cycle():
    """Two tasks whose local checkpoints always miss each other, and one round between them."""
    channels = (edge("A", "s", "a"), edge("B", "a", "t"), edge("L*", "t", "a"))
    job = CoordinatorScene(UNCOORDINATED, tasks="s a t", channels=channels, line_max_lag=1)
    job.stored("a", 1, sent={B: 2}, received={L: 3})
    assert job.stored("t", 1, sent={L: 2}, received={B: 3}) == ()
    assert job.stored("a", 2, sent={B: 2}, received={L: 4}) == (Order(("s",), TriggerRound(1)),)
    # What is on its way at the markers (4 > 3 on B, 5 > 4 on L) is in the logs.
    assert job.stored("a", 3, sent={B: 4}, received={L: 4}) == ()
    assert job.stored("t", 2, sent={L: 5}, received={B: 3}) == (Commit(line(s=0, a=3, t=2)),)
