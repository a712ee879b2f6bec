"""The four queries as CheckMate poses them (section VI): a map, two joins, a windowed count.

"Processing-time" windows use the stored stamp of a record, so a replayed record falls into the same window.
The windows are running ones: output comes with every record, not when the window closes.
"""

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.workload.base import Params, Workload
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import (
    EUROS_PER_1000_DOLLARS,
    SINK,
    judge_q1,
)


def in_euros(bids: Batch) -> Batch:
    """Bids with their price converted from cents of a dollar to cents of a euro."""
    return bids.with_columns(price=bids["price"] * EUROS_PER_1000_DOLLARS // 1000)


def build_q1(params: Params) -> Dataflow:
    """Currency conversion: no state, nothing is shuffled."""
    flow = Dataflow("q1")
    flow.source(model.bids(params), name="bids").map(in_euros, name="convert").sink(SINK)
    return flow


Q1 = Workload("q1", "NexMark 1: bids in another currency; stateless", False, build_q1, judge_q1)
