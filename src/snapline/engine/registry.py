"""The checkpoints that exist: those that were reported in this timeline and are not yet garbage.

The store is never listed to find a line. What is not here does not exist, whatever lies in the store.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.core.topology import Topology
from snapline.engine.ledger import Chain
from snapline.errors import ProtocolViolation
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Seq, TaskId, checkpoint_label
from snapline.recovery.garbage import garbage


@dataclass(frozen=True, slots=True)
class Collected:
    """What became garbage: snapshots to delete, and logs to prune further than before."""

    metas: tuple[CheckpointMeta, ...]
    logs: Mapping[ChannelId, Seq]


class Registry:
    """Checkpoint metadata by task and number."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.metas: dict[TaskId, dict[CheckpointNo, CheckpointMeta]] = {
            task: {} for task in topology.tasks
        }
        self.pruned: dict[ChannelId, Seq] = {}

    def restore(self, line: Mapping[TaskId, Chain]) -> None:
        """Know what an earlier coordinator's last decision names."""
        for chain in line.values():
            for meta in chain:
                self.add(meta)

    def add(self, meta: CheckpointMeta) -> None:
        """A checkpoint counts from now on."""
        self.metas[meta.task][meta.checkpoint] = meta

    def chain(self, task: TaskId, checkpoint: CheckpointNo) -> Chain:
        """A checkpoint behind those of which it is a delta."""
        chain: list[CheckpointMeta] = []
        number: CheckpointNo | None = checkpoint if checkpoint != INITIAL else None
        while number is not None:
            meta = self.metas[task].get(number)
            if meta is None:
                label = checkpoint_label(number)
                raise ProtocolViolation(f"checkpoint {label} of {task} is needed but not known")
            chain.append(meta)
            number = meta.parent
        return tuple(reversed(chain))

    def chains(self, line: RecoveryLine) -> dict[TaskId, Chain]:
        """The chains of a whole line."""
        return {task: self.chain(task, number) for task, number in line.checkpoints.items()}

    def drop_beyond(self, line: Mapping[TaskId, Chain]) -> list[CheckpointMeta]:
        """An epoch begins at this line: every later checkpoint is dead. Returns those."""
        dead: list[CheckpointMeta] = []
        for task, known in self.metas.items():
            last = line[task][-1].checkpoint if line[task] else INITIAL
            dead += [known.pop(number) for number in tuple(known) if number > last]
        return dead

    def damaged(self, task: TaskId, checkpoint: CheckpointNo) -> list[CheckpointNo]:
        """Forget a damaged checkpoint and all deltas on top of it; returns their numbers."""
        known = self.metas[task]
        broken = [
            number
            for number in known
            if any(meta.checkpoint == checkpoint for meta in self.chain(task, number))
        ]
        for number in broken:
            del known[number]
        return broken

    def collect(self, older: Mapping[TaskId, Chain], newer: Mapping[TaskId, Chain]) -> Collected:
        """Forget what no recovery needs while these two lines are kept."""
        lines = [
            RecoveryLine({t: c[-1].checkpoint if c else INITIAL for t, c in line.items()})
            for line in (older, newer)
            if line
        ]
        everything = (meta for known in self.metas.values() for meta in known.values())
        found = garbage(self.topology, lines, everything)
        metas = tuple(self.metas[task].pop(number) for task, number in found.checkpoints)
        logs = {c: seq for c, seq in found.logs.items() if seq > self.pruned.get(c, 0)}
        self.pruned.update(logs)
        return Collected(metas, logs)
