"""What is right for the four queries, computed from the whole input at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.workload.base import Params, Problem
from snapline.workload.codes import Codes, pieces
from snapline.workload.count_verdict import judge_counts
from snapline.workload.generated import label
from snapline.workload.lists import pairs
from snapline.workload.nexmark import model
from snapline.workload.table_verdict import judge_table
from snapline.workload.verdict import Findings

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
    values = ("auction", "bidder", "price", "time")
    expected = (
        bids.with_columns(price=bids["price"] * EUROS_PER_1000_DOLLARS // 1000)
        for bids in pieces(model.bids(params), "id", *values)
    )
    findings = Findings(level)
    judge_table(findings, expected, output.get(SINK), ("id",), values, partial(label, "bid"))
    return findings.problems


def judge_q3(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every auction of the category with its seller, if the seller lives in one of the states."""
    values = ("name", "city", "state")
    people = concat([_local(piece) for piece in pieces(model.persons(params), "person", *values)])
    lots = pieces(model.auctions(params), "auction", "seller", "category")
    wanted = (lot.take(lot["category"] == CATEGORY) for lot in lots)
    expected = _sold(wanted, people, ())
    return _judge_pairs(expected, output.get(SINK), values, level)


def _local(people: Batch) -> Batch:
    states = people["state"]
    return people.take(np.array([name in LOCAL_STATES for name in states.values])[states.codes])


def judge_q8(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every auction with its seller, if the seller registered in the window in which it opened."""
    length = window_ms(params)
    registered = pieces(model.persons(params, DISORDER_MS), "person", "time", "name")
    people = concat(
        [_in_window(piece, length).select("person", "window", "name") for piece in registered]
    )
    opened = pieces(model.auctions(params, DISORDER_MS), "auction", "seller", "time", "reserve")
    lots = (_in_window(piece, length) for piece in opened)
    expected = _sold(lots, people, ("window",))
    return _judge_pairs(expected, output.get(SINK), ("name", "reserve", "window"), level)


def _in_window(records: Batch, length: Millis) -> Batch:
    return records.with_columns(window=records["time"] - records["time"] % length)


def _sold(lots: Iterable[Batch], people: Batch, shared: Sequence[str]) -> Iterator[Batch]:
    """Auctions with their sellers, where these are among the people and agree in the shared columns."""
    sellers = Codes([people["person"], *(people[name] for name in shared)])
    for piece in lots:
        codes = sellers.of([piece["seller"], *(piece[name] for name in shared)])
        lot, person = pairs(codes, sellers.own)
        sold = piece.take(lot).rename({"seller": "person"})
        yield Batch({**people.take(person).columns, **sold.columns}, len(sold))


def _judge_pairs(
    expected: Iterable[Batch], found: Batch | None, values: Sequence[str], level: Guarantee
) -> Sequence[Problem]:
    findings = Findings(level)
    judge_table(
        findings,
        expected,
        found,
        ("auction", "person"),
        values,
        lambda auction, person: f"auction {auction} with person {person}",
    )
    return findings.problems


def judge_q12(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Per bidder and window the counts 1..k, and every bid counted once."""
    length = window_ms(params)
    bids = (
        _in_window(piece, length) for piece in pieces(model.bids(params), "id", "bidder", "time")
    )
    findings = Findings(level)
    judge_counts(
        findings,
        bids,
        output.get(SINK),
        ("bidder", "window"),
        lambda bidder, window: f"count of bidder {bidder} in window {window}",
        partial(label, "bid"),
    )
    return findings.problems
