"""Queries 5, 6 and 7: what a screen in an auction house shows, over windows that slide.

*q5*: the auctions with the most bids of the last 10 s, every second. *q7*: those with the highest bid.
*q6*: the average price of the last 10 auctions that each seller has sold, at every sale. In the small size
windows are a sixth of the run, slide in quarters, and q6 looks at the last two auctions.

In q5 and q7 each task first finds the best of its own auctions. Only these are compared with each other,
so what is shuffled between the tasks is a few rows per window. In q6 sales are brought into the order
in which auctions closed, so the windows by rows are the same in every run.

Where this leaves NexMark: its windows of q7 do not overlap, and its result also names the bidder. A sale in
q6 does not ask for the reserve price, as in NexMark's own SQL.
"""

from functools import partial

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow, Stream
from snapline.ids import Millis
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.base import Params, Workload
from snapline.workload.nexmark import model
from snapline.workload.nexmark.closing import AUCTIONS, BIDS, Closing, InOrder
from snapline.workload.nexmark.dashboard_oracle import (
    every_ms,
    judge_q5,
    judge_q6,
    judge_q7,
    last_sales,
    lots,
    right_best,
    right_sales,
    sliding_ms,
)
from snapline.workload.nexmark.oracle import SINK


def best_here(value: str, size_ms: Millis, results: Batch) -> Batch:
    """Of each window the rows with the largest value, with the end of the window as their time."""
    windows, at = np.unique(results["window"], return_inverse=True)
    most = np.full(len(windows), np.iinfo(np.int64).min)
    np.maximum.at(most, at, results[value])
    best = results.take(results[value] == most[at])
    columns = best.select("auction", value).columns
    return Batch({**columns, "period": best["window"], "time": best["window"] + (size_ms - 1)})


def shown(value: str, pairs: Batch) -> Batch:
    """The columns of the result: window, auction, value and time."""
    period = pairs.columns["period"]
    return Batch({"window": period, **pairs.select("auction", value, "time").columns}, pairs.length)


def best_of_all(results: Stream, value: str, params: Params) -> Stream:
    """Of each window the auctions with the largest value."""
    every = every_ms(params)
    here = results.flat_map(partial(best_here, value, sliding_ms(params)), name="best-here")
    most = here.key_by("period").tumbling(every).aggregate(most=("max", value), name="most")
    best = here.key_by("period", value).window_join(
        most.key_by("period", "most"), every, name="best"
    )
    return best.map(partial(shown, value), name="shown")


def build_q5(params: Params) -> Dataflow:
    """Hot items: the auctions with the most bids."""
    flow = Dataflow("q5")
    bids = flow.source(model.bids(params, ("auction",)), name="bids").key_by("auction")
    counts = bids.sliding(sliding_ms(params), every=every_ms(params)).count(name="bids-per-auction")
    best_of_all(counts, "count", params).sink(SINK)
    return flow


def build_q6(params: Params) -> Dataflow:
    """Average prices: the last auctions that each seller has sold."""
    flow = Dataflow("q6")
    bids = flow.source(model.bids(params, ("auction", "price")), name="bids").key_by("auction")
    opened = flow.source(lots(params), name="auctions").key_by("auction")
    sold = opened.apply(Closing, name="closing", port=AUCTIONS, ports={BIDS: bids})
    ordered = sold.key_by("seller").apply(InOrder, name="in-order").key_by("seller")
    averages = ordered.sliding(rows=last_sales(params)).aggregate(
        auction=("last", "auction"),
        price=("last", "price"),
        average=("mean", "price"),
        name="average",
    )
    averages.sink(SINK)
    return flow


def build_q7(params: Params) -> Dataflow:
    """Highest bid: the auctions that have it."""
    flow = Dataflow("q7")
    bids = flow.source(model.bids(params, ("auction", "price")), name="bids").key_by("auction")
    windows = bids.sliding(sliding_ms(params), every=every_ms(params))
    highest = windows.aggregate(price=("max", "price"), name="highest-per-auction")
    best_of_all(highest, "price", params).sink(SINK)
    return flow


Q5 = Workload(
    "q5",
    "NexMark 5: auctions with the most bids, sliding",
    False,
    build_q5,
    judge_q5,
    answer=AnswerColumns(SINK, ("window", "auction"), ("count",)),
    right_answer=partial(right_best, "count"),
    judges_losses=True,
)
Q6 = Workload(
    "q6",
    "NexMark 6: average of each seller's last sales",
    False,
    build_q6,
    judge_q6,
    answer=AnswerColumns(SINK, ("auction",), ("average", "price")),
    right_answer=right_sales,
    judges_losses=True,
)
Q7 = Workload(
    "q7",
    "NexMark 7: auctions with the highest bid, sliding",
    False,
    build_q7,
    judge_q7,
    answer=AnswerColumns(SINK, ("window", "auction"), ("price",)),
    right_answer=partial(right_best, "price"),
    judges_losses=True,
)
