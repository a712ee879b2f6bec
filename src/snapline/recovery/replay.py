"""What a rollback to a line means for messages: which are sent again, and which work is undone.

On a channel i->j the messages `received_j < seq <= sent_i` were under way across the line: the state of i
says that it sent them, the state of j does not contain them. They are replayed, each from the first place
that has it: the receiver's snapshot (recorded input), the sender's snapshot (overtaken output), the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Channel, Topology
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, Seq, TaskId
from snapline.recovery.history import LineMetas


class Origin(Enum):
    """Where replayed messages are read from."""

    RECEIVER = "receiver"  # the channel state in the receiver's snapshot
    SENDER = "sender"  # the channel state in the sender's snapshot
    LOG = "log"


@dataclass(frozen=True, slots=True)
class ReplayPart:
    """Messages (after, through] of a channel that come from one place."""

    channel: ChannelId
    after: Seq
    through: Seq
    origin: Origin


def replay_ranges(topology: Topology, line: LineMetas) -> dict[ChannelId, tuple[Seq, Seq]]:
    """The messages (after, through] that are under way across a line, where there are any."""
    ranges, metas = {}, {task: _at(line, task) for task in topology.tasks}
    for channel in topology.channels:
        after = metas[channel.target].received.get(channel.id, 0)
        through = metas[channel.source].sent.get(channel.id, 0)
        if after < through:
            ranges[channel.id] = (after, through)
    return ranges


def replay_plan(topology: Topology, line: LineMetas) -> tuple[ReplayPart, ...]:
    """All messages under way across a line, channel by channel, in order, with their origins."""
    ranges = replay_ranges(topology, line)
    states = {task: _at(line, task).channel_state for task in topology.tasks}
    plan: list[ReplayPart] = []
    for channel in topology.channels:
        recorded = states[channel.target].get(channel.id)
        overtaken = states[channel.source].get(channel.id)
        if recorded or overtaken or channel.id in ranges:
            stored = ((Origin.RECEIVER, recorded or (0, 0)), (Origin.SENDER, overtaken or (0, 0)))
            plan.extend(_parts(channel, ranges.get(channel.id, (0, 0)), stored))
    return tuple(plan)


def _parts(
    channel: Channel, wanted: tuple[Seq, Seq], stored: tuple[tuple[Origin, tuple[Seq, Seq]], ...]
) -> list[ReplayPart]:
    """Cut a range of messages into pieces, each of which is read from the first place that has it."""
    present = [(origin, after, through) for origin, (after, through) in stored if after < through]
    for origin, after, through in present:
        if after < wanted[0] or through > wanted[1]:
            raise ProtocolViolation(
                f"the {origin.value} of {channel.id} stored its messages ({after}, {through}]"
                f" but only ({wanted[0]}, {wanted[1]}] are under way"
            )
    cuts = sorted({*wanted, *(cut for _, *ends in present for cut in ends)})
    parts: list[ReplayPart] = []
    for low, high in pairwise(cuts):
        holders = (origin for origin, after, through in present if after <= low and high <= through)
        origin = next(holders, Origin.LOG)
        if parts and parts[-1].origin is origin:
            low = parts.pop().after
        parts.append(ReplayPart(channel.id, low, high, origin))
    return parts


def skipped(metas: Iterable[CheckpointMeta], line: RecoveryLine) -> tuple[CheckpointMeta, ...]:
    """The checkpoints that are newer than a line: a rollback to it makes them void."""
    checkpoints = line.checkpoints
    return tuple(
        meta
        for meta in metas
        if meta.task in checkpoints and meta.checkpoint > checkpoints[meta.task]
    )


def _at(line: LineMetas, task: TaskId) -> CheckpointMeta:
    return line.get(task) or initial_meta(task)
