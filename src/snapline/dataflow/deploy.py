"""Turns the logical graph into tasks and channels: every slot of a pool hosts one task of its operators.

An operator is in the *default pool*, unless it was placed into another with `.pool("model")`: then it has
slots of its own, and can fail without the others. Slots are numbered through: first those of the default
pool, then those of the others, in the order in which the dataflow names them. A task is called after its
operator and its slot.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from snapline.core.policy import DEFAULT_POLICY, Policy
from snapline.core.topology import Channel, Topology
from snapline.dataflow.chain import chain_operators
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.logical import Edge, Graph, Node, OperatorContext, downstream_uses_time
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.operators.saved import captured, check_saved
from snapline.dataflow.partition import ByKey, InTurn, OneToOne, Route, Routing
from snapline.dataflow.pools import NO_POOLS, Placement, pool_sizes, pool_slots
from snapline.dataflow.protection import barriers_by_order, check_policies, is_stateful, settle
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
    partitions: tuple[int, ...]  # those that it reads of the ingress: its share of them all
    sink: str | None  # the sink whose egress takes what the operator puts on `out`
    routes: tuple[Route, ...]
    policy: Policy = DEFAULT_POLICY  # of its operator; whether it is saved is settled
    #: for each port at which it has windows by rows, the columns of their keys
    row_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A dataflow laid out over slots."""

    name: str
    slots: int
    topology: Topology  # tasks in topological order of operators, then by index
    plans: Mapping[TaskId, TaskPlan]
    sinks: Mapping[str, tuple[TaskId, ...]]
    fingerprint: str  # equal for equal graphs and slots, in every process
    pools: Mapping[str, tuple[SlotId, ...]] = field(default_factory=dict)  # the slots of each pool
    protected: tuple[str, ...] = ()  # operators of which somebody said how they are protected
    #: barriers that pair records by their order, with where records may be lost above each
    barriers: Mapping[str, str] = field(default_factory=dict)

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of operators, or of chains of them, that have tasks, in the order of tasks."""
        return tuple(dict.fromkeys(map(operator_of, self.plans)))

    @property
    def follows_time(self) -> bool:
        """Whether any operator is told of time, as those with windows are."""
        return any(route.timed for plan in self.plans.values() for route in plan.routes)


class _Wire(NamedTuple):
    edge: Edge
    channels: tuple[tuple[Channel, ...], ...]  # by source index, then by target index
    routing: Routing  # as the edge says, unless the pools of its ends demand another


def deploy(
    flow: Dataflow, slots: int, *, lean: bool = False, pools: Mapping[str, int] = NO_POOLS
) -> Deployment:
    """Lay a dataflow out over the slots of its pools; raises GraphError if it cannot run.

    `slots` is the size of the default pool, and `pools` has those of others. With `lean`, operators that
    need no message between them become one task (`chain.py`), and a message carries no column that its
    receiver does not read.
    """
    flow.validate()
    graph = flow.graph
    if slots < 1:
        raise GraphError(f"{graph.name} needs at least one slot, not {slots}")
    placed = Placement(pool_slots(slots, pool_sizes(graph, pools)))
    samples = _samples(graph, placed)
    _check_saved(samples)
    check_policies(graph, samples)
    fingerprint = _fingerprint(graph, placed, lean, samples)
    protected = tuple(name for name, node in graph.nodes.items() if node.policy is not None)
    barriers = barriers_by_order(graph, samples)
    if lean:
        graph = chain_operators(graph)
        samples = _samples(graph, placed)
    order = graph.order()
    needs_time = downstream_uses_time(graph, {n: s.uses_time for n, s in samples.items()})
    read = {name: _columns_read(graph, name, samples[name]) if lean else None for name in order}
    wires = _wire(graph, placed)
    plans: dict[TaskId, TaskPlan] = {}
    for name in order:
        node = graph.nodes[name]
        hosts = placed.pools[node.pool]
        for index, slot in enumerate(hosts):
            routes = _routes(name, index, wires, needs_time, read)
            context = OperatorContext(index, len(hosts))
            plan = _plan(node, slot, context, samples[name], routes)
            plans[plan.task] = plan
    sinks = {n: placed.tasks(n, graph.nodes[n].pool) for n in order if graph.nodes[n].is_sink}
    channels = tuple(channel for _, rows, _ in wires for row in rows for channel in row)
    topology = Topology(tuple(plans), channels)
    return Deployment(
        graph.name,
        placed.slots,
        topology,
        plans,
        sinks,
        fingerprint,
        placed.pools,
        protected,
        barriers,
    )


def _samples(graph: Graph, placed: Placement) -> dict[str, Operator]:
    try:
        return {
            name: node.build(OperatorContext(0, len(placed.pools[node.pool])))
            for name, node in graph.nodes.items()
        }
    except OperatorFailed as failed:  # a factory failed, and nothing runs yet
        raise GraphError(str(failed)) from failed


def _check_saved(samples: Mapping[str, Operator]) -> None:
    """Raise GraphError if an operator names attributes to be saved that cannot be."""
    for name, sample in samples.items():
        try:
            check_saved(type(sample), sample.saved)
            captured(sample, sample.saved)
        except TypeError as error:
            raise GraphError(f"'{name}' cannot be saved: {error}") from error


def _columns_read(graph: Graph, name: str, operator: Operator) -> frozenset[str] | None:
    """The columns that an operator needs of its input; None (all) if an output other than `out` is used."""
    outputs = {edge.output for edge in graph.edges if edge.source == name}
    return None if operator.reads is None or outputs - {OUT} else frozenset(operator.reads)


def _wire(graph: Graph, placed: Placement) -> list[_Wire]:
    seen: dict[tuple[str, str, str], int] = {}
    wires: list[_Wire] = []
    for edge in graph.edges:
        key = (edge.source, edge.target, edge.port)
        seen[key] = seen.get(key, 0) + 1
        # Parallel edges, as from two outputs of one operator into one port, get channels of their own.
        mark = ("" if edge.port == IN else f"#{edge.port}") + (
            f"~{seen[key]}" if seen[key] > 1 else ""
        )
        ends = (placed.tasks(name, graph.nodes[name].pool) for name in (edge.source, edge.target))
        wires.append(_wired(edge, mark, *ends))
    return wires


def _wired(
    edge: Edge, mark: str, sources: tuple[TaskId, ...], targets: tuple[TaskId, ...]
) -> _Wire:
    def channel(source: TaskId, target: TaskId) -> Channel:
        name = ChannelId(f"{source}>{target}{mark}")
        return Channel(name, source, target, edge.port, edge.feedback)

    direct = isinstance(edge.routing, OneToOne)
    if direct and len(sources) == len(targets):
        pairs = zip(sources, targets, strict=True)
        return _Wire(edge, tuple((channel(*pair),) for pair in pairs), edge.routing)
    channels = tuple(tuple(channel(source, target) for target in targets) for source in sources)
    return _Wire(edge, channels, InTurn() if direct else edge.routing)


def _routes(
    name: str,
    index: int,
    wires: list[_Wire],
    needs_time: Mapping[str, bool],
    read: Mapping[str, frozenset[str] | None],
) -> tuple[Route, ...]:
    return tuple(
        Route(
            edge.output,
            routing,
            channels[index],
            timed=needs_time[edge.target] and not edge.feedback,
            columns=_sent(edge, read[edge.target]),
        )
        for edge, channels, routing in wires
        if edge.source == name
    )


def _sent(edge: Edge, read: frozenset[str] | None) -> frozenset[str] | None:
    keys = edge.routing.columns if isinstance(edge.routing, ByKey) else ()
    return None if read is None else read.union(keys)


def _plan(
    node: Node, slot: SlotId, context: OperatorContext, sample: Operator, routes: tuple[Route, ...]
) -> TaskPlan:
    stateful = is_stateful(sample)
    ingress = node.bound
    partitions = range(ingress.partitions) if ingress is not None else range(0)
    return TaskPlan(
        task=task_id(node.name, slot),
        slot=slot,
        operator=partial(node.build, context),
        stateful=stateful,
        ingress=ingress,
        partitions=tuple(partitions[context.index :: context.parallelism]),
        sink=node.name if node.is_sink else None,
        routes=routes,
        policy=settle(node.policy, stateful=stateful),
        row_keys=dict(sample.row_keys),
    )


def _fingerprint(
    graph: Graph, placed: Placement, lean: bool, samples: Mapping[str, Operator]
) -> str:
    """A digest of everything on which the meaning of stored state depends."""
    lines = [graph.name, repr(placed.pools)] + ["lean"] * lean
    for name, node in graph.nodes.items():
        source = node.bound
        shape = (sorted(source.schema.items()), source.partitions) if source is not None else ""
        kind = type(samples[name]).__qualname__
        lines.append(repr((name, kind, node.detail, shape, node.pool, node.policy)))
    lines += [repr(edge) for edge in graph.edges]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
