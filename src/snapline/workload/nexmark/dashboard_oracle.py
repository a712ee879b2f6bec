"""What is right for queries 5, 6 and 7, computed from the whole input at once.

Where records may be lost, counts and prices may be lower than they should be, and other auctions may come
out than the right ones; but no auction has more bids, or a higher one, than it got. Where records may be
repeated, counts may be higher; but an auction that should come out is only left out if another one has
even more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import Generated, Ints
from snapline.workload.common.losses import losses_of
from snapline.workload.nexmark import model
from snapline.workload.nexmark.dashboard_losses import (
    judge_loose_sales,
    judge_loose_windows,
    loose_sales,
    loose_windows,
)
from snapline.workload.nexmark.oracle import DISORDER_MS, SINK
from snapline.workload.oracles.bounds_verdict import judge_at_least, judge_at_most
from snapline.workload.oracles.codes import Codes, pieces
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import Problems

SIZE_FULL_MS: Final[Millis] = 10_000
EVERY_FULL_MS: Final[Millis] = 1_000
PANES = 4  # of the small size: a window slides in so many steps ...
STEPS_PER_RUN = 24  # ... of which a run has this many
SALES_FULL, SALES = 10, 2
_PER_AUCTION = {"count": "bids-per-auction", "price": "highest-per-auction"}
SALE_COLUMNS = ("auction", "seller", "expires")


def every_ms(params: Params) -> Millis:
    """After how long the next window of q5 and q7 begins."""
    return EVERY_FULL_MS if params.full else max(params.duration_ms // STEPS_PER_RUN, 1)


def sliding_ms(params: Params) -> Millis:
    """The length of the windows of q5 and q7."""
    return SIZE_FULL_MS if params.full else PANES * every_ms(params)


def last_sales(params: Params) -> int:
    """Of how many auctions of a seller q6 gives the average."""
    return SALES_FULL if params.full else SALES


def lots(params: Params) -> Generated:
    """The auctions of q6: in the full size as many as come beside so many bids, with people for them."""
    if params.full:
        per_partition = params.records * model.AUCTIONS_PER_PERSON // model.BIDS_PER_PERSON
        params = replace(params, records=max(per_partition, 1))
    return model.auctions(params, DISORDER_MS, SALE_COLUMNS)


def judge_q5(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Of every window the auctions with the most bids."""
    return _judge_best(params, output.get(SINK), "count", level)


def judge_q7(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Of every window the auctions with the highest bid."""
    return _judge_best(params, output.get(SINK), "price", level)


def _judge_best(
    params: Params, found: Batch | None, value: str, level: Guarantee
) -> Sequence[Problem]:
    findings, everything, excuses = Problems(level), _windows(params, value), losses_of(params)
    key = ("window", "auction")

    def describe(window: int, auction: int) -> str:
        return f"auction {auction} in window {window}"

    if level is Guarantee.AT_MOST_ONCE:
        judge_at_most(findings, everything, found, key, value, describe, ("time",))
    elif level is Guarantee.AT_LEAST_ONCE:
        judge_at_least(findings, _best(everything, value), found, key, value, describe)
    elif excuses is not None:
        bids = _everything(model.bids(params), "id", "auction", "time")
        shape = (every_ms(params), sliding_ms(params))
        right = _best(everything, value)
        names = (_PER_AUCTION[value], SINK)
        loose = loose_windows(excuses, bids, right, found, value, *shape, names)
        judge_loose_windows(findings, everything, right, found, value, loose, excuses, describe)
    else:
        right = _best(everything, value)
        judge_table(findings, [right], found, key, (value, "time"), describe)
    return findings.problems


def right_best(value: str, params: Params) -> Batch:
    """Of every window the auctions with the largest value, and the time at which the window ends."""
    return _best(_windows(params, value), value)


def _windows(params: Params, value: str) -> Batch:
    """The value of every auction in every window in which it has a bid."""
    every, size = every_ms(params), sliding_ms(params)
    columns = ("auction", "time") if value == "count" else ("auction", "time", "price")
    panes = concat([_panes(piece, every, value) for piece in pieces(model.bids(params), *columns)])
    windows = [
        panes.with_columns(window=panes["window"] - back * every) for back in range(size // every)
    ]
    whole = _reduced(concat(windows), value)
    return whole.with_columns(time=whole["window"] + (size - 1))


def _panes(bids: Batch, every: Millis, value: str) -> Batch:
    values = np.ones(len(bids), np.int64) if value == "count" else bids["price"]
    start = bids["time"] - bids["time"] % every
    return _reduced(Batch({"window": start, "auction": bids["auction"], value: values}), value)


def _reduced(rows: Batch, value: str) -> Batch:
    """One row per window and auction: a sum of counts, or the highest price."""
    codes = Codes([rows["window"], rows["auction"]]).own
    _, first, at = np.unique(codes, return_index=True, return_inverse=True)
    values = np.zeros(len(first), np.int64)
    (np.add if value == "count" else np.maximum).at(values, at, rows[value])
    return rows.select("window", "auction").take(first).with_columns(**{value: values})


def _best(windows: Batch, value: str) -> Batch:
    """The rows with the largest value of their window."""
    _, at = np.unique(windows["window"], return_inverse=True)
    most = np.zeros(len(windows), np.int64)
    np.maximum.at(most, at, windows[value])
    return windows.take(windows[value] == most[at])


def judge_q6(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every sale once, with the average price of the seller's last sales.

    Where sales may be lost or repeated, nobody knows of which the average is.
    """
    findings, found, sales = Problems(level), output.get(SINK), right_sales(params)

    def describe(auction: int) -> str:
        return f"sale of auction {auction}"

    excuses = losses_of(params)
    if level is Guarantee.AT_MOST_ONCE:
        judge_at_most(findings, sales, found, ("auction",), "price", describe, ("seller", "time"))
    elif excuses is not None:
        losses = loose_sales(excuses, sales, _counted(params, sales), SINK)
        judge_loose_sales(findings, sales, found, losses, excuses, describe)
    else:
        values = ["seller", "price", "time"]
        if level is not Guarantee.AT_LEAST_ONCE:
            values.append("average")
        judge_table(findings, [sales], found, ("auction",), values, describe)
    return findings.problems


def right_sales(params: Params) -> Batch:
    """All auctions that were sold, with the average price of the last ones of their sellers."""
    opened = _everything(lots(params), *SALE_COLUMNS, "time", "id")
    bids = _everything(model.bids(params, ("auction", "price")), "auction", "price", "time")
    opened = opened.with_columns(price=_highest(opened, bids))
    sold = opened.take(opened["price"] > 0)
    order = np.lexsort((sold["auction"], sold["expires"], sold["seller"]))
    sold = sold.take(order)
    averages = _averages(sold["seller"], sold["price"], last_sales(params))
    sales = sold.select("auction", "seller", "price", "id").with_columns(opened=sold["time"])
    return sales.with_columns(time=sold["expires"], average=averages)


def _counted(params: Params, sales: Batch) -> Batch:
    """The bids on auctions that were sold, while they were open, with their place among the sales."""
    bids = _everything(model.bids(params, ("auction",)), "id", "auction", "time")
    order = np.argsort(sales["auction"])
    ids = sales["auction"][order]
    if not len(ids):
        return bids.take(np.zeros(0, np.int64)).with_columns(sale=ids, expires=ids)
    at = order[np.minimum(np.searchsorted(ids, bids["auction"]), len(ids) - 1)]
    counts = sales["auction"][at] == bids["auction"]
    counts &= (sales["opened"][at] <= bids["time"]) & (bids["time"] < sales["time"][at])
    return bids.with_columns(sale=at, expires=sales["time"][at]).take(counts)


def _everything(source: Generated, *columns: str) -> Batch:
    return concat(list(pieces(source, *columns)))


def _highest(opened: Batch, bids: Batch) -> Ints:
    """The highest bid on each auction while it was open; 0 if there was none."""
    prices = np.zeros(len(opened), np.int64)
    order = np.argsort(opened["auction"])
    ids = opened["auction"][order]
    if not len(ids):
        return prices
    at = order[np.minimum(np.searchsorted(ids, bids["auction"]), len(ids) - 1)]
    known = opened["auction"][at] == bids["auction"]
    is_open = (opened["time"][at] <= bids["time"]) & (bids["time"] < opened["expires"][at])
    counts = known & is_open
    np.maximum.at(prices, at[counts], bids["price"][counts])
    return prices


def _averages(sellers: Array, prices: Array, size: int) -> Array:
    """The mean of each price and of those before it that belong to the same seller, `size` in all."""
    sums = np.zeros(len(prices), np.int64)
    counts = np.zeros(len(prices), np.int64)
    for back in range(min(size, len(prices))):
        same = np.flatnonzero(sellers[back:] == sellers[: len(sellers) - back]) + back
        sums[same] += prices[same - back]
        counts[same] += 1
    return sums / counts
