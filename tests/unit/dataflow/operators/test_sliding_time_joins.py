"""Joins of windows by time against their plain-Python model, through captures, deltas and crashes."""

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import Checkpoint, Crash, Row, Step, Take, Watermark, check, plain, stories
from sliding_models import SlidingTimeJoinModel

from snapline.batch import Batch
from snapline.dataflow.sliding import matching, time_join
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.time_join import SlidingTimeJoin, TimeJoinPlan
from snapline.errors import GraphError

pytestmark = pytest.mark.usefixtures("both_forms")

KEYED = {"left": ("id",), "right": ("owner",)}
ALL = {"left": (), "right": ()}
SHAPES = [(10, 10, 0), (20, 5, 0), (30, 10, 7)]


def near(left, right):
    return abs(left["time"] - right["time"]) < 8


def join(keys, shape, match=None):
    sliding = Sliding(shape[0], shape[1], lateness_ms=shape[2])
    return partial(SlidingTimeJoin, TimeJoinPlan(keys, {"left": sliding, "right": sliding}), match)


def sides(key: st.SearchStrategy) -> dict[str, st.SearchStrategy[Row]]:
    times, names = st.integers(-30, 60), st.sampled_from(["ada", "bob", ""])
    return {
        "left": st.fixed_dictionaries({"id": key, "name": names, "time": times}),
        "right": st.fixed_dictionaries({"owner": key, "name": names, "time": times}),
    }


def long_story(seed: int) -> list[Step]:
    """Time goes on, so that windows close and rows die."""
    dice = random.Random(seed)
    story: list[Step] = []
    for now in range(0, 300, 3):
        port, key = dice.choice([("left", "id"), ("right", "owner")])
        rows = [
            {
                key: dice.randrange(3),
                "name": dice.choice("ab"),
                "time": max(now - dice.randrange(25), 0),
            }
            for _ in range(dice.choice([1, 2, 7]))
        ]
        story.append(Take(port, tuple(rows)))
        if dice.random() < 0.3:
            story.append(Watermark(max(now - 15, 0)))
        if dice.random() < 0.15:
            story.append(Checkpoint(full=dice.random() < 0.3))
        if dice.random() < 0.06:
            story.append(Crash())
    return story


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_pair_comes_out_for_every_window_that_has_both(shape, kind):
    keys = {"int": st.integers(0, 2), "str": st.sampled_from(["", "a", "ab"])}[kind]

    @given(stories(sides(keys)))
    def holds(story):
        model = SlidingTimeJoinModel(*shape, keyed=True, match=None)
        check(join(KEYED, shape), model, story, plain)

    holds()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("keyed", [True, False], ids=["key", "scan"])
def test_windows_stay_right_in_a_long_story(shape, seed, keyed, monkeypatch):
    monkeypatch.setattr(time_join, "_DEAD_MIN", seed * 10)
    monkeypatch.setattr(matching, "PAIRS_AT_ONCE", 1 + seed * 50)
    match = near if seed or not keyed else None
    model = SlidingTimeJoinModel(*shape, keyed=keyed, match=match)
    check(join(KEYED if keyed else ALL, shape, match), model, long_story(seed), plain)


def test_dead_rows_are_dropped(monkeypatch):
    monkeypatch.setattr(time_join, "_DEAD_MIN", 10)
    operator = join(KEYED, (20, 5, 0))()
    for now in range(0, 4_000, 5):
        operator.process("left", Batch.of(id=[now % 3], name=["a"], time=[now]))
        operator.on_watermark(now)
        assert operator._sides["left"].rows.length < 30
    assert operator.windows_closed > 700


def test_windows_that_are_cut_differently_are_refused():
    shapes = {"left": Sliding(20, 5), "right": Sliding(20, 10)}
    with pytest.raises(GraphError, match="the same size, every and lateness"):
        TimeJoinPlan(KEYED, shapes)
