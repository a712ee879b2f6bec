"""The dataflows of PGVal (figures 1 and 2).

SST: GETs, marshalled, are counted by resource and window. MST: GETs and POSTs are joined by resource and
window, and what the join puts out is counted again by resource and window.

Where this leaves PGVal: its topologies drop ids that they already hold, and its join drops late events;
here nothing is deduplicated, and what is late leaves both topologies through the sink `late`. The join of
MST is one of groups: it puts out one row for each resource and window, with the ids of both sides, rather
than a pair for each GET and each POST, from which no count of events could be told.

The rows of the join leave when its window closes, with times of that window. The second window, of the same
size, must still be open then: its watermark is never ahead of the join's, so it is if it waits at least as
long behind its end as the first; with less, every row would be late. Where a protocol lets a task fall
behind the one after it (at least once), a row may come too late all the same: its events are then late, so
that none is lost on the way.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.aggregate import Aggregate, AggregatePlan, WindowAggregate
from snapline.dataflow.operators.operator import Outputs
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.stream import Stream
from snapline.workload.common.base import Lineage, Params, Workload
from snapline.workload.lineage import model
from snapline.workload.lineage.model import (
    MST_SETTINGS,
    SST_SETTINGS,
    event_label,
    event_ranges,
    lineage_of,
    shape_of,
)
from snapline.workload.lineage.oracle import LATE, SINK, judge_mst, judge_sst


def marshalled(events: Batch) -> Batch:
    """The columns of an event that the operators need."""
    return events.select("id", "time", "resource")


def parted(joined: Batch) -> Batch:
    """The events behind rows of the join, a row for each event."""
    parts = []
    for ids in (joined["get_ids"], joined["post_ids"]):
        rows = np.repeat(np.arange(joined.length), np.diff(ids.offsets))
        events = joined.select("time", "resource").take(rows)
        parts.append(events.with_columns(id=ids.compact().values))
    return Batch(
        {
            name: np.concatenate([part[name] for part in parts])
            for name in ("id", "time", "resource")
        }
    )


class Recount(WindowAggregate):
    """Counts what the join puts out; a row that is late leaves as the events behind it."""

    def process(self, port: str, batch: Batch) -> Outputs:
        """Count the rows that are in time, and pass the events of late rows on."""
        outputs = super().process(port, batch)
        return [(name, parted(rows) if name == "late" else rows) for name, rows in outputs]


COUNTED: Final[Mapping[str, Aggregate]] = {
    "gets": ("sum", "gets"),
    "posts": ("sum", "posts"),
    "get_ids": ("collect", "get_ids"),
    "post_ids": ("collect", "post_ids"),
}


def build_sst(params: Params) -> Dataflow:
    """How often a resource is asked for in a window, and by which events."""
    shape = shape_of(params)
    flow = Dataflow("sst")
    gets = flow.source(model.gets(params), name="gets").map(marshalled, name="marshal")
    windows = gets.key_by("resource").tumbling(shape.window_ms, lateness=shape.lateness_ms)
    counts = windows.aggregate(name="count", count="count", ids=("collect", "id"))
    counts.sink(SINK)
    counts.output("late").sink(LATE)
    return flow


def build_mst(params: Params) -> Dataflow:
    """How often a resource is asked for and changed in a window, and by which events."""
    shape = shape_of(params)
    flow = Dataflow("mst")
    gets = _events(flow, "gets", params)
    posts = _events(flow, "posts", params)
    joined = gets.key_by("resource").window_cogroup(
        posts.key_by("resource"),
        shape.window_ms,
        left={"gets": "count", "get_ids": ("collect", "id")},
        right={"posts": "count", "post_ids": ("collect", "id")},
        lateness=shape.lateness_ms,
        name="join",
    )
    windows = Tumbling(shape.window_ms, lateness_ms=shape.lateness_ms)
    recount = partial(Recount, AggregatePlan.of(("resource",), windows, COUNTED), windows)
    counts = joined.key_by("resource").apply(recount, name="count")
    counts.sink(SINK)
    late = (joined.output("late-left"), joined.output("late-right"), counts.output("late"))
    late[0].union(*late[1:]).sink(LATE)
    return flow


def _events(flow: Dataflow, name: str, params: Params) -> Stream:
    sources = {"gets": model.gets_beside_posts, "posts": model.posts}
    source = flow.source(sources[name](params), name=name)
    return source.map(marshalled, name=f"marshal-{name}")


def _lineage(params: Params, *, with_posts: bool) -> Lineage:
    shape = shape_of(params)
    events = partial(lineage_of, params, with_posts=with_posts)
    ranges = event_ranges(params, with_posts=with_posts)
    return Lineage(events, shape.window_ms, shape.lateness_ms, event_label, ranges)


SST = Workload(
    "sst",
    "PGVal: GETs per resource and window, with their ids and late events",
    False,
    build_sst,
    judge_sst,
    SST_SETTINGS,
    partial(_lineage, with_posts=False),
    judges_prefix=True,
    judges_losses=True,
)
MST = Workload(
    "mst",
    "PGVal: GETs and POSTs joined per resource and window, with their ids",
    False,
    build_mst,
    judge_mst,
    MST_SETTINGS,
    partial(_lineage, with_posts=True),
    judges_prefix=True,
    judges_losses=True,
)
