"""Sliding windows against their plain-Python models, through captures, deltas and crashes."""

import math
import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import Checkpoint, Crash, Row, Step, Take, Watermark, check, plain, stories
from sliding_models import SlidingRowsModel, SlidingTimeModel

from snapline.batch import Batch
from snapline.dataflow.sliding import arena, blocks
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows
from snapline.dataflow.sliding.time_windows import SlidingTimeWindows

pytestmark = pytest.mark.usefixtures("both_forms")

KEYS = {
    "int": st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "str": st.sampled_from(["", "a", "b", "ab", "ba", "a\0"]),
}
AGGREGATES = {
    "n": "count",
    "total": ("sum", "price"),
    "average": ("mean", "price"),
    "least": ("min", "price"),
    "most": ("max", "price"),
    "first": ("first", "price"),
    "last": ("last", "price"),
}
EIGHTHS = st.integers(-40, 800).map(lambda n: n / 8)  # sums of them are exact, in any order
PRICES = {"int": st.integers(-5, 99), "float": EIGHTHS}
SHAPES = [(10, 1), (10, 5), (12, 4), (7, 7), (40, 2)]


def records(key: st.SearchStrategy, price: str = "int") -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({"key": key, "time": st.integers(-30, 60), "price": PRICES[price]})


def by_time(size: int, every: int, lateness: int = 0, keys: tuple[str, ...] = ("key",)):
    plan = SlidingPlan.of(keys, AGGREGATES, ("window", "time"), "time")
    return partial(SlidingTimeWindows, plan, Sliding(size, every, lateness_ms=lateness))


@pytest.mark.parametrize(("size", "every"), SHAPES)
@pytest.mark.parametrize("lateness", [0, 7])
def test_windows_by_time_come_out_once_when_they_close(size, every, lateness):
    @given(stories({"in": records(KEYS["int"])}))
    def holds(story):
        model = SlidingTimeModel(size, every, lateness, "key")
        check(by_time(size, every, lateness), model, story, plain)

    holds()


@pytest.mark.parametrize("kind", ["int", "float"])
@given(story=st.data())
def test_windows_by_time_have_numbers_of_either_kind_and_keys_of_any(kind, story):
    told = story.draw(stories({"in": records(KEYS["str"], kind)}))
    check(by_time(10, 2), SlidingTimeModel(10, 2, 0, "key"), told, plain)


@given(stories({"in": records(KEYS["int"])}))
def test_windows_by_time_do_without_a_key(story):
    check(by_time(10, 2, keys=()), SlidingTimeModel(10, 2, 0), story, plain)


def long_story(seed: int) -> list[Step]:
    """Some hundred batches, in which windows fill many times over: hypothesis likes short stories."""
    dice, now = random.Random(seed), 0
    story: list[Step] = []
    for _ in range(150):
        now += dice.randrange(4)
        size = dice.choice([1, 1, 2, 5, 20])
        rows = [row(max(0, now - dice.randrange(15)), dice.randrange(-5, 99), dice.randrange(3))]
        rows += [row(now, dice.randrange(-5, 99), dice.randrange(3)) for _ in range(size - 1)]
        story.append(Take("in", tuple(rows)))
        if dice.random() < 0.4:
            story.append(Watermark(now - dice.randrange(6)))
        if dice.random() < 0.15:
            story.append(Checkpoint(full=dice.random() < 0.3))
        if dice.random() < 0.05:
            story.append(Crash())
    return story


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("size", "every"), SHAPES)
def test_windows_by_time_stay_right_in_a_long_story(size, every, seed):
    make, model = by_time(size, every, keys=("key",)), SlidingTimeModel(size, every, 0, "key")
    check(make, model, long_story(seed), plain)


def row(time: int, price: int = 1, key: int = 0) -> Row:
    return {"key": key, "time": time, "price": price}


def test_a_record_behind_the_watermark_counts_for_the_windows_that_are_open():
    """It changes a pane that windows were already computed from."""
    story = [
        Take("in", (row(1), row(9, 5), row(3, 7, key=1))),
        Watermark(14),
        Take("in", (row(8, 99), row(3, 50), row(8, -5, key=1))),
        Watermark(15),
        Checkpoint(full=False),
        Crash(),
        Take("in", (row(9, 77),)),
        Watermark(60),
    ]
    check(by_time(10, 1), SlidingTimeModel(10, 1, 0, "key"), story, plain)


def test_sums_of_fractions_are_the_same_to_the_last_bit_after_a_restore():
    """They would not be if the operator took back what it has added."""
    rng = np.random.default_rng(5)
    times = np.sort(rng.integers(0, 400, 3_000))
    prices = rng.normal(size=3_000) * 10.0 ** rng.integers(-8, 8, 3_000)
    make, plan = by_time(50, 5), [1_000, 1_001, 1_500, 2_200]
    straight, restored, outputs = make(), make(), []
    for n in range(0, 3_000, 50):
        batch = Batch.of(
            key=times[n : n + 50] % 3, time=times[n : n + 50], price=prices[n : n + 50]
        )
        if any(n <= cut < n + 50 for cut in plan):
            capture, restored = restored.capture(full=True), make()
            restored.restore([capture])
        for operator in (straight, restored):
            operator.process("in", batch)
        mark = int(times[n])
        outputs.append([operator.on_watermark(mark) for operator in (straight, restored)])
    outputs.append([operator.on_watermark(10**6) for operator in (straight, restored)])
    rows = 0
    for pair in outputs:
        one, other = ([sorted(b.rows()) for _, b in out] for out in pair)
        assert one == other
        rows += sum(map(len, one))
    assert rows > 200


def test_a_delta_has_only_the_panes_to_which_records_came():
    operator = by_time(1_000, 10)()
    times = np.arange(1_000)
    operator.process("in", Batch.of(key=times % 7, time=times, price=times))
    assert operator.capture(full=True).parts["state"].length > 600
    operator.process("in", Batch.of(key=[3], time=[995], price=[1]))
    delta = operator.capture(full=False)
    assert [part.length for part in delta.parts.values()] == [1, 1]  # one key, and the clock
    assert operator.capture(full=False).parts["state"].length == 0


def test_results_of_numbers_of_another_kind_are_refused():
    operator = by_time(10, 2)()
    operator.process("in", Batch.of(key=[1], time=[1], price=[1]))
    with pytest.raises(Exception, match="'price' is float64 and was int64"):
        operator.process("in", Batch.of(key=[1], time=[2], price=[1.5]))
    with pytest.raises(Exception, match="of numbers, and the column 'price' has others"):
        by_time(10, 2)().process("in", Batch.of(key=[1], time=[1], price=["dear"]))


# By rows.


def by_rows(size: int, keys: tuple[str, ...] = ("key",)):
    return partial(SlidingRowWindows, SlidingPlan.of(keys, AGGREGATES, ("time",)), LastRows(size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 30, 1_000])
def test_windows_by_rows_have_the_last_ones_of_each_key(size):
    @given(stories({"in": records(KEYS["int"])}))
    def holds(story):
        check(by_rows(size), SlidingRowsModel(size, "key"), story, plain)

    holds()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 50])
@pytest.mark.parametrize("keys", [("key",), ()], ids=["per key", "over all"])
def test_windows_by_rows_stay_right_in_a_long_story(size, keys, seed):
    check(by_rows(size, keys), SlidingRowsModel(size, *keys), long_story(seed), plain)


@pytest.mark.parametrize("kind", ["int", "float"])
@given(story=st.data())
def test_windows_by_rows_have_numbers_of_either_kind_and_keys_of_any(kind, story):
    told = story.draw(stories({"in": records(KEYS["str"], kind)}))
    check(by_rows(4), SlidingRowsModel(4, "key"), told, plain)


@given(stories({"in": records(KEYS["int"])}), st.sampled_from([1, 5, 64]))
def test_windows_by_rows_do_without_a_key(story, size):
    check(by_rows(size, ()), SlidingRowsModel(size), story, plain)


@pytest.fixture
def small_limits(monkeypatch):
    """Dead rows are dropped at once, and full blocks are looked at one by one."""
    monkeypatch.setattr(arena, "_DEAD_MIN", 0)
    monkeypatch.setattr(blocks, "_AT_ONCE", 1)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("size", [1, 3, 10])
def test_windows_by_rows_do_not_depend_on_when_dead_rows_are_dropped(size, seed):
    check(by_rows(size), SlidingRowsModel(size, "key"), long_story(seed), plain)


def test_dead_rows_are_dropped_and_what_is_captured_is_the_last_rows_and_the_new_ones():
    operator, n = by_rows(64)(), np.arange(512)
    operator.capture(full=True)
    for turn in range(100):
        operator.process("in", Batch.of(key=n % 3, time=n, price=n + turn))
        delta = operator.capture(full=False)
        assert delta.parts["rows"].length == 3 * 64, "of 512 new rows these live"
    assert delta.grown == 0, "as many rows died"
    assert operator._arena._rows.length < 3 * 4_096
    assert operator.capture(full=True).parts["rows"].length == 3 * 64
    fresh = by_rows(64)()
    fresh.process("in", Batch.of(key=n[:10], time=n[:10], price=n[:10]))
    whole = fresh.capture(full=False)
    assert whole.grown == whole.parts["rows"].nbytes, "nothing died yet"


def test_sums_of_fractions_do_not_drift_and_forget_what_has_left_the_window():
    """They would if a window were the difference of two sums over all rows."""
    operator, rng = by_rows(16)(), np.random.default_rng(2)
    prices = rng.normal(size=6_000) * 10.0 ** rng.integers(-9, 9, 6_000)
    prices[1_000], prices[2_000], prices[3_000] = 1e300, np.inf, np.nan
    found = []
    for n in range(0, 6_000, 100):
        batch = Batch.of(
            key=np.zeros(100, np.int64), time=np.arange(100), price=prices[n : n + 100]
        )
        ((_, results),) = operator.process("in", batch)
        found.append(results["total"])
    exact = [math.fsum(prices[max(0, n - 15) : n + 1]) for n in range(6_000)]
    assert np.allclose(np.concatenate(found), exact, rtol=1e-9, atol=1e-7, equal_nan=True)


@given(
    st.lists(st.integers(1, 6), max_size=30),
    st.sampled_from([np.add, np.minimum, np.maximum]),
    st.randoms(use_true_random=False),
)
def test_values_accumulate_within_their_parts_one_after_the_other(lengths, ufunc, dice):
    values = np.array([dice.random() for _ in range(sum(lengths))])
    starts = np.cumsum([0, *lengths])[: len(lengths)].astype(np.int64)
    found = values.copy()
    blocks.accumulate(ufunc, found, starts, np.array(lengths, np.int64))
    expected = []
    for start, length in zip(starts.tolist(), lengths, strict=True):
        for place in range(length):
            value = values[start + place]
            expected.append(ufunc(expected[-1], value) if place else value)
    assert found.tolist() == expected
