"""What every slot restores when an epoch begins: the line, as the promised guarantee settles it."""

from collections.abc import Mapping

from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.core.topology import Channel
from snapline.engine.control import Restore, RowsByKey
from snapline.engine.coordinator.decider import Chains
from snapline.engine.coordinator.levels import initially_received, replay_by_slot, settle
from snapline.engine.coordinator.members import Members
from snapline.engine.coordinator.registry import Registry
from snapline.engine.job import Job
from snapline.engine.shell import CoordinatorShell
from snapline.ids import INITIAL, ChannelId, Epoch, Incarnation, Millis, Seq, SlotId, TaskId
from snapline.journal.entry import COORDINATOR
from snapline.journal.loss_happenings import RowsMissed, TaskLoss
from snapline.recovery.replay import ReplayPart


class RestorePlan:
    """The line of the epoch that was last asked for, and what is in flight across it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.settled: Mapping[TaskId, CheckpointMeta] = {}  #: the checkpoints of that line
        self.replay: dict[SlotId, list[ReplayPart]] = {}  #: what is in flight, by who has it

    def settle(self, line: Chains, registry: Registry) -> Chains:
        """Plan to go back to a line; return it with the counters from which its tasks go on."""
        metas = {task: chain[-1] if chain else initial_meta(task) for task, chain in line.items()}
        self.settled = settle(self.job.topology, metas, self.job.guarantee)
        for task, meta in self.settled.items():
            if meta is not metas[task] and line[task]:
                registry.add(meta)
                line[task] = (*line[task][:-1], meta)
        self.replay = replay_by_slot(self.job, self.settled)
        return line

    def order(
        self,
        slot: SlotId,
        epoch: Epoch,
        lives: Mapping[SlotId, Incarnation],
        line: Chains,
        *,
        alone: bool,
    ) -> Restore:
        """What a slot is told, once the line is decided."""
        chains = {task: line[task] for task in self.job.hosted[slot]}
        if alone:
            missed = {c.id: _received(line, c) for c in self.job.kept_from(slot)}
            return Restore(epoch, dict(lives), chains, {}, (), True, missed)
        received = initially_received(chains, self.settled)
        return Restore(epoch, dict(lives), chains, received, tuple(self.replay.get(slot, ())))


def declare(
    shell: CoordinatorShell,
    members: Members,
    epoch: Epoch,
    lost_ms: Mapping[SlotId, Millis],
    chains: Chains,
    missed: Mapping[SlotId, Mapping[ChannelId, RowsByKey]],
) -> None:
    """Write down what the tasks of slots that restart alone may have lost, as they are let go.

    `lost_ms` says when each of them was lost: a task without state had nothing before that. `missed` has
    what senders know of rows that windows did not get.
    """
    job = members.job
    for slot, at_ms in lost_ms.items():
        for task in job.hosted[slot]:
            chain = chains.get(task, ())
            number, since_ms = (chain[-1].checkpoint, chain[-1].taken_ms) if chain else (INITIAL, 0)
            stateful = job.deployment.plans[task].stateful
            first_ms, now_ms = since_ms if stateful else at_ms, shell.now_us() // 1000
            shell.note(COORDINATOR, epoch, TaskLoss(task, number, first_ms, now_ms))
            for lost in members.groups_lost.get(slot, ()):
                if lost.task == task:
                    shell.note(COORDINATOR, epoch, lost)
            for channel in job.topology.inputs[task] if chain else ():
                if channel.id in job.recalled:
                    known = missed.get(slot, {}).get(channel.id)
                    rows = RowsMissed(channel.id, known.rows if known else 0, known is None)
                    shell.note(COORDINATOR, epoch, rows)


def _received(line: Chains, channel: Channel) -> Seq:
    chain = line[channel.target]
    return chain[-1].received.get(channel.id, 0) if chain else 0
