"""Two streams brought together by key and window, and lists that are collected from lists."""

from collections import defaultdict
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import WindowModel, check, pick, plain, stories

from snapline.batch import Batch, Words
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.aggregate import AggregatePlan, WindowAggregate
from snapline.dataflow.operators.cogroup import Pairing, Side, WindowCogroup
from snapline.dataflow.operators.window import Tumbling
from snapline.errors import GraphError, UsageError
from snapline.workload.common.own import generated

pytestmark = pytest.mark.usefixtures("both_forms")

KEYS = {
    "int": st.integers(0, 3) | st.integers(0, 200),
    "str": st.sampled_from(["", "a", "b", "ab", "ba"]),
}
TIMES = st.integers(-30, 60)
LISTS = st.lists(st.integers(-2, 2), max_size=3)


def pairing(lateness=0):
    left = Side.of(("page",), {"gets": "count", "ids": ("collect", "id")})
    right = Side.of(("name",), {"tags": ("collect", "tags"), "posts": "count"})
    return Pairing.of(left, right, Tumbling(10, lateness_ms=lateness))


class CogroupModel(WindowModel):
    def __init__(self, lateness):
        super().__init__(lateness)
        self.rows = {}

    def take(self, port, row, found):
        window = self.window(row)
        if self.closed(window):
            found[f"late-{port}"].append(row)
            return
        key = window, row["page" if port == "left" else "name"]
        self.rows.setdefault(key, {"left": [], "right": []})[port].append(row)

    def watermark(self, time, found):
        super().watermark(time, found)
        for window, key in [which for which in self.rows if self.closed(which[0])]:
            sides = self.rows.pop((window, key))
            found["out"].append(
                {
                    "page": key,
                    "window": window,
                    "gets": len(sides["left"]),
                    "ids": [row["id"] for row in sides["left"]],
                    "posts": len(sides["right"]),
                    "tags": [tag for row in sides["right"] for tag in row["tags"]],
                    "time": max(row["time"] for side in sides.values() for row in side),
                }
            )


def sides(key):
    return {
        "left": st.fixed_dictionaries({"page": key, "time": TIMES, "id": st.integers(0, 99)}),
        "right": st.fixed_dictionaries({"name": key, "time": TIMES, "tags": LISTS}),
    }


def with_lists(rows):
    """Rows as a batch; a column of lists is one also where the first of them is empty."""
    batch = plain(rows)
    if "tags" not in rows[0]:
        return batch
    return batch.with_columns(
        tags=Batch.of(tags=[[], *(r["tags"] for r in rows)])["tags"].slice(1, 999)
    )


@pytest.mark.parametrize(("kind", "lateness"), [("int", 7), ("str", 0)])
def test_what_both_sides_have_of_a_key_comes_out_once_when_the_window_closes(kind, lateness):
    @given(stories(sides(KEYS[kind])))
    def holds(story):
        make = partial(WindowCogroup, pairing(lateness))
        check(make, CogroupModel(lateness), story, with_lists)

    holds()


class ListModel(WindowModel):
    """Lists of one key and window, one behind the other."""

    def __init__(self):
        super().__init__()
        self.rows = defaultdict(list)

    def take(self, port, row, found):
        window = self.window(row)
        if self.closed(window):
            found["late"].append(row)
        else:
            self.rows[window, row["page"]].append(row)

    def watermark(self, time, found):
        super().watermark(time, found)
        for window, page in [which for which in self.rows if self.closed(which[0])]:
            rows = self.rows.pop((window, page))
            tags = [tag for row in rows for tag in row["tags"]]
            found["out"].append({"page": page, "window": window, "all": tags} | _latest(rows))


def _latest(rows):
    return pick(max(rows, key=lambda row: row["time"]), "time")


LISTED = st.fixed_dictionaries({"page": KEYS["int"], "time": TIMES, "tags": LISTS})


@given(stories({"in": LISTED}))
def test_lists_are_collected_one_behind_the_other(story):
    plan = AggregatePlan.of(("page",), Tumbling(10), {"all": ("collect", "tags")})
    check(partial(WindowAggregate, plan, Tumbling(10)), ListModel(), story, with_lists)


def test_text_cannot_be_collected():
    for texts in (["a", "b"], Words(np.array([0, 1], np.int32), ("a", "b"))):
        plan = AggregatePlan.of(("page",), Tumbling(10), {"all": ("collect", "text")})
        aggregate = WindowAggregate(plan, Tumbling(10))
        aggregate.process("in", Batch.of(page=[1, 1], time=[3, 4], text=texts))
        with pytest.raises(UsageError, match="only numbers and lists of them can be collected"):
            aggregate.on_watermark(10)


def test_a_word_is_the_same_key_in_any_form():
    cogroup = WindowCogroup(pairing())
    page = Words(np.array([1, 0, 1], np.int32), ("a", "b"))
    cogroup.process("left", Batch.of(page=page, time=[1, 2, 3], id=[10, 20, 30]))
    cogroup.process("right", Batch.of(name=["b", "c"], time=[4, 5], tags=[[7], [8, 9]]))
    ((name, batch),) = cogroup.on_watermark(10)
    rows = sorted(batch.select("page", "ids", "tags", "time").rows())
    assert name == "out"
    assert rows == [("a", [20], [], 2), ("b", [10, 30], [7], 4), ("c", [], [8, 9], 5)]


def test_nothing_is_deduplicated():
    cogroup = WindowCogroup(pairing())
    for _ in range(2):
        cogroup.process("left", Batch.of(page=[1], time=[1], id=[10]))
    ((_, batch),) = cogroup.on_watermark(10)
    assert batch.select("gets", "ids", "posts").rows() == [(2, [10, 10], 0)]


def test_nothing_is_kept_behind_the_watermark_of_both_sides():
    cogroup = WindowCogroup(pairing())
    cogroup.process("left", Batch.of(page=[1, 1], time=[1, 11], id=[10, 20]))
    cogroup.process("right", Batch.of(name=[1, 1], time=[1, 11], tags=[[1], [2]]))
    cogroup.on_watermark(10)
    kept = cogroup.capture(full=True).parts
    assert (kept["left"]["id"].tolist(), kept["right"]["tags"].to_list()) == ([20], [[2]])
    cogroup.on_watermark(20)
    parts = cogroup.capture(full=True).parts
    assert {name: part.length for name, part in parts.items() if part.length} == {"clock": 1}


def test_a_delta_is_the_new_rows_of_each_side():
    cogroup = WindowCogroup(pairing())
    cogroup.process("left", Batch.of(page=[1, 1], time=[1, 11], id=[10, 20]))
    cogroup.capture(full=True)
    cogroup.process("left", Batch.of(page=[2], time=[2], id=[30]))
    delta = cogroup.capture(full=False).parts
    assert (delta["left"]["id"].tolist(), delta["right"].length) == ([30], 0)


def streams():
    flow = Dataflow("pages")
    made = {n: generated(lambda n: {"page": n % 3}, rate=10, name=n) for n in ("gets", "posts")}
    return [flow.source(feed, name=name).key_by("page") for name, feed in made.items()]


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ({"n": ("sum", "id")}, {}, r"'n' cannot be \('sum', 'id'\): of a side that may be empty"),
        ({"n": "most"}, {}, "'n' cannot be 'most'"),
        ({"n": "count"}, {"n": "count"}, "two columns of the result are called 'n'"),
        ({"page": "count"}, {}, "two columns of the result are called 'page'"),
        ({}, {"time": "count"}, "two columns of the result are called 'time'"),
    ],
)
def test_what_cannot_be_is_said_when_the_flow_is_built(left, right, message):
    gets, posts = streams()
    with pytest.raises(GraphError, match=message):
        gets.window_cogroup(posts, "10s", left=left, right=right)
