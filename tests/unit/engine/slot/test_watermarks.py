"""The watermark of a task: the least of its inputs that carry time and are not idle."""

import pytest

from snapline.core.messages import AWAY, BEFORE_TIME, END_OF_TIME, IDLE
from snapline.core.topology import Channel
from snapline.engine.slot.watermarks import Watermarks
from snapline.ids import ChannelId, TaskId

X, Y, LOOP = ChannelId("x>t"), ChannelId("y>t"), ChannelId("t>t")


@pytest.fixture
def marks():
    """A task with two timed inputs and a feedback edge that carries no time."""
    target = TaskId("t")
    inputs = [
        Channel(X, TaskId("x"), target),
        Channel(Y, TaskId("y"), target),
        Channel(LOOP, target, target, feedback=True),
    ]
    return Watermarks(inputs, frozenset({X, Y}))


def test_an_input_that_has_not_spoken_holds_everything_back(marks):
    assert not marks.advance(X, 100)
    assert marks.low == BEFORE_TIME
    assert marks.advance(Y, 40)
    assert marks.low == 40


def test_the_watermark_is_the_least_of_the_inputs_and_never_falls(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    assert marks.advance(Y, 70)
    assert not marks.advance(X, 60)
    assert not marks.advance(X, 200)
    assert marks.low == 70


def test_messages_without_a_watermark_and_inputs_without_time_say_nothing(marks):
    marks.advance(X, 10)
    marks.advance(Y, 10)
    assert not marks.advance(X, None)
    assert not marks.advance(LOOP, 500)
    assert marks.low == 10


def test_an_idle_input_holds_nobody_back_until_it_speaks_again(marks):
    marks.advance(X, 100)
    assert marks.advance(Y, IDLE)
    assert marks.low == 100
    assert not marks.advance(Y, 130)
    assert marks.advance(X, 150)
    assert marks.low == 130


def test_an_input_that_wakes_with_an_old_time_does_not_turn_the_watermark_back(marks):
    marks.advance(X, 100)
    marks.advance(Y, IDLE)
    assert not marks.advance(Y, 50)
    assert marks.low == 100


def test_all_inputs_idle_leave_the_watermark_where_it_is(marks):
    marks.advance(X, 100)
    marks.advance(Y, 100)
    assert not marks.advance(X, IDLE)
    assert not marks.advance(Y, IDLE)
    assert marks.low == 100


def test_an_input_at_its_end_holds_nobody_back(marks):
    marks.advance(X, END_OF_TIME)
    assert marks.advance(Y, 5)
    assert marks.low == 5
    assert marks.advance(Y, END_OF_TIME)
    assert marks.low == END_OF_TIME


def test_a_restored_watermark_goes_on_where_the_captured_one_stood(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    captured = marks.capture()
    marks.advance(Y, 90)
    marks.restore(captured)
    assert marks.low == 40
    assert not marks.advance(Y, 40)
    assert marks.advance(Y, 41)
    assert marks.low == 41


def test_a_task_is_idle_when_all_its_inputs_are_and_wakes_with_the_first(marks):
    marks.advance(X, 100)
    marks.advance(Y, IDLE)
    assert (marks.idle, marks.said) == (False, 100)
    assert not marks.advance(X, IDLE)
    assert (marks.idle, marks.said, marks.low) == (True, IDLE, 100)
    assert not marks.advance(Y, 90)
    assert (marks.idle, marks.said) == (False, 100)


def test_a_source_is_idle_when_all_its_partitions_are():
    source = Watermarks([], frozenset())
    assert source.look([100, IDLE])
    assert (source.idle, source.low) == (False, 100)
    assert not source.look([IDLE, IDLE])
    assert (source.idle, source.low) == (True, 100)
    assert not source.look([90, IDLE]), "what comes behind its watermark does not turn it back"
    assert (source.idle, source.low) == (False, 100)
    assert source.look([]), "without a partition it is at its end"
    assert source.low == END_OF_TIME


@pytest.mark.parametrize("idle", [False, True])
def test_whether_a_task_is_idle_is_part_of_its_snapshot(marks, idle):
    """After a restore it has to know whether its receivers wait for it."""
    marks.advance(X, 100)
    marks.advance(Y, IDLE)
    if idle:
        marks.advance(X, IDLE)
    source = Watermarks([], frozenset())
    source.look([100])
    source.look([IDLE if idle else 100])
    for each in (marks, source):
        was = (each.idle, each.low, dict(each.by_channel), set(each.idle_inputs))
        captured = each.capture()
        each.look([5]) if each is source else each.advance(X, 500)
        each.restore(captured)
        assert (each.idle, each.low, each.by_channel, each.idle_inputs) == was


def test_time_does_not_end_before_an_idle_input_has_come_to_its_end(marks):
    marks.advance(X, 100)
    marks.advance(Y, IDLE)
    assert not marks.advance(X, END_OF_TIME)
    assert (marks.low, marks.idle) == (100, True)
    assert marks.advance(Y, 120), "what the idle one still had is not late"
    assert (marks.low, marks.idle) == (120, False)
    assert marks.advance(Y, END_OF_TIME)
    assert marks.low == END_OF_TIME


def test_tasks_of_one_operator_are_idle_together():
    """The first that learns that a stream goes on must not make late what the second still has to read."""
    target, others = TaskId("t/0"), ("s/0", "s/1", "other/0")
    inputs = [Channel(ChannelId(f"{o}>t"), TaskId(o), target) for o in others]
    one, two, other = (channel.id for channel in inputs)
    marks = Watermarks(inputs, frozenset({one, two, other}))
    for channel in (one, two):
        marks.advance(channel, 100)
        marks.advance(channel, IDLE)
    assert marks.advance(other, 50)
    assert marks.low == 50
    assert not marks.advance(other, IDLE)
    assert marks.advance(one, 300)
    assert marks.low == 100, "the second may have records from 100 on"
    assert not marks.advance(other, END_OF_TIME)
    assert marks.advance(two, 200)
    assert marks.low == 200


def test_nobody_waits_for_an_input_whose_sender_is_lost(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    marks.sever(Y)
    assert marks.rises()
    assert (marks.low, marks.idle) == (100, False)
    assert marks.advance(X, 150)


def test_not_even_for_one_of_several_tasks_of_an_operator():
    """They are idle together, but they do not die together."""
    target, one, two = TaskId("t/0"), ChannelId("s/0>t/0"), ChannelId("s/1>t/0")
    inputs = [Channel(one, TaskId("s/0"), target), Channel(two, TaskId("s/1"), target)]
    marks = Watermarks(inputs, frozenset({one, two}))
    marks.advance(one, 100)
    marks.advance(two, 40)
    marks.sever(two)
    assert marks.rises()
    assert marks.low == 100


def test_a_severed_input_counts_again_when_the_next_life_of_its_sender_speaks(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    marks.sever(Y)
    marks.rises()
    assert not marks.advance(Y, BEFORE_TIME)
    assert not marks.advance(X, 200), "what the other knows is behind what was known of it"
    assert marks.low == 100
    assert marks.advance(Y, 180)
    assert marks.low == 180


def test_a_task_that_has_lost_all_senders_is_orphaned_until_one_is_back(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    marks.sever(X)
    marks.sever(Y)
    assert not marks.rises()
    assert (marks.said, marks.low) == (AWAY, 40)
    marks.advance(Y, 30)
    assert marks.said == 40


def test_time_does_not_end_while_a_sender_is_lost(marks):
    marks.advance(X, 100)
    marks.advance(Y, 40)
    marks.sever(Y)
    marks.advance(X, END_OF_TIME)
    assert marks.low < END_OF_TIME
    marks.advance(Y, END_OF_TIME)
    assert marks.low == END_OF_TIME


def test_what_a_source_says_does_not_change_when_others_are_lost():
    marks = Watermarks([], frozenset())
    marks.look([IDLE])
    marks.sever(X)
    assert not marks.rises()
    assert marks.said == IDLE
