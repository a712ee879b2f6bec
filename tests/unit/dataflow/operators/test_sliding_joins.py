"""Joins of windows by rows against their plain-Python model, through captures, deltas and crashes."""

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import Checkpoint, Crash, Row, Step, Take, check, plain, stories
from sliding_models import SlidingJoinModel

from snapline.batch import Batch
from snapline.dataflow.sliding import arena, matching
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin

pytestmark = pytest.mark.usefixtures("both_forms")

KEYED = {"left": ("id",), "right": ("owner",)}
ALL = {"left": (), "right": ()}
NAMES = st.sampled_from(["ada", "bob", ""])


def sides(key: st.SearchStrategy) -> dict[str, st.SearchStrategy[Row]]:
    times = st.integers(0, 60)
    return {
        "left": st.fixed_dictionaries({"id": key, "name": NAMES, "time": times}),
        "right": st.fixed_dictionaries({"owner": key, "name": NAMES, "time": times}),
    }


def near(left, right):
    return abs(left["time"] - right["time"]) < 20


def long_story(seed: int) -> list[Step]:
    dice = random.Random(seed)
    story: list[Step] = []
    for _ in range(120):
        port, key = dice.choice([("left", "id"), ("right", "owner")])
        rows = [
            {key: dice.randrange(3), "name": dice.choice("ab"), "time": dice.randrange(60)}
            for _ in range(dice.choice([1, 2, 7]))
        ]
        story.append(Take(port, tuple(rows)))
        if dice.random() < 0.15:
            story.append(Checkpoint(full=dice.random() < 0.3))
        if dice.random() < 0.05:
            story.append(Crash())
    return story


SIZES = [
    {"left": 1, "right": 1},
    {"left": 4, "right": 2},
    {"left": 3, "right": 40},
    {"left": 5, "right": 0},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_record_meets_the_last_rows_of_its_key(sizes, kind):
    keys = {"int": st.integers(0, 2), "str": st.sampled_from(["", "a", "ab"])}[kind]

    @given(stories(sides(keys)))
    def holds(story):
        make = partial(SlidingRowJoin, RowJoinPlan(KEYED, sizes))
        check(make, SlidingJoinModel(sizes, keyed=True), story, plain)

    holds()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("match", [None, near], ids=["all", "near"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_windows_stay_right_in_a_long_story(sizes, match, seed, monkeypatch):
    monkeypatch.setattr(arena, "_DEAD_MIN", seed * 10)
    make = partial(SlidingRowJoin, RowJoinPlan(KEYED, sizes), match)
    check(make, SlidingJoinModel(sizes, keyed=True, match=match), long_story(seed), plain)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_scan_meets_all_rows_of_the_other_window(sizes, seed, monkeypatch):
    monkeypatch.setattr(matching, "PAIRS_AT_ONCE", 1 + seed * 50)
    make = partial(SlidingRowJoin, RowJoinPlan(ALL, sizes), near)
    check(make, SlidingJoinModel(sizes, keyed=False, match=near), long_story(seed), plain)


def test_a_function_that_returns_no_mask_is_refused():
    make = partial(SlidingRowJoin, RowJoinPlan(ALL, {"left": 3, "right": 3}))
    for function in (lambda left, right: True, lambda left, right: left["time"]):
        join = make(function)
        join.process("left", Batch.of(id=[1], name=["a"], time=[1]))
        with pytest.raises(Exception, match="has to return as many bools"):
            join.process("right", Batch.of(owner=[1, 2], name=["a", "b"], time=[1, 2]))
