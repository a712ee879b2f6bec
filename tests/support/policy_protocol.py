"""A protocol that obeys each operator's policy, to show that the interface is wide enough for one.

Theory of operation.  Only operators whose policy says so are saved, each on a timer of its own. A lost slot
alone goes back, each of its tasks to its own newest checkpoint; the others keep running, and what was
under way is lost. No line is ever committed: output is public at once. The coordinator persists which
checkpoint is the newest of each task, since no committed line tells it after a resume.

Invariants
  P1  a task whose policy is not to checkpoint has no checkpoint but its initial state.
  P2  a rollback names exactly the lost tasks.
"""

import json
from collections.abc import Iterable

from snapline.core.effects import Persist, Rollback, Scope, SetTimer, Snapshot
from snapline.core.events import LocalCheckpoint, Timer
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.core.policy import Guarantee
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorEffects,
    CoordinatorProtocol,
    JobContext,
    TaskContext,
    TaskEffects,
    TaskProtocol,
)
from snapline.ids import INITIAL, CheckpointNo, TaskId


class PolicyTask(TaskProtocol):
    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.checkpoint = context.first_checkpoint
        own = context.policy.interval_ms
        interval_ms = context.options.interval_ms if own is None else own
        self.again = SetTimer(LocalCheckpoint(), interval_ms)

    def on_started(self) -> TaskEffects:
        if self.context.policy.checkpoint:  # P1
            yield self.again

    def on_timer(self, timer: Timer) -> TaskEffects:
        if timer != LocalCheckpoint():
            yield from super().on_timer(timer)  # raises
        yield Snapshot(self.checkpoint)
        self.checkpoint += 1
        yield self.again


class PolicyCoordinator(CoordinatorProtocol):
    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        self.newest: dict[TaskId, CheckpointNo] = dict(context.initial_line.checkpoints)

    def restore(self, memo: bytes, line: tuple[CheckpointMeta, ...]) -> None:
        if memo:
            self.newest = {TaskId(task): number for task, number in json.loads(memo).items()}

    def on_snapshot(self, meta: CheckpointMeta) -> CoordinatorEffects:
        self.newest[meta.task] = meta.checkpoint
        yield self._persist()

    def on_tasks_lost(self, tasks: tuple[TaskId, ...]) -> CoordinatorEffects:
        yield self._back(tasks)

    def on_unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> CoordinatorEffects:
        self.newest[task] = INITIAL
        yield self._persist()
        yield self._back((task,))

    def _back(self, tasks: Iterable[TaskId]) -> Rollback:
        return Rollback(RecoveryLine({task: self.newest[task] for task in tasks}), Scope.LOST)  # P2

    def _persist(self) -> Persist:
        return Persist(json.dumps(self.newest).encode())


POLICY = CheckpointProtocol(
    name="policy",
    summary="saves and restores each operator as its policy says",
    task=PolicyTask,
    coordinator=PolicyCoordinator,
    guarantees=(Guarantee.NOTHING,),
    cycles=True,
    checkpoints=False,
)
