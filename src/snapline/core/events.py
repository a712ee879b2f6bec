"""What happened, as past-tense facts. A protocol learns about the world through these alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.ids import ChannelId, CheckpointNo, Seq, TaskId

# Timers are values: a protocol sets and cancels them by equality.


@dataclass(frozen=True, slots=True)
class NextRound:
    """It is time for another coordinated round."""


@dataclass(frozen=True, slots=True)
class RoundDeadline:
    """Round `checkpoint` should have been complete by now."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class LocalCheckpoint:
    """It is time for this task's own checkpoint."""


@dataclass(frozen=True, slots=True)
class AlignmentTimeout:
    """Round `checkpoint` has been aligning for long enough."""

    checkpoint: CheckpointNo


Timer: TypeAlias = NextRound | RoundDeadline | LocalCheckpoint | AlignmentTimeout


# Commands go from the coordinator to tasks, outside the data channels.


@dataclass(frozen=True, slots=True)
class TriggerRound:
    """Begin round `checkpoint` here."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class AbortRound:
    """Round `checkpoint` will never be complete."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop the world for round `checkpoint`."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Capture:
    """Everybody has stopped: save the state, and the inputs through these numbers."""

    checkpoint: CheckpointNo
    through: Mapping[ChannelId, Seq]


@dataclass(frozen=True, slots=True)
class Proceed:
    """Round `checkpoint` is over: go on."""

    checkpoint: CheckpointNo


Command: TypeAlias = TriggerRound | AbortRound | Pause | Capture | Proceed


# To a task and to the coordinator.


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that was set, and neither cancelled nor replaced, has run out."""

    timer: Timer


# To a task.


@dataclass(frozen=True, slots=True)
class Started:
    """The task is wired, and restored if there was something to restore."""


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A message was taken from its channel: never from a blocked one, never of an old epoch."""

    message: Message


@dataclass(frozen=True, slots=True)
class MarkerSighted:
    """`marker` reached this task, but may still stand behind queued messages of its channel."""

    channel: ChannelId
    marker: Marker


@dataclass(frozen=True, slots=True)
class MarkerArrived:
    """`marker` was taken from `channel`: all earlier messages of it were handled before."""

    channel: ChannelId
    marker: Marker


@dataclass(frozen=True, slots=True)
class CommandArrived:
    """The coordinator ordered something."""

    command: Command


TaskEvent: TypeAlias = (
    Started | MessageArrived | MarkerSighted | MarkerArrived | CommandArrived | TimerFired
)


# To the coordinator.


@dataclass(frozen=True, slots=True)
class JobStarted:
    """All tasks run: for the first time, after a rollback, or after a resume."""

    first_checkpoint: CheckpointNo  # numbers from here on were never used


@dataclass(frozen=True, slots=True)
class SnapshotStored:
    """A checkpoint is durable, with all that it needs: it may be used for recovery from now on."""

    meta: CheckpointMeta


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """A snapshot could not be stored yet; the engine goes on trying unless it is abandoned."""

    task: TaskId
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class SnapshotUnreadable:
    """A stored snapshot turned out to be damaged: it is as if it had never been stored."""

    task: TaskId
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class TasksLost:
    """The slot of these tasks is gone. It may come while an earlier rollback is still under way."""

    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Paused:
    """A task obeyed `Halt`; these are its counters."""

    task: TaskId
    sent: Mapping[ChannelId, Seq]
    received: Mapping[ChannelId, Seq]


@dataclass(frozen=True, slots=True)
class Quiet:
    """All input was read and nothing is under way: a checkpoint taken now holds the end result."""


CoordinatorEvent: TypeAlias = (
    JobStarted
    | SnapshotStored
    | StoreFailed
    | SnapshotUnreadable
    | TasksLost
    | Paused
    | Quiet
    | TimerFired
)
