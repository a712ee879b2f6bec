"""The two joins as dataflows of four operators: two sources, the join and a sink.

*sjoin*: a record of stream 2 meets those of the last 8,192 rows of stream 1 that have its key. All rows are
looked at, in one task, as SPADE's join does it. *gjoin*: each of 50 keys of stream 1 has a window of its
own, of 1,024 rows, and stream 2 asks for 600 keys. Records of stream 2 are not kept. The rates in SPADE's
table 1 imply about 1,500 keys for sjoin, which the paper does not name.

With `ordered` (as in the small size) records meet in the order of their times, and the result is the same
in every run. Without, they meet as they come, as in SPADE, and the result is judged by whether there is an
order of arrival that explains it.
"""

from functools import partial

from snapline.batch import Array, Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.join import LEFT, RIGHT
from snapline.dataflow.sliding.row_join import RowJoinPlan
from snapline.workload.common.base import Params, Workload
from snapline.workload.joins.model import (
    ASKING,
    GJOIN_SETTINGS,
    SJOIN_SETTINGS,
    STORED,
    asking,
    shape_of,
    stored,
)
from snapline.workload.joins.oracle import SINK, doubts, judge
from snapline.workload.joins.ordered import OrderedRowJoin


def same_key(left: Batch, right: Batch) -> Array:
    """Whether two rows have the same key."""
    same: Array = left["key"] == right["key"]
    return same


def build(by_key: bool, params: Params) -> Dataflow:
    """The dataflow, with one window or one for each key."""
    shape = shape_of(params, by_key=by_key)
    flow = Dataflow("gjoin" if by_key else "sjoin")
    asked = flow.source(asking(params, shape), name=ASKING)
    rows = flow.source(stored(params, shape), name=STORED)
    on = None if by_key else same_key
    if shape.ordered:
        key = "key" if by_key else "whole"
        plan = RowJoinPlan(dict.fromkeys((LEFT, RIGHT), (key,)), {LEFT: 0, RIGHT: shape.window})
        join = partial(OrderedRowJoin, plan, on, shape.tick_ms)
        ports = {RIGHT: rows.key_by(key)}
        pairs = asked.key_by(key).apply(join, name="join", port=LEFT, ports=ports)
    elif by_key:
        windows = rows.key_by("key").sliding(rows=shape.window)
        pairs = asked.key_by("key").sliding(rows=0).join(windows, name="join")
    else:
        window = rows.sliding(rows=shape.window)
        pairs = asked.sliding(rows=0).join(window, match="scan", on=on, name="join")
    pairs.sink(SINK)
    return flow


SJOIN = Workload(
    "sjoin",
    "SPADE's join of one sliding window, which is looked at row by row",
    False,
    partial(build, False),
    partial(judge, False),
    SJOIN_SETTINGS,
    judges_losses=True,
    doubts=partial(doubts, False),
)
GJOIN = Workload(
    "gjoin",
    "SPADE's join of one sliding window for each key",
    False,
    partial(build, True),
    partial(judge, True),
    GJOIN_SETTINGS,
    judges_losses=True,
    doubts=partial(doubts, True),
)
