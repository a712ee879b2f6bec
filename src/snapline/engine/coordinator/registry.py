"""The checkpoints that exist: those that were reported in this timeline and are not yet garbage.

The store is never listed to find a line. What is not here does not exist, whatever lies in the store.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.policy import Policy
from snapline.core.topology import Topology
from snapline.engine.coordinator.ledger import Chain
from snapline.engine.groups.records import GroupRecords
from snapline.engine.slot.checkpoints import key_of
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

    def __init__(self, topology: Topology, remembered: Container[ChannelId] = ()) -> None:
        """`remembered`: where tasks go back alone, the channels whose senders are told what to forget."""
        self.topology = topology
        self.remembered = remembered
        self.metas: dict[TaskId, dict[CheckpointNo, CheckpointMeta]] = {
            task: {} for task in topology.tasks
        }
        self.groups = GroupRecords()  #: what else of them is stored
        self.pruned: dict[ChannelId, Seq] = {}
        self.aborted: dict[CheckpointNo, None] = {}  #: rounds that were given up
        #: per task the input that every line has passed which is still kept: offsets by partition
        self.passed: dict[TaskId, Mapping[int, int]] = {}

    def restore(self, line: Mapping[TaskId, Chain]) -> None:
        """Add the checkpoints that the last decision of an earlier coordinator names."""
        for chain in line.values():
            for meta in chain:
                self.add(meta)

    def keys(self) -> set[str]:
        """The names of the snapshots of all checkpoints that exist, and of their groups."""
        own = {key_of(meta) for known in self.metas.values() for meta in known.values()}
        return own | self.groups.keys()

    def add(self, meta: CheckpointMeta) -> None:
        """Add a checkpoint: it counts from now on."""
        self.metas[meta.task][meta.checkpoint] = meta

    def restored(self, tasks: Iterable[TaskId], groups: Mapping[TaskId, tuple[str, ...]]) -> None:
        """Note the groups from which tasks were restored, each from its newest checkpoint, or from none."""
        for task in tasks:
            if task in groups or task in self.groups.since:
                self.groups.adopt(task, self.newest(task).checkpoint, groups.get(task, ()))

    def newest(self, task: TaskId) -> CheckpointMeta:
        """The newest checkpoint of a task that exists."""
        known = self.metas[task]
        return known[max(known)] if known else initial_meta(task)

    def chain(self, task: TaskId, checkpoint: CheckpointNo) -> Chain:
        """A checkpoint after those of which it is a delta, oldest first."""
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

    def drop_beyond(self, line: RecoveryLine) -> list[CheckpointMeta]:
        """Forget and return all checkpoints beyond a line: an epoch begins at it, so they are dead."""
        dead: list[CheckpointMeta] = []
        for task, known in self.metas.items():
            last = line.checkpoints[task]
            dead += [known.pop(number) for number in tuple(known) if number > last]
            self.groups.go_back(task, last)
        return dead

    def abort(self, checkpoint: CheckpointNo) -> None:
        """Note that a round will never be complete: what was stored of it is only a base for deltas."""
        self.aborted[checkpoint] = None

    def damage(self, task: TaskId, checkpoint: CheckpointNo) -> list[CheckpointNo]:
        """Forget a damaged checkpoint and all deltas on top of it; returns their numbers."""
        known = self.metas[task]
        broken = [
            number
            for number in known
            if any(meta.checkpoint == checkpoint for meta in self.chain(task, number))
        ]
        for number in broken:
            del known[number]
        self.groups.go_back(task, max(known, default=INITIAL))
        return broken

    def collect(
        self,
        older: RecoveryLine,
        newer: RecoveryLine,
        policies: Mapping[TaskId, Policy] | None = None,
    ) -> Collected:
        """Forget what no recovery needs while these two lines are kept.

        Where every task goes back by itself, their policies say what is kept of each.
        """
        if policies is not None:
            collected = self._collect_each(newer, policies)
        else:
            collected = self._collect_behind(older, newer)
        for task, known in self.metas.items():
            first = min(older.checkpoints[task], newer.checkpoints[task])
            if policies is not None:
                decided = sorted(n for n in known if n <= newer.checkpoints[task])
                first = min(decided[-policies[task].versions :], default=INITIAL)
            # What is older is only there for the deltas on top of it, and nobody goes back to it.
            self.groups.collect(task, [number for number in known if number >= first])
        return collected

    def _collect_behind(self, older: RecoveryLine, newer: RecoveryLine) -> Collected:
        """Forget what no rollback to one of these lines needs, or to a later one."""
        everything = (meta for known in self.metas.values() for meta in known.values())
        found = garbage(self.topology, (older, newer), everything)
        metas = [self.metas[task].pop(number) for task, number in found.checkpoints]
        metas += self._collect_aborted()
        oldest = min((min(known) for known in self.metas.values() if known), default=INITIAL)
        self.aborted = {number: None for number in self.aborted if number >= oldest}
        logs = {c: seq for c, seq in found.logs.items() if seq > self.pruned.get(c, 0)}
        self.pruned.update(logs)
        for task, known in self.metas.items():
            number = min(older.checkpoints[task], newer.checkpoints[task])
            self.passed[task] = known[number].offsets if number in known else {}
        return Collected(tuple(metas), logs)

    def _collect_each(self, line: RecoveryLine, policies: Mapping[TaskId, Policy]) -> Collected:
        """Forget what no task needs that goes back by itself, while a line is the last one decided.

        Of each task the newest checkpoints through the line are kept, as many as its policy says, and all
        that are newer. Nobody asks for messages again that the oldest of them has received.
        """
        gone: list[CheckpointMeta] = []
        oldest: dict[TaskId, CheckpointMeta] = {}
        for task, known in self.metas.items():
            decided = sorted(n for n in known if n <= line.checkpoints[task])
            kept = decided[-policies[task].versions :]
            if len(decided) >= policies[task].versions:
                oldest[task] = known[kept[0]]
            needed = {
                meta.checkpoint
                for number in known
                if number in kept or number > line.checkpoints[task]
                for meta in self.chain(task, number)
            }
            gone += [known.pop(number) for number in tuple(known) if number not in needed]
        logs = {
            channel.id: seq
            for channel in self.topology.channels
            if channel.id in self.remembered and channel.target in oldest
            if (seq := oldest[channel.target].received.get(channel.id, 0))
            > self.pruned.get(channel.id, 0)
        }
        self.pruned.update(logs)
        return Collected(tuple(gone), logs)

    def _collect_aborted(self) -> list[CheckpointMeta]:
        """Aborted checkpoints can go when no delta builds on them, and none can any more.

        A delta refers to the capture just before it. So one may still come for the newest checkpoint that
        is known of a task, and for none before it.
        """
        gone: list[CheckpointMeta] = []
        for task, known in self.metas.items():
            if not any(number in self.aborted for number in known):
                continue
            newest = max(known)
            needed = {
                meta.checkpoint: None
                for number in known
                if number == newest or number not in self.aborted
                for meta in self.chain(task, number)
            }
            gone += [known.pop(number) for number in tuple(known) if number not in needed]
        return gone
