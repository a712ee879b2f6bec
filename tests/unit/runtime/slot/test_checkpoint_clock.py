"""When a slot did what for a checkpoint: of rounds, of timers, of messages."""

from snapline.core.effects import Block, Forward, Halt, SetTimer, Snapshot
from snapline.core.events import (
    CommandArrived,
    LocalCheckpoint,
    MarkerArrived,
    MarkerSighted,
    MessageArrived,
    TimerFired,
    TriggerRound,
)
from snapline.core.messages import Marker
from snapline.ids import ChannelId, TaskId
from snapline.journal.entry import Handled
from snapline.journal.happenings import CheckpointMoments
from snapline.protocols.synchronous import CaptureWorld, StopWorld
from snapline.runtime.slot.checkpoint_clock import CheckpointClock

A, B = TaskId("a/0"), TaskId("b/0")
X, Y = ChannelId("x"), ChannelId("y")


class Scene:
    """A slot by hand: what its tasks are told and answer, and how long captures and storing take."""

    def __init__(self):
        self.clock = CheckpointClock()

    def handled(self, at_us, event, *effects, task=A):
        self.clock.see(Handled(at_us, task, 1, 1, event, effects))

    def captured(self, number, from_us, to_us, task=A):
        self.clock.taking(from_us)
        self.clock.captured(task, number, to_us)

    def durable(self, number, at_us, task=A):
        return self.clock.durable(task, number, at_us)


def test_a_round_begins_at_the_first_marker_that_is_taken_and_not_at_one_that_is_only_sighted():
    scene = Scene()
    scene.handled(10, MarkerSighted(X, Marker(7)))
    scene.handled(20, MarkerArrived(X, Marker(7)), Block(X))
    scene.handled(50, MarkerArrived(Y, Marker(7)), Snapshot(7), Forward(Marker(7)))
    scene.captured(7, 51, 60)
    assert scene.durable(7, 90) == CheckpointMoments(7, None, 20, 51, 60, 90)


def test_a_round_begins_at_a_sighting_on_which_the_protocol_acts():
    scene = Scene()
    scene.handled(10, MarkerSighted(X, Marker(7)), Snapshot(7, open=True))
    scene.captured(7, 11, 12)
    scene.handled(20, MarkerArrived(X, Marker(7)))
    assert scene.durable(7, 90) == CheckpointMoments(7, None, 10, 11, 12, 90)


def test_the_tasks_of_a_slot_join_a_round_each_at_its_own_time_however_long_one_records():
    scene = Scene()
    scene.handled(10, CommandArrived(TriggerRound(7)), Snapshot(7, open=True))
    scene.captured(7, 11, 12)
    scene.handled(30, MarkerArrived(X, Marker(7)), Snapshot(7), task=B)
    scene.captured(7, 31, 35, task=B)
    assert scene.durable(7, 40, task=B) == CheckpointMoments(7, None, 30, 31, 35, 40)
    assert scene.durable(7, 90) == CheckpointMoments(7, None, 10, 11, 12, 90)


def test_a_world_that_stops_first_aligns_from_the_first_command_on():
    scene = Scene()
    scene.handled(10, CommandArrived(StopWorld(7)), Halt())
    scene.handled(40, CommandArrived(CaptureWorld(7, {})), Snapshot(7))
    scene.captured(7, 41, 42)
    assert scene.durable(7, 90) == CheckpointMoments(7, None, 10, 41, 42, 90)


def test_a_checkpoint_of_a_timer_was_due_when_that_was_to_fire():
    scene = Scene()
    scene.clock.due_us = 100
    scene.handled(130, TimerFired(LocalCheckpoint()), Snapshot(3), SetTimer(LocalCheckpoint(), 500))
    scene.captured(3, 131, 140)
    assert scene.durable(3, 190) == CheckpointMoments(None, 100, 130, 131, 140, 190)


def test_a_round_with_other_numbers_than_checkpoints_is_joined_once():
    """A task on its own timers numbers its checkpoints itself, and one may get the number of a round."""
    scene = Scene()
    scene.handled(10, MarkerArrived(X, Marker(9)), Snapshot(8), Forward(Marker(9)))
    scene.captured(8, 11, 12)
    scene.handled(20, MarkerArrived(Y, Marker(9)))
    scene.clock.due_us = 700
    scene.handled(710, TimerFired(LocalCheckpoint()), Snapshot(9))
    scene.captured(9, 711, 712)
    assert scene.durable(8, 30) == CheckpointMoments(9, None, 10, 11, 12, 30)
    assert scene.durable(9, 800) == CheckpointMoments(None, 700, 710, 711, 712, 800)


def test_a_checkpoint_that_a_message_forces_begins_when_it_is_taken():
    scene = Scene()
    scene.captured(3, 50, 60)
    assert scene.durable(3, 90) == CheckpointMoments(None, None, 50, 50, 60, 90)


def test_in_a_full_journal_a_message_is_seen_and_no_timer_was_due(monkeypatch):
    scene = Scene()
    scene.clock.due_us = 7
    scene.handled(49, MessageArrived(None), Snapshot(3, forced=True))
    scene.captured(3, 50, 60)
    assert scene.durable(3, 90) == CheckpointMoments(None, None, 49, 50, 60, 90)


def test_what_was_never_captured_here_is_unknown_and_what_is_overtaken_is_forgotten():
    scene = Scene()
    for number in (1, 2, 3):
        scene.captured(number, 10 * number, 10 * number + 1)
    assert scene.durable(2, 90).taken_us == 20
    assert scene.durable(1, 91) is None
    assert scene.durable(3, 92).taken_us == 30
    assert scene.durable(4, 93) is None
