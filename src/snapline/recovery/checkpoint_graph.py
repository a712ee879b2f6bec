"""The checkpoint graph of CheckMate, section III-B: which checkpoints cannot be on one line.

Nodes are checkpoints. There is an edge from c(i,x) to c(j,y) when

- they are consecutive checkpoints of one task, or
- i and j differ and a message was sent by i after c(i,x) and received by j before c(j,y): on some
  channel `received` of c(j,y) exceeds `sent` of c(i,x), and a line with both has an orphan.

All edges follow time, so the graph of a real execution has no cycles. A channel from a task to itself
adds nothing: what its edges would say, the edges between consecutive checkpoints say already.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Channel, Topology
from snapline.ids import CheckpointNo, TaskId
from snapline.recovery.history import Histories, Node, histories


class CheckpointGraph:
    """Checkpoints and the edges between them, with memoised reachability."""

    def __init__(
        self,
        checkpoints: Mapping[TaskId, tuple[CheckpointNo, ...]],
        edges: Iterable[tuple[Node, Node]],
    ) -> None:
        self.checkpoints = checkpoints  #: for each task, oldest first
        successors: dict[Node, dict[Node, None]] = {
            (task, number): {} for task, numbers in checkpoints.items() for number in numbers
        }
        for origin, end in edges:
            successors[origin][end] = None
        self.successors: Mapping[Node, tuple[Node, ...]] = {
            node: tuple(ends) for node, ends in successors.items()
        }
        self._reachable: dict[Node, frozenset[Node]] = {}

    def reachable(self, node: Node) -> frozenset[Node]:
        """The nodes that a path of at least one edge leads to.

        Ask whether a node is in it, but do not iterate over it: the order of a set is not deterministic.
        """
        known = self._reachable.get(node)
        if known is None:
            known = self._reachable[node] = self._search(node)
        return known

    def _search(self, node: Node) -> frozenset[Node]:
        found: set[Node] = set()
        ahead = list(self.successors[node])
        while ahead:
            nearest = ahead.pop()
            if nearest in found:
                continue
            found.add(nearest)
            beyond = self._reachable.get(nearest)
            if beyond is None:
                ahead.extend(self.successors[nearest])
            else:
                found |= beyond
        return frozenset(found)


def checkpoint_graph(topology: Topology, metas: Iterable[CheckpointMeta]) -> CheckpointGraph:
    """The graph over all these checkpoints and the initial ones."""
    known = histories(topology, metas)
    numbers = {task: tuple(meta.checkpoint for meta in metas) for task, metas in known.items()}
    return CheckpointGraph(numbers, _edges(topology, known))


def _edges(topology: Topology, known: Histories) -> Iterator[tuple[Node, Node]]:
    for task in topology.tasks:
        for older, newer in pairwise(known[task]):
            yield (task, older.checkpoint), (task, newer.checkpoint)
    for channel in topology.channels:
        if channel.source != channel.target:
            yield from _orphan_edges(channel, known)


def _orphan_edges(channel: Channel, known: Histories) -> Iterator[tuple[Node, Node]]:
    receivers = known[channel.target]
    received = [meta.received.get(channel.id, 0) for meta in receivers]
    for sender in known[channel.source]:
        first_orphan = bisect_right(received, sender.sent.get(channel.id, 0))
        for receiver in receivers[first_orphan:]:
            yield (sender.task, sender.checkpoint), (receiver.task, receiver.checkpoint)
