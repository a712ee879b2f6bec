"""What is right for the four queries, computed from the whole input at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import label
from snapline.workload.common.lists import pairs
from snapline.workload.nexmark import model
from snapline.workload.nexmark.stays import of_bids, of_counts, of_pairs
from snapline.workload.oracles.codes import Codes, pieces
from snapline.workload.oracles.count_verdict import judge_counts, last_counts
from snapline.workload.oracles.table_verdict import TableExcuses, judge_table
from snapline.workload.oracles.verdict import Problems

#: the constants of the queries
EUROS_PER_1000_DOLLARS = 908
CATEGORY = model.FIRST_CATEGORY
LOCAL_STATES = ("OR", "ID", "CA")
WINDOW_FULL_MS: Millis = 10_000
WINDOWS_PER_RUN = 6  # of the small size
DISORDER_MS: Millis = 60

SINK = "results"

#: the fields of the two sides of a pair, and how those are called that both sides have
_LOT = ("id", "time", "seller", "category", "reserve")
_PERSON = ("name", "city", "state")
_RENAMED = {"id": "id_right", "time": "time_right"}
#: those that say where the two records of a pair came from, and when
_PLACED = ("id", "time", "id_right", "time_right")


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
    expected = _converted(params, *values)
    findings, losses = Problems(level), of_bids(params, SINK)
    describe = partial(label, "bid")
    judge_table(findings, expected, output.get(SINK), ("id",), values, describe, losses=losses)
    return findings.problems


def _converted(params: Params, *values: str) -> Iterator[Batch]:
    for bids in pieces(model.bids(params), "id", *values):
        yield bids.with_columns(price=bids["price"] * EUROS_PER_1000_DOLLARS // 1000)


def right_prices(params: Params) -> Batch:
    """The converted price of every bid."""
    return concat(list(_converted(params, "price", "time")))


def judge_q3(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every auction of the category with its seller, if the seller lives in one of the states."""
    found = output.get(SINK)
    values = _shown(found, ("name", "city", "state"))
    losses = of_pairs(
        params, (("auctions", "category"), ("persons", "local")), ("join", SINK), timed=False
    )
    also = _PLACED if losses else ()
    registered = pieces(model.persons(params), *_of_person((*values, *also), "state"))
    people = concat([_local(piece) for piece in registered])
    lots = pieces(model.auctions(params), *_of_lot((*values, *also), "category"))
    wanted = (lot.take(lot["category"] == CATEGORY) for lot in lots)
    return _judge_pairs(_sold(wanted, people, ()), found, values, level, losses)


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
    found, length = output.get(SINK), window_ms(params)
    values = _shown(found, ("name", "reserve", "window"))
    losses = of_pairs(params, (("auctions",), ("persons",)), ("window-join", SINK), timed=True)
    also = _PLACED if losses else ()
    people_of = _of_person((*values, *also), "time")
    registered = pieces(model.persons(params, DISORDER_MS), *people_of)
    people = concat([_in_window(piece, length) for piece in registered])
    opened = pieces(model.auctions(params, DISORDER_MS), *_of_lot((*values, *also), "time"))
    lots = (_in_window(piece, length) for piece in opened)
    return _judge_pairs(_sold(lots, people, ("window",)), found, values, level, losses)


def _shown(found: Batch | None, always: Sequence[str]) -> tuple[str, ...]:
    """The columns to compare: those that the query is about, and all others that came out."""
    there = () if found is None else found.columns
    known = (*_LOT, *_PERSON, *_RENAMED.values())
    return (*always, *(name for name in known if name in there and name not in always))


def _of_lot(values: Sequence[str], needed: str) -> tuple[str, ...]:
    """The fields of an auction that make these columns."""
    wanted = (name for name in _LOT if name in values)
    return tuple(dict.fromkeys(("auction", "seller", needed, *wanted)))


def _of_person(values: Sequence[str], needed: str) -> tuple[str, ...]:
    """The fields of a person that make these columns."""
    wanted = [name for name in _PERSON if name in values]
    wanted += [name for name, shown in _RENAMED.items() if shown in values]
    return tuple(dict.fromkeys(("person", needed, *wanted)))


def _in_window(records: Batch, length: Millis) -> Batch:
    return records.with_columns(window=records["time"] - records["time"] % length)


def _sold(lots: Iterable[Batch], people: Batch, shared: Sequence[str]) -> Iterator[Batch]:
    """Auctions with their sellers, where these are among the people and agree in the shared columns."""
    sellers = Codes([people["person"], *(people[name] for name in shared)])
    for piece in lots:
        codes = sellers.of([piece["seller"], *(piece[name] for name in shared)])
        lot, person = pairs(codes, sellers.own)
        sold, seller = piece.take(lot), people.take(person).rename(_RENAMED)
        yield Batch({**seller.columns, **sold.columns}, len(sold))


def _judge_pairs(
    expected: Iterable[Batch],
    found: Batch | None,
    values: Sequence[str],
    level: Guarantee,
    losses: TableExcuses | None,
) -> Sequence[Problem]:
    findings = Problems(level)
    judge_table(
        findings,
        expected,
        found,
        ("auction", "person"),
        values,
        lambda auction, person: f"auction {auction} with person {person}",
        losses=losses,
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
    bids = _windowed_bids(params)
    findings = Problems(level)
    judge_counts(
        findings,
        bids,
        output.get(SINK),
        ("bidder", "window"),
        lambda bidder, window: f"count of bidder {bidder} in window {window}",
        partial(label, "bid"),
        of_counts(params, SINK, length),
    )
    return findings.problems


def _windowed_bids(params: Params) -> Iterator[Batch]:
    length = window_ms(params)
    for piece in pieces(model.bids(params), "id", "bidder", "time"):
        yield _in_window(piece, length)


def right_counts(params: Params) -> Batch:
    """How many bids every bidder makes in every window, at the time of the last of them."""
    return last_counts(_windowed_bids(params), ("bidder", "window"))
