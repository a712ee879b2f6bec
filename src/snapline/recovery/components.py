"""Strongly connected components, after Tarjan, without recursion.

Nodes are numbers. The walk keeps a stack of its own, because it follows the histories of tasks, which may
be longer than the recursion that Python allows.
"""

from collections.abc import Iterator, Sequence

_UNSEEN = -1


class _Walk:
    """A depth-first walk that completes a component when it leaves the first node that it met of it."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self.successors = successors
        self.component = [_UNSEEN] * len(successors)
        self.low = [_UNSEEN] * len(successors)  #: the earliest entered node that each one leads to
        self.entry = [_UNSEEN] * len(successors)
        self.open: list[int] = []  #: the nodes entered so far, in order, that have no component yet
        self.path: list[tuple[int, Iterator[int]]] = []
        self.entered = 0
        self.closed = 0

    def enter(self, node: int) -> None:
        self.entry[node] = self.low[node] = self.entered
        self.entered += 1
        self.open.append(node)
        self.path.append((node, iter(self.successors[node])))

    def step(self) -> None:
        """Enter the next unseen successor of the last node of the path, or leave that node."""
        node, ahead = self.path[-1]
        for end in ahead:
            if self.entry[end] == _UNSEEN:
                return self.enter(end)
            if self.component[end] == _UNSEEN:
                self.low[node] = min(self.low[node], self.low[end])
        return self.leave(node)

    def leave(self, node: int) -> None:
        self.path.pop()
        if self.low[node] < self.entry[node]:
            parent = self.path[-1][0]
            self.low[parent] = min(self.low[parent], self.low[node])
            return
        member = _UNSEEN
        while member != node:
            member = self.open.pop()
            self.component[member] = self.closed
        self.closed += 1


def strong_components(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each node the number of its component: equal for two nodes that lead to each other."""
    walk = _Walk(successors)
    for root in range(len(successors)):
        if walk.entry[root] == _UNSEEN:
            walk.enter(root)
        while walk.path:
            walk.step()
    return walk.component
