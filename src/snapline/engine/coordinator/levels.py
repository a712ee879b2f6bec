"""What a guarantee level means for a line to which the job goes back.

Exactly once: all that the line's senders have sent and its receivers have not received is replayed.
At least once: the same; and where a receiver is ahead of its sender, its counter is set back to the
sender's, so that nothing is discarded. At most once: nothing is replayed; the counters of the receivers are
set forward over what is lost.

The counters that were set belong to the checkpoint from then on. The sender uses the same numbers again,
for other messages, and a second rollback to the same checkpoint must not take the one for the other.
"""

from collections.abc import Mapping
from dataclasses import replace

from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Topology
from snapline.engine.job import Job
from snapline.ids import ChannelId, Seq, SlotId, TaskId
from snapline.recovery.replay import Origin, ReplayPart, replay_plan


def settle(
    topology: Topology, line: Mapping[TaskId, CheckpointMeta], guarantee: Guarantee
) -> dict[TaskId, CheckpointMeta]:
    """The checkpoints of a line with the counters from which their tasks go on."""
    received: dict[TaskId, dict[ChannelId, Seq]] = {}
    for channel in topology.channels:
        sent = line[channel.source].sent.get(channel.id, 0)
        known = line[channel.target].received.get(channel.id, 0)
        if (guarantee is Guarantee.AT_LEAST_ONCE and known > sent) or (
            guarantee is Guarantee.AT_MOST_ONCE and known != sent
        ):
            received.setdefault(channel.target, {})[channel.id] = sent
    return {
        task: replace(meta, received={**meta.received, **received[task]})
        if task in received
        else meta
        for task, meta in line.items()
    }


def initially_received(
    chains: Mapping[TaskId, tuple[CheckpointMeta, ...]], line: Mapping[TaskId, CheckpointMeta]
) -> dict[ChannelId, Seq]:
    """What tasks without a snapshot, which begin in their initial state, take as received."""
    return {
        channel: seq
        for task, chain in chains.items()
        if not chain
        for channel, seq in line[task].received.items()
    }


def replay_by_slot(
    job: Job, line: Mapping[TaskId, CheckpointMeta]
) -> dict[SlotId, list[ReplayPart]]:
    """What is in flight across a line, by the slot that has the messages."""
    replay: dict[SlotId, list[ReplayPart]] = {}
    for part in replay_plan(job.topology, line):
        replay.setdefault(job.slot_by_task[keeper(job.topology, part)], []).append(part)
    return replay


def keeper(topology: Topology, part: ReplayPart) -> TaskId:
    """The task that keeps the messages of a part of the replay."""
    channel = topology.by_id[part.channel]
    return channel.target if part.origin is Origin.RECEIVER else channel.source
