"""What is right for the habits of bidders: some order of arrival explains the windows of each of them.

Where bids may be lost or repeated, nobody knows which were in a window: then every bid comes out, with what
it is itself. Where losses were declared, that holds for the bids of a bidder from the first on that a loss
may have touched.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import PARTITION_BITS, label
from snapline.workload.common.losses import Bools, Stay, losses_of, stay_of
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import SINK
from snapline.workload.oracles.codes import pieces
from snapline.workload.oracles.last_rows import Aggregates, RowWindows, judge_last_rows
from snapline.workload.oracles.table_verdict import TableExcuses, judge_table
from snapline.workload.oracles.verdict import Problems

COLUMNS: Final = ("bidder", "price")
BIDS_FULL, BIDS = 20, 3
RESULTS: Final[Aggregates] = {
    "price": ("last", "price"),
    "total": ("sum", "price"),
    "average": ("mean", "price"),
    "lowest": ("min", "price"),
    "highest": ("max", "price"),
}
_WEAKER = (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)


def last_bids(params: Params) -> int:
    """How many bids of a bidder are looked at."""
    return BIDS_FULL if params.full else BIDS


def judge_habits(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every bid once, with figures of windows that an order of arrival explains."""
    findings, found = Problems(level), output.get(SINK)
    bids = concat(list(pieces(model.bids(params, COLUMNS), "id", "time", *COLUMNS)))
    describe, losses = partial(label, "bid"), _losses(params)
    values = ("bidder", "price", "time")
    judge_table(findings, [bids], found, ("id",), values, describe, losses=losses)
    if level in _WEAKER or findings.problems or found is None or not len(found):
        return findings.problems
    loose = np.zeros(len(bids), np.bool_) if losses is None else _loose(bids, losses)
    if losses is not None:
        losses.excuses.account(free=int(np.count_nonzero(loose)))
    shape = RowWindows(("bidder",), last_bids(params), RESULTS)
    records = bids.with_columns(partition=bids["id"] >> PARTITION_BITS)
    results = found.take(np.isin(found["id"], bids["id"]))
    judge_last_rows(findings, shape, records, results, describe, loose)
    return findings.problems


def _losses(params: Params) -> TableExcuses | None:
    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, _stays)


def _stays(bids: Batch) -> Sequence[Stay]:
    """Where a bid is on its way to its result."""
    time = bids["time"]
    return (
        stay_of(("bids",), time, partition=bids["id"] >> PARTITION_BITS),
        stay_of(("habits", SINK), time, key=(bids["bidder"],)),
    )


def _loose(bids: Batch, losses: TableExcuses) -> Bools:
    """Which bids are the first of their bidder that a loss may have touched, or later ones."""
    time, excuses = bids["time"], losses.excuses
    window = Stay(("habits",), (bids["bidder"],), None, np.zeros_like(time), time, time)
    stays = _stays(bids)
    touched = excuses.late(*stays, window) | excuses.repeated(*stays, window)
    bidders, at = np.unique(bids["bidder"], return_inverse=True)
    since = np.full(len(bidders), np.iinfo(np.int64).max)
    np.minimum.at(since, at[touched], time[touched])
    loose: Bools = time >= since[at]
    return loose
