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
from snapline.workload.oracles.last_rows import OLDEST, ROWS, RowWindows, judge_last_rows
from snapline.workload.oracles.verdict import Problems

RESULTS = {
    "total": ("sum", "price"),
    "average": ("mean", "share"),
    "least": ("min", "price"),
    "most": ("max", "price"),
    "newest": ("last", "price"),
}
SHAPE = RowWindows(("key",), 3, RESULTS)
FEED = generated(
    lambda n: {"key": n % 4, "price": n * 7919 % 101, "share": (n * 31 % 17) / 7}, rate=12
)


def flow_of() -> Dataflow:
    flow = Dataflow("last rows")
    windows = flow.source(FEED, name="records").key_by("key").sliding(rows=3)
    named = {"id": ("last", "id"), ROWS: "count", OLDEST: ("first", "id"), **RESULTS}
    windows.aggregate(**named, name="windows").sink("out")
    return flow


def problems(records, found, loose=None):
    findings = Problems(Guarantee.EXACTLY_ONCE)
    judge_last_rows(findings, SHAPE, records, found, "record {}".format, loose)
    return findings.problems


def run(seed):
    """The records and the results of a run under a random interleaving, with three partitions."""
    done = Interleaver(flow_of().bind(3, 4_000), 3, seed, {}).run()
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
        window = [len(held), int(records["id"][held[0]])]
        figures = [sum(prices), sum(shares) / len(held), min(prices), max(prices), prices[-1]]
        rows.append([int(records["id"][n]), *window, *figures])
    names = ("id", ROWS, OLDEST, *RESULTS)
    return Batch.of(**{name: [row[i] for row in rows] for i, name in enumerate(names)})


@pytest.mark.parametrize("seed", range(8))
def test_every_interleaving_is_explained(seed):
    assert problems(*run(seed)) == []


@pytest.mark.parametrize("seed", range(12))
def test_what_some_order_gives_is_right(seed):
    records = everything()
    assert problems(records, merged(records, random.Random(seed))) == []


def changed(found, row, **values):
    columns = {}
    for name, value in values.items():
        cells = found[name].tolist()
        cells[row] = value
        columns[name] = np.array(cells)
    return found.with_columns(**columns)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", [ROWS, *RESULTS])
def test_a_figure_that_no_order_gives_is_wrong(seed, name):
    records, rng = everything(), random.Random(seed)
    found = merged(records, rng)
    row = rng.randrange(len(found))
    wrong = problems(records, changed(found, row, **{name: found[name][row] + 1}))
    assert {p.kind for p in wrong} == {"wrong"}
    if name != ROWS:  # that one says where a record stands, and so others do not fit either
        assert [p.record for p in wrong] == [f"record {found['id'][row]}"]
        assert name in wrong[0].because


@pytest.mark.parametrize("seed", range(6))
def test_an_oldest_record_that_no_order_gives_is_wrong(seed):
    records, rng = everything(), random.Random(seed)
    found = merged(records, rng)
    row = rng.randrange(len(found))
    others = [n for n in range(len(found)) if found["id"][n] != found[OLDEST][row]]
    for other in (int(found["id"][rng.choice(others)]), 10**6):
        assert problems(records, changed(found, row, **{OLDEST: other}))


def test_fractions_differ_by_a_billionth_at_most():
    records = everything()
    found = merged(records, random.Random(1))
    close = changed(found, 7, average=found["average"][7] * (1 + 1e-12))
    assert problems(records, close) == []
    far = changed(found, 7, average=found["average"][7] * (1 + 1e-6) + 1e-6)
    assert [p.kind for p in problems(records, far)] == ["wrong"]


def test_windows_that_lead_in_a_circle_are_no_order():
    records = Batch.of(
        id=[0, 1, 2], key=[0, 0, 0], partition=[0, 1, 2], price=[5, 9, 7], share=[0.5, 0.25, 1.0]
    )
    found = merged(records, random.Random(1))
    circle = found.with_columns(rows=np.full(3, 3), oldest=np.roll(found["id"], 1))
    assert {p.kind for p in problems(records, circle)} == {"wrong"}


def test_a_partition_that_was_overtaken_by_itself_is_no_order():
    """Two records of one partition and one key that came the other way round."""
    records = Batch.of(id=[0, 1], key=[0, 0], partition=[0, 0], price=[5, 9], share=[0.5, 0.25])
    right = merged(records, random.Random(1))
    assert problems(records, right) == []
    swapped = Batch.of(
        id=[1, 0],
        rows=[1, 2],
        oldest=[1, 1],
        total=[9, 14],
        average=[0.25, 0.375],
        least=[9, 5],
        most=[9, 9],
        newest=[9, 5],
    )
    assert {p.kind for p in problems(records, swapped)} == {"wrong"}
    apart = records.with_columns(partition=np.array([0, 1]))
    assert problems(apart, swapped) == []


def test_what_came_before_a_loss_is_judged_and_what_came_behind_it_is_not():
    records = everything()
    found = merged(records, random.Random(4))
    keys = dict(zip(records["id"].tolist(), records["key"].tolist(), strict=True))
    of_first = [n for n, record in enumerate(found["id"].tolist()) if keys[record] == 0]
    lost = int(found["id"][of_first[5]])
    loose = records["id"] == lost
    for place, reported in ((2, True), (5, False), (8, False)):
        row = of_first[place]
        wrong = changed(found, row, total=found["total"][row] + 1)
        assert bool(problems(records, wrong, loose)) is reported


def with_a_late_loss(seed):
    """Results of a merge, of which only the last record of key 0 is one that a loss may have touched."""
    records = everything()
    found = merged(records, random.Random(seed))
    keys = dict(zip(records["id"].tolist(), records["key"].tolist(), strict=True))
    of_first = [n for n, record in enumerate(found["id"].tolist()) if keys[record] == 0]
    return records, found, of_first, records["id"] == int(found["id"][of_first[-1]])


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_at_the_end_excuses_no_place_at_the_beginning(seed):
    records, found, of_first, loose = with_a_late_loss(seed)
    assert problems(records, found, loose) == []
    for place in range(len(of_first) - 6):
        row = of_first[place]
        for rows in {1, 2, 3, 4} - {int(found[ROWS][row])}:
            wrong = problems(records, changed(found, row, rows=rows), loose)
            assert {p.kind for p in wrong} == {"wrong"}, (place, rows)


def test_after_a_loss_no_window_has_more_rows_than_fit_or_one_of_another_key():
    records, found, of_first, loose = with_a_late_loss(4)
    keys = dict(zip(records["id"].tolist(), records["key"].tolist(), strict=True))
    other = next(record for record in found["id"].tolist() if keys[record] == 1)
    for name, value in ((ROWS, 4), (ROWS, 0), (OLDEST, other)):
        (problem,) = problems(records, changed(found, of_first[-1], **{name: value}), loose)
        assert "no window of its key has" in problem.because


def test_after_a_loss_places_may_begin_anew_and_have_gaps_where_loose_records_came():
    """The last three of a key are loose: one has no result, one has two, one came to an empty window."""
    records, found, of_first, _ = with_a_late_loss(4)
    gone, twice, anew = of_first[-3:]
    loose = np.isin(records["id"], found["id"][of_first[-3:]])
    found = changed(found, anew, rows=1)
    found = changed(found, anew, oldest=found["id"][anew])
    rows = [n for n in range(len(found)) if n != gone]
    assert problems(records, found.take(np.array([*rows, twice])), loose) == []
