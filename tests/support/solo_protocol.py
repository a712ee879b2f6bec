"""A protocol under which a lost slot goes back alone, to show that the interface is wide enough for one.

Theory of operation.  Every task is saved on a timer of its own. A lost slot
alone goes back, each of its tasks to its own newest checkpoint; the others keep running, and what was
under way is lost. No line is ever committed: output is public at once. The coordinator persists which
checkpoint is the newest of each task, since no committed line tells it after a resume.

Invariants
  S1  a rollback names exactly the lost tasks.
"""

import json
from collections.abc import Iterable

from snapline.core.effects import Persist, Rollback, Scope, SetTimer, Snapshot
from snapline.core.events import LocalCheckpoint, Timer
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, RecoveryLine
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


class SoloTask(TaskProtocol):
    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.checkpoint = context.first_checkpoint
        self.again = SetTimer(LocalCheckpoint(), context.options.interval_ms)

    def on_started(self) -> TaskEffects:
        yield self.again

    def on_timer(self, timer: Timer) -> TaskEffects:
        if timer != LocalCheckpoint():
            yield from super().on_timer(timer)  # raises
        yield Snapshot(self.checkpoint)
        self.checkpoint += 1
        yield self.again


class SoloCoordinator(CoordinatorProtocol):
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
        return Rollback(RecoveryLine({task: self.newest[task] for task in tasks}), Scope.LOST)  # S1

    def _persist(self) -> Persist:
        return Persist(json.dumps(self.newest).encode())


SOLO = CheckpointProtocol(
    name="solo",
    summary="saves each task on its own, restores only the lost slot",
    task=SoloTask,
    coordinator=SoloCoordinator,
    guarantees=(Guarantee.NOTHING,),
    cycles=True,
    publishes_at_once=True,
    bounded=False,
)
