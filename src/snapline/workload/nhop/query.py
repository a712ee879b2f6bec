"""The dataflow of N-hop: a symmetric join on a cycle.

    edges -+------------ (by start) -+-> join --> extend -+-> walks
           +-> routes -- (by end) ---+                    |
                                     +----- (by end) -----+  feedback

What is further apart than the TTL never meets: the join keeps edges and routes by stretches of time. Routes
wait for edges, and edges come from the source alone, so the watermark tells when a route has met all that
it ever will, and it is freed. Edges wait for routes, which also come round the cycle, where watermarks do
not travel: nobody knows whether an old route is still on its way, so edges are kept for ever. That costs
memory, but no time: old stretches are not looked at.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.messages import BEFORE_TIME
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.ids import Millis
from snapline.workload.common.base import Params, Workload
from snapline.workload.common.generated import Ints
from snapline.workload.common.lists import append, empty_lists, list_lengths
from snapline.workload.nhop.buckets import Buckets, Stretches
from snapline.workload.nhop.model import HOPS, edges, ttl_ms
from snapline.workload.nhop.oracle import SINK, judge

EDGES, ROUTES, LONGER = "edges", "routes", "longer"
CLOCK = "clock"


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


class HopJoin(Operator):
    """Pairs routes with the edges that leave the node in which they end, within the TTL."""

    uses_time = True

    def __init__(self, ttl_ms: Millis) -> None:
        self._ttl_ms: Final = ttl_ms
        self._edges: Final = Stretches("time", "start", ttl_ms)
        self._routes: Final = Buckets("first", "end", ttl_ms)
        self._watermark: Millis = BEFORE_TIME

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take edges, or routes from the source or from the cycle; return pairs."""
        if port == EDGES:
            self._edges.add(batch)
            near = self._routes.near(batch["start"], batch["time"])
            pairs = [self._pairs(routes, i, batch, j) for j, routes, i in near]
        else:
            self._routes.add(batch)
            near = self._edges.near(batch["end"], batch["first"])
            pairs = [self._pairs(batch, i, edges, j) for i, edges, j in near]
        pairs = [pair for pair in pairs if pair.length]
        return ((OUT, concat(pairs)),) if pairs else ()

    def _pairs(self, routes: Batch, i: Ints, edges: Batch, j: Ints) -> Batch:
        """Routes i with edges j, unless they are too far apart."""
        time = edges["time"][j]
        first = np.minimum(routes["first"][i], time)
        near = np.maximum(routes["time"][i], time) - first <= self._ttl_ms
        i, j = i[near], j[near]
        return routes.take(i).with_columns(
            edge=edges["id"][j], edge_end=edges["end"][j], edge_time=edges["time"][j]
        )

    def on_watermark(self, time: Millis) -> Outputs:
        """Free the routes that no edge can meet any more."""
        self._watermark = time
        self._routes.drop(time)
        return ()

    def capture(self, *, full: bool) -> Capture:
        """Edges and routes, all or those that are new, and the watermark."""
        clock = Batch({"watermark": np.array([self._watermark], np.int64)})
        parts = {EDGES: self._edges.capture(full=full), ROUTES: self._routes.capture(full=full)}
        return Capture(full, {**parts, CLOCK: clock})

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take back a state."""
        self.on_watermark(int(captures[-1].parts[CLOCK]["watermark"][0]))
        self._edges.restore([capture.parts[EDGES] for capture in captures])
        self._routes.restore([capture.parts[ROUTES] for capture in captures])


class Extend(Operator):
    """Makes routes that are one hop longer, and sends unfinished ones back."""

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take pairs; return finished walks and routes to go on with."""
        longer = _extended(batch)
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
        partial(HopJoin, ttl_ms(params)),
        name="join",
        port=EDGES,
        ports={ROUTES: routes.key_by("end"), LONGER: loop},
    )
    extended = joined.apply(Extend, name="extend")
    extended.output(LONGER).key_by("end").feed(loop)
    extended.sink(SINK)
    return flow


NHOP = Workload(
    "nhop",
    "walks of three edges within a time to live; cyclic",
    True,
    build,
    judge,
    judges_prefix=True,
    judges_losses=True,
)
