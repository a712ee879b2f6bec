"""The largest consistent recovery line, found by two algorithms that the tests hold equal.

A line is consistent when no message on it is an orphan: on every channel i->j the checkpoint of j has
received no more than the checkpoint of i has sent. If two lines are consistent, so is the line of the
newer checkpoint of each task; hence there is one largest line, and it only grows as checkpoints are
added. Because no checkpoint of any line is newer, it also loses the least work.

- `rollback_propagation` is CheckMate's Algorithm 1, on the checkpoint graph, as published;
- `largest_line` walks down on the counters alone: begin with the newest checkpoint of every task, and
  wherever a receiver has received more than was sent, move it back. It never builds the graph's edges.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Topology
from snapline.ids import ChannelId, Seq, TaskId
from snapline.recovery.checkpoint_graph import CheckpointGraph
from snapline.recovery.history import Histories, LineMetas, Node, histories


@dataclass(frozen=True, slots=True)
class Orphans:
    """Messages (after, through] of a channel that were received on a line but not sent."""

    channel: ChannelId
    after: Seq
    through: Seq


def orphans(topology: Topology, line: LineMetas) -> tuple[Orphans, ...]:
    """All orphans of a line, in the order of the job's channels."""
    metas = {task: line.get(task) or initial_meta(task) for task in topology.tasks}
    found = []
    for channel in topology.channels:
        sent = metas[channel.source].sent.get(channel.id, 0)
        received = metas[channel.target].received.get(channel.id, 0)
        if received > sent:
            found.append(Orphans(channel.id, after=sent, through=received))
    return tuple(found)


def rollback_propagation(graph: CheckpointGraph) -> RecoveryLine:
    """Algorithm 1 of CheckMate: move every checkpoint back that others of the root set lead to."""
    freshest_first = {task: list(reversed(graph.checkpoints[task])) for task in graph.checkpoints}
    root_set: dict[TaskId, Node] = {
        task: (task, numbers[0]) for task, numbers in freshest_first.items()
    }
    marked: dict[Node, None] = {}
    while newly_marked := _strictly_reachable(graph, root_set):
        marked.update(dict.fromkeys(newly_marked))
        for task, _ in newly_marked:
            unmarked = (n for n in freshest_first[task] if (task, n) not in marked)
            root_set[task] = (task, next(unmarked))
    return RecoveryLine({task: number for task, (_, number) in root_set.items()})


def _strictly_reachable(graph: CheckpointGraph, root_set: dict[TaskId, Node]) -> list[Node]:
    roots = list(root_set.values())
    return [
        node
        for node in roots
        if any(node in graph.reachable(other) for other in roots if other != node)
    ]


def largest_line(topology: Topology, metas: Iterable[CheckpointMeta]) -> RecoveryLine:
    """The largest consistent line of these checkpoints and the initial ones."""
    known = histories(topology, metas)
    positions = largest_positions(topology, known)
    assert positions is not None, "the initial checkpoints are consistent with each other"
    return RecoveryLine({task: known[task][at].checkpoint for task, at in positions.items()})


def largest_positions(topology: Topology, known: Histories) -> dict[TaskId, int] | None:
    """Where in its history each task stands on the largest line; None if there is no line at all.

    There is always a line while the histories begin with the initial checkpoints. A sender is looked
    at again only after it was itself moved back, so the work is bounded by what is rolled back.
    """
    at = {task: len(known[task]) - 1 for task in topology.tasks}
    unchecked = dict.fromkeys(topology.tasks)
    while unchecked:
        sender, _ = unchecked.popitem()
        if at[sender] < 0:
            return None
        sent = known[sender][at[sender]].sent
        for channel in topology.outputs[sender]:
            receiver, limit = channel.target, sent.get(channel.id, 0)
            position = at[receiver]
            while position >= 0 and known[receiver][position].received.get(channel.id, 0) > limit:
                position -= 1
            if position < at[receiver]:
                at[receiver] = position
                unchecked[receiver] = None
    return at
