"""The input of a comparison, and what must come out of it: a count and a checksum, by numpy arithmetic.

    python -m benchmarks.common.checks > benchmarks/flink/peer/golden.txt

prints some records of the generator for the peers, which make the same input in their own language, to
check themselves against.

A timed run puts out too many rows to be kept and judged one by one, so it is judged by their number and
by a sum over them (modulo 2**64): of ids and prices in q1, of the counts in q12, of a hash of every pair
in q3 and q8, of a hash of window and auction, and its value, in q5 and q7. A row that is missing, doubled
or wrong changes at least one of the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.ids import Millis
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints
from snapline.workload.nexmark import model
from snapline.workload.nexmark.dashboard_oracle import right_best
from snapline.workload.nexmark.oracle import (
    CATEGORY,
    DISORDER_MS,
    EUROS_PER_1000_DOLLARS,
    LOCAL_STATES,
    window_ms,
)
from snapline.workload.oracles.verdict import rows_of

CHUNK = 1 << 20
BEST = {"q5": "count", "q7": "price"}
"""Of the queries that look for the best auctions of windows that slide, by which value."""

GOLDEN_PARAMS = (
    Params(seed=1, partitions=2, records=300, duration_ms=2_400, full=True),
    Params(seed=5, partitions=2, records=90_000, duration_ms=60_000, full=True, hot=20),
    Params(seed=9, partitions=1, records=90_000, duration_ms=60_000, full=True, hot=50, hot_ms=700),
    Params(seed=987_654_321, partitions=3, records=3_000_000_000, duration_ms=60_000, full=True),
)


class Tally(NamedTuple):
    """What a sink has counted."""

    count: int  # type: ignore[assignment]  # every tuple has a method of this name
    checksum: int  # modulo 2**64


@dataclass(frozen=True)
class Load:
    """A query and the size of its input."""

    query: str
    params: Params  # full; records: a multiple of three, so that persons and auctions end together

    def flow(self) -> Dataflow:
        """The query as Snapline runs it."""
        return WORKLOADS[self.query].build(self.params)

    @property
    def bids(self) -> Generated:
        """Bids."""
        return model.bids(self.params)

    @property
    def slides(self) -> bool:
        """Whether the windows of the query overlap."""
        return self.query in BEST

    @property
    def disorder_ms(self) -> Millis:
        """How much earlier than due the time of a record may be."""
        return DISORDER_MS if self.query == "q8" else 0

    @property
    def persons(self) -> Generated:
        """People, as the query sees them."""
        return model.persons(self.params, self.disorder_ms)

    @property
    def auctions(self) -> Generated:
        """Auctions, as the query sees them."""
        return model.auctions(self.params, self.disorder_ms)

    @property
    def records(self) -> int:
        """The records of all sources and partitions."""
        joins = self.query in ("q3", "q8")
        sources = (self.persons, self.auctions) if joins else (self.bids,)
        return sum(source.records * source.partitions for source in sources)


def counted(query: str, output: Batch) -> Tally:
    """The tally of what a query has put out."""
    if not len(output):
        return Tally(0, 0)
    if query == "q1":
        return Tally(len(output), _sum(output["id"], output["price"]))
    if query == "q12":
        return Tally(len(output), _sum(output["count"]))
    if query in BEST:
        return _tally_of_best(output, BEST[query])
    return Tally(len(output), _sum(pair_hash(output["person"], output["auction"])))


@lru_cache(maxsize=64)
def expected(load: Load) -> Tally:
    """The tally that is right."""
    match load.query:
        case "q1":
            return _expected_q1(load)
        case "q3":
            return _expected_pairs(load, *_sellers_q3(load))
        case "q8":
            return _expected_pairs(load, *_sellers_q8(load))
        case "q12":
            return _expected_q12(load)
        case "q5" | "q7":
            return _tally_of_best(right_best(BEST[load.query], load.params), BEST[load.query])
        case _:
            raise ValueError(f"nothing is known about {load.query}")


def _tally_of_best(rows: Batch, value: str) -> Tally:
    return Tally(len(rows), _sum(pair_hash(rows["window"], rows["auction"]), rows[value]))


def pair_hash(one: Ints, other: Ints) -> np.ndarray:
    """A number for a pair. Queries.java has the same."""
    left = _words(one) * np.uint64(0x9E3779B97F4A7C15)
    right = _words(other) * np.uint64(0xD1B54A32D192ED03)
    left ^= right
    return left


def _expected_q1(load: Load) -> Tally:
    checksum = 0
    for bids in _chunks(load.bids):
        checksum += _sum(bids["id"], bids["price"] * EUROS_PER_1000_DOLLARS // 1000)
    return Tally(load.records, checksum % 2**64)


def _expected_q12(load: Load) -> Tally:
    """k bids of a bidder in a window are counted 1 to k: together k(k+1)/2."""
    params, length = load.params, window_ms(load.params)
    people = model.bidders_per_partition(params) * params.partitions
    bids = np.zeros((params.duration_ms // length + 1, people), np.int64)
    for some in _chunks(load.bids):
        window = some["time"] // length
        for number in np.unique(window):
            bids[number] += np.bincount(some["bidder"][window == number], minlength=people)
    return Tally(load.records, int((bids * (bids + 1) // 2).sum()))


def _sellers_q3(load: Load) -> tuple[Ints, Millis]:
    """Who may sell: 0 (there is but one window) for those who live in one of the states, else -1."""
    sellers = np.full(load.persons.records * load.params.partitions, -1, np.int64)
    for people in _chunks(load.persons):
        state = people["state"]
        local = np.isin(np.array(state.values), LOCAL_STATES)[state.codes]
        sellers[people["person"][local]] = 0
    return sellers, load.params.duration_ms + 1


def _sellers_q8(load: Load) -> tuple[Ints, Millis]:
    """The window in which each person registered."""
    length = window_ms(load.params)
    sellers = np.full(load.persons.records * load.params.partitions, -1, np.int64)
    for people in _chunks(load.persons):
        sellers[people["person"]] = people["time"] // length
    return sellers, length


def _expected_pairs(load: Load, sellers: Ints, length: Millis) -> Tally:
    """Every auction whose seller is there in its window."""
    count = checksum = 0
    for lots in _chunks(load.auctions):
        found = sellers[lots["seller"]] == lots["time"] // length
        if load.query == "q3":
            found &= lots["category"] == CATEGORY
        count += int(found.sum())
        checksum += _sum(pair_hash(lots["seller"][found], lots["auction"][found]))
    return Tally(count, checksum % 2**64)


def _chunks(source: Generated) -> Iterator[Batch]:
    for partition in range(source.partitions):
        for offset in range(0, source.records, CHUNK):
            yield source.make(partition, offset, offset + CHUNK)


def _sum(*columns: np.ndarray) -> int:
    return sum(int(np.add.reduce(_words(column))) for column in columns) % 2**64


def _words(column: np.ndarray) -> np.ndarray:
    """The column as numbers modulo 2**64, without a copy: a sink that counts must cost little."""
    return column.view(np.uint64)


def golden() -> Iterator[str]:
    """Some records, a line each: stream, size, partition, offset, and the fields."""
    yield "# made by benchmarks/common/checks.py; columns: stream, seed, partitions, records, duration_ms,"
    yield "# disorder_ms, hot, hot_ms, partition, offset, then the fields of the record in their order"
    for params in GOLDEN_PARAMS:
        load = Load("q8", params)
        for source in (load.persons, load.auctions, load.bids):
            for partition in range(params.partitions):
                yield from _golden_rows(source, partition)


def _golden_rows(source: Generated, partition: int) -> Iterator[str]:
    params, last = source.params, source.records - 1
    size = (params.seed, params.partitions, params.records, params.duration_ms)
    words = (source.name, *size, DISORDER_MS, params.hot, params.hot_ms, partition)
    for offset in (0, 1, 2, 97, *(last * n // 12 for n in range(1, 13))):
        row = source.make(partition, offset, offset + 1)
        (fields,) = rows_of(row, *row.columns)
        yield "\t".join(map(str, (*words, offset, *fields)))


if __name__ == "__main__":
    print("\n".join(golden()))
