"""Chains: operators that need no message between them run as one task.

Where an operator hands all that it puts out to one other operator of its own slot, that one gets nothing
else, and both are protected alike, a message between the two only costs: it is numbered, stamped, perhaps
logged, queued and taken again. Chained, the first calls the second. (A sink of which nobody says otherwise
is protected as its input is.) To a protocol a chain is one task with one state, saved at one moment, so
nothing that a protocol promises depends on it.

A chain has the name of its sink if it ends in one, because its output is found under that name;
otherwise it has the name of its first operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from snapline.batch import Batch
from snapline.dataflow.logical import Edge, Graph, Node, OperatorContext
from snapline.dataflow.operators.guard import Guard
from snapline.dataflow.operators.operator import IN, OUT, Capture, Groups, Operator, Outputs
from snapline.dataflow.partition import OneToOne
from snapline.dataflow.state.hashing import Hashes
from snapline.dataflow.state.missed_rows import MissedRows
from snapline.ids import Millis

_Part = TypeVar("_Part", Batch, Groups)

_SEPARATOR = "/"  # stands between operator and part; no operator has it in its name


def chain_operators(graph: Graph) -> Graph:
    """The same graph, with each chain of operators as one node."""
    links = {edge.source: edge for edge in graph.edges if _needs_no_message(graph, edge)}
    followers = {edge.target for edge in links.values()}
    chained = Graph(graph.name)
    names: dict[str, str] = {}  # operator -> the node that it is part of now
    for first in graph.nodes:
        if first not in followers:
            members = _follow(graph, links, first)
            node = chained.add(_as_node(members, links))
            names |= {member.name: node.name for member in members}
    for edge in graph.edges:
        if links.get(edge.source) is not edge:
            chained.connect(replace(edge, source=names[edge.source], target=names[edge.target]))
    return chained


def _needs_no_message(graph: Graph, edge: Edge) -> bool:
    outputs = [other for other in graph.edges if other.source == edge.source]
    alone = len(outputs) == len(graph.inputs(edge.target)) == 1
    direct = isinstance(edge.routing, OneToOne) and edge.output == OUT and not edge.feedback
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    alike = source.policy == target.policy or (target.is_sink and target.policy is None)
    return alone and direct and source.pool == target.pool and alike


def _follow(graph: Graph, links: Mapping[str, Edge], first: str) -> list[Node]:
    members = [graph.nodes[first]]
    while members[-1].name in links:
        members.append(graph.nodes[links[members[-1].name].target])
    return members


def _as_node(members: Sequence[Node], links: Mapping[str, Edge]) -> Node:
    first, last = members[0], members[-1]
    if first is last:
        return first
    ports = [IN, *(links[member.name].port for member in members[:-1])]
    return Node(
        last.name if last.is_sink else first.name,
        partial(_build, members, ports),
        first.ingress,
        last.is_sink,
        pool=first.pool,
        policy=first.policy,
    )


def _build(members: Sequence[Node], ports: Sequence[str], context: OperatorContext) -> "Chain":
    return Chain(
        [_Member(Guard(n.name, n.build(context)), p) for n, p in zip(members, ports, strict=True)]
    )


class _Member(NamedTuple):
    guard: Guard  # its own, so that an error names the operator and not the chain
    port: str  # the input at which it gets the output of the member before it


class Chain(Operator):
    """Several operators as one: each gets what the one before it puts on `out`."""

    def __init__(self, members: Sequence[_Member]) -> None:
        self._members = members
        #: those that do something to records; a sink, say, is there to be written
        self._acting = [m for m in members if type(m.guard.operator) is not Operator]
        self._others = self._acting[1:]
        self.names = tuple(member.guard.name for member in members)
        self.uses_time = any(member.guard.operator.uses_time for member in members)
        self.reads = members[0].guard.operator.reads
        # Only the first member gets what is sent: what later ones miss, no sender could count.
        self.row_keys = dict(members[0].guard.operator.row_keys)

    @property
    def members(self) -> list[tuple[str, Operator]]:
        """The operators by their names, in order."""
        return [(member.guard.name, member.guard.operator) for member in self._members]

    def process(self, port: str, batch: Batch) -> Outputs:
        """Give the batch to the first member, and to each other member the output of the one before it."""
        if not self._acting:
            return ((OUT, batch),)
        first = self._acting[0]
        outputs = first.guard.process(port if first is self._members[0] else first.port, batch)
        for member in self._others:
            outputs = _handed_on(member, outputs)
        if self._acting[-1] is not self._members[-1]:  # which passes on what comes from `out` alone
            outputs = [(name, part) for name, part in outputs if name == OUT and part.length]
        return outputs

    def on_watermark(self, time: Millis) -> Outputs:
        """Tell each member the watermark, after what earlier members put out at it was handed on."""
        outputs: Outputs = ()
        for member in self._members:
            outputs = _handed_on(member, outputs)
            if member.guard.operator.uses_time:
                outputs = (*outputs, *member.guard.on_watermark(time))
        return outputs

    @property
    def windows_closed(self) -> int:
        """How many windows the members have closed."""
        return sum(member.guard.operator.windows_closed for member in self._members)

    def expire(self, time: Millis) -> int:
        """Have all members forget the windows that have ended by then."""
        return sum(member.guard.expire(time) for member in self._members)

    def living(self, port: str) -> Hashes:
        """The hashes of the keys of the rows in the windows of the first member."""
        return self._members[0].guard.operator.living(port)

    def forget_stale(self, port: str, missed: MissedRows) -> int:
        """Have the first member forget the rows that are stale."""
        return self._members[0].guard.forget_stale(port, missed)

    def mark_stale(self, time: Millis) -> Outputs:
        """Have all members put out the windows that have ended as tentative.

        Only the last one can have an output beside `out`, so nothing is handed on.
        """
        return [member.guard.mark_stale(time) for member in self._members][-1]

    def by_group(self, rows: int | None) -> None:
        """Have all members captured in groups as far as they can be, or not."""
        for member in self._members:
            member.guard.operator.by_group(rows)

    def capture(self, *, full: bool) -> Capture:
        """Capture all members. It is full if all are; if only some are, an empty part marks each."""
        captures = {m.guard.name + _SEPARATOR: m.guard.capture(full=full) for m in self._members}
        whole = all(capture.full for capture in captures.values())
        parts: dict[str, Batch] = {}
        groups: dict[str, Groups] = {}
        for start, capture in captures.items():
            groups |= {start + part: changed for part, changed in capture.groups.items()}
            if capture.full and not whole:
                parts[start] = Batch({}, 0)
            parts |= {start + part: batch for part, batch in capture.parts.items()}
        return Capture(whole, parts, sum(c.grown for c in captures.values()), groups)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Give each member its own captures, from its last full one on."""
        for member in self._members:
            own: list[Capture] = []
            for capture in captures:
                parts = parts_of(member.guard.name, capture.parts)
                whole = capture.full or parts.pop("", None) is not None
                groups = parts_of(member.guard.name, capture.groups)
                taken = Capture(whole, parts, groups=groups)
                own = [taken] if whole else [*own, taken]
            member.guard.restore(own)


def parts_of(operator: str, parts: Mapping[str, _Part]) -> dict[str, _Part]:
    """The parts of one member in the capture of a chain."""
    start = operator + _SEPARATOR
    return {name[len(start) :]: part for name, part in parts.items() if name.startswith(start)}


def owner_of(task_operator: str, part: str) -> tuple[str, str]:
    """The operator to which a part of a task's state belongs, and the operator's own name for that part."""
    operator, separator, name = part.partition(_SEPARATOR)
    return (operator, name) if separator else (task_operator, part)


def _handed_on(member: _Member, outputs: Outputs) -> Outputs:
    return [
        result
        for name, batch in outputs
        if name == OUT and batch.length
        for result in member.guard.process(member.port, batch)
    ]
