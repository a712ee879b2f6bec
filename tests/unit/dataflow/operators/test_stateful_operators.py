"""Every stateful operator against its plain-Python model, through captures, deltas and crashes."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import (
    AggregateModel,
    CountModel,
    FoldModel,
    JoinModel,
    Row,
    WindowCountModel,
    WindowJoinModel,
    check,
    plain,
    stories,
)

from snapline.batch import Batch, Words
from snapline.dataflow.operators.aggregate import AggregatePlan, WindowAggregate
from snapline.dataflow.operators.fold import Count, Fold
from snapline.dataflow.operators.join import Join, WindowJoin
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.operators.window_count import WindowCount

pytestmark = pytest.mark.usefixtures("both_forms")

TIMES = st.integers(-30, 60)
KEYS = {
    "int": st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "str": st.sampled_from(["", "a", "b", "ab", "ba", "a\0"]),
    "float": st.sampled_from([0.5, 1.5, float("inf")]),
    "bool": st.booleans(),
}
NAMES = st.sampled_from(["ada", "bob", ""])


def records(key: st.SearchStrategy) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({"key": key, "time": TIMES, "price": st.integers(-5, 99)})


def with_words(name: str) -> Callable[[Sequence[Row]], Batch]:
    """Rows as a batch in which one column of strings is dictionary-coded, differently each time."""

    def columns(rows: Sequence[Row]) -> Batch:
        values = tuple(dict.fromkeys(row[name] for row in rows))
        codes = np.array([values.index(row[name]) for row in rows], np.int32)
        return plain(rows).with_columns(**{name: Words(codes, values)})

    return columns


@pytest.mark.parametrize("kind", KEYS)
def test_a_running_count_numbers_the_records_of_each_key(kind):
    @given(stories({"in": records(KEYS[kind])}))
    def holds(story):
        check(partial(Count, ("key",)), CountModel("key"), story, plain)

    holds()


@given(stories({"in": records(KEYS["str"])}))
def test_a_key_may_be_a_column_of_words(story):
    check(partial(Count, ("key",)), CountModel("key"), story, with_words("key"))


@given(stories({"in": records(KEYS["str"])}))
def test_a_key_may_have_several_columns(story):
    check(partial(Count, ("key", "price")), CountModel("key", "price"), story, plain)


def total_and_last(state: dict, batch: Batch) -> dict:
    total = (3 * state["total"] + batch["price"] - state["last"]) % 1009
    return {"total": total, "last": batch["price"]}


@given(stories({"in": records(KEYS["int"])}))
def test_a_fold_takes_the_records_of_a_key_in_their_order(story):
    make = partial(Fold, ("key",), {"total": 0, "last": -1}, total_and_last)
    check(make, FoldModel(), story, plain)


@pytest.mark.parametrize("lateness", [0, 7])
@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_window_counts_the_records_of_each_key_until_it_closes(kind, lateness):
    @given(stories({"in": records(KEYS[kind])}))
    def holds(story):
        make = partial(WindowCount, ("key",), Tumbling(10, lateness_ms=lateness))
        check(make, WindowCountModel(lateness), story, plain)

    holds()


@pytest.mark.parametrize("lateness", [0, 7])
@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_window_emits_its_aggregates_once_when_it_closes(kind, lateness):
    shape = Tumbling(10, lateness_ms=lateness)
    aggregates = {
        "n": "count",
        "total": ("sum", "price"),
        "least": ("min", "price"),
        "most": ("max", "price"),
        "prices": ("collect", "price"),
    }
    plan = AggregatePlan.of(("key",), shape, aggregates)

    @given(stories({"in": records(KEYS[kind])}))
    def holds(story):
        check(partial(WindowAggregate, plan, shape), AggregateModel(lateness), story, plain)

    holds()


def sides(key: st.SearchStrategy) -> dict[str, st.SearchStrategy[Row]]:
    left = {
        "id": key,
        "name": NAMES,
        "time": TIMES,
        "tags": st.lists(st.integers(0, 2), max_size=2),
    }
    return {
        "left": st.fixed_dictionaries(left),
        "right": st.fixed_dictionaries({"owner": key, "name": NAMES, "time": TIMES}),
    }


@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_join_pairs_every_record_with_all_earlier_ones_of_the_other_side(kind):
    @given(stories(sides(KEYS[kind])))
    def holds(story):
        check(partial(Join, ("id",), ("owner",)), JoinModel(), story, with_words("name"))

    holds()


@given(stories(sides(KEYS["int"])))
def test_a_windowed_join_pairs_within_windows_that_are_open(story):
    make = partial(WindowJoin, ("id",), ("owner",), Tumbling(10))
    check(make, WindowJoinModel(), story, with_words("name"))


def test_sums_of_narrow_integers_and_flags_do_not_overflow():
    shape = Tumbling(10)
    plan = AggregatePlan.of(("key",), shape, {"total": ("sum", "small"), "hits": ("sum", "flag")})
    operator = WindowAggregate(plan, shape)
    columns = {"small": np.full(300, 100, np.int8), "flag": np.ones(300, np.bool_)}
    keys, times = np.zeros(300, np.int64), np.zeros(300, np.int64)
    operator.process("in", Batch.of(key=keys, time=times, **columns))
    ((_, closed),) = operator.on_watermark(10)
    assert closed.select("total", "hits").rows() == [(30_000, 300)]


def test_the_least_of_infinities_is_infinite():
    shape = Tumbling(10)
    operator = WindowAggregate(AggregatePlan.of(("key",), shape, {"least": ("min", "x")}), shape)
    operator.process("in", Batch.of(key=[1], time=[0], x=[float("inf")]))
    ((_, closed),) = operator.on_watermark(10)
    assert closed["least"].tolist() == [float("inf")]


def test_a_long_chain_of_one_key_is_walked_to_its_end():
    join = Join(("id",), ("owner",))
    for start in range(0, 3000, 100):
        join.process("left", Batch.of(id=[7] * 100, x=np.arange(start, start + 100)))
    ((_, pairs),) = join.process("right", Batch.of(owner=[7, 8], y=[1, 2]))
    assert sorted(pairs["x"].tolist()) == list(range(3000))
    assert set(pairs["y"].tolist()) == {1}


def test_keys_of_one_name_stand_once_and_other_names_are_kept_apart():
    join = Join(("id", "day"), ("id", "date"))
    join.process("left", Batch.of(id=[1], day=[2], x=[3], x_right=[4]))
    ((_, pairs),) = join.process("right", Batch.of(id=[1], date=[2], x=[5]))
    assert pairs.to_pydict() == {
        "id": [1],
        "day": [2],
        "x": [3],
        "x_right": [4],
        "date": [2],
        "x_right_right": [5],
    }


def test_a_delta_holds_what_changed_and_nothing_else():
    count = Count(("key",))
    count.process("in", Batch.of(key=np.arange(1000)))
    assert count.capture(full=True).parts["state"].length == 1000
    count.process("in", Batch.of(key=[3, 5, 3]))
    delta = count.capture(full=False).parts["state"]
    assert sorted(delta.rows()) == [(3, 3), (5, 2)]
    assert count.capture(full=False).parts["state"].length == 0


def test_a_delta_of_a_join_is_its_new_rows_without_a_copy():
    join = Join(("id",), ("id",))
    join.process("left", Batch.of(id=np.arange(50)))
    assert join.capture(full=True).grown == 0
    join.process("left", Batch.of(id=[60, 61]))
    capture = join.capture(full=False)
    delta = capture.parts["left"]
    assert delta["id"].tolist() == [60, 61]
    assert delta["id"].base is not None
    assert capture.grown == delta.nbytes == 16


@pytest.mark.parametrize(
    "operator",
    [
        WindowCount(("id",), Tumbling(10)),
        WindowAggregate(
            AggregatePlan.of(("id",), Tumbling(10), {"ids": ("collect", "id")}), Tumbling(10)
        ),
        WindowJoin(("id",), ("id",), Tumbling(10)),
    ],
    ids=lambda operator: type(operator).__name__,
)
def test_nothing_is_kept_behind_the_watermark(operator):
    for port in ("left", "right") if isinstance(operator, WindowJoin) else ("in",):
        operator.process(port, Batch.of(id=[1, 2, 3], time=[1, 11, 21]))
    operator.on_watermark(20)
    parts = operator.capture(full=True).parts
    assert [name for name in parts if parts[name].length > 1] == []
    operator.on_watermark(30)
    parts = operator.capture(full=True).parts
    assert {name: part.length for name, part in parts.items() if part.length} == {"clock": 1}


def test_a_watermark_never_goes_back():
    count = WindowCount(("id",), Tumbling(10))
    count.on_watermark(20)
    count.on_watermark(5)
    ((output, _),) = count.process("in", Batch.of(id=[1], time=[9]))
    assert output == "late"
