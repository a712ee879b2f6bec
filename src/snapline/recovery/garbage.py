"""Which snapshots and logged messages may be deleted, because no recovery will ever read them again.

The last lines are kept whole: if the newest turns out to be damaged, the one before it still works. So the
oldest kept line decides. Nothing older than it is needed, with one exception: a snapshot may be a delta,
and then the snapshots that it builds on are needed as long as it is. Messages that the receivers on the
oldest kept line had already received are never replayed, so the log may forget them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Topology
from snapline.errors import ProtocolViolation
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Seq, TaskId, checkpoint_label
from snapline.recovery.history import Node


@dataclass(frozen=True, slots=True)
class Garbage:
    """What may be deleted."""

    checkpoints: tuple[Node, ...]
    logs: Mapping[ChannelId, Seq]  # the log of a channel may be pruned through this number


def garbage(
    topology: Topology, kept: Sequence[RecoveryLine], metas: Iterable[CheckpointMeta]
) -> Garbage:
    """What may be deleted while these lines are kept; `metas` are all known checkpoints."""
    known = {(meta.task, meta.checkpoint): meta for meta in metas}
    oldest = _oldest(topology, kept)
    needed: dict[Node, None] = {}
    for node, meta in known.items():
        if node[0] not in oldest or node[1] >= oldest[node[0]]:
            _need(meta, known, needed)
    return Garbage(
        tuple(node for node in known if node not in needed and node[1] != INITIAL),
        _prunable(topology, oldest, known),
    )


def _oldest(topology: Topology, kept: Sequence[RecoveryLine]) -> dict[TaskId, CheckpointNo]:
    """For each task its oldest checkpoint on a kept line; tasks on none of them are left out."""
    oldest: dict[TaskId, CheckpointNo] = {}
    for task in topology.tasks:
        numbers = [line.checkpoints[task] for line in kept if task in line.checkpoints]
        if numbers:
            oldest[task] = min(numbers)
    return oldest


def _need(
    meta: CheckpointMeta, known: Mapping[Node, CheckpointMeta], needed: dict[Node, None]
) -> None:
    """Mark a checkpoint and all that it builds on, up to what is marked already."""
    base: CheckpointMeta | None = meta
    while base is not None and (base.task, base.checkpoint) not in needed:
        needed[base.task, base.checkpoint] = None
        base = None if base.parent is None else known.get((base.task, base.parent))


def _prunable(
    topology: Topology, oldest: Mapping[TaskId, CheckpointNo], known: Mapping[Node, CheckpointMeta]
) -> dict[ChannelId, Seq]:
    line = {task: _on_line(task, number, known) for task, number in oldest.items()}
    logs: dict[ChannelId, Seq] = {}
    for channel in topology.channels:
        if channel.target in line:
            through = line[channel.target].received.get(channel.id, 0)
            if channel.source in line:
                # At least once a receiver may be ahead of its sender. After a rollback the sender uses
                # those numbers again, for messages that must not be taken for the pruned ones.
                through = min(through, line[channel.source].sent.get(channel.id, 0))
            if through:
                logs[channel.id] = through
    return logs


def _on_line(
    task: TaskId, number: CheckpointNo, known: Mapping[Node, CheckpointMeta]
) -> CheckpointMeta:
    if number == INITIAL:
        return initial_meta(task)
    if (task, number) not in known:
        label = checkpoint_label(number)
        raise ProtocolViolation(f"checkpoint {label} of {task} is on a kept line but not known")
    return known[task, number]
