"""What windows and joins make of input that is unusual, and what they say of input that they refuse."""

import numpy as np
import pytest

from snapline.batch import Batch, Words
from snapline.dataflow.operators.aggregate import AggregatePlan, WindowAggregate
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.sliding.matching import PAIRS_AT_ONCE, portions
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows
from snapline.dataflow.sliding.time_join import SlidingTimeJoin, TimeJoinPlan
from snapline.dataflow.sliding.time_windows import SlidingTimeWindows
from snapline.errors import GraphError, UsageError

END = 1 << 62
BOTH = {"left": ("k",), "right": ("k",)}


def by_time(aggregates, size=10, every=1, time="time"):
    plan = SlidingPlan.of(("k",), aggregates, ("window", "time"), time)
    return SlidingTimeWindows(plan, Sliding(size, every, time))


def by_rows(rows, aggregates):
    return SlidingRowWindows(SlidingPlan.of(("k",), aggregates, ("time",)), LastRows(rows))


def tumbling(aggregates):
    shape = Tumbling(10)
    return WindowAggregate(AggregatePlan.of(("k",), shape, aggregates), shape)


def time_join():
    return SlidingTimeJoin(TimeJoinPlan(BOTH, {side: Sliding(10, 1) for side in BOTH}))


def results(outputs):
    batches = [batch for name, batch in outputs if name == "out"]
    return [dict(zip(batch.columns, row, strict=True)) for batch in batches for row in batch.rows()]


def test_records_from_before_1970_are_in_all_their_windows():
    windows = by_time({"n": "count"}, size=3)
    assert windows.process("in", Batch.of(k=[1], time=[-5])) == ()
    closed = results(windows.on_watermark(END))
    assert [row["window"] for row in closed] == [-7, -6, -5]


def test_records_from_before_1970_meet_in_a_join():
    join = time_join()
    join.process("left", Batch.of(k=[1], time=[-100]))
    pairs = results(join.process("right", Batch.of(k=[1], time=[-100])))
    assert [pair["window"] for pair in pairs] == list(range(-109, -99))


LARGE = 1 << 61


@pytest.mark.parametrize("how", ["sum", "mean"])
@pytest.mark.parametrize(
    "cut", [[[LARGE] * 4], [[LARGE], [LARGE], [LARGE], [LARGE]], [[LARGE] * 3, [LARGE]]]
)
@pytest.mark.parametrize("kind", ["by time", "by rows"])
def test_a_sum_of_integers_that_does_not_fit_is_refused_however_batches_are_cut(kind, cut, how):
    made = {"x": (how, "v")}
    windows = by_time(made) if kind == "by time" else by_rows(3, made)
    batches = [Batch.of(k=[1] * len(vs), v=vs, time=[5] * len(vs)) for vs in cut]
    with pytest.raises(UsageError, match="a sum of 'v' is too large for 64 bits"):
        all(windows.process("in", batch) is not None for batch in batches)


def test_panes_whose_sums_fit_only_one_by_one_are_refused_together():
    windows = by_time({"x": ("sum", "v")})
    for time in range(3):
        windows.process("in", Batch.of(k=[1], v=[LARGE], time=[time]))
    with pytest.raises(UsageError, match="a sum of 'v' is too large"):
        windows.on_watermark(END)


def test_a_tumbling_sum_that_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="a sum of 'v' is too large"):
        tumbling({"x": ("sum", "v")}).process(
            "in", Batch.of(k=[1] * 3, v=[LARGE] * 3, time=[5] * 3)
        )


@pytest.mark.parametrize("make", [lambda of: by_rows(4, of), by_time, tumbling])
def test_large_numbers_that_outweigh_each_other_are_added_up_exactly(make):
    windows = make({"x": ("sum", "v")})
    values = [LARGE, -LARGE, LARGE, 3 - LARGE]
    now = windows.process("in", Batch.of(k=[1] * 4, v=values, time=[5] * 4))
    found = results(now or windows.on_watermark(END))
    assert found[-1]["x"] == 3


def test_an_unsigned_number_that_has_no_place_among_signed_ones_is_refused():
    numbers = np.array([2**63 + 5, 1], np.uint64)
    with pytest.raises(UsageError, match="the column 'v' has numbers beyond"):
        by_rows(2, {"x": ("max", "v")}).process("in", Batch.of(k=[1, 1], v=numbers, time=[0, 1]))


@pytest.mark.parametrize(
    ("values", "first", "last"), [([np.nan, 3.0], 3.0, np.nan), ([3.0, np.nan], 3.0, np.nan)]
)
@pytest.mark.parametrize("together", [True, False])
def test_of_two_records_at_one_time_that_without_a_number_is_the_last(
    values, first, last, together
):
    windows = by_time({"first": ("first", "v"), "last": ("last", "v")}, size=10, every=10)
    for cut in [values] if together else [[value] for value in values]:
        windows.process("in", Batch.of(k=[1] * len(cut), v=cut, time=[5] * len(cut)))
    (row,) = results(windows.on_watermark(END))
    np.testing.assert_equal([row["first"], row["last"]], [first, last])


@pytest.mark.parametrize(
    ("column", "kind"),
    [([1.5], "float64"), (["a"], "str"), (Words(np.zeros(1, np.int32), ("a",)), "words")],
)
@pytest.mark.parametrize("make", [lambda: by_time({"n": "count"}), lambda: tumbling({}), time_join])
def test_windows_refuse_times_that_are_no_whole_numbers(make, column, kind):
    operator = make()
    port = "left" if isinstance(operator, SlidingTimeJoin) else "in"
    with pytest.raises(UsageError, match=f"'time' has values of the kind {kind}"):
        operator.process(port, Batch.of(k=[1]).with_columns(time=Batch.of(time=column)["time"]))


def test_keys_of_several_widths_are_the_same_keys():
    windows = by_time({"n": "count"}, size=10, every=10)
    windows.process("in", Batch.of(k=np.array([7], np.int32), time=[1]))
    windows.process("in", Batch.of(k=[7, 2**31 + 7], time=[1, 1]))
    found = {row["k"]: row["n"] for row in results(windows.on_watermark(END))}
    assert found == {7: 2, 2**31 + 7: 1}


def test_keys_that_cannot_be_compared_with_the_ones_before_are_refused():
    windows = by_time({"n": "count"})
    windows.process("in", Batch.of(k=[1], time=[1]))
    with pytest.raises(
        UsageError, match=r"keys of the kind float64 are not compared .* int64 .'k'"
    ):
        windows.process("in", Batch.of(k=[1.0], time=[1]))


@pytest.mark.parametrize("other", [[1.0], ["1"]])
def test_a_join_refuses_keys_that_can_never_be_equal(other):
    join = SlidingRowJoin(RowJoinPlan(BOTH, {"left": 5, "right": 5}))
    join.process("left", Batch.of(k=[1], time=[1]))
    with pytest.raises(UsageError, match="are not compared with the keys before"):
        join.process("right", Batch.of(k=other, time=[1]))


def test_records_are_taken_so_many_at_a_time_that_their_pairs_fit():
    most = PAIRS_AT_ONCE
    cuts = [(some.start, some.stop) for some in portions(np.array([1, most - 1, 1, 2 * most, 0]))]
    assert cuts == [(0, 2), (2, 3), (3, 4), (4, 5)]


@pytest.mark.parametrize("kind", ["rows", "time"])
def test_a_join_of_one_busy_key_asks_its_function_about_so_many_pairs_as_fit(kind):
    asked = []

    def same(left, right):
        asked.append(left.length)
        return left["x"] == right["x"]

    if kind == "rows":
        join = SlidingRowJoin(RowJoinPlan(BOTH, {"left": 0, "right": 2_000}), same)
    else:
        join = SlidingTimeJoin(TimeJoinPlan(BOTH, {side: Sliding(10, 10) for side in BOTH}), same)
    many = np.arange(2_000)
    join.process("right", Batch.of(k=many * 0, x=many, time=many * 0))
    pairs = results(join.process("left", Batch.of(k=many * 0, x=many, time=many * 0)))
    assert (sum(asked), sorted(pair["x"] for pair in pairs)) == (4_000_000, many.tolist())
    assert max(asked) <= PAIRS_AT_ONCE


def test_a_join_by_time_forgets_the_keys_of_rows_that_are_gone():
    join = time_join()
    for now in range(0, 60_000, 1_000):
        keys = np.arange(now, now + 1_000)
        for port in BOTH:
            join.process(port, Batch.of(k=keys, time=np.full(1_000, now)))
        join.on_watermark(now)
    assert len(join._numbers) < 10_000
    pairs = results(join.process("left", Batch.of(k=[59_500], time=[59_000])))
    assert len(pairs) == 10


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_join_by_time_looks_at_what_the_times_of_both_sides_mean(side):
    known = {s: {"k": None, "time": "timestamp_ms"} for s in BOTH}
    known[side] = {"k": None, "time": "timestamp"}
    with pytest.raises(GraphError, match="windows are in milliseconds, and 'time' is a timestamp"):
        time_join().known_columns("out", known)
