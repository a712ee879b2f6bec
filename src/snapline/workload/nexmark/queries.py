"""The four queries as CheckMate poses them (section VI): a map, two joins, a windowed count.

Windows are tumbling and running ones: output comes with every record, not when the window closes, and
a window is cleaned when it expires. They are 10 s long, in the small size a sixth of the run.

Where this leaves CheckMate: its windows are of processing time. Here they are of the stored stamp of a
record, so that a replayed record falls into the same window, and they expire by the watermark. In q8 the
stamps are a little out of order, so that watermarks have something to hold back. Sources make the
columns that a query uses, and no others.
"""

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.graph import Dataflow
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.base import Params, Workload
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import (
    CATEGORY,
    DISORDER_MS,
    EUROS_PER_1000_DOLLARS,
    LOCAL_STATES,
    SINK,
    judge_q1,
    judge_q3,
    judge_q8,
    judge_q12,
    right_counts,
    right_prices,
    window_ms,
)


def in_euros(bids: Batch) -> Batch:
    """Bids with their price converted from cents of a dollar to cents of a euro."""
    return bids.with_columns(price=bids["price"] * EUROS_PER_1000_DOLLARS // 1000)


def is_local(persons: Batch) -> Array:
    """Who lives in one of the states."""
    state = persons["state"]
    local: Array = np.array([name in LOCAL_STATES for name in state.values])[state.codes]
    return local


def is_wanted(auctions: Batch) -> Array:
    """What belongs to the category."""
    wanted: Array = auctions["category"] == CATEGORY
    return wanted


def build_q1(params: Params) -> Dataflow:
    """Currency conversion: no state, nothing is shuffled."""
    flow = Dataflow("q1")
    flow.source(model.bids(params), name="bids").map(in_euros, name="convert").sink(SINK)
    return flow


def build_q3(params: Params) -> Dataflow:
    """Who sells in one category and lives in one of three states: an incremental join over all time."""
    flow = Dataflow("q3")
    people = flow.source(model.persons(params), name="persons").filter(is_local, name="local")
    lots = flow.source(model.auctions(params), name="auctions").filter(is_wanted, name="category")
    lots.key_by("seller").join(people.key_by("person"), name="join").sink(SINK)
    return flow


def build_q8(params: Params) -> Dataflow:
    """Who registers and opens an auction in the same window: a join within tumbling windows."""
    flow = Dataflow("q8")
    people = flow.source(model.persons(params, DISORDER_MS), name="persons").key_by("person")
    lots = flow.source(model.auctions(params, DISORDER_MS), name="auctions").key_by("seller")
    lots.window_join(people, window_ms(params), name="window-join").sink(SINK)
    return flow


def build_q12(params: Params) -> Dataflow:
    """How many bids a bidder makes in a window: a running count over tumbling windows."""
    flow = Dataflow("q12")
    bids = flow.source(model.bids(params), name="bids").key_by("bidder")
    bids.tumbling(window_ms(params)).running_count(name="count").sink(SINK)
    return flow


Q1 = Workload(
    "q1",
    "NexMark 1: bids in another currency; stateless",
    False,
    build_q1,
    judge_q1,
    judges_prefix=True,
    judges_losses=True,
    answer=AnswerColumns(SINK, ("id",), ("price",)),
    right_answer=right_prices,
)
Q3 = Workload(
    "q3",
    "NexMark 3: an incremental join of two filters",
    False,
    build_q3,
    judge_q3,
    judges_prefix=True,
    judges_losses=True,
)
Q8 = Workload(
    "q8",
    "NexMark 8: a join within tumbling windows",
    False,
    build_q8,
    judge_q8,
    judges_prefix=True,
    judges_losses=True,
)
Q12 = Workload(
    "q12",
    "NexMark 12: running counts per window",
    False,
    build_q12,
    judge_q12,
    judges_prefix=True,
    judges_losses=True,
    answer=AnswerColumns(SINK, ("bidder", "window"), ("count",), replaces=True),
    right_answer=right_counts,
)
