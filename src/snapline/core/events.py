"""Events: facts in the past tense, through which alone a protocol learns about the world.

Two kinds of them carry what a protocol said itself: `CommandArrived` a command of its coordinator side, and
`TimerFired` a timer that it set. The commands and timers that several protocols use are here; a protocol
defines its own in its own file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.ids import ChannelId, CheckpointNo, Seq, TaskId


@dataclass(frozen=True, slots=True)
class Timer:
    """What a protocol sets to be woken later; the base of all timers.

    Timers are values: a protocol sets and cancels them by equality, so their fields must be hashable. A
    protocol with timers of its own derives them from this class and lists them (`CheckpointProtocol`).
    """

    is_timeout: ClassVar[bool] = False
    """Whether it only says that something takes too long; if all goes well, nobody needs it to fire."""


@dataclass(frozen=True, slots=True)
class NextRound(Timer):
    """It is time for another coordinated round."""


@dataclass(frozen=True, slots=True)
class RoundDeadline(Timer):
    """Round `checkpoint` should have been complete by now."""

    is_timeout = True
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class LocalCheckpoint(Timer):
    """It is time for this task's own checkpoint."""


@dataclass(frozen=True, slots=True)
class Command:
    """What the coordinator orders tasks to do, outside the data channels; the base of all commands.

    A protocol with commands of its own derives them from this class and lists them
    (`CheckpointProtocol`). How they are written follows from the declared types of their fields.
    """

    @property
    def begins(self) -> CheckpointNo | None:
        """The round that begins with this command, if one does."""
        return None

    @property
    def aborts(self) -> CheckpointNo | None:
        """The round that will never be complete because of this command, if there is one."""
        return None


@dataclass(frozen=True, slots=True)
class TriggerRound(Command):
    """Begin round `checkpoint` at the task that gets this command."""

    checkpoint: CheckpointNo

    @property
    def begins(self) -> CheckpointNo:
        """The round that begins with this command."""
        return self.checkpoint


@dataclass(frozen=True, slots=True)
class AbortRound(Command):
    """Give up round `checkpoint`: it will never be complete."""

    checkpoint: CheckpointNo

    @property
    def aborts(self) -> CheckpointNo:
        """The round that will never be complete because of this command."""
        return self.checkpoint


SHARED_TIMERS: Final = (NextRound, RoundDeadline, LocalCheckpoint)
SHARED_COMMANDS: Final = (TriggerRound, AbortRound)
"""The timers and commands that every protocol may use; it defines all others itself."""


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
    """A command of the protocol's coordinator side has arrived."""

    command: Command


@dataclass(frozen=True, slots=True)
class Progressed:
    """The task took records, and all that came of them was sent; told only to a protocol that wants it."""

    records: int
    windows: int  # that its operator has closed since it was last told
    pending: int  # checkpoints of the task that are not durable yet


TaskEvent: TypeAlias = (
    Started
    | MessageArrived
    | MarkerSighted
    | MarkerArrived
    | CommandArrived
    | Progressed
    | TimerFired
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
