"""The dataflow of N-hop: a symmetric join on a cycle.

    edges -+------------ (by start) -+-> join --> extend -+-> walks
           +-> routes -- (by end) ---+                    |
                                     +----- (by end) -----+  feedback

The join keeps everything. To free state a task would have to know that no route older than some
time is still on its way round, and watermarks do not travel on feedback edges. A batch costs a
pass over the state, which is small.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch, Schema, concat
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operator import OUT, Capture, Operator, Outputs
from snapline.ids import Millis
from snapline.workload.base import Params, Workload
from snapline.workload.lists import append, empty_lists, list_lengths, pairs
from snapline.workload.nhop.model import HOPS, edges, ttl_ms
from snapline.workload.nhop.oracle import SINK, judge

EDGES, ROUTES, LONGER = "edges", "routes", "longer"

_EDGES: Schema = {"id": "int64", "time": "int64", "start": "int64", "end": "int64"}
_ROUTES: Schema = {
    "edges": "list",
    "start": "int64",
    "end": "int64",
    "first": "int64",
    "time": "int64",
}


def as_routes(batch: Batch) -> Batch:
    """Every edge as a route of one hop. `first` and `time` are its earliest and latest due time."""
    one = append(empty_lists(batch.length), batch["id"])
    return Batch(
        {
            "edges": one,
            "start": batch["start"],
            "end": batch["end"],
            "first": batch["time"],
            "time": batch["time"],
        },
        batch.length,
    )


class Join(Operator):
    """Pairs routes with the edges that leave the node in which they end."""

    def __init__(self) -> None:
        self._edges = Batch.empty(_EDGES)
        self._routes = Batch.empty(_ROUTES)

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take edges, or routes from the source or from the cycle; return pairs."""
        if port == EDGES:
            self._edges = concat([self._edges, batch])
            joined = _joined(self._routes, batch)
        else:
            self._routes = concat([self._routes, batch])
            joined = _joined(batch, self._edges)
        return ((OUT, joined),) if joined.length else ()

    def capture(self, *, full: bool) -> Capture:
        """The whole state: no column is ever changed in place, so nothing is copied."""
        return Capture(True, {"edges": self._edges, "routes": self._routes})

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take back a state."""
        parts = captures[-1].parts
        self._edges, self._routes = parts["edges"], parts["routes"]


def _joined(routes: Batch, edges: Batch) -> Batch:
    i, j = pairs(routes["end"], edges["start"])
    taken = edges.take(j)
    return routes.take(i).with_columns(
        edge=taken["id"], edge_end=taken["end"], edge_time=taken["time"]
    )


class Extend(Operator):
    """Makes routes that are one hop longer; drops those beyond the TTL, sends unfinished ones back."""

    def __init__(self, ttl_ms: Millis) -> None:
        self._ttl_ms = ttl_ms

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take pairs; return finished walks and routes to go on with."""
        longer = _extended(batch)
        longer = longer.take(longer["time"] - longer["first"] <= self._ttl_ms)
        finished = list_lengths(longer["edges"]) == HOPS
        outputs = ((OUT, longer.take(finished)), (LONGER, longer.take(~finished)))
        return tuple(output for output in outputs if output[1].length)


def _extended(joined: Batch) -> Batch:
    return Batch(
        {
            "edges": append(joined["edges"], joined["edge"]),
            "start": joined["start"],
            "end": joined["edge_end"],
            "first": np.minimum(joined["first"], joined["edge_time"]),
            "time": np.maximum(joined["time"], joined["edge_time"]),
        },
        joined.length,
    )


def build(params: Params) -> Dataflow:
    """The dataflow."""
    flow = Dataflow("nhop")
    stream = flow.source(edges(params), name="edges")
    routes = stream.map(as_routes, name="routes")
    loop = flow.feedback(LONGER)
    joined = stream.key_by("start").apply(
        Join, name="join", port=EDGES, ports={ROUTES: routes.key_by("end"), LONGER: loop}
    )
    extended = joined.apply(partial(Extend, ttl_ms(params)), name="extend")
    extended.output(LONGER).key_by("end").feed(loop)
    extended.sink(SINK)
    return flow


NHOP = Workload("nhop", "walks of three edges within a time to live; cyclic", True, build, judge)
