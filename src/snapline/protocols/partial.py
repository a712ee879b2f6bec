"""Partial fault tolerance (SPADE, seed 002): each operator says itself how it is protected.

Theory of operation.  A lost slot restarts alone. Each of its tasks that is *saved* goes back to its own
newest checkpoint, all others begin empty; nobody else goes back, pauses, or even takes notice beyond the
channels to and from that slot. There is no line: a task is a unit of rollback of its own, and output is
public as it is written. So something may be lost, and how much is bounded by what each operator asked for:

- A saved task takes a checkpoint every `every_ms`, the first at a random moment, so that tasks do not
  write all at once (4.1, 4.2). The newest ones are kept, as many as the policy says; if one cannot be read,
  the one before it serves, and if none can, the task begins empty.
- The intake of an operator says what becomes of its input while it is away. *Drop*: it is discarded, and
  counted (2). *Wait*: its senders wait. *Keep*: its senders log each message before they send it, and send
  again what the restored checkpoint has not received (upstream backup, which a barrier needs: 4).
- A source goes on at what is due now, whatever it had read: what was due meanwhile is lost (2).
- Checkpoints of several tasks are gathered for a moment, and then decided at once: one write for many.

A task that feeds a kept channel is saved even if its policy does not ask for that, because a message is
durable in its log only with a checkpoint.

Invariants
  P1  a task that is not saved has only its initial state, and sets no timer.
  P2  a rollback names exactly lost tasks; nobody else's state, counters or timers change.
  P3  each task goes back to its newest checkpoint that counts and can be read.
  P4  of each saved task as many checkpoints stay stored as its policy says, and no more.
  P5  a checkpoint is decided BEFORE an older one is deleted; a resume begins at the decided ones.
  P6  where messages are dropped, numbers jump only when two lives meet.
  P7  where messages are kept, each is logged BEFORE it is sent, and pruned only behind what the oldest kept
      checkpoint of its receiver has received; lives of a sender never use a number twice.
  P8  every record that is not delivered lies in a loss that the journal has.
  P9  no restored life puts out a window that ended before it was back, as if nothing were missing.
  P10 no survivor waits for the watermark of a lost task.
  P11 a restored window by rows has no row that rows which were sent meanwhile would have driven out: by
      key, as far as their senders were not lost as well, and by SPADE's estimate (4.4) otherwise.
P1 to P5 and the log of P7 are kept here; the engine keeps the rest for every protocol whose lost tasks go
back alone (`engine/slot/parting.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from snapline.core.effects import Commit, Rollback, Scope, SetTimer, Snapshot
from snapline.core.events import LocalCheckpoint, Timer
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, RecoveryLine, Stamp
from snapline.core.policy import DEFAULT_POLICY
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorEffects,
    CoordinatorProtocol,
    JobContext,
    TaskContext,
    TaskEffects,
    TaskProtocol,
)
from snapline.core.topology import Channel
from snapline.ids import INITIAL, CheckpointNo, Millis, TaskId

GATHER_MS: Millis = 100
"""How long checkpoints of other tasks are awaited before all are decided at once."""

_PLAIN, _LOGGED = Stamp(), Stamp(log=True)


@dataclass(frozen=True, slots=True)
class Gathered(Timer):
    """Checkpoints were gathered for long enough: it is time to decide them."""


class PartialTask(TaskProtocol):
    """Takes checkpoints of its task alone, if the task is saved, and logs what is kept for others."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        policy, options = context.policy, context.options
        self.kept = context.kept.intersection(channel.id for channel in context.outputs)
        self.saved = bool(policy.saved) or bool(self.kept)
        self.every_ms = options.interval_ms if policy.every_ms is None else policy.every_ms
        self.checkpoint = context.first_checkpoint

    def stamp(self, channel: Channel) -> Stamp:
        """Have a message logged that its receiver may ask for again."""
        return _LOGGED if channel.id in self.kept else _PLAIN  # P7

    def on_started(self) -> TaskEffects:
        """Take the first checkpoint at a random moment, if the task is saved."""
        if self.saved:  # P1
            first_ms = self.context.rng.randrange(max(1, self.every_ms))
            yield SetTimer(LocalCheckpoint(), first_ms)

    def on_timer(self, timer: Timer) -> TaskEffects:
        """Take a checkpoint, and set the time of the next one."""
        if timer != LocalCheckpoint():
            yield from super().on_timer(timer)  # raises
        yield Snapshot(self.checkpoint)
        self.checkpoint += 1
        yield SetTimer(LocalCheckpoint(), self.every_ms)


class PartialCoordinator(CoordinatorProtocol):
    """Knows the checkpoints of each task, decides the newest, and sends lost tasks back to them."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        #: per task the checkpoints that count and may be kept, oldest first
        self.known: dict[TaskId, list[CheckpointNo]] = {task: [] for task in context.topology.tasks}
        self.gathering = False

    def restore(self, memo: bytes, line: tuple[CheckpointMeta, ...]) -> None:
        """Take over from a coordinator that died: the checkpoints that it decided."""
        for meta in line:
            self.known[meta.task] = [meta.checkpoint]

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        """Remember a checkpoint, and decide it with those of other tasks."""
        self.known[meta.task].append(meta.checkpoint)
        if not self.gathering:
            self.gathering = True
            yield SetTimer(Gathered(), GATHER_MS)

    def on_timer(self, timer: Timer) -> CoordinatorEffects:
        """Decide the newest checkpoint of every task, and forget those that are not kept beside it."""
        if timer != Gathered():
            yield from super().on_timer(timer)  # raises
        self.gathering = False
        for task, known in self.known.items():
            policy = self.context.policies.get(task, DEFAULT_POLICY)
            del known[: -policy.versions]  # P4
        yield Commit(self._newest(self.context.topology.tasks))

    def on_started(self, first_checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Begin to gather anew: timers of the epoch before are gone."""
        self.gathering = False
        yield from ()

    def on_tasks_lost(self, tasks: tuple[TaskId, ...]) -> CoordinatorEffects:
        """Let lost tasks, and nobody else, go back to their newest checkpoints."""
        yield Rollback(self._newest(tasks), Scope.LOST)  # P2, P3

    def on_unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        """Let a task go back further whose checkpoint is damaged."""
        self.known[task] = [number for number in self.known[task] if number != checkpoint]
        yield Rollback(self._newest((task,)), Scope.LOST)  # P3

    def _newest(self, tasks: Iterable[TaskId]) -> RecoveryLine:
        return RecoveryLine({t: self.known[t][-1] if self.known[t] else INITIAL for t in tasks})


PARTIAL = CheckpointProtocol(
    name="partial",
    summary="each operator saved as it asks for: a lost slot restarts alone, and loses a bounded part",
    task=PartialTask,
    coordinator=PartialCoordinator,
    guarantees=(Guarantee.BOUNDED_LOSS, Guarantee.NOTHING),
    cycles=True,
    publishes_at_once=True,
    heeds_policies=True,
    timers=(Gathered,),
    shows=("rejoined", "discarded", "stale", "replayed", "gap", "unreadable"),
)
