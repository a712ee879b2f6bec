"""Queries 5, 6 and 7 where losses were declared: what no loss touched has to be right.

In q5 and q7 a window is *loose* if a loss may have touched any of its bids, or what became of them: then
another auction may be the best, but none has more than it got. In q6 the price of a sale may be lower if
one of its bids was touched, and it need not come out if all of them were; the average of a seller is loose
from the first such sale on.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from snapline.batch import Array, Batch
from snapline.ids import Millis
from snapline.workload.common.generated import PARTITION_BITS, Ints
from snapline.workload.common.losses import Bools, Excuses, Stay, stay_of
from snapline.workload.oracles.bounds_verdict import judge_at_most
from snapline.workload.oracles.codes import Codes
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of


@dataclass(frozen=True, slots=True)
class LooseWindows:
    """The windows that a loss may have touched, and those whose bids or rows may have come again."""

    loose: Ints
    again: Ints


def loose_windows(
    excuses: Excuses,
    bids: Batch,
    best: Batch,
    found: Batch | None,
    value: str,
    every: Millis,
    size: Millis,
    operators: tuple[str, str],
) -> LooseWindows:
    """What losses touch of q5 and q7; `operators` are the one that counts bids, and the sink.

    In a loose window other auctions than the best may have come out, and passed other tasks: `found` says
    which, for what may have come again.
    """
    counting, sink = operators
    time, partition = bids["time"], bids["id"] >> PARTITION_BITS
    pane = time - time % every
    source = stay_of(("bids",), time, partition=partition)
    late, twice = excuses.late(source), excuses.repeated(source)
    loose, again = [], []
    for back in range(size // every):
        window = pane - back * every
        end = window + size
        stay = Stay((counting, "best-here"), (bids["auction"],), None, time, end, end)
        loose.append(window[late | excuses.late(stay)])
        again.append(window[twice | excuses.repeated(stay)])

    def stays(rows: Batch, longest: Millis) -> tuple[Stay, Stay]:
        end = rows["window"] + size
        shown = end + longest
        key = (rows["window"], rows[value])
        most = Stay(("most",), key[:1], None, end, shown, shown)
        return most, Stay(("best", "shown", sink), key, None, end, shown, shown)

    loose.append(best["window"][excuses.late(*stays(best, every))])
    again.append(best["window"][excuses.repeated(*stays(best, 0))])
    repeated = np.unique(np.concatenate(again))
    windows = np.union1d(np.concatenate(loose), repeated)
    if found is not None and len(found):
        others = found.take(np.isin(found["window"], windows))
        repeated = np.union1d(repeated, others["window"][excuses.repeated(*stays(others, 0))])
    return LooseWindows(windows, repeated)


def judge_loose_windows(
    findings: Problems,
    everything: Batch,
    best: Batch,
    found: Batch | None,
    value: str,
    windows: LooseWindows,
    excuses: Excuses,
    describe: Callable[..., str],
) -> None:
    """Windows that no loss touched are exact; in the others no auction has more than it got."""
    key = ("window", "auction")
    if found is None or not len(found):
        found = Batch(dict.fromkeys((*key, value, "time"), np.zeros(0, np.int64)), 0)
    loose, wanted = np.isin(found["window"], windows.loose), np.isin(best["window"], windows.loose)
    firm = best.take(~wanted)
    judge_table(findings, [firm], found.take(~loose), key, (value, "time"), describe)
    again = np.isin(found["window"], windows.again)
    judge_at_most(findings, everything, found.take(loose & ~again), key, value, describe, ("time",))
    twice = found.take(loose & again)
    known = Codes([everything[name] for name in (*key, "time")]).of(
        [twice[name] for name in (*key, "time")]
    )
    for window, auction in rows_of(twice.take(known < 0).slice(0, LIMIT), *key):
        findings.excess("invented", describe(window, auction), "nothing gives it")
    came = Codes([found[name] for name in (*key, value)]).of([best[name] for name in (*key, value)])
    distinct = len(np.unique(Codes([twice[name] for name in key]).own))
    excuses.account(
        lost=int(np.count_nonzero(wanted & (came < 0))),
        of=len(best),
        free=int(np.count_nonzero(loose)),
        again=len(twice) - distinct,
    )


@dataclass(frozen=True, slots=True)
class LooseSales:
    """What losses touch of the sales of q6, each by its place among them."""

    gone: Bools  # it need not come out
    lower: Bools  # its price may be lower
    free: Bools  # its average may be anything
    again: Bools  # it may come more than once


def loose_sales(excuses: Excuses, sales: Batch, bids: Batch, sink: str) -> LooseSales:
    """What losses touch; `sales` are ordered by seller and time, and have the id and `opened` of auctions.

    `bids` are those that count, with their place among the sales in the column `sale`.
    """
    expires, seller = sales["time"], (sales["seller"],)
    none = np.zeros_like(expires)
    own = (
        stay_of(("auctions",), sales["opened"], partition=sales["id"] >> PARTITION_BITS),
        Stay(("closing",), (sales["auction"],), None, sales["opened"], expires, expires),
        stay_of(("in-order",), expires, key=seller),
        stay_of(("average", sink), expires, key=seller),
    )
    before = (
        stay_of(("bids",), bids["time"], partition=bids["id"] >> PARTITION_BITS),
        Stay(
            ("closing",), (bids["auction"],), None, bids["time"], bids["expires"], bids["expires"]
        ),
    )
    late, sale = excuses.late(*before), bids["sale"]
    lower = np.bincount(sale[late], minlength=len(sales)) > 0
    without_bids = np.bincount(sale[~late], minlength=len(sales)) == 0
    gone, again = excuses.late(*own) | without_bids, excuses.repeated(*own)
    kept = Stay(("average",), seller, None, none, expires, expires)
    free = excuses.touched(kept) | gone | lower | again
    return LooseSales(gone, lower, _from_the_first(sales["seller"], free), again)


def _from_the_first(sellers: Array, chosen: Bools) -> Bools:
    """Which sales are of a seller of whom this one or one before it is chosen; they are in order."""
    counts = np.concatenate([[0], np.cumsum(chosen)])
    found: Bools = counts[1:] > counts[np.searchsorted(sellers, sellers)]
    return found


def judge_loose_sales(
    findings: Problems,
    sales: Batch,
    found: Batch | None,
    losses: LooseSales,
    excuses: Excuses,
    describe: Callable[..., str],
) -> None:
    """Compare sales with the right ones, but for what losses touched."""
    names = ("seller", "price", "time", "average")
    if found is None or not len(found):
        found = Batch(dict.fromkeys(("auction", *names), np.zeros(0, np.int64)), 0)
    order = np.argsort(sales["auction"])
    ids = sales["auction"][order]
    at = np.minimum(np.searchsorted(ids, found["auction"]), max(len(ids) - 1, 0))
    known = ids[at] == found["auction"] if len(ids) else np.zeros(len(found), np.bool_)
    for (auction,) in rows_of(found.take(~known).slice(0, LIMIT), "auction"):
        findings.excess("invented", describe(auction), "nobody sold it")
    at, found = order[at[known]], found.take(known)
    copies = np.bincount(at, minlength=len(sales))
    _report(findings, sales, (copies == 0) & ~losses.gone, "missing", describe)
    _report(findings, sales, (copies > 1) & ~losses.again, "duplicate", describe)
    right = sales.take(at)
    wrong = (found["seller"] != right["seller"]) | (found["time"] != right["time"])
    wrong |= found["price"] > right["price"]
    wrong |= ~losses.lower[at] & (found["price"] != right["price"])
    wrong |= ~losses.free[at] & ~np.isclose(found["average"], right["average"], rtol=1e-9, atol=0)
    for n in np.flatnonzero(wrong)[:LIMIT].tolist():
        came, should = (rows_of(rows.slice(n, n + 1), *names)[0] for rows in (found, right))
        because = f"it came out as {came}; right is {should}, and no declared loss explains that"
        findings.excess("wrong", describe(int(found["auction"][n])), because)
    excuses.account(
        lost=int(np.count_nonzero((copies == 0) & losses.gone)),
        of=len(sales),
        free=int(np.count_nonzero(losses.free[at])),
        again=int((copies - 1)[losses.again & (copies > 1)].sum()),
    )


def _report(
    findings: Problems, sales: Batch, chosen: Bools, kind: str, describe: Callable[..., str]
) -> None:
    for auction in sales["auction"][chosen][:LIMIT].tolist():
        if kind == "missing":
            because = "it should have come out, and no declared loss touched it"
            findings.lack("missing", describe(auction), because)
        else:
            findings.excess("duplicate", describe(auction), "it came out more than once")
