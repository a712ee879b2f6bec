"""What is right for the four queries, computed from the whole input at once."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.workload.base import Params, Problem
from snapline.workload.generated import label
from snapline.workload.nexmark import model
from snapline.workload.verdict import Findings, judge_counts, judge_rows, rows_of

#: the questions that the queries answer
EUROS_PER_1000_DOLLARS = 908
CATEGORY = model.FIRST_CATEGORY
LOCAL_STATES = ("OR", "ID", "CA")
WINDOW_FULL_MS: Millis = 10_000
WINDOWS_PER_RUN = 6  # of the small size
DISORDER_MS: Millis = 60

SINK = "results"


def window_ms(params: Params) -> Millis:
    """The length of the windows of q8 and q12."""
    return WINDOW_FULL_MS if params.full else max(params.duration_ms // WINDOWS_PER_RUN, 1)


def judge_q1(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every bid comes out once, its price converted and all else as it was."""
    columns = ("id", "auction", "bidder", "price", "time")
    expected = {
        bid: (auction, bidder, price * EUROS_PER_1000_DOLLARS // 1000, time)
        for bid, auction, bidder, price, time in rows_of(model.bids(params).everything(), *columns)
    }
    rows = [(row[0], row[1:]) for row in rows_of(output.get(SINK), *columns)]
    findings = Findings(level)
    judge_rows(findings, expected, rows, partial(label, "bid"))
    return findings.problems


def judge_q3(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every auction of the category with its seller, if the seller lives in one of the states."""
    people = {
        person: facts
        for person, *facts in rows_of(
            model.persons(params).everything(), "person", "name", "city", "state"
        )
        if facts[-1] in LOCAL_STATES
    }
    lots = rows_of(model.auctions(params).everything(), "auction", "seller", "category")
    expected = {
        (auction, seller): tuple(people[seller])
        for auction, seller, category in lots
        if category == CATEGORY and seller in people
    }
    rows = rows_of(output.get(SINK), "auction", "person", "name", "city", "state")
    return _judge_pairs(expected, rows, level)


def judge_q8(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every auction with its seller, if the seller registered in the window in which it opened."""
    length = window_ms(params)
    registered = model.persons(params, DISORDER_MS).everything()
    people = {
        (person, time - time % length): name
        for person, time, name in rows_of(registered, "person", "time", "name")
    }
    opened = model.auctions(params, DISORDER_MS).everything()
    expected: dict[tuple[int, int], tuple[Any, ...]] = {}
    for auction, seller, time, reserve in rows_of(opened, "auction", "seller", "time", "reserve"):
        window = time - time % length
        if (seller, window) in people:
            expected[auction, seller] = (people[seller, window], reserve, window)
    rows = rows_of(output.get(SINK), "auction", "person", "name", "reserve", "window")
    return _judge_pairs(expected, rows, level)


def _judge_pairs(
    expected: Mapping[tuple[int, int], tuple[Any, ...]],
    rows: Sequence[tuple[Any, ...]],
    level: Guarantee,
) -> Sequence[Problem]:
    findings = Findings(level)
    found = [((row[0], row[1]), row[2:]) for row in rows]
    judge_rows(findings, expected, found, lambda p: f"auction {p[0]} with person {p[1]}")
    return findings.problems


def judge_q12(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Per bidder and window the counts 1..k, and every bid counted once."""
    length = window_ms(params)
    inputs: dict[tuple[int, Millis], list[tuple[Millis, str]]] = {}
    for bid, bidder, time in rows_of(model.bids(params).everything(), "id", "bidder", "time"):
        inputs.setdefault((bidder, time - time % length), []).append((time, label("bid", bid)))
    rows = [
        ((bidder, window), count, time)
        for bidder, window, count, time in rows_of(
            output.get(SINK), "bidder", "window", "count", "time"
        )
    ]
    findings = Findings(level)
    judge_counts(findings, inputs, rows, lambda k: f"count of bidder {k[0]} in window {k[1]}")
    return findings.problems
