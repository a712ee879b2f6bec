"""Stop the world, capture, go on when durable (the synchronous snapshots of ABS, sections 2 and 7).

Theory of operation.  The coordinator pauses every task. Once all stand still, their counters say what is
under way: on a channel, the messages between the receiver's `received` and the sender's `sent`. Each task
then captures its state and, as channel state, its inputs through the sender's `sent`. Draining the
channels instead, as Naiad's form does, would never end on a cycle that multiplies its messages. When all
snapshots are durable the line is committed and the world goes on. A round that cannot end (its deadline,
a snapshot that cannot be stored) is aborted: the tasks forget their snapshots and go on.

A report of a pause does not say of which round it is, and one of an aborted round may come late, with
counters that are no longer true. Nothing shows that when it comes; but every snapshot carries the
counters of its task, so before the commit each input must have been captured through exactly what its
sender had sent. Otherwise the round is aborted, and the next one measures again.

At most once nothing is recorded: what is under way at the cut is lost by a rollback.

Invariants (I3 to I5 of `aligned` hold, too)
  S1  while a task holds a round it takes nothing and sends nothing.
  S2  orders reach a task in the order in which they were given.
  S3  in a committed line, every message sent is in its receiver's state or channel state.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from snapline.core.effects import Abandon, Continue, Halt, Order, Record, Seal, SetTimer, Snapshot
from snapline.core.events import AbortRound, Command, Paused, RoundDeadline
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorEffects,
    JobContext,
    TaskContext,
    TaskEffects,
    TaskProtocol,
)
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Seq, TaskId
from snapline.protocols.aligned import AlignedCoordinator


@dataclass(frozen=True, slots=True)
class StopWorld(Command):
    """Order a task to stand still for round `checkpoint`, and to report its counters."""

    checkpoint: CheckpointNo

    @property
    def begins(self) -> CheckpointNo:
        """The round that begins with this command."""
        return self.checkpoint


@dataclass(frozen=True, slots=True)
class CaptureWorld(Command):
    """Order a task, once all stand still, to save its state and its inputs through these numbers."""

    checkpoint: CheckpointNo
    through: Mapping[ChannelId, Seq]


@dataclass(frozen=True, slots=True)
class Proceed(Command):
    """Order a task to go on, because round `checkpoint` is over."""

    checkpoint: CheckpointNo


class SynchronousTask(TaskProtocol):
    """Stands still, captures and goes on, as the coordinator orders."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.round: CheckpointNo = INITIAL  #: the round it stands still for; INITIAL: it runs (S1)

    def on_command(self, command: Command) -> TaskEffects:
        """Stand still, capture, and go on, as ordered."""
        match command:
            case StopWorld(checkpoint) if self.round == INITIAL:
                self.round = checkpoint
                yield Halt()
            case CaptureWorld(checkpoint, through) if checkpoint == self.round:
                yield from self._capture(through)
            case Proceed(checkpoint) if checkpoint == self.round:
                self.round = INITIAL
                yield Continue()
            case AbortRound(checkpoint) if checkpoint == self.round:
                self.round = INITIAL
                yield Abandon(checkpoint)
                yield Continue()
            case _:  # S2 makes everything else a bug
                yield from super().on_command(command)

    def _capture(self, through: Mapping[ChannelId, Seq]) -> TaskEffects:
        if self.context.guarantee is Guarantee.AT_MOST_ONCE:
            yield Snapshot(self.round)
            return
        yield Snapshot(self.round, open=True)
        yield from [Record(channel.id, through[channel.id]) for channel in self.context.inputs]
        yield Seal(self.round)


class SynchronousCoordinator(AlignedCoordinator):
    """Pauses all tasks, tells each what is under way to it, and lets them go on at the commit."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        self.sent: dict[
            TaskId, Mapping[ChannelId, Seq]
        ] = {}  #: counters of the tasks that stand still
        self.through: dict[ChannelId, Seq] = {}  #: captured up to here; empty before the order
        self.stored: dict[ChannelId, Seq] = {}  #: `sent` as the snapshots of `round` have it

    def on_paused(self, paused: Paused) -> CoordinatorEffects:
        """When all stand still, tell each task what is under way to it."""
        tasks = self.context.topology.tasks
        if not self.waiting or len(self.sent) == len(tasks):
            return  # late, of an aborted round; or on time, after a late one of its task
        self.sent[paused.task] = paused.sent
        if len(self.sent) < len(tasks):
            return
        for channel in self.context.topology.channels:
            self.through[channel.id] = self.sent[channel.source].get(channel.id, 0)
        for task, inputs in self.context.topology.inputs.items():
            through = {channel.id: self.through[channel.id] for channel in inputs}
            yield Order((task,), CaptureWorld(self.round, through))

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        """Note what the task had really sent; commit once the round is complete."""
        if meta.checkpoint == self.round:
            self.stored |= meta.sent
        yield from super().on_snapshot(meta)

    def _begin_round(self) -> CoordinatorEffects:
        self.round += 1
        self.waiting = list(self.context.topology.tasks)
        self.sent, self.through, self.stored = {}, {}, {}
        yield Order(self.context.topology.tasks, StopWorld(self.round))
        yield SetTimer(RoundDeadline(self.round), self.context.options.deadline_ms)

    def _commit_round(self) -> CoordinatorEffects:
        if any(self.stored.get(channel, 0) != seq for channel, seq in self.through.items()):
            yield Order(self.context.topology.tasks, AbortRound(self.round))  # S3
            return
        yield from super()._commit_round()
        yield Order(self.context.topology.tasks, Proceed(self.round))


SYNCHRONOUS = CheckpointProtocol(
    name="synchronous",
    summary="stop the world, capture states and channels, go on when durable",
    task=SynchronousTask,
    coordinator=SynchronousCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    reads=("deadline_ms", "kept_lines"),
    shows=("round aborted", "crash during a round", "replayed"),
    commands=(StopWorld, CaptureWorld, Proceed),
)
