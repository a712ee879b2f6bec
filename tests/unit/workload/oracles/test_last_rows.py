"""Windows by rows whose keys come from several partitions: explained by an order of arrival, or not."""

import random

import numpy as np
import pytest

from interleaver import Interleaver
from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.dataflow.graph import Dataflow
from snapline.workload.common.generated import PARTITION_BITS
from snapline.workload.common.own import generated
from snapline.workload.oracles.last_rows import RowWindows, judge_last_rows
from snapline.workload.oracles.verdict import Problems

RESULTS = {
    "n": ("count", "price"),
    "total": ("sum", "price"),
    "average": ("mean", "share"),
    "least": ("min", "price"),
    "most": ("max", "price"),
    "oldest": ("first", "price"),
}
SHAPE = RowWindows(("key",), 3, RESULTS)
FEED = generated(
    lambda n: {"key": n % 4, "price": n * 7919 % 101, "share": (n * 31 % 17) / 7}, rate=12
)


def flow_of() -> Dataflow:
    flow = Dataflow("last rows")
    windows = flow.source(FEED, name="records").key_by("key").sliding(rows=3)
    named = {**RESULTS, "id": ("last", "id"), "n": "count"}
    windows.aggregate(**named, name="windows").sink("out")
    return flow


def problems(records, found, steps=10**6):
    findings = Problems(Guarantee.EXACTLY_ONCE)
    undecided = judge_last_rows(findings, SHAPE, records, found, "record {}".format, steps)
    return findings.problems, undecided


def run(seed, faults=None):
    """The records and the results of a run under a random interleaving, with three partitions."""
    done = Interleaver(flow_of().bind(3, 4_000), 3, seed, faults or {}).run()
    return everything(), done.output["out"]


def everything() -> Batch:
    bound = FEED.bind(3, 4_000)
    records = bound.everything()
    return records.with_columns(partition=records["id"] >> PARTITION_BITS)


def merged(records, rng):
    """The results of a random merge, computed one by one; and in which order records came."""
    lanes = [np.flatnonzero(records["partition"] == p).tolist() for p in range(3)]
    windows: dict[int, list[int]] = {}
    rows = []
    while any(lanes):
        lane = rng.choice([lane for lane in lanes if lane])
        n = lane.pop(0)
        held = windows.setdefault(int(records["key"][n]), [])
        held.append(n)
        del held[:-3]
        prices, shares = records["price"][held].tolist(), records["share"][held].tolist()
        figures = [len(held), sum(prices), sum(shares) / len(held), min(prices), max(prices)]
        rows.append([int(records["id"][n]), *figures, prices[0]])
    names = ("id", *RESULTS)
    return Batch.of(**{name: [row[i] for row in rows] for i, name in enumerate(names)})


@pytest.mark.parametrize("seed", range(8))
def test_every_interleaving_is_explained_and_a_lost_message_is_not(seed):
    assert problems(*run(seed)) == ([], 0)
    assert problems(*run(seed, {5 + seed: 0}))[0]
    assert problems(*run(seed, {5 + seed: 2}))[0]


@pytest.mark.parametrize("seed", range(12))
def test_what_some_order_gives_is_right(seed):
    records = everything()
    assert problems(records, merged(records, random.Random(seed))) == ([], 0)


def changed(found, row, **values):
    columns = {}
    for name, value in values.items():
        cells = found[name].tolist()
        cells[row] = value
        columns[name] = np.array(cells)
    return found.with_columns(**columns)


@pytest.mark.parametrize("seed", range(6))
def test_what_no_order_gives_is_wrong(seed):
    records, rng = everything(), random.Random(seed)
    found = merged(records, rng)
    row = rng.randrange(len(found))
    name = f"record {found['id'][row]}"
    wrong = changed(found, row, total=found["total"][row] + 1)
    assert [p.kind for p in problems(records, wrong)[0]] == ["wrong"]
    close = changed(found, row, average=found["average"][row] * (1 + 1e-12))
    assert problems(records, close) == ([], 0)
    far = changed(found, row, average=found["average"][row] * (1 + 1e-6) + 1e-6)
    assert problems(records, far)[0]
    missing = found.take(np.arange(len(found)) != row)
    assert [(p.kind, p.record) for p in problems(records, missing)[0]] == [("missing", name)]
    twice = found.take(np.array([*range(len(found)), row]))
    assert [(p.kind, p.record) for p in problems(records, twice)[0]] == [("duplicate", name)]
    invented = changed(found, row, id=10**6)
    assert {p.kind for p in problems(records, invented)[0]} == {"missing", "invented"}


def test_a_partition_that_was_overtaken_by_itself_is_no_order():
    """Two records of one partition and one key that came the other way round."""
    records = Batch.of(id=[0, 1], key=[0, 0], partition=[0, 0], price=[5, 9], share=[0.5, 0.25])
    right = merged(records, random.Random(1))
    assert problems(records, right) == ([], 0)
    swapped = Batch.of(
        id=[1, 0],
        n=[1, 2],
        total=[9, 14],
        average=[0.25, 0.375],
        least=[9, 5],
        most=[9, 9],
        oldest=[9, 9],
    )
    assert [p.kind for p in problems(records, swapped)[0]] == ["wrong"]
    apart = records.with_columns(partition=np.array([0, 1]))
    assert problems(apart, swapped) == ([], 0)


def test_a_search_that_is_too_long_says_so():
    records = everything()
    found = merged(records, random.Random(3))
    assert problems(records, found, steps=3) == ([], 4)
