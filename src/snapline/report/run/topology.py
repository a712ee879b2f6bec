"""Finds the tasks and channels of a job in its journals, so that no dataflow has to be loaded to draw it.

A channel is called after its ends (`bids/0>count/1`, with `#port` behind it), and the checkpoints of both
of them count its messages.
"""

from collections.abc import Iterable, Iterator

from snapline.core.events import MessageArrived, SnapshotStored
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, TaskId
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened, Stamped
from snapline.journal.happenings import LineDecided, MessageReplayed


def topology_of(entries: Iterable[Entry]) -> Topology | None:
    """The tasks and channels that the entries name; None if they name no task."""
    tasks: dict[TaskId, None] = {}
    channels: dict[ChannelId, Channel] = {}
    for entry in entries:
        tasks |= dict.fromkeys(_tasks(entry))
        for name in _channels(entry):
            if name not in channels:
                channels[name] = _channel(name)
    for channel in channels.values():
        tasks |= dict.fromkeys((channel.source, channel.target))
    return Topology(tuple(tasks), tuple(channels.values())) if tasks else None


def _channel(name: ChannelId) -> Channel:
    source, _, rest = name.partition(">")
    target, _, port = rest.partition("#")
    return Channel(name, TaskId(source), TaskId(target), port or "in")


def _tasks(entry: Entry) -> Iterator[TaskId]:
    match entry:
        case Happened(what=LineDecided(line=line)):
            yield from line
        case Built(actor=actor) if actor != COORDINATOR:
            yield TaskId(actor)
        case _:
            pass


def _channels(entry: Entry) -> Iterator[ChannelId]:
    match entry:
        case Handled(event=SnapshotStored(meta)):
            yield from meta.sent
            yield from meta.received
        case Handled(event=MessageArrived(message)):
            yield message.channel
        case Stamped(channel=channel):
            yield channel
        case Happened(what=MessageReplayed(message)):
            yield message.channel
        case _:
            pass
