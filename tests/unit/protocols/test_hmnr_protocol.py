"""HMNR on three tasks p, q, r. Every scene begins with initial states, which count as checkpoints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import TaskScene

from snapline.core.effects import Deliver, Forward, SetTimer, Snapshot
from snapline.core.events import LocalCheckpoint
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.protocols.hmnr import HMNR


@pytest.fixture
def tasks() -> tuple[TaskScene, TaskScene, TaskScene]:
    p, q, r = (TaskScene(HMNR, me=me, peers="p q r") for me in "pqr")
    return p, q, r


def memory(task: TaskScene) -> tuple[int, list[int], str, str, str]:
    """lc, ckpt, and the flags taken, greater, sent_to as digits."""
    p = task.protocol
    flags = ("".join(str(int(f)) for f in row) for row in (p.taken, p.greater, p.sent_to))
    return (p.lc, p.ckpt.tolist(), *flags)


def checkpoint(task: TaskScene) -> None:
    assert isinstance(task.timer(LocalCheckpoint())[0], Snapshot)


def forced(task: TaskScene, message) -> bool:
    """Give a message to a task: was a checkpoint forced before its delivery?"""
    effects = task.take(message)
    assert effects[-1] == Deliver(message)
    assert all(isinstance(effect, Snapshot) and effect.forced for effect in effects[:-1])
    return len(effects) == 2


def test_the_initial_state_counts_as_a_checkpoint(tasks):
    _, q, _ = tasks
    assert memory(q) == (1, [0, 1, 0], "101", "101", "000")


def test_a_checkpoint_raises_clock_and_count_and_clears_sent_to(tasks):
    p, _, _ = tasks
    p.send("q")
    assert memory(p) == (1, [1, 0, 0], "011", "011", "010")
    checkpoint(p)
    assert memory(p) == (2, [2, 0, 0], "011", "011", "000")


def test_a_larger_clock_is_taken_over_with_its_flags(tasks):
    p, q, _ = tasks
    checkpoint(p)
    assert not forced(q, p.send("q"))
    # q is now level with p, and ahead of r as p is; p's two checkpoints are news.
    assert memory(q) == (2, [2, 1, 0], "001", "001", "000")


def test_equal_clocks_join_what_both_know(tasks):
    p, q, _ = tasks
    assert not forced(q, p.send("q"))
    # greater: both must say so, and p does not claim to be ahead of itself.
    assert memory(q) == (1, [1, 1, 0], "001", "001", "000")


def test_a_smaller_clock_teaches_counts_only(tasks):
    p, q, _ = tasks
    checkpoint(q)
    assert not forced(q, p.send("q"))
    assert memory(q) == (2, [1, 2, 0], "001", "101", "000")


def test_equal_counts_join_taken_and_older_ones_are_no_news(tasks):
    p, q, r = tasks
    early = p.send("q")
    assert not forced(q, p.send("q"))  # q knows the initial checkpoint of p, none on the way
    assert not forced(r, p.send("r"))
    checkpoint(r)
    assert memory(r)[2] == "110"  # now one lies on the way from p to here
    assert not forced(q, r.send("q"))
    assert memory(q) == (2, [1, 1, 2], "100", "100", "000")
    checkpoint(p)
    assert not forced(q, p.send("q"))
    assert memory(q)[1:3] == ([2, 1, 2], "000")
    assert not forced(q, early)
    assert memory(q)[1:3] == ([2, 1, 2], "000")


def test_condition_1_a_larger_clock_after_sending_to_one_that_is_behind(tasks):
    p, q, _ = tasks
    q.send("r")
    checkpoint(p)
    assert forced(q, p.send("q"))


@pytest.mark.parametrize("what", ["sent to nobody", "equal clock", "sent to the sender only"])
def test_condition_1_needs_all_its_parts(tasks, what):
    p, q, _ = tasks
    if what != "sent to nobody":
        q.send("p" if what == "sent to the sender only" else "r")
    if what != "equal clock":
        checkpoint(p)
    assert not forced(q, p.send("q"))


def test_condition_2_a_message_of_our_own_interval_around_a_checkpoint(tasks):
    """The clock of the message is not larger, so condition 1 has no say."""
    p, q, _ = tasks
    out = q.send("p")
    assert not forced(p, out)
    checkpoint(p)
    back = p.send("q")
    q.protocol.lc = 9
    assert forced(q, back)


@pytest.mark.parametrize("what", ["no checkpoint on the way", "an interval later"])
def test_condition_2_needs_both_its_parts(tasks, what):
    p, q, _ = tasks
    out = q.send("p")
    assert not forced(p, out)
    if what == "an interval later":
        checkpoint(p)
        checkpoint(q)
    back = p.send("q")
    q.protocol.lc = 9
    assert not forced(q, back)


def test_cycle_detection_finds_none_where_there_is_none(tasks):
    """The thesis, table 4.1: a message, a checkpoint, another message, all one way."""
    p, q, r = tasks
    assert not forced(q, p.send("q"))
    checkpoint(q)
    assert not forced(r, q.send("r"))
    checkpoint(r)
    checkpoint(p)
    assert not forced(q, p.send("q"))


def test_cycle_detection_finds_a_simple_cycle(tasks):
    """The thesis, table 4.1 and figure 3.7: m1 leaves q before p's checkpoint, m2 comes after it."""
    p, q, _ = tasks
    assert not forced(p, q.send("p"))
    checkpoint(p)
    m2 = p.send("q")
    assert q.take(m2) == (
        Snapshot(1, memo=q_memo(lc=2, ckpt=(0, 2, 0)), forced=True),
        Deliver(m2),
    )


def q_memo(lc: int, ckpt: tuple[int, int, int]) -> bytes:
    """What q remembers right behind a checkpoint, in the declared form."""
    flags = bytes([1, 0, 1]) + bytes([1, 0, 1]) + bytes([0, 0, 0])
    return lc.to_bytes(8, "little") + np.array(ckpt, "<i4").tobytes() + flags


def test_a_header_has_the_declared_form(tasks):
    _, q, _ = tasks
    assert q.send("p").header == q_memo(1, (0, 1, 0))[:-3]


def test_the_memo_is_the_memory_behind_the_checkpoints_own_bookkeeping(tasks):
    p, q, _ = tasks
    q.send("p")
    q.take(p.send("q"))
    (taken, _) = q.timer(LocalCheckpoint())
    at_checkpoint = memory(q)
    again = TaskScene(HMNR, me="q", peers="p q r")
    again.protocol.restore(taken.memo)
    assert memory(again) == at_checkpoint == (2, [1, 2, 0], "101", "101", "000")
    checkpoint(again)
    assert not forced(again, p.send("q"))  # the restored memory can be written
    assert memory(q) == at_checkpoint  # and is its own


def test_an_empty_memo_is_the_initial_state(tasks):
    _, q, _ = tasks
    before = memory(q)
    q.protocol.restore(b"")
    assert memory(q) == before


def test_own_flags_stay_false_even_with_a_message_to_oneself(tasks):
    _, q, _ = tasks
    assert not forced(q, q.send("q"))
    checkpoint(q)
    assert not forced(q, q.send("q"))
    assert memory(q) == (2, [0, 2, 0], "101", "101", "000")


def test_the_local_timer_goes_on_after_a_forced_checkpoint(tasks):
    p, q, _ = tasks
    q.send("r")
    checkpoint(p)
    assert forced(q, p.send("q"))
    snapshot, timer = q.timer(LocalCheckpoint())
    assert (snapshot.checkpoint, snapshot.forced) == (2, False)
    assert isinstance(timer, SetTimer)


def test_a_consistent_round_counts_like_a_local_checkpoint(tasks):
    _, q, _ = tasks
    snapshot, forward = q.marker("A", 7)
    assert (snapshot.memo, forward) == (q_memo(2, (0, 2, 0)), Forward(Marker(7)))


def test_messages_are_logged_unless_at_most_once():
    log = {
        guarantee: TaskScene(HMNR, me="p", peers="p q r", guarantee=guarantee).protocol.log
        for guarantee in HMNR.guarantees
    }
    assert [guarantee for guarantee in log if not log[guarantee]] == [Guarantee.AT_MOST_ONCE]


class Forgetful(dict):
    """Remembers no header, so that every one is read."""

    def __setitem__(self, key, value):
        pass


@given(
    st.lists(st.tuples(st.sampled_from("csssss"), st.sampled_from("pqr"), st.sampled_from("pqr")))
)
def test_a_header_that_repeats_the_last_one_changes_nothing_and_forces_nothing(acts):
    """Three tasks that read every header do and remember the same as three that skip repeated ones."""
    quick, slow = ({me: TaskScene(HMNR, me=me, peers="p q r") for me in "pqr"} for _ in range(2))
    for task in slow.values():
        task.protocol.heard = Forgetful()
    for act, me, other in acts:
        if act == "c":
            assert quick[me].timer(LocalCheckpoint()) == slow[me].timer(LocalCheckpoint())
        elif me != other:
            message, same = quick[me].send(other), slow[me].send(other)
            assert message.header == same.header
            assert quick[me].protocol._memo().startswith(message.header)  # it is never stale
            only = quick[other].protocol.only_delivers(message)
            nothing, before = quick[other].protocol.learns_nothing(message), memory(quick[other])
            effects = quick[other].take(message)
            assert effects == slow[other].take(same)
            assert only == (len(effects) == 1)
            if nothing:
                assert (memory(quick[other]), len(effects)) == (before, 1)
            assert quick[other].protocol.learns_nothing(message)  # it would be the same again
        assert [memory(task) for task in quick.values()] == [memory(t) for t in slow.values()]
