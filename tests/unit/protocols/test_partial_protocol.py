"""The effects of `partial`, step by step, after sections 4.1 and 4.2 of SPADE (seed 002)."""

import random

from scenes import edge

from snapline.batch import Batch
from snapline.core.effects import Commit, Deliver, Rollback, Scope, SetTimer, Snapshot
from snapline.core.events import (
    JobStarted,
    LocalCheckpoint,
    MessageArrived,
    SnapshotStored,
    SnapshotUnreadable,
    Started,
    TasksLost,
    TimerFired,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Message, RecoveryLine
from snapline.core.policy import Intake, Policy
from snapline.core.protocol import JobContext, Options, TaskContext
from snapline.core.topology import Topology
from snapline.ids import ChannelId, TaskId
from snapline.protocols.partial import GATHER_MS, PARTIAL, Gathered

SAVED = Policy(saved=True)


def task(policy: Policy, kept: str = "", **options: int):
    context = TaskContext(
        task=TaskId("t"),
        inputs=(edge("A"),),
        outputs=(edge("out", "t", target="z"),),
        peers=(TaskId("a"), TaskId("t"), TaskId("z")),
        options=Options(**{"interval_ms": 1_000, **options}),
        guarantee=Guarantee.BOUNDED_LOSS,
        first_checkpoint=7,
        rng=random.Random(1),
        policy=policy,
        kept=frozenset(map(ChannelId, kept.split())),
    )
    return PARTIAL.task(context)


def coordinator(**policies: Policy):
    tasks = tuple(TaskId(name) for name in "abt")
    context = JobContext(
        Topology(tasks, (edge("A"), edge("B"))),
        Options(interval_ms=1_000),
        Guarantee.BOUNDED_LOSS,
        random.Random(1),
        {each: policies.get(each, SAVED) for each in tasks},
    )
    side = PARTIAL.coordinator(context)
    assert side.handle(JobStarted(1)) == ()
    return side


def stored(name: str, number: int) -> SnapshotStored:
    return SnapshotStored(CheckpointMeta(TaskId(name), number))


def line(**numbers: int) -> RecoveryLine:
    return RecoveryLine({TaskId(name): number for name, number in numbers.items()})


# The task side.


def test_a_task_that_is_not_saved_sets_no_timer():
    """P1. Stateless operators save nothing (4)."""
    assert task(Policy(saved=False)).handle(Started()) == ()


def test_a_saved_task_takes_its_first_checkpoint_at_a_random_moment_and_then_every_interval():
    """4.1: operators do not all checkpoint at once."""
    side = task(SAVED)
    (first,) = side.handle(Started())
    assert first.timer == LocalCheckpoint()
    assert 0 <= first.delay_ms < 1_000
    again = SetTimer(LocalCheckpoint(), 1_000)
    assert side.handle(TimerFired(LocalCheckpoint())) == (Snapshot(7), again)
    assert side.handle(TimerFired(LocalCheckpoint())) == (Snapshot(8), again)


def test_an_operator_with_an_interval_of_its_own_uses_that():
    """Fig. 3: -> checkpoint=10."""
    side = task(Policy(saved=True, every_ms=10_000))
    side.handle(Started())
    assert side.handle(TimerFired(LocalCheckpoint()))[1] == SetTimer(LocalCheckpoint(), 10_000)


def test_a_message_for_a_receiver_that_keeps_its_input_is_logged_and_no_other():
    """P7."""
    out = edge("out", "t", target="z")
    assert task(SAVED, kept="out").stamp(out).log
    assert not task(SAVED).stamp(out).log


def test_a_task_that_feeds_a_kept_channel_is_saved_so_that_its_log_becomes_durable():
    assert task(Policy(saved=False), kept="out").handle(Started())


def test_every_message_is_delivered_as_it_comes():
    message = Message(ChannelId("A"), 1, 1, Batch({}, 0))
    assert task(SAVED).handle(MessageArrived(message)) == (Deliver(message),)


# The coordinator side.


def test_checkpoints_of_several_tasks_are_decided_at_once():
    side = coordinator()
    assert side.handle(stored("a", 1)) == (SetTimer(Gathered(), GATHER_MS),)
    assert side.handle(stored("b", 1)) == ()
    assert side.handle(stored("a", 2)) == ()
    assert side.handle(TimerFired(Gathered())) == (Commit(line(a=2, b=1, t=0)),)
    assert side.handle(stored("t", 1)) == (SetTimer(Gathered(), GATHER_MS),)


def test_only_lost_tasks_go_back_each_to_its_newest_checkpoint():
    """P2, P3; 4.1: recovery rolls nobody else back."""
    side = coordinator()
    for event in (stored("a", 1), stored("b", 1), stored("a", 2)):
        side.handle(event)
    lost = side.handle(TasksLost((TaskId("a"), TaskId("t"))))
    assert lost == (Rollback(line(a=2, t=0), Scope.LOST),)


def test_a_damaged_checkpoint_leaves_the_one_before_it_and_then_the_initial_state():
    """P3; 4.2: a corrupt checkpoint means fresh state, or an older version."""
    side = coordinator()
    for number in (1, 2):
        side.handle(stored("a", number))
    a = TaskId("a")
    assert side.handle(SnapshotUnreadable(a, 2)) == (Rollback(line(a=1), Scope.LOST),)
    assert side.handle(SnapshotUnreadable(a, 1)) == (Rollback(line(a=0), Scope.LOST),)


def test_only_so_many_versions_are_known_as_the_policy_keeps():
    """P4: a checkpoint that was decided to be garbage is never named again."""
    side = coordinator(a=Policy(saved=True, versions=2, intake=Intake.DROP))
    for number in (1, 2, 3):
        side.handle(stored("a", number))
    side.handle(TimerFired(Gathered()))
    a = TaskId("a")
    assert side.handle(SnapshotUnreadable(a, 3)) == (Rollback(line(a=2), Scope.LOST),)
    assert side.handle(SnapshotUnreadable(a, 2)) == (Rollback(line(a=0), Scope.LOST),)


def test_a_resumed_coordinator_goes_on_from_what_was_decided():
    """P5."""
    side = coordinator()
    side.restore(b"", (CheckpointMeta(TaskId("b"), 5),))
    assert side.handle(TasksLost((TaskId("b"),))) == (Rollback(line(b=5), Scope.LOST),)
    side.handle(stored("a", 9))
    assert side.handle(TimerFired(Gathered())) == (Commit(line(a=9, b=5, t=0)),)
