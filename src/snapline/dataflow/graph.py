"""A dataflow: what a user builds, and what becomes tasks and channels when it is deployed.

flow = Dataflow("q12")
bids = flow.source(ingress, name="bids")
bids.key_by("bidder").tumbling("10s").count().sink("counts")
deployment = deploy(flow, slots=3)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from snapline.arguments import shown
from snapline.dataflow.feeds.feed import EndlessFeed, Feed
from snapline.dataflow.feeds.frames import Rate, frame_feed, is_frame
from snapline.dataflow.logical import Edge, Factory, Graph, Node, OperatorContext
from snapline.dataflow.operators.operator import Operator
from snapline.dataflow.partition import Broadcast, ByKey, OneToOne, Route, Routing
from snapline.dataflow.pools import placed
from snapline.dataflow.protection import overruled
from snapline.dataflow.stream import KeyedStream, Stream
from snapline.dataflow.tail import Loop, Tail, Upstream
from snapline.dataflow.usage.hints import DATAFLOW_HINTS, Hinted
from snapline.durations import LONGEST_MS
from snapline.errors import GraphError
from snapline.ids import Millis
from snapline.storage.api import Ingress

__all__ = [
    "Broadcast",
    "ByKey",
    "Dataflow",
    "Edge",
    "Factory",
    "KeyedStream",
    "Loop",
    "Node",
    "OneToOne",
    "OperatorContext",
    "Route",
    "Routing",
    "Stream",
]


class Dataflow(Hinted):
    """A builder: sources begin streams, streams add operators, sinks end them."""

    _hints = DATAFLOW_HINTS

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.graph: Final = Graph(name)
        self._loops: list[Loop] = []

    def source(
        self,
        ingress: Ingress | Feed | Any,
        *,
        name: str | None = None,
        time: str | None = None,
        disorder: str | Millis = 0,
        rate: Rate | None = None,
    ) -> Stream:
        """Begin a stream of the records of an input, or of the rows of a Spark DataFrame.

        `flow.source(bids, name="bids")`; `flow.source(df, time="at")`. Of a DataFrame `time` names the
        column with the times of its rows: a timestamp, or a bigint in milliseconds; `time` if there is
        one. Rows are due at their times, counted from the first, unless `rate` says how many per second,
        or `"max"`: all at once, as without a time. With `disorder` they come out of order, up to so much
        behind their times.
        """
        if is_frame(ingress):
            ingress = frame_feed(ingress, time=time, disorder=disorder, rate=rate)
        else:
            _check_input(ingress, {"time": time, "disorder": disorder, "rate": rate})
        node = Node(name or self.graph.fresh_name("source"), Operator, ingress=ingress)
        self.graph.add(node)
        return Stream(Tail(self.graph, (Upstream(node.name, schema=ingress.schema),)))

    def feedback(self, name: str = "feedback") -> Loop:
        """Declare a feedback edge: give it to `apply(ports=...)`, then `stream.feed(loop)`."""
        loop = Loop(name)
        self._loops.append(loop)
        return loop

    def with_sources(self, change: Callable[[str, Ingress | Feed], Ingress | Feed]) -> "Dataflow":
        """The same dataflow, with other inputs for its sources: `change(name, input)`."""
        changed: dict[str, Node] = {}
        for name, node in self.graph.nodes.items():
            if node.ingress is not None:
                changed[name] = replace(node, ingress=change(name, node.ingress))
        return self._with_nodes(changed)

    def with_policies(self, save: Mapping[str, str], inputs: Mapping[str, str]) -> "Dataflow":
        """The same dataflow, with operators protected as these texts say, and not as it says itself.

        `with_policies({"model": "1s", "clicks": "no"}, {"model": "keep"})`. Raises GraphError.
        """
        return self._with_nodes(overruled(self.graph, save, inputs))

    def with_pools(self, names: Iterable[str]) -> "Dataflow":
        """The same dataflow, in which an operator has a pool of its own if a pool is named as it is.

        Pools that the dataflow has are left as they are. Raises GraphError if there is no such operator.
        """
        return self._with_nodes(placed(self.graph, names))

    def _with_nodes(self, others: Mapping[str, Node]) -> "Dataflow":
        changed = Dataflow(self.name)
        changed._loops = self._loops
        changed.graph.edges.extend(self.graph.edges)
        for name, node in self.graph.nodes.items():
            changed.graph.add(others.get(name, node))
        return changed

    def bind(self, partitions: int, duration_ms: Millis) -> "Dataflow":
        """The same dataflow, with every feed bound to an ingress of this size."""
        return self.with_sources(
            lambda name, old: old.bind(partitions, duration_ms) if isinstance(old, Feed) else old
        )

    def bind_endless(self, partitions: int) -> "Dataflow":
        """The same dataflow without an end; feeds that are bounded by nature are bound to all they have."""

        def bound(name: str, old: Ingress | Feed) -> Ingress | Feed:
            if isinstance(old, EndlessFeed):
                return old.bind_endless(partitions)
            return old.bind(partitions, LONGEST_MS) if isinstance(old, Feed) else old

        return self.with_sources(bound)

    def validate(self) -> None:
        """Raise GraphError if the dataflow cannot run."""
        self.graph.validate()
        for loop in self._loops:
            if not loop.fed:
                raise GraphError(
                    f"nothing is fed into the loop '{loop.name}': use stream.feed(loop)"
                )


def _check_input(given: Any, reading: Mapping[str, Any]) -> None:
    """Raise GraphError if something is no input, or was given with arguments that are for DataFrames."""
    if type(given).__module__.partition(".")[0] == "pandas":
        raise GraphError("a source takes a DataFrame of Spark's: use spark.createDataFrame(df)")
    if not hasattr(given, "schema"):
        raise GraphError(
            f"a source takes a DataFrame, or an input as sl.records(...), not {shown(given)}"
        )
    for argument, value in reading.items():
        if value:
            raise GraphError(f"{argument}= is for DataFrames: this input says it itself")
