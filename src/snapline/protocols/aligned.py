"""Coordinated markers with blocking alignment (CheckMate III-A; ABS, algorithm 1).

Theory of operation.  The coordinator orders the sources to begin a round. A source snapshots its state
and sends a marker on every output. Any other task blocks each input whose marker it took; when the last
one is in, its state holds exactly what came before the markers on all inputs: it snapshots, passes the
marker on and unblocks. Channels are FIFO, so between two snapshots of one round no message is under way
and none is an orphan: the round is a recovery line without channel state and without a log.

A round ends when all its snapshots are durable (then it is committed), at its deadline, at the first
snapshot that cannot be stored, or with the epoch. A task may see the markers of a later round before it
learns that the one it aligns was given up: the later round subsumes the earlier.

At least once, no input is blocked: messages behind a marker slip into the snapshot and come again after
a rollback. Alignment only counts markers then.

ABS sends the marker before it snapshots (lines 12 and 13). A handler runs to completion here, so the
order is the same thing to an observer; with the state first, subclasses can add channel state
before the marker goes.

Invariants
  I1  exactly once: the blocked inputs are exactly those in `cut`; at least once none is blocked.
  I2  a task snapshots a round at most once, and never one older than a round that it has seen.
  I3  a line is committed only when every task has stored its snapshot of that round.
  I4  round numbers are never used twice, so a late report cannot be taken for one of a newer round.
  I5  the last committed lines stay known, two unless an option says otherwise: damage to the newest
      leaves the one before it.
"""

from snapline.core.effects import (
    Abandon,
    Block,
    CancelTimer,
    Commit,
    Forward,
    Order,
    Rollback,
    SetTimer,
    Snapshot,
    Unblock,
)
from snapline.core.events import AbortRound, Command, NextRound, RoundDeadline, Timer, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Marker, RecoveryLine
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorEffects,
    CoordinatorProtocol,
    JobContext,
    TaskContext,
    TaskEffects,
    TaskProtocol,
)
from snapline.ids import INITIAL, ChannelId, CheckpointNo, TaskId


class AlignedTask(TaskProtocol):
    """Blocks each input at its marker; snapshots when all awaited inputs have brought theirs."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.round = context.first_checkpoint  #: the round being aligned, else the next expected
        self.cut: list[ChannelId] = []  #: inputs whose marker `round` was taken, in order (I1)
        #: inputs whose markers complete the alignment
        self.awaited = tuple(channel.id for channel in context.inputs)
        self.blocking = context.guarantee is not Guarantee.AT_LEAST_ONCE

    def on_command(self, command: Command) -> TaskEffects:
        """Begin a round (sources only), or give one up."""
        match command:
            case TriggerRound(checkpoint) if not self.context.inputs:
                if checkpoint >= self.round:  # I2: else it was aborted before the order came
                    self.round = checkpoint
                    yield from self._begin_at_source()
            case AbortRound(checkpoint):
                if checkpoint >= self.round:
                    yield from self._expect(checkpoint + 1)
                else:  # the snapshot may have been taken; its round will never be complete
                    yield Abandon(checkpoint)
            case _:
                yield from super().on_command(command)  # raises

    def on_marker(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Note the marker of one more input, and block it; the last one completes the alignment."""
        if marker.checkpoint < self.round:
            return  # I2: stale, its round was finished, aborted or subsumed
        if marker.checkpoint > self.round:
            yield from self._expect(marker.checkpoint)
        self.cut.append(channel)
        if self.blocking:
            yield Block(channel)
        if all(awaited in self.cut for awaited in self.awaited):
            yield from self._finish_round()

    def _begin_at_source(self) -> TaskEffects:
        """Finish the round at once: a source has no input to align."""
        yield from self._finish_round()

    def _finish_round(self) -> TaskEffects:
        yield Snapshot(self.round)  # before Unblock: later messages are not in it
        yield Forward(Marker(self.round))  # before any later output
        yield from self._expect(self.round + 1)

    def _expect(self, round_next: CheckpointNo) -> TaskEffects:
        """Leave the present round, unblock its inputs, and wait for the markers of `round_next`."""
        if self.blocking:
            yield from [Unblock(channel) for channel in self.cut]
        self.cut, self.round = [], round_next


class AlignedCoordinator(CoordinatorProtocol):
    """Orders rounds one after the other, and commits those that are complete."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        self.round: CheckpointNo = INITIAL  #: the newest round ordered in this epoch
        self.waiting: list[TaskId] = []  #: tasks that have not stored `round`; empty between rounds
        self.another = False  #: the job became quiet during `round`: begin the next one at once
        self.lines: tuple[RecoveryLine, ...] = ()  #: committed, oldest first (I5)

    def restore(self, memo: bytes, line: tuple[CheckpointMeta, ...]) -> None:
        """Resume at the last line; no older one is known to fall back on after damage."""
        stored = {meta.task: meta.checkpoint for meta in line}
        self.lines = (RecoveryLine({**self.context.initial_line.checkpoints, **stored}),)

    def on_started(self, first_checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Number the rounds of this epoch from here, and set the timer for the first."""
        self.round = first_checkpoint - 1  # I4: the engine gives every epoch numbers of its own
        self.waiting = []
        self.another = False
        yield self._next_round()

    def on_timer(self, timer: Timer) -> CoordinatorEffects:
        """Begin a round, or give up one that takes too long."""
        match timer:
            case NextRound() if not self.waiting:
                yield from self._begin_round()
            case RoundDeadline(checkpoint) if checkpoint == self.round and self.waiting:
                yield from self._abort_round()
            case _:
                yield from super().on_timer(timer)  # raises

    def on_quiet(self) -> CoordinatorEffects:
        """Begin a last round at once, so that the end result is committed."""
        if self.waiting:
            self.another = True  # the round under way may have begun before the last message
        else:
            yield CancelTimer(NextRound())
            yield from self._begin_round()

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        """Commit once the round is complete."""
        if meta.checkpoint != self.round or meta.task not in self.waiting:
            return  # I4: its round was aborted
        self.waiting.remove(meta.task)
        if not self.waiting:  # I3
            yield CancelTimer(RoundDeadline(self.round))
            yield from self._commit_round()
            if self.another:
                self.another = False
                yield from self._begin_round()
            else:
                yield self._next_round()

    def on_store_failed(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Abort the round at once: it cannot become complete, so nobody waits for its deadline."""
        if checkpoint == self.round and self.waiting:
            yield CancelTimer(RoundDeadline(self.round))
            yield from self._abort_round()

    def on_tasks_lost(self, tasks: tuple[TaskId, ...]) -> CoordinatorEffects:
        """Roll all tasks back to the newest committed line."""
        self.waiting = []  # the round is lost with the epoch, and so are all timers
        yield Rollback(self.lines[-1] if self.lines else self.context.initial_line)

    def on_unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Fall back to a committed line that does not need this checkpoint."""
        lines = self.lines
        if lines and checkpoint <= lines[-1].checkpoints[task]:
            lines = lines[:-1]  # the line needs it, if only as a base of its snapshot
        self.lines = tuple(line for line in lines if line.checkpoints[task] != checkpoint)
        yield from self.on_tasks_lost(())

    def _begin_round(self) -> CoordinatorEffects:
        self.round += 1
        self.waiting = list(self.context.topology.tasks)
        yield Order(self.context.topology.sources, TriggerRound(self.round))
        yield SetTimer(RoundDeadline(self.round), self.context.options.deadline_ms)

    def _commit_round(self) -> CoordinatorEffects:
        line = RecoveryLine(dict.fromkeys(self.context.topology.tasks, self.round))
        self.lines = (*self.lines, line)[-self.context.options.kept_lines :]  # I5
        yield Commit(line)

    def _abort_round(self) -> CoordinatorEffects:
        self.waiting, self.another = [], False
        yield Order(self.context.topology.tasks, AbortRound(self.round))
        yield self._next_round()

    def _next_round(self) -> SetTimer:
        return SetTimer(NextRound(), self.context.options.interval_ms)


ALIGNED = CheckpointProtocol(
    name="aligned",
    summary="markers and blocking alignment: no channel state, no log, no cycles",
    task=AlignedTask,
    coordinator=AlignedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE),
    cycles=False,
    reads=("deadline_ms", "kept_lines"),
    shows=("round aborted", "crash during a round"),
)
