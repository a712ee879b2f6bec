"""Z-paths and useless checkpoints, after Netzer and Xu (CheckMate, section III-C).

A Z-path from checkpoint A to checkpoint B is a chain of messages: the first is sent after A by A's task;
each next one is sent by the task that received the one before, in the same checkpoint interval or a later
one, perhaps before that receive; the last is received before B by B's task. A checkpoint is useless, on
no consistent line ever, exactly when a Z-path leads from it to itself: a Z-cycle.

All of this is about intervals. The counters tell in which interval a message was sent and in which it was
received. Draw an edge from each interval to the next one of its task, and from the interval in which a
message was sent to that in which it was received. A Z-cycle through a checkpoint is then a way from the
interval behind it back to the one before it; and since there is always an edge forward, a checkpoint is
useless exactly when both intervals lie in one strongly connected component.

Only messages that some checkpoint has counted as received are known. What a task did after its newest
checkpoint counts as an interval that the task may still close as it likes.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, Seq, TaskId
from snapline.recovery.components import strong_components
from snapline.recovery.history import Histories, Node, histories

ZPath: TypeAlias = tuple[tuple[ChannelId, Seq], ...]
"""The messages of a Z-path, in its order."""


class IntervalGraph:
    """The intervals between the checkpoints of a job, and the messages between these intervals."""

    def __init__(self, topology: Topology, metas: Iterable[CheckpointMeta]) -> None:
        self._topology = topology
        self._histories = histories(topology, metas)
        #: interval `first[task] + x` lies behind the checkpoint at position x of the task's history
        self._first: dict[TaskId, int] = {}
        size = 0
        for task, history in self._histories.items():
            self._first[task] = size
            size += len(history)
        #: per interval, the first message that it sent on each output and where that was received
        self._messages: list[list[tuple[Channel, Seq, int]]] = [[] for _ in range(size)]
        for channel in topology.channels:
            for sent_in, seq, received_in in _first_messages(channel, self._histories):
                interval = self._first[channel.source] + sent_in
                self._messages[interval].append((channel, seq, received_in))

    def useless(self) -> tuple[Node, ...]:
        """All checkpoints on a Z-cycle, task by task, oldest first."""
        component = strong_components(self._successors())
        return tuple(
            (task, meta.checkpoint)
            for task, history in self._histories.items()
            for interval, meta in enumerate(history[1:], self._first[task] + 1)
            if component[interval - 1] == component[interval]
        )

    def z_path(self, origin: Node, end: Node) -> ZPath | None:
        """The shortest Z-path between two checkpoints, which may be one and the same."""
        task, goal = end[0], self._position(end)
        unreached = {task: len(history) for task, history in self._histories.items()}
        wave: list[tuple[TaskId, int, ZPath]] = [(origin[0], self._position(origin), ())]
        while wave:
            following: list[tuple[TaskId, int, ZPath]] = []
            for sender, interval, path in wave:
                # Intervals from `unreached` on were reached before, by a path that is at least as short.
                for channel, seq, received_in in self._sent(sender, interval, unreached[sender]):
                    reached = (*path, (channel.id, seq))
                    if channel.target == task and received_in < goal:
                        return reached
                    following.append((channel.target, received_in, reached))
                unreached[sender] = min(unreached[sender], interval)
            wave = following
        return None

    def _position(self, node: Node) -> int:
        return [meta.checkpoint for meta in self._histories[node[0]]].index(node[1])

    def _sent(self, task: TaskId, start: int, stop: int) -> Iterator[tuple[Channel, Seq, int]]:
        for interval in range(start, stop):
            yield from self._messages[self._first[task] + interval]

    def _successors(self) -> list[list[int]]:
        first = self._first
        successors = [
            [first[channel.target] + received_in for channel, _, received_in in messages]
            for messages in self._messages
        ]
        for task, history in self._histories.items():
            for interval in range(first[task], first[task] + len(history) - 1):
                successors[interval].append(interval + 1)
        return successors


def useless_checkpoints(topology: Topology, metas: Iterable[CheckpointMeta]) -> tuple[Node, ...]:
    """The checkpoints that no consistent line can ever contain."""
    return IntervalGraph(topology, metas).useless()


def _first_messages(channel: Channel, known: Histories) -> Iterator[tuple[int, Seq, int]]:
    """The first message of every interval that sent any: where sent, its number, where received.

    The others of the interval are received no earlier, so they open no further Z-path.
    """
    received = [meta.received.get(channel.id, 0) for meta in known[channel.target]]
    sent = [meta.sent.get(channel.id, 0) for meta in known[channel.source]]
    received_in = 0
    for sent_in, before in enumerate(sent):
        if before >= received[-1]:
            return
        if sent_in + 1 < len(sent) and sent[sent_in + 1] == before:
            continue
        while received[received_in + 1] <= before:
            received_in += 1
        yield sent_in, before + 1, received_in
