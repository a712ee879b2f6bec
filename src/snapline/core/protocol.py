"""The two interfaces of a protocol, and the value that describes one.

A protocol has a side that runs at every task and a side that runs at the coordinator. Both take
events and return effects; neither has a clock, a die, a socket or a file. A handler runs to completion
before the first of its effects is performed: the engine may capture operator state when it performs a
`Snapshot`, but what the protocol itself remembers must be in the effect (`Snapshot.memo`).

The base classes are the protocol `none`: deliver everything, save nothing, restart what was lost.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, final

from snapline.core.effects import CoordinatorEffect, Deliver, Rollback, Scope, TaskEffect
from snapline.core.events import (
    SHARED_COMMANDS,
    SHARED_TIMERS,
    Command,
    CommandArrived,
    CoordinatorEvent,
    JobStarted,
    MarkerArrived,
    MarkerSighted,
    MessageArrived,
    Paused,
    Progressed,
    Quiet,
    SnapshotStored,
    SnapshotUnreadable,
    Started,
    StoreFailed,
    TaskEvent,
    TasksLost,
    Timer,
    TimerFired,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine, Stamp
from snapline.core.policy import DEFAULT_POLICY, Policy
from snapline.core.topology import Channel, Topology
from snapline.core.vocabulary import check_vocabulary
from snapline.errors import ProtocolViolation
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Millis, TaskId

_PLAIN: Final = Stamp()

TaskEffects: TypeAlias = Iterator[TaskEffect]
CoordinatorEffects: TypeAlias = Iterator[CoordinatorEffect]


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set about protocols; each one reads what concerns it."""

    interval_ms: Millis = 5_000  # between two rounds, or between two checkpoints of a task
    intervals_ms: tuple[tuple[str, Millis], ...] = ()  # of operators with one of their own
    deadline_ms: Millis = 60_000  # a round that takes longer is aborted
    align_timeout_ms: Millis = 0  # how long `unaligned` first tries to align
    every_records: int = 0  # a task that took so many since its last checkpoint takes one; 0: never
    at_window_close: bool = False  # whether a task takes one when its operator has closed a window
    line_max_lag: int = 0  # checkpoints a task may be ahead of the line before a round; 0: never
    kept_lines: int = 2  # committed lines that stay whole, so that damage leaves one to go back to


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What the protocol of a task knows about its surroundings: the task, its channels, the job."""

    task: TaskId
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    peers: tuple[TaskId, ...]  # all tasks of the job, this one included, in the job's order
    options: Options
    guarantee: Guarantee
    first_checkpoint: CheckpointNo  # numbers from here on were never used by this task
    rng: random.Random = field(compare=False)
    policy: Policy = DEFAULT_POLICY  # how this task is protected
    kept: frozenset[ChannelId] = frozenset()  # channels of the job that send again what was missed


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a coordinator's protocol knows about the job."""

    topology: Topology
    options: Options
    guarantee: Guarantee
    rng: random.Random = field(compare=False)
    policies: Mapping[TaskId, Policy] = field(default_factory=dict)  # how each task is protected

    @property
    def initial_line(self) -> RecoveryLine:
        """The line on which every task is in its initial state."""
        return RecoveryLine(dict.fromkeys(self.topology.tasks, INITIAL))


class TaskProtocol:
    """The task side of a protocol. This base class delivers every message and saves nothing."""

    def __init__(self, context: TaskContext) -> None:
        self.context: Final = context

    @final
    def handle(self, event: TaskEvent) -> tuple[TaskEffect, ...]:
        """Take one event, run to completion, and return what is to be done."""
        return tuple(self._dispatch(event))

    def _dispatch(self, event: TaskEvent) -> TaskEffects:
        match event:
            case MessageArrived(message):
                return self.on_message(message)
            case MarkerArrived(channel, marker):
                return self.on_marker(channel, marker)
            case MarkerSighted(channel, marker):
                return self.on_marker_sighted(channel, marker)
            case CommandArrived(command):
                return self.on_command(command)
            case Progressed():
                return self.on_progress(event)
            case TimerFired(timer):
                return self.on_timer(timer)
            case Started():
                return self.on_started()
            case _:
                assert_never(event)

    def only_delivers(self, message: Message) -> bool:
        """Whether `on_message` would answer with the `Deliver` of this message and nothing else."""
        return type(self).on_message is TaskProtocol.on_message

    def learns_nothing(self, message: Message) -> bool:
        """Whether `on_message` would only deliver this message, and remember nothing of it."""
        return type(self).on_message is TaskProtocol.on_message

    @property
    def wants_progress(self) -> bool:
        """Whether it is to be told when the task has taken an input (`Progressed`)."""
        return False

    def stamp(self, channel: Channel) -> Stamp:
        """What the next message on an output carries, and whether it is logged."""
        return _PLAIN

    def restore(self, memo: bytes) -> None:
        """Take back the protocol's memory from the snapshot of a restart; called before `Started`."""

    def on_started(self) -> TaskEffects:
        """Called when the task begins to run."""
        yield from ()

    def on_message(self, message: Message) -> TaskEffects:
        """Called when a message was taken from its channel. Exactly one `Deliver` of it must follow."""
        yield Deliver(message)

    def on_marker_sighted(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Called when a marker has reached the task; it may still stand behind queued messages."""
        yield from ()

    def on_marker(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Called when a marker was taken from its channel."""
        raise ProtocolViolation(f"{self.context.task} does not expect {marker} from {channel}")
        yield

    def on_command(self, command: Command) -> TaskEffects:
        """Called when a command of the coordinator side has arrived."""
        raise ProtocolViolation(f"{self.context.task} does not expect {command}")
        yield

    def on_progress(self, done: Progressed) -> TaskEffects:
        """Called, if it wants that, when records were taken or windows closed, and all output was sent."""
        yield from ()

    def on_timer(self, timer: Timer) -> TaskEffects:
        """Called when a timer ran out."""
        raise ProtocolViolation(f"{self.context.task} does not expect {timer}")
        yield


class CoordinatorProtocol:
    """The coordinator side of a protocol. This base class restarts lost tasks empty, and those alone."""

    def __init__(self, context: JobContext) -> None:
        self.context: Final = context

    @final
    def handle(self, event: CoordinatorEvent) -> tuple[CoordinatorEffect, ...]:
        """Take one event, run to completion, and return what is to be done."""
        return tuple(self._dispatch(event))

    def _dispatch(self, event: CoordinatorEvent) -> CoordinatorEffects:
        match event:
            case SnapshotStored(meta):
                return self.on_snapshot(meta)
            case TimerFired(timer):
                return self.on_timer(timer)
            case JobStarted(first):
                return self.on_started(first)
            case TasksLost(tasks):
                return self.on_tasks_lost(tasks)
            case StoreFailed(task, checkpoint):
                return self.on_store_failed(task, checkpoint)
            case SnapshotUnreadable(task, checkpoint):
                return self.on_unreadable(task, checkpoint)
            case Paused():
                return self.on_paused(event)
            case Quiet():
                return self.on_quiet()
            case _:
                assert_never(event)

    def restore(self, memo: bytes, line: tuple[CheckpointMeta, ...]) -> None:
        """Take over from a coordinator that died: its last persisted memory, and the last line."""

    def on_started(self, first_checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Called when all tasks run: for the first time, after a rollback, or after a resume."""
        yield from ()

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        """Called when a checkpoint of the current epoch is durable."""
        yield from ()

    def on_store_failed(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Called when a snapshot could not be stored yet."""
        yield from ()

    def on_unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Called when a snapshot to restore is damaged. A Rollback to another line must follow."""
        raise ProtocolViolation(
            f"no checkpoint was stored, so {checkpoint} of {task} cannot be read"
        )
        yield

    def on_tasks_lost(self, tasks: tuple[TaskId, ...]) -> CoordinatorEffects:
        """Called when the slot of these tasks is gone. A Rollback must follow."""
        yield Rollback(RecoveryLine(dict.fromkeys(tasks, INITIAL)), Scope.LOST)

    def on_paused(self, paused: Paused) -> CoordinatorEffects:
        """Called when a task has obeyed `Halt`."""
        raise ProtocolViolation(f"nobody asked {paused.task} to pause")
        yield

    def on_quiet(self) -> CoordinatorEffects:
        """Called when all input was read and nothing is under way: time for a last checkpoint."""
        yield from ()

    def on_timer(self, timer: Timer) -> CoordinatorEffects:
        """Called when a timer ran out."""
        raise ProtocolViolation(f"the coordinator does not expect {timer}")
        yield


@dataclass(frozen=True, slots=True)
class CheckpointProtocol:
    """A protocol as a value: its name, its two sides, and what it promises."""

    name: str
    summary: str  # one line, for people
    task: type[TaskProtocol]
    coordinator: type[CoordinatorProtocol]
    guarantees: tuple[Guarantee, ...]  # the levels it can give; the first is the default
    cycles: bool  # whether it can run graphs with feedback edges
    publishes_at_once: bool = False  # whether output is public as it is written, without any line
    saves: bool = True  # whether tasks ever take checkpoints
    heeds_policies: bool = False  # whether each operator may say how it is protected
    no_useless: bool = False  # whether it promises that no checkpoint is useless
    bounded: bool = True  # whether what it keeps in storage is bounded
    reads: tuple[str, ...] = ()  # the fields of `Options` that it heeds, besides the interval
    shows: tuple[str, ...] = ()  # what tests must have seen happen under it, or they prove nothing
    commands: tuple[type[Command], ...] = ()  # those that it brings itself
    timers: tuple[type[Timer], ...] = ()  # those that it brings itself

    def __post_init__(self) -> None:
        """Refuse commands and timers that could not be written and read back. Raises ProtocolError."""
        check_vocabulary(self.name, self.commands, self.timers)

    @property
    def all_commands(self) -> tuple[type[Command], ...]:
        """The commands that its coordinator side may give."""
        return (*SHARED_COMMANDS, *self.commands)

    @property
    def all_timers(self) -> tuple[type[Timer], ...]:
        """The timers that its two sides may set."""
        return (*SHARED_TIMERS, *self.timers)
