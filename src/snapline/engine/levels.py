"""What a guarantee level means for a line: what is replayed, and which number comes next.

Exactly once: all that the line's senders have sent and its receivers have not received is replayed.
At least once: the same; and where a receiver is ahead of its sender, its expected number is set back to the
sender's, so that nothing is discarded. At most once: nothing is replayed; receivers skip what is lost.
"""

from collections.abc import Mapping

from snapline.core.messages import CheckpointMeta
from snapline.core.policy import Guarantee
from snapline.core.topology import Topology
from snapline.ids import ChannelId, Seq, TaskId
from snapline.recovery.replay import Origin, ReplayPart, replay_plan


def plan_restart(
    topology: Topology, line: Mapping[TaskId, CheckpointMeta], guarantee: Guarantee
) -> tuple[dict[ChannelId, Seq], tuple[ReplayPart, ...]]:
    """Per channel the number to assume as received where it differs, and the parts to replay."""
    received: dict[ChannelId, Seq] = {}
    for channel in topology.channels:
        sent = line[channel.source].sent.get(channel.id, 0)
        known = line[channel.target].received.get(channel.id, 0)
        if (guarantee is Guarantee.AT_LEAST_ONCE and known > sent) or (
            guarantee is Guarantee.AT_MOST_ONCE and known != sent
        ):
            received[channel.id] = sent
    if guarantee is Guarantee.AT_MOST_ONCE:
        return received, ()
    return received, tuple(replay_plan(topology, line))


def keeper(topology: Topology, part: ReplayPart) -> TaskId:
    """The task that has the messages of a part."""
    channel = topology.by_id[part.channel]
    return channel.target if part.origin is Origin.RECEIVER else channel.source
