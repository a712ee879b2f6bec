"""The recovery line of a running job, kept current as checkpoints come and go.

While a job runs, checkpoints are only added and the line only moves forward; `LineGrowth` does that at a
cost that follows the inputs of what was added, not the size of the job. Everything else is rare, a
rollback or damage, and there the line is found anew from the counters of what remains.

What was forgotten as garbage is gone for good, the initial checkpoints included: no line can go back
behind it.
"""

from collections.abc import Iterable, Iterator

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Topology
from snapline.errors import ObjectDamaged, ProtocolViolation
from snapline.ids import CheckpointNo, TaskId, checkpoint_label
from snapline.recovery.line_growth import LineGrowth, TaskHistory
from snapline.recovery.recovery_line import largest_positions


class LineTracker:
    """All known checkpoints of a job, and the largest consistent line among them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._start({task: initial_meta(task) for task in topology.tasks})

    @property
    def line(self) -> RecoveryLine:
        """The largest consistent line."""
        return RecoveryLine({t: h.on_line.checkpoint for t, h in self._histories.items()})

    @property
    def lag(self) -> int:
        """The largest number of checkpoints that a task has beyond the line."""
        return max((history.ahead for history in self._histories.values()), default=0)

    def newest(self) -> RecoveryLine:
        """The newest checkpoint of every task. Together they are usually not consistent."""
        return RecoveryLine({t: h.metas[-1].checkpoint for t, h in self._histories.items()})

    def meta(self, task: TaskId, checkpoint: CheckpointNo) -> CheckpointMeta:
        """The metadata of one known checkpoint."""
        meta = self._find(task, checkpoint)
        if meta is None:
            raise ProtocolViolation(f"{task} has no checkpoint {checkpoint_label(checkpoint)}")
        return meta

    def __iter__(self) -> Iterator[CheckpointMeta]:
        """All known checkpoints, task by task, oldest first."""
        for history in self._histories.values():
            yield from history.metas

    def restore(self, metas: Iterable[CheckpointMeta]) -> None:
        """Begin again at this line; tasks that it leaves out are at their initial checkpoint."""
        line = {task: initial_meta(task) for task in self._topology.tasks}
        line.update((meta.task, meta) for meta in metas)
        self._start(line)

    def add(self, meta: CheckpointMeta) -> bool:
        """Count one more checkpoint. True if the line moved. To add it twice changes nothing."""
        history = self._histories.get(meta.task)
        if history is None:
            raise ProtocolViolation(f"{meta.task} has a checkpoint but is no task of this job")
        known = self._find(meta.task, meta.checkpoint)
        if known is not None:
            if known != meta:
                label = checkpoint_label(meta.checkpoint)
                raise ProtocolViolation(f"{meta.task} used checkpoint number {label} twice")
            return False
        position = history.position(meta.checkpoint)
        history.metas.insert(position, meta)
        if position == len(history.metas) - 1:
            return self._growth.added(meta)
        if position <= history.at:
            history.at += 1
            return False
        # Claims may now require this one in place of a newer one, so they are no longer right.
        return self._grow_anew()

    def drop_beyond(self, line: RecoveryLine) -> tuple[CheckpointMeta, ...]:
        """Forget all checkpoints newer than this line, for a rollback. Returns them: they are skipped."""
        kept = {task: history.metas for task, history in self._histories.items()}
        for task, checkpoint in line.checkpoints.items():
            kept[task] = [meta for meta in kept[task] if meta.checkpoint <= checkpoint]
        positions = largest_positions(self._topology, kept)
        if positions is None:
            raise ProtocolViolation("a rollback to a line that was already forgotten")
        return self._keep(kept, positions)

    def remove(self, task: TaskId, checkpoint: CheckpointNo) -> tuple[CheckpointMeta, ...]:
        """Remove a damaged checkpoint and all deltas that build on it, as if they had never been stored.

        Returns what was removed: nothing if the checkpoint is not known, or no longer. The line may
        go back; if no line remains, ObjectDamaged is raised and nothing was changed.
        """
        damaged = {checkpoint: None}
        intact = []
        for meta in self._histories[task].metas:
            if meta.checkpoint in damaged or meta.parent in damaged:
                damaged[meta.checkpoint] = None
            else:
                intact.append(meta)
        kept = {task: history.metas for task, history in self._histories.items()}
        kept[task] = intact
        positions = largest_positions(self._topology, kept)
        if positions is None:
            raise ObjectDamaged(
                f"without checkpoint {checkpoint_label(checkpoint)} of {task}"
                " no consistent line remains: all older ones were deleted"
            )
        return self._keep(kept, positions)

    def forget_before(self, line: RecoveryLine) -> None:
        """Drop what is older than this line, which must not be ahead of the current one."""
        for task, checkpoint in line.checkpoints.items():
            history = self._histories[task]
            if checkpoint > history.on_line.checkpoint:
                raise ProtocolViolation(
                    f"{task} cannot forget what is before {checkpoint_label(checkpoint)}:"
                    f" its line is at {checkpoint_label(history.on_line.checkpoint)}"
                )
        for task, checkpoint in line.checkpoints.items():
            history = self._histories[task]
            forgotten = history.position(checkpoint)
            del history.metas[:forgotten]
            history.at -= forgotten

    def _find(self, task: TaskId, checkpoint: CheckpointNo) -> CheckpointMeta | None:
        history = self._histories[task]
        position = history.position(checkpoint)
        if position < len(history.metas) and history.metas[position].checkpoint == checkpoint:
            return history.metas[position]
        return None

    def _start(self, line: dict[TaskId, CheckpointMeta]) -> None:
        self._histories = {task: TaskHistory([meta]) for task, meta in line.items()}
        self._grow_anew()

    def _keep(
        self, kept: dict[TaskId, list[CheckpointMeta]], positions: dict[TaskId, int]
    ) -> tuple[CheckpointMeta, ...]:
        """Keep only these checkpoints, with the line at these positions. Returns the removed ones."""
        numbers = {task: {meta.checkpoint: None for meta in metas} for task, metas in kept.items()}
        gone = tuple(meta for meta in self if meta.checkpoint not in numbers[meta.task])
        self._histories = {
            task: TaskHistory(metas, positions[task]) for task, metas in kept.items()
        }
        self._grow_anew()
        return gone

    def _grow_anew(self) -> bool:
        self._growth = LineGrowth(self._topology, self._histories)
        return self._growth.begin()
