"""The checkpoints of each task in order: what every computation of this package starts from.

Every task has an initial checkpoint that nobody stored: number INITIAL, all counters 0. Checkpoint
numbers of a task grow but have gaps, so neighbours are found by position, never by adding one. Along
the history of one task the counters never fall: this is what makes binary search and merging possible.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.core.topology import Topology
from snapline.errors import ProtocolViolation
from snapline.ids import CheckpointNo, TaskId

Node: TypeAlias = tuple[TaskId, CheckpointNo]
"""One checkpoint of one task."""

LineMetas: TypeAlias = Mapping[TaskId, CheckpointMeta]
"""The metadata of a line. A task that is absent stands at its initial checkpoint."""

Histories: TypeAlias = Mapping[TaskId, Sequence[CheckpointMeta]]
"""For each task its checkpoints, oldest first."""


def histories(
    topology: Topology, metas: Iterable[CheckpointMeta]
) -> dict[TaskId, list[CheckpointMeta]]:
    """The history of every task, its initial checkpoint included; `metas` come in any order."""
    known: dict[TaskId, dict[CheckpointNo, CheckpointMeta]] = {
        task: {initial.checkpoint: initial}
        for task, initial in ((task, initial_meta(task)) for task in topology.tasks)
    }
    for meta in metas:
        if meta.task not in known:
            raise ProtocolViolation(f"{meta.task} has a checkpoint but is no task of this job")
        known[meta.task][meta.checkpoint] = meta
    return {
        task: [by_number[number] for number in sorted(by_number)]
        for task, by_number in known.items()
    }
