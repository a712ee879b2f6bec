"""The account of checkpoints, from the coordinator's entries."""

from snapline.core.effects import Commit, Order, Rollback, Scope
from snapline.core.events import (
    AbortRound,
    JobStarted,
    SnapshotStored,
    TasksLost,
    TriggerRound,
)
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.happenings import JobRunning
from snapline.metrics.checkpointing import account as checkpoints
from snapline.metrics.checkpointing.account import CheckpointAccount
from snapline.metrics.costs import OperatorCheckpoints, operator_figures
from snapline.protocols.synchronous import StopWorld

A, B = TaskId("a/0"), TaskId("b/0")
MS = 1000


def line(a: int, b: int) -> RecoveryLine:
    return RecoveryLine({A: a, B: b})


class Coordinator:
    """Writes down what a coordinator would have, and keeps the account."""

    def __init__(self) -> None:
        self.account = CheckpointAccount()
        self.ms = 0

    def handled(self, ms, event, *effects):
        return self.account.see(Handled(ms * MS, COORDINATOR, 1, 0, event, effects))

    def stored(self, ms, task, number, *effects, **fields):
        meta = CheckpointMeta(task, number, **fields)
        return self.handled(ms, SnapshotStored(meta), *effects)

    def lost(self, ms, line, scope=Scope.ALL):
        """Lose a task while all slots run."""
        self.account.see(Happened(ms * MS, COORDINATOR, 1, JobRunning()))
        return self.lost_again(ms, line, scope)

    def lost_again(self, ms, line, scope=Scope.ALL):
        """Lose another one on the way back to a line."""
        return self.handled(ms, TasksLost((A,)), Rollback(line, scope))


def test_each_operator_has_an_interval_of_its_own():
    """Two tasks of `a` are saved 100 and 300 ms apart; of a single checkpoint nobody knows."""
    boss = Coordinator()
    for number in (1, 2, 3):
        boss.stored(100 * number, A, number, bytes=10)
    boss.stored(50, TaskId("a/1"), 1, bytes=1)
    boss.stored(350, TaskId("a/1"), 2, bytes=1)
    boss.stored(60, B, 1, bytes=5)
    found = operator_figures(boss.account)
    assert found == {
        "a": OperatorCheckpoints(stored=5, bytes=32, interval_ms=round(500 / 3, 3)),
        "b": OperatorCheckpoints(stored=1, bytes=5, interval_ms=None),
    }


def test_checkpoints_beyond_the_line_are_skipped():
    boss = Coordinator()
    for number in (1, 2, 3):
        boss.stored(number, A, number, bytes=10)
        boss.stored(number, B, number, bytes=1, forced=number == 2)
    found = boss.lost(9, line(a=3, b=1))
    assert (found.stored, found.skipped) == (6, 2)
    account = boss.account
    assert (account.stored, account.forced, account.skipped, account.bytes) == (6, 1, 2, 33)


def test_a_checkpoint_is_skipped_once_and_counts_in_the_rollback_that_skips_it():
    boss = Coordinator()
    boss.stored(1, A, 1)
    boss.stored(2, A, 2)
    boss.lost(3, line(a=1, b=0))
    found = boss.lost(4, line(a=1, b=0))
    assert (found.stored, found.skipped) == (0, 0)
    boss.stored(5, A, 5)
    found = boss.lost(6, line(a=0, b=0))
    assert (found.stored, found.skipped) == (2, 2)
    assert boss.account.skipped == 3


def test_a_line_that_is_found_again_on_the_way_there_is_news_only_if_it_costs_more():
    boss = Coordinator()
    boss.stored(1, A, 1)
    boss.stored(2, A, 2)
    assert boss.lost(3, line(a=1, b=0)) is not None
    assert boss.lost_again(4, line(a=1, b=0)) is None
    assert boss.lost_again(5, line(a=0, b=0)).skipped == 1


def test_who_restarts_alone_skips_nothing():
    boss = Coordinator()
    assert boss.lost(4, RecoveryLine({A: 0}), Scope.LOST) is None


def test_the_distance_of_a_rollback_is_from_what_was_read_and_from_the_oldest_checkpoint():
    boss = Coordinator()
    boss.stored(1000, A, 1, offsets={0: 100, 2: 50})
    boss.stored(2500, B, 1)
    boss.account.read = 400
    found = boss.lost(4000, line(a=1, b=1))
    assert (found.back_records, found.back_s) == (250, 3.0)
    boss.account.read += 30
    assert boss.lost(5000, line(a=1, b=1)).back_records == 30
    assert boss.lost(6000, line(a=1, b=0)).back_s == 6.0


def test_a_round_takes_from_its_order_until_the_last_task_has_stored():
    boss = Coordinator()
    boss.handled(100, JobStarted(1), Order((A,), TriggerRound(7)))
    boss.stored(130, A, 7)
    boss.stored(170, B, 7, Commit(line(a=7, b=7)))
    boss.handled(200, JobStarted(1), Order((A, B), StopWorld(8)))
    boss.stored(210, A, 8)
    boss.stored(215, B, 8, Commit(line(a=8, b=8)))
    assert boss.account.round_us == [70 * MS, 15 * MS]


def test_a_line_of_different_checkpoints_is_no_round():
    boss = Coordinator()
    boss.handled(100, JobStarted(1), Order((A, B), TriggerRound(2)))
    boss.stored(130, A, 2)
    boss.stored(170, B, 1, Commit(line(a=2, b=1)))
    assert boss.account.round_us == []


def test_a_round_that_is_given_up_is_aborted_once_and_has_no_time():
    boss = Coordinator()
    boss.handled(100, JobStarted(1), Order((A,), TriggerRound(7)))
    boss.handled(300, JobStarted(1), Order((A, B), AbortRound(7)), Order((A, B), AbortRound(7)))
    assert (boss.account.aborted, boss.account.round_us) == (1, [])


def test_the_last_line_says_what_was_read_and_written():
    boss = Coordinator()
    boss.stored(1, A, 1, offsets={0: 100, 1: 20})
    boss.stored(2, B, 1, Commit(line(a=1, b=1)), position=70)
    boss.stored(3, A, 2, offsets={0: 200, 1: 20})
    assert (boss.account.offset, boss.account.position) == (120, 70)


def test_a_resumed_coordinator_begins_with_the_checkpoints_of_its_line():
    boss = Coordinator()
    metas = (CheckpointMeta(A, 5, offsets={0: 90}), CheckpointMeta(B, 4))
    boss.account.see(Built(0, COORDINATOR, 1, 0, "seed", b"", line=metas))
    boss.account.read = 100
    found = boss.lost(4000, line(a=5, b=4))
    assert (found.back_records, found.skipped, boss.account.stored) == (10, 0, 0)


def test_one_round_at_the_end_does_not_make_tasks_on_their_own_go_in_rounds():
    boss = Coordinator()
    for number in (1, 2):
        boss.stored(10 * number, A, number)
        boss.stored(10 * number + 1, B, number, Commit(line(number, number)))
    boss.handled(30, JobStarted(3), Order((A, B), TriggerRound(3)))
    boss.stored(31, A, 3)
    boss.stored(32, B, 3, Commit(line(3, 3)))
    assert boss.account.round_us == [2 * MS]
    assert not boss.account.in_rounds
    boss.handled(40, JobStarted(4), Order((A, B), TriggerRound(4)))
    boss.stored(41, A, 4)
    boss.stored(42, B, 4, Commit(line(4, 4)))
    boss.handled(50, JobStarted(5), Order((A, B), TriggerRound(5)))
    boss.stored(51, A, 5)
    boss.stored(52, B, 5, Commit(line(5, 5)))
    assert boss.account.in_rounds


def test_what_no_rollback_goes_back_to_is_forgotten(monkeypatch):
    monkeypatch.setattr(checkpoints, "LINES_KEPT", 3)
    monkeypatch.setattr(checkpoints, "ROUNDS_TIMED", 5)
    boss = Coordinator()
    for number in range(1, 101):
        boss.handled(10 * number, JobStarted(1), Order((A, B), TriggerRound(number)))
        boss.stored(10 * number + 1, A, number)
        boss.stored(10 * number + 2, B, number, Commit(line(number, number)))
    assert boss.account.known <= 2 * 3
    assert len(boss.account.round_us) <= 2 * 5
    assert (boss.account.lines, boss.account.rounds, boss.account.in_rounds) == (100, 100, True)
    found = boss.lost(1100, line(98, 98))  # the oldest of the kept lines
    assert (found.skipped, found.back_s) == (4, 0.119)
