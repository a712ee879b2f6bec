"""Streams: the fluent way to build a dataflow. Every step adds one operator to the graph.

A stream is where records come from (one or more outputs of operators) and how they are routed to whatever
comes next: to the same slot, by key after `key_by`, or to every slot after `broadcast`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from snapline.batch import Array, Batch, Schema
from snapline.dataflow.hints import LOOP_HINTS, STREAM_HINTS, Hinted
from snapline.dataflow.logical import Edge, Factory, Graph, Node
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.operators.stateless import Filter, Map, MapRecords, RecordFunction
from snapline.dataflow.partition import Broadcast, ByKey, OneToOne, Routing
from snapline.errors import GraphError

if TYPE_CHECKING:
    from snapline.dataflow.keyed import KeyedStream


@dataclass(frozen=True, slots=True)
class Upstream:
    """One output of one operator, and what is known about its columns."""

    node: str
    output: str = OUT
    schema: Schema | None = None


class Loop(Hinted):
    """A declared feedback edge: an operator takes it as one of its `ports`, a stream is fed into it."""

    _hints = LOOP_HINTS

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.target: tuple[str, str] | None = None  # the operator and the port that take it
        self.fed: bool = False


class Stream(Hinted):
    """Records on their way to the next operator."""

    _hints = STREAM_HINTS

    def __init__(
        self, graph: Graph, upstreams: tuple[Upstream, ...], routing: Routing | None = None
    ) -> None:
        self._graph: Final = graph
        self._upstreams: Final = upstreams
        self._routing: Final[Routing] = routing if routing is not None else OneToOne()

    @property
    def schema(self) -> Schema | None:
        """The columns, if they are known: functions may return anything."""
        schemas = [upstream.schema for upstream in self._upstreams]
        return schemas[0] if all(schema == schemas[0] for schema in schemas) else None

    # Steps that change the route, not the records.

    def key_by(self, *columns: str) -> "KeyedStream":
        """Send records with equal values in these columns to one task: `bids.key_by("bidder")`."""
        from snapline.dataflow.keyed import KeyedStream  # a keyed stream is a stream

        if not columns:
            raise GraphError("key_by needs at least one column")
        for upstream in self._upstreams:
            unknown = [
                c for c in columns if upstream.schema is not None and c not in upstream.schema
            ]
            if unknown:
                raise GraphError(
                    f"'{upstream.node}' has no column {', '.join(unknown)} to key by:"
                    f" it has {', '.join(upstream.schema or ())}"
                )
        return KeyedStream(self._graph, self._upstreams, ByKey(columns))

    def broadcast(self) -> "Stream":
        """Send every record to every task of the next operator: `deletions.broadcast()`."""
        return Stream(self._graph, self._upstreams, Broadcast())

    def union(self, *others: "Stream") -> "Stream":
        """Merge streams, in no particular order: `a.union(b, c)`. Route the result, not the parts."""
        for stream in (self, *others):
            self._same_graph(stream)
            if not isinstance(stream._routing, OneToOne):
                raise GraphError("union comes before key_by and broadcast: route what it returns")
        upstreams = [upstream for stream in (self, *others) for upstream in stream._upstreams]
        return Stream(self._graph, tuple(upstreams))

    def output(self, name: str) -> "Stream":
        """Another output of the operator behind this stream: `windows.output("late")`."""
        if len(self._upstreams) != 1:
            raise GraphError("a union has no outputs of its own: ask its parts for theirs")
        return Stream(self._graph, (Upstream(self._upstreams[0].node, name),))

    # Steps that add an operator.

    def map(
        self,
        function: Callable[[Batch], Batch],
        *,
        name: str | None = None,
    ) -> "Stream":
        """A batch for a batch: `bids.map(lambda b: b.with_columns(euro=b["price"] * 0.9))`."""
        return self._add("map", partial(Map, function), name)

    def flat_map(
        self,
        function: Callable[[Batch], Batch],
        *,
        name: str | None = None,
    ) -> "Stream":
        """As `map`, where the result may have another number of records, even none."""
        return self._add("flat-map", partial(Map, function), name)

    def filter(
        self,
        function: Callable[[Batch], Array],
        *,
        name: str | None = None,
    ) -> "Stream":
        """Keep the records under a mask: `bids.filter(lambda b: b["price"] > 100)`."""
        return self._add("filter", partial(Filter, function), name, schema=self.schema)

    def map_records(
        self,
        function: RecordFunction,
        *,
        name: str | None = None,
    ) -> "Stream":
        """Per record: the function takes a dict and returns a dict, a list of them, or None."""
        return self._add("map-records", partial(MapRecords, function), name)

    def apply(
        self,
        factory: Factory,
        *,
        name: str,
        port: str = IN,
        ports: Mapping[str, "Stream | Loop"] | None = None,
    ) -> "Stream":
        """An operator of your own: `links.apply(Paths, name="paths", ports={"back": loop})`.

        This stream feeds `port`; `ports` names the streams and loops that feed the operator's other inputs.
        """
        return self._add("apply", factory, name, port=port, ports=ports)

    def sink(self, name: str) -> None:
        """The end of a stream: `counts.sink("counts")` names what is written and published."""
        self._connect(self._graph.add(Node(name, Operator, is_sink=True)).name, IN)

    def feed(self, loop: Loop) -> None:
        """Close a cycle: `extended.key_by("end").feed(loop)`."""
        if loop.target is None:
            raise GraphError(
                f"no operator takes the loop '{loop.name}': name it in apply(ports=...)"
            )
        loop.fed = True
        self._connect(*loop.target, feedback=True)

    # How it is done.

    def _add(
        self,
        kind: str,
        factory: Factory,
        name: str | None,
        *,
        port: str = IN,
        ports: Mapping[str, "Stream | Loop"] | None = None,
        detail: str = "",
        schema: Schema | None = None,
    ) -> "Stream":
        node = Node(name or self._graph.fresh_name(kind), factory, detail=detail)
        self._graph.add(node)
        self._connect(node.name, port)
        for other_port, other in (ports or {}).items():
            if isinstance(other, Stream):
                self._same_graph(other)
                other._connect(node.name, other_port)
            elif other.target is not None:
                raise GraphError(f"the loop '{other.name}' already leads to '{other.target[0]}'")
            else:
                other.target = (node.name, other_port)
        return Stream(self._graph, (Upstream(node.name, schema=schema),))

    def _connect(self, target: str, port: str, *, feedback: bool = False) -> None:
        edge = Edge("", target, self._routing, port=port, feedback=feedback)
        for upstream in self._upstreams:
            self._graph.connect(replace(edge, source=upstream.node, output=upstream.output))

    def _same_graph(self, other: "Stream") -> None:
        if other._graph is not self._graph:
            raise GraphError(f"{other._graph.name} and {self._graph.name} are different dataflows")
