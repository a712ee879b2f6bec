"""Uncoordinated checkpoints with a sender-side log (CheckMate III-B).

Theory of operation.  Every task checkpoints on a timer of its own, jittered so that the tasks drift apart
(the thesis, 4.4: checkpoints in step would hide what this family has to cope with). Nobody waits and
nothing is blocked. Each sender logs its messages. The coordinator keeps the metadata of the durable
checkpoints and, from them, the largest consistent line: one checkpoint per task without an orphan, that is
without a message that is received but not sent. The line only moves forward while checkpoints are
added, so whenever it moves it is committed. After a failure every task goes back to it, and what is sent
but not received in it comes again from the logs.

An operator may have an interval of its own (`intervals_ms`), and there are other times to checkpoint than
those of a clock (the thesis, 3.2.2; CheckMate III-B): with `every_records` a task does so when it has taken
so many since the last checkpoint that was due there, with `at_window_close` when its operator has closed a
window and its state is small. Either way the timer begins anew, so the interval is an upper bound. Both
are decided between two inputs, as a timer is. Nothing below depends on when a task checkpoints.

Nothing bounds how far the line falls behind: checkpoints of two tasks that talk to each other can miss
each other for ever (the domino effect). With `line_max_lag` the coordinator watches the distance and
orders one *consistent round*: the sources checkpoint and send a marker, and a task checkpoints when it
takes the first marker of the round, from whichever input, then sends the marker on. This is consistent
on any graph: a message sent behind the sender's checkpoint of the round stands behind its marker, so
its receiver has checkpointed by the time it takes it, and no such message is an orphan. What stands before
the markers that come later is in the senders' logs, so no input is blocked and nothing recorded; and as
each task sends the marker once, it dies out on a cycle. At the quiet end of a run the same round
is begun at every task at once.

At least once there is no line search: every task goes back to its newest checkpoint. At most once there
is the line, but no log: what is under way at the line is lost.

Invariants
  I1  a message is logged by its sender before it is sent, unless at most once.
  I2  exactly or at most once, the committed lines have no orphans and only move forward.
  I3  a task takes at most one checkpoint per round, before anything that stands behind a marker of it.
  I4  the checkpoints from the older of the two kept lines on stay known (recovery/kept_lines.py: they
      share no checkpoint); beyond a line to which the job went back there are none.
"""

from snapline.core.effects import Commit, Forward, Order, Rollback, SetTimer, Snapshot
from snapline.core.events import Command, LocalCheckpoint, Progressed, Timer, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Marker, Stamp
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorEffects,
    CoordinatorProtocol,
    JobContext,
    TaskContext,
    TaskEffects,
    TaskProtocol,
)
from snapline.core.topology import Channel, Topology
from snapline.errors import ObjectDamaged
from snapline.ids import INITIAL, ChannelId, CheckpointNo, TaskId, operator_of
from snapline.recovery.kept_lines import KeptLines
from snapline.recovery.line_tracker import LineTracker


class UncoordinatedTask(TaskProtocol):
    """Checkpoints at times of its own, and once in every consistent round."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.checkpoint = context.first_checkpoint  #: the number of the next checkpoint
        #: the newest consistent round seen. Rounds are numbered by the coordinator and compared only with
        #: each other, never with the numbers of this task's checkpoints.
        self.round: CheckpointNo = INITIAL
        self.log = context.guarantee is not Guarantee.AT_MOST_ONCE
        self.plain = Stamp(log=self.log)  #: of a message that carries nothing
        own_ms = dict(context.options.intervals_ms).get(operator_of(context.task))
        self.interval_ms = own_ms or context.options.interval_ms
        self.every_records = context.options.every_records
        self.at_window_close = context.options.at_window_close
        self.records = 0  #: taken since the last checkpoint that was due here

    def stamp(self, channel: Channel) -> Stamp:
        """Add no header, and have every message logged, unless at most once."""
        return self.plain  # I1

    @property
    def wants_progress(self) -> bool:
        """Whether anything but the timer says when it checkpoints."""
        return self.every_records > 0 or self.at_window_close

    def on_started(self) -> TaskEffects:
        """Begin anywhere within the first interval, so that the tasks are not in step."""
        yield SetTimer(LocalCheckpoint(), self.context.rng.randint(1, self.interval_ms))

    def on_timer(self, timer: Timer) -> TaskEffects:
        """Take a local checkpoint."""
        if timer != LocalCheckpoint():
            yield from super().on_timer(timer)  # raises
        yield from self._take_due()

    def on_progress(self, done: Progressed) -> TaskEffects:
        """Take a local checkpoint if enough records were taken, or if a window was closed.

        One that is not durable yet is waited for, or a slow store would be asked for more and more.
        """
        self.records += done.records
        enough = 0 < self.every_records <= self.records
        if not done.pending and (enough or (done.windows and self.at_window_close)):
            yield from self._take_due()

    def _take_due(self) -> TaskEffects:
        """Take a checkpoint that is due here, and begin to wait for the next one."""
        self.records = 0
        yield from self._local_checkpoint()
        spread_ms = self.interval_ms // 5
        jitter_ms = self.context.rng.randint(-spread_ms, spread_ms)
        yield SetTimer(LocalCheckpoint(), self.interval_ms + jitter_ms)

    def on_command(self, command: Command) -> TaskEffects:
        """Begin a consistent round at this task."""
        match command:
            case TriggerRound(round_no):
                yield from self._join_round(round_no)
            case _:
                yield from super().on_command(command)  # raises

    def on_marker(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Join a consistent round at its first marker."""
        yield from self._join_round(marker.checkpoint)

    def _join_round(self, round_no: CheckpointNo) -> TaskEffects:
        if round_no > self.round:  # I3
            self.round = round_no
            yield from self._local_checkpoint()
            yield Forward(Marker(round_no))

    def _local_checkpoint(self) -> TaskEffects:
        """Take a checkpoint that no message has forced."""
        yield from self._take(forced=False)

    def _take(self, *, forced: bool) -> TaskEffects:
        yield Snapshot(self.checkpoint, self._memo(), forced=forced)
        self.checkpoint += 1

    def _memo(self) -> bytes:
        """What a restarted task must remember of its protocol; nothing here, more in subclasses."""
        return b""


class UncoordinatedCoordinator(CoordinatorProtocol):
    """Computes the largest consistent line, and commits it whenever it moves."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        topology = context.topology
        if context.guarantee is Guarantee.AT_LEAST_ONCE:
            # No message counts as an orphan, as if there were no channels: the largest line is then
            # every task's newest checkpoint, and nothing is ever searched for.
            topology = Topology(topology.tasks, ())
        self.tracker = LineTracker(topology)
        self.kept = KeptLines(context.initial_line, context.options.kept_lines)  #: for damage (I4)
        self.round: CheckpointNo = INITIAL  #: the newest consistent round ordered
        self.lag_tolerated = context.options.line_max_lag  #: beyond it a round is ordered

    def restore(self, memo: bytes, line: tuple[CheckpointMeta, ...]) -> None:
        """Resume from the last line; other checkpoints are not known any more."""
        self.tracker.restore(line)
        self.kept = KeptLines(self.tracker.line, self.context.options.kept_lines)

    def on_started(self, first_checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Number the consistent rounds of this epoch from here."""
        self.round = first_checkpoint - 1
        yield from ()

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        """Commit whenever the line moves."""
        if self.tracker.add(meta):
            if self.kept.advance(self.tracker.line):
                self.tracker.forget_before(self.kept.older)  # I4
            yield Commit(self.tracker.line)  # I2
        if self.context.options.line_max_lag:
            yield from self._bound_lag(self.tracker.lag, self.context.options.line_max_lag)

    def on_tasks_lost(self, tasks: tuple[TaskId, ...]) -> CoordinatorEffects:
        """Roll all tasks back to the line; checkpoints beyond it never count again."""
        line = self.tracker.line
        self.tracker.drop_beyond(line)  # I4
        self.kept.advance(line)
        yield Rollback(line)

    def on_unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Forget a checkpoint that cannot be read, and roll back to the line without it."""
        on_line = self.tracker.line.checkpoints[task]
        try:
            self.tracker.remove(task, checkpoint)
            if checkpoint < on_line:  # what builds on it is lost, too
                self.tracker.remove(task, on_line)
        except ObjectDamaged:  # no kept line is left: only the initial state remains
            self.tracker.restore(())
        self.kept.go_back(self.tracker.line)
        yield from self.on_tasks_lost((task,))

    def on_quiet(self) -> CoordinatorEffects:
        """Order a last checkpoint of every task, so that the end result is committed."""
        yield self._order_round(self.context.topology.tasks)

    def _bound_lag(self, lag: int, lag_max: int) -> CoordinatorEffects:
        if lag <= lag_max:
            self.lag_tolerated = lag_max
        elif lag > self.lag_tolerated:
            # One round is enough, but it takes time, and more checkpoints come in meanwhile. The
            # next one is ordered if the lag has grown by `lag_max` again, so it stays bounded.
            self.lag_tolerated = lag + lag_max
            yield self._order_round(self.context.topology.sources)

    def _order_round(self, targets: tuple[TaskId, ...]) -> Order:
        self.round += 1
        return Order(targets, TriggerRound(self.round))


UNCOORDINATED = CheckpointProtocol(
    name="uncoordinated",
    summary="local timers, a sender log, and a search for the recovery line",
    task=UncoordinatedTask,
    coordinator=UncoordinatedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    bounded=False,
    reads=("line_max_lag", "kept_lines", "intervals_ms", "every_records", "at_window_close"),
    shows=("replayed", "domino"),
)
