"""Windows that ended while their task was away: forgotten and counted, or put out as tentative."""

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import (
    AggregateModel,
    Model,
    Row,
    Rows,
    WindowCountModel,
    WindowJoinModel,
    WindowModel,
    check,
    plain,
    stories,
)
from sliding_models import SlidingTimeModel

from snapline.batch import Batch
from snapline.dataflow.chain import chain_operators
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.logical import OperatorContext
from snapline.dataflow.operators.aggregate import AggregatePlan, WindowAggregate
from snapline.dataflow.operators.cogroup import Pairing, Side, WindowCogroup
from snapline.dataflow.operators.guard import Guard
from snapline.dataflow.operators.join import WindowJoin
from snapline.dataflow.operators.operator import Capture, Operator, Outputs
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.operators.window_count import WindowCount
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.time_windows import SlidingTimeWindows
from snapline.errors import OperatorFailed
from snapline.workload.common.own import generated

pytestmark = pytest.mark.usefixtures("both_forms")

TIMES = st.integers(0, 60)
RECORDS = st.fixed_dictionaries(
    {"key": st.integers(0, 3), "time": TIMES, "price": st.integers(-5, 99)}
)
SIDES = {
    "left": st.fixed_dictionaries({"id": st.integers(0, 3), "time": TIMES, "name": st.just("l")}),
    "right": st.fixed_dictionaries(
        {"owner": st.integers(0, 3), "time": TIMES, "name": st.just("r")}
    ),
}
EXPIRY = {
    "forget": st.fixed_dictionaries({"time": TIMES}),
    "mark": st.fixed_dictionaries({"time": TIMES}),
}
"""Ports on which windows are called stale. No operator has them: `Expiring` stands before it."""


class Expiring(Operator):
    """An operator whose windows can be made to expire by a step of a story."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def process(self, port: str, batch: Batch) -> Outputs:
        if port == "forget":
            ended = [self.operator.expire(time) for time in batch["time"].tolist()]
            return [("expired", Batch.of(windows=ended))]
        if port == "mark":
            return [o for time in batch["time"].tolist() for o in self.operator.mark_stale(time)]
        return self.operator.process(port, batch)

    def on_watermark(self, time: int) -> Outputs:
        return self.operator.on_watermark(time)

    def capture(self, *, full: bool) -> Capture:
        return self.operator.capture(full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        self.operator.restore(captures)


class ExpiringModel(Model):
    """A model of windows that knows which of them hold rows, so that it can tell which of them end."""

    def __init__(self, model: WindowModel) -> None:
        self.model = model
        self.open: set[int] = set()

    def take(self, port: str, row: Row, found: Rows) -> None:
        if port not in EXPIRY:
            window = self.model.window(row)
            self.open |= set() if self.model.closed(window) else {window}
            self.model.take(port, row, found)
            return
        said: Rows = {"out": []}
        self.model.watermark(row["time"], said)
        if port == "mark":
            found["tentative"] += said["out"]
        else:
            found["expired"].append({"windows": self.forget()})
        self.forget()

    def watermark(self, time: int, found: Rows) -> None:
        self.model.watermark(time, found)
        self.forget()

    def forget(self) -> int:
        ended = {window for window in self.open if self.model.closed(window)}
        self.open -= ended
        return len(ended)


AGGREGATES = {
    "n": "count",
    "total": ("sum", "price"),
    "least": ("min", "price"),
    "most": ("max", "price"),
    "prices": ("collect", "price"),
}


@pytest.mark.parametrize("lateness", [0, 7])
def test_stale_aggregates_are_forgotten_or_put_out_as_tentative(lateness):
    shape = Tumbling(10, lateness_ms=lateness)
    plan = AggregatePlan.of(("key",), shape, AGGREGATES)

    @given(stories({"in": RECORDS, **EXPIRY}))
    def holds(story):
        model = ExpiringModel(AggregateModel(lateness))
        check(lambda: Expiring(WindowAggregate(plan, shape)), model, story, plain)

    holds()


@given(stories({"in": RECORDS, **EXPIRY}))
def test_a_running_count_forgets_stale_windows_and_takes_their_records_as_late(story):
    model = ExpiringModel(WindowCountModel())
    check(lambda: Expiring(WindowCount(("key",), Tumbling(10))), model, story, plain)


@given(stories({**SIDES, **EXPIRY}))
def test_a_join_forgets_the_rows_of_stale_windows(story):
    model = ExpiringModel(WindowJoinModel())
    make = partial(WindowJoin, ("id",), ("owner",), Tumbling(10))
    check(lambda: Expiring(make()), model, story, plain)


class ExpiringSliding(Model):
    """The same for windows that overlap, which hold rows if they have something to say."""

    def __init__(self, model: SlidingTimeModel) -> None:
        self.model = model

    def take(self, port: str, row: Row, found: Rows) -> None:
        if port not in EXPIRY:
            self.model.take(port, row, found)
            return
        said: Rows = {"out": []}
        self.model.watermark(row["time"], said)
        if port == "mark":
            found["tentative"] += said["out"]
        else:
            found["expired"].append({"windows": len({row["window"] for row in said["out"]})})

    def watermark(self, time: int, found: Rows) -> None:
        self.model.watermark(time, found)


@pytest.mark.parametrize(("size", "every", "lateness"), [(10, 2, 0), (12, 4, 7), (7, 7, 0)])
def test_stale_sliding_windows_are_forgotten_or_put_out_as_tentative(size, every, lateness):
    sums = {**AGGREGATES, "average": ("mean", "price"), "first": ("first", "price")}
    del sums["prices"]
    plan = SlidingPlan.of(("key",), {**sums, "last": ("last", "price")}, ("window", "time"), "time")
    make = partial(SlidingTimeWindows, plan, Sliding(size, every, lateness_ms=lateness))

    @given(stories({"in": RECORDS, **EXPIRY}))
    def holds(story):
        model = ExpiringSliding(SlidingTimeModel(size, every, lateness, "key"))
        check(lambda: Expiring(make()), model, story, plain)

    holds()


def cogroup() -> WindowCogroup:
    left, right = (Side.of(("id",), {name: "count"}) for name in ("gets", "posts"))
    made = WindowCogroup(Pairing.of(left, right, Tumbling(10)))
    made.process("left", Batch.of(id=[1, 2, 1], time=[1, 2, 11]))
    made.process("right", Batch.of(id=[1, 1], time=[5, 25]))
    return made


def test_stale_groups_of_two_streams_are_forgotten_with_the_rows_of_both():
    stale = cogroup()
    assert stale.expire(20) == 2
    assert stale.windows_closed == 0
    assert stale.process("left", Batch.of(id=[7], time=[19]))[0][0] == "late-left"
    ((name, rows),) = stale.on_watermark(99)
    assert (name, rows.select("id", "window", "gets", "posts").rows()) == ("out", [(1, 20, 0, 1)])


def test_stale_groups_of_two_streams_are_put_out_as_tentative():
    stale = cogroup()
    first, second = stale.mark_stale(20)
    found = [
        (name, rows.select("id", "window", "gets", "posts").rows())
        for name, rows in (first, second)
    ]
    assert found == [("tentative", [(1, 0, 1, 1), (2, 0, 1, 0)]), ("tentative", [(1, 10, 1, 0)])]
    assert stale.expire(20) == 0


def test_a_restored_window_that_is_not_stale_goes_on():
    before = cogroup()
    restored = WindowCogroup(before._pairing)
    restored.restore([before.capture(full=True)])
    assert restored.expire(10) == 1
    assert [rows["window"].tolist() for _, rows in restored.on_watermark(99)] == [[10], [20]]


def test_operators_without_windows_have_nothing_that_is_stale():
    assert Operator().expire(10**9) == 0
    assert Operator().mark_stale(10**9) == ()


def chained() -> Operator:
    flow = Dataflow("chained")
    bids = flow.source(generated(lambda n: {"page": n}, rate=10, name="bids"), name="bids")
    windows = bids.key_by("page").tumbling(10).count(name="counts")
    windows.apply(partial(WindowCount, ("page",), Tumbling(1000)), name="again").sink("sink")
    return chain_operators(flow.graph).nodes["sink"].build(OperatorContext(0, 1))


def test_a_chain_asks_all_of_its_members():
    chain = chained()
    chain.process("in", Batch.of(page=[1, 2, 3], time=[1, 11, 21]))
    chain.on_watermark(10)  # one window goes from the first member to the second
    assert chain.expire(20) == 1
    assert chain.expire(1_000) == 2  # one of each
    chain.process("in", Batch.of(page=[1], time=[2_001]))
    assert chain.mark_stale(3_000) == ()  # the sink is the last, and says nothing of windows
    assert chain.expire(3_000) == 0


class Wrong(Operator):
    def expire(self, time):
        return None

    def mark_stale(self, time):
        return None


def test_what_an_operator_says_of_stale_windows_is_checked():
    guard = Guard("mine", Wrong())
    with pytest.raises(OperatorFailed, match=r"mine.*expire returned None"):
        guard.expire(1)
    with pytest.raises(OperatorFailed, match=r"mine.*mark_stale returned None"):
        guard.mark_stale(1)
