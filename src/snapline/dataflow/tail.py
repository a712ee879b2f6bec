"""The open end of a dataflow: where records come from, how they are routed on, and what is added there.

Streams (`stream.py`) are how users write a dataflow, and each step of theirs asks a tail to do the work: to
add an operator to the graph, to connect it, and to refuse what cannot run, with a word on what to do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from snapline.batch import Schema
from snapline.dataflow.logical import Edge, Factory, Graph, Node
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.partition import Broadcast, ByKey, OneToOne, Routing
from snapline.dataflow.protection import protected
from snapline.dataflow.usage.given import check_columns, check_kind, check_name
from snapline.dataflow.usage.hints import LOOP_HINTS, Hinted
from snapline.dataflow.usage.policies import Saying
from snapline.errors import GraphError


@dataclass(frozen=True, slots=True)
class Upstream:
    """One output of one operator, and what is known about its columns."""

    node: str
    output: str = OUT
    schema: Schema | None = None


class Loop(Hinted):
    """A declared feedback edge: it leads from the stream that is fed into it to a port of an operator."""

    _hints = LOOP_HINTS

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.target: tuple[str, str] | None = None  # the operator and the port that take it
        self.fed: bool = False


@dataclass(frozen=True, slots=True)
class Tail:
    """One or more outputs of operators, and the route from there to whatever comes next."""

    graph: Graph
    upstreams: tuple[Upstream, ...]
    routing: Routing = field(default_factory=OneToOne)

    @property
    def schema(self) -> Schema | None:
        """The columns, if they are known and all outputs have the same."""
        schemas = [upstream.schema for upstream in self.upstreams]
        return schemas[0] if all(schema == schemas[0] for schema in schemas) else None

    # Steps that change the route, not the records.

    def by_key(self, columns: tuple[str, ...]) -> "Tail":
        """Route by key; raises GraphError if a column is known not to be there."""
        check_columns(columns)
        for upstream in self.upstreams:
            unknown = [
                c for c in columns if upstream.schema is not None and c not in upstream.schema
            ]
            if unknown:
                raise GraphError(
                    f"'{upstream.node}' has no column {', '.join(unknown)} to key by:"
                    f" it has {', '.join(upstream.schema or ())}"
                )
        return replace(self, routing=ByKey(columns))

    def to_one_task(self) -> "Tail":
        """Route all records to one task; raises GraphError if they are routed to all of them."""
        if isinstance(self.routing, Broadcast):
            raise GraphError("windows over all records are in one task: leave broadcast() out")
        return replace(self, routing=ByKey(()))

    def union(self, others: Sequence["Tail"]) -> "Tail":
        """The outputs of all tails as one; none of them may be routed by key or broadcast yet."""
        for tail in (self, *others):
            self._check_same_graph(tail)
            if not isinstance(tail.routing, OneToOne):
                raise GraphError("union comes before key_by and broadcast: route what it returns")
        upstreams = [upstream for tail in (self, *others) for upstream in tail.upstreams]
        return Tail(self.graph, tuple(upstreams))

    def output(self, name: str) -> "Tail":
        """Another output of the one operator behind this tail."""
        if len(self.upstreams) != 1:
            raise GraphError("a union has no outputs of its own: ask its parts for theirs")
        return Tail(self.graph, (Upstream(self.upstreams[0].node, name),))

    def pool(self, name: str) -> "Tail":
        """Place the one operator behind this tail into a pool."""
        check_name(name)
        return self._change("place", lambda node: replace(node, pool=name))

    def protect(self, said: Saying) -> "Tail":
        """Take what is said about the protection of the one operator behind this tail."""
        return self._change("protect", partial(protected, said=said))

    def _change(self, verb: str, change: Callable[[Node], Node]) -> "Tail":
        if len(self.upstreams) != 1:
            raise GraphError(f"a union is no operator: {verb} its parts, or what takes it")
        name = self.upstreams[0].node
        self.graph.nodes[name] = change(self.graph.nodes[name])
        return self

    # Steps that add an operator, or an edge.

    def add(
        self,
        kind: str,
        factory: Factory,
        name: str | None,
        *,
        port: str = IN,
        ports: Mapping[str, "Tail | Loop"] | None = None,
        detail: str = "",
        schema: Schema | None = None,
    ) -> "Tail":
        """Add an operator, fed by this tail at `port` and by `ports` at theirs; return its output."""
        for other in (ports or {}).values():
            check_kind("ports", (Tail, Loop), "streams and loops", other)
        node = Node(name or self.graph.fresh_name(kind), factory, detail=detail)
        self.graph.add(node)
        self._connect(node.name, port)
        for other_port, other in (ports or {}).items():
            if isinstance(other, Tail):
                self._check_same_graph(other)
                other._connect(node.name, other_port)
            elif other.target is not None:
                raise GraphError(f"the loop '{other.name}' already leads to '{other.target[0]}'")
            else:
                other.target = (node.name, other_port)
        return Tail(self.graph, (Upstream(node.name, schema=schema),))

    def end(self, name: str, folder: str | None = None) -> None:
        """Add a sink, which publishes what comes to it, and may write Parquet files into a folder, too."""
        pools = {self.graph.nodes[upstream.node].pool for upstream in self.upstreams}
        pool = pools.pop() if len(pools) == 1 else ""  # it is where its input is
        added = self.graph.add(Node(name, Operator, is_sink=True, folder=folder, pool=pool))
        self._connect(added.name, IN)

    def feed(self, loop: Loop) -> None:
        """Close a cycle: connect this tail to the port that takes the loop."""
        if loop.target is None:
            raise GraphError(
                f"no operator takes the loop '{loop.name}': name it in apply(ports=...)"
            )
        loop.fed = True
        self._connect(*loop.target, feedback=True)

    def _connect(self, target: str, port: str, *, feedback: bool = False) -> None:
        edge = Edge("", target, self.routing, port=port, feedback=feedback)
        for upstream in self.upstreams:
            self.graph.connect(replace(edge, source=upstream.node, output=upstream.output))

    def _check_same_graph(self, other: "Tail") -> None:
        if other.graph is not self.graph:
            raise GraphError(f"{other.graph.name} and {self.graph.name} are different dataflows")


def keyed_alike(
    tails: Sequence[Tail], by: Sequence[str]
) -> tuple[list[Tail], list[tuple[str, ...]]]:
    """The tails of streams that are brought together, routed by these columns if there are any.

    Returns also the columns by which each is routed. Raises GraphError if they cannot be routed so.
    """
    if by:
        if any(not isinstance(tail.routing, OneToOne) for tail in tails):
            raise GraphError("by= routes the streams itself: leave out key_by and broadcast")
        tails = [tail.by_key(tuple(by)) for tail in tails]
    if any(not isinstance(tail.routing, OneToOne | ByKey) for tail in tails):
        raise GraphError("a barrier takes streams as they are, or keyed: leave out broadcast")
    routings = [tail.routing for tail in tails]
    return list(tails), [r.columns if isinstance(r, ByKey) else () for r in routings]
