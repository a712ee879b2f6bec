"""Turns the logical graph into tasks and channels: every slot hosts one task of every operator."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from snapline.core.topology import Channel, Topology
from snapline.dataflow.chain import chain_operators
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.logical import Edge, Graph, Node, OperatorContext, downstream_uses_time
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.partition import ByKey, OneToOne, Route
from snapline.errors import GraphError, OperatorFailed
from snapline.ids import ChannelId, SlotId, TaskId, operator_of, task_id
from snapline.storage.api import Ingress


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """All that a slot needs to know to run one task."""

    task: TaskId
    slot: SlotId
    operator: Callable[
        [], Operator
    ]  # builds a fresh instance; sources and sinks pass everything on
    stateful: bool
    ingress: Ingress | None
    partitions: tuple[int, ...]  # those that it reads of the ingress: partition % slots == slot
    sink: str | None  # the sink whose egress takes what the operator puts on `out`
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A dataflow laid out over slots."""

    name: str
    slots: int
    topology: Topology  # tasks in topological order of operators, then by index
    plans: Mapping[TaskId, TaskPlan]
    sinks: Mapping[str, tuple[TaskId, ...]]
    fingerprint: str  # equal for equal graphs and slots, in every process

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of operators, or of chains of them, that have tasks, in the order of tasks."""
        return tuple(dict.fromkeys(map(operator_of, self.plans)))

    @property
    def follows_time(self) -> bool:
        """Whether any operator is told of time, as those with windows are."""
        return any(route.timed for plan in self.plans.values() for route in plan.routes)


#: the channels of one logical edge: by source index, then by target index
_Channels: TypeAlias = tuple[tuple[Channel, ...], ...]


def deploy(flow: Dataflow, slots: int, *, lean: bool = False) -> Deployment:
    """Lay a dataflow out over slots; raises GraphError if it cannot run.

    With `lean`, operators that need no message between them become one task (`chain.py`), and a message
    carries no column that its receiver does not read.
    """
    flow.validate()
    graph = flow.graph
    if slots < 1:
        raise GraphError(f"{graph.name} needs at least one slot, not {slots}")
    fingerprint = _fingerprint(graph, slots, lean, _samples(graph, slots))
    graph = chain_operators(graph) if lean else graph
    order = graph.order()
    samples = _samples(graph, slots)
    needs_time = downstream_uses_time(graph, {n: s.uses_time for n, s in samples.items()})
    read = {name: _columns_read(graph, name, samples[name]) if lean else None for name in order}
    wires = [(edge, channels) for edge, channels in _wire(graph, slots)]
    plans: dict[TaskId, TaskPlan] = {}
    for name in order:
        for slot in range(slots):
            routes = _routes(name, slot, wires, needs_time, read)
            plan = _plan(graph.nodes[name], slot, slots, _is_stateful(samples[name]), routes)
            plans[plan.task] = plan
    sinks = {n: _tasks(n, slots) for n in order if graph.nodes[n].is_sink}
    channels = tuple(channel for _, rows in wires for row in rows for channel in row)
    return Deployment(
        graph.name, slots, Topology(tuple(plans), channels), plans, sinks, fingerprint
    )


def _samples(graph: Graph, slots: int) -> dict[str, Operator]:
    try:
        return {name: node.build(OperatorContext(0, slots)) for name, node in graph.nodes.items()}
    except OperatorFailed as failed:  # a factory failed, and nothing runs yet
        raise GraphError(str(failed)) from failed


def _tasks(name: str, slots: int) -> tuple[TaskId, ...]:
    return tuple(task_id(name, index) for index in range(slots))


def _is_stateful(operator: Operator) -> bool:
    return type(operator).capture is not Operator.capture


def _columns_read(graph: Graph, name: str, operator: Operator) -> frozenset[str] | None:
    """The columns that an operator needs of its input; None (all) if an output other than `out` is used."""
    outputs = {edge.output for edge in graph.edges if edge.source == name}
    return None if operator.reads is None or outputs - {OUT} else frozenset(operator.reads)


def _wire(graph: Graph, slots: int) -> list[tuple[Edge, _Channels]]:
    seen: dict[tuple[str, str, str], int] = {}
    wires = []
    for edge in graph.edges:
        key = (edge.source, edge.target, edge.port)
        seen[key] = seen.get(key, 0) + 1
        # Parallel edges, as from two outputs of one operator into one port, get channels of their own.
        mark = ("" if edge.port == IN else f"#{edge.port}") + (
            f"~{seen[key]}" if seen[key] > 1 else ""
        )
        wires.append((edge, _channels(edge, mark, slots)))
    return wires


def _channels(edge: Edge, mark: str, slots: int) -> _Channels:
    def channel(i: int, j: int) -> Channel:
        source, target = task_id(edge.source, i), task_id(edge.target, j)
        name = ChannelId(f"{source}>{target}{mark}")
        return Channel(name, source, target, edge.port, edge.feedback)

    if isinstance(edge.routing, OneToOne):
        return tuple((channel(i, i),) for i in range(slots))
    return tuple(tuple(channel(i, j) for j in range(slots)) for i in range(slots))


def _routes(
    name: str,
    slot: SlotId,
    wires: list[tuple[Edge, _Channels]],
    needs_time: Mapping[str, bool],
    read: Mapping[str, frozenset[str] | None],
) -> tuple[Route, ...]:
    return tuple(
        Route(
            edge.output,
            edge.routing,
            channels[slot],
            timed=needs_time[edge.target] and not edge.feedback,
            columns=_sent(edge, read[edge.target]),
        )
        for edge, channels in wires
        if edge.source == name
    )


def _sent(edge: Edge, read: frozenset[str] | None) -> frozenset[str] | None:
    keys = edge.routing.columns if isinstance(edge.routing, ByKey) else ()
    return None if read is None else read.union(keys)


def _plan(
    node: Node, slot: SlotId, slots: int, stateful: bool, routes: tuple[Route, ...]
) -> TaskPlan:
    ingress = node.bound
    partitions = range(ingress.partitions) if ingress is not None else ()
    return TaskPlan(
        task=task_id(node.name, slot),
        slot=slot,
        operator=partial(node.build, OperatorContext(slot, slots)),
        stateful=stateful,
        ingress=ingress,
        partitions=tuple(p for p in partitions if p % slots == slot),
        sink=node.name if node.is_sink else None,
        routes=routes,
    )


def _fingerprint(graph: Graph, slots: int, lean: bool, samples: Mapping[str, Operator]) -> str:
    """A digest of everything on which the meaning of stored state depends."""
    lines = [graph.name, str(slots)] + ["lean"] * lean
    for name, node in graph.nodes.items():
        source = node.bound
        shape = (sorted(source.schema.items()), source.partitions) if source is not None else ""
        lines.append(repr((name, type(samples[name]).__qualname__, node.detail, shape)))
    lines += [repr(edge) for edge in graph.edges]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
