"""Windows by rows that are captured in groups: right after every restore, and what a capture writes."""

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import Checkpoint, Crash, Step, Take, Written, check, plain, stories
from sliding_models import SlidingJoinModel, SlidingRowsModel

from snapline.batch import Batch
from snapline.dataflow.operators.operator import Capture, Groups, Operator
from snapline.dataflow.sliding import arena
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows

AGGREGATES = {"n": "count", "total": ("sum", "price"), "average": ("mean", "price")}
AGGREGATES |= {name: (name, "price") for name in ("first", "last")}
AGGREGATES |= {"least": ("min", "price"), "most": ("max", "price")}
GROUPS = [0, 1, 3, 8]
RECORDS = {
    "in": st.fixed_dictionaries(
        {"key": st.integers(0, 3), "time": st.integers(0, 9), "price": st.integers(-5, 99)}
    )
}


def windows(size: int, group: int | None, keys: tuple[str, ...] = ("key",)) -> SlidingRowWindows:
    plan = SlidingPlan.of(keys, AGGREGATES, ("time",))
    operator = SlidingRowWindows(plan, LastRows(size))
    operator.by_group(group)
    return operator


def join(sizes: dict[str, int], group: int, keyed: bool) -> SlidingRowJoin:
    keys = {"left": ("id",), "right": ("owner",)} if keyed else {"left": (), "right": ()}
    operator = SlidingRowJoin(RowJoinPlan(keys, sizes), None if keyed else _same)
    operator.by_group(group)
    return operator


def _same(left: Batch, right: Batch) -> np.ndarray:
    return left["id"] == right["owner"]


@pytest.fixture(autouse=True)
def dead_rows_are_dropped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "_DEAD_MIN", 5)


@pytest.mark.parametrize("keys", [("key",), ()], ids=["per key", "over all"])
@given(stories(RECORDS), st.sampled_from([1, 2, 7, 30]), st.sampled_from(GROUPS))
def test_windows_go_on_after_a_restore_from_groups(keys, story, size, group):
    check(partial(windows, size, group, keys), SlidingRowsModel(size, *keys), story, plain)


def long_story(seed: int, zipf: bool = False) -> list[Step]:
    """Hundreds of batches, in which groups fill and die many times over; some keys come hardly ever."""
    dice = random.Random(seed)
    story: list[Step] = []
    for n in range(120):
        rows = tuple(
            {"key": _key(dice, zipf), "time": n, "price": dice.randrange(99)}
            for _ in range(dice.choice([1, 1, 2, 5, 20]))
        )
        story.append(Take("in", rows))
        if dice.random() < 0.2:
            story.append(Checkpoint(full=dice.random() < 0.3))
        if dice.random() < 0.05:
            story.append(Crash())
    return story


def _key(dice: random.Random, zipf: bool) -> int:
    return min(int(dice.paretovariate(0.7)), 200) if zipf else dice.randrange(3)


@pytest.mark.parametrize("zipf", [False, True], ids=["even", "zipf"])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("size", "keys"), [(1, ("key",)), (4, ("key",)), (20, ("key",)), (50, ())])
def test_windows_stay_right_in_a_long_story(size, keys, group, zipf):
    story = long_story(size + group, zipf)
    check(partial(windows, size, group, keys), SlidingRowsModel(size, *keys), story, plain)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("keyed", [True, False], ids=["per key", "scan"])
@pytest.mark.parametrize("sizes", [{"left": 4, "right": 2}, {"left": 3, "right": 40}], ids=str)
def test_joins_go_on_after_a_restore_from_groups(sizes, keyed, group):
    dice = random.Random(group)
    story: list[Step] = []
    for _ in range(80):
        port, key = dice.choice([("left", "id"), ("right", "owner")])
        rows = [
            {key: dice.randrange(3), "name": dice.choice("ab"), "time": dice.randrange(60)}
            for _ in range(dice.choice([1, 2, 7]))
        ]
        story.append(Take(port, tuple(rows)))
        if dice.random() < 0.2:
            story.append(Checkpoint(full=dice.random() < 0.3))
        if dice.random() < 0.06:
            story.append(Crash())
    match = None if keyed else lambda left, right: left["id"] == right["owner"]
    model = SlidingJoinModel(sizes, keyed=keyed, match=match)
    check(partial(join, sizes, group, keyed), model, story, plain)


# What a capture writes.


def numbers(operator: Operator, count: int) -> None:
    n = np.arange(count)
    operator.process("in", Batch.of(key=n, time=n, price=n))


class Stored:
    """The groups of an operator, as its captures leave them behind."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.last: Written | None = None

    def capture(self) -> Groups:
        capture = self.operator.capture(full=False)
        self.last = Written(capture, self.last)
        return capture.groups["rows"]

    @property
    def groups(self) -> dict[int, bytes]:
        assert self.last is not None
        return self.last.groups["rows"]


@pytest.mark.parametrize("group", [5, 64])
def test_a_capture_writes_new_rows_and_the_open_group_and_no_clean_one(group):
    """The figures of SPADE's example: windows of 15, groups of 5: first A to M, then N to R."""
    window = 3 * group
    stored = Stored(windows(window, group, ()))
    numbers(stored.operator, 2 * group + 3)
    first = stored.capture()
    assert [rows.length for rows in first.written.values()] == [group, group, 3]
    numbers(stored.operator, group)
    second = stored.capture()
    assert [rows.length for rows in second.written.values()] == [group, 3]
    assert list(second.written) == [2, 3], "the third group is full now, the fourth is new"
    assert not second.dropped, "the first has lost rows, but not all"
    numbers(stored.operator, group)
    assert list(stored.capture().dropped) == [0]
    assert not stored.capture().written, "nothing came"


@pytest.mark.parametrize("window", [1_024, 16_384])
def test_what_is_written_follows_the_rows_that_came_and_not_the_window(window):
    stored, group, most = Stored(windows(window, 256, ())), 256, 0
    for _ in range(150):
        numbers(stored.operator, 333)
        changed = stored.capture()
        written = sum(rows.length for rows in changed.written.values())
        most = max(most, written)
        assert len(stored.groups) <= window // group + 2
    assert most <= 333 + group


def test_keys_to_which_nothing_comes_do_not_keep_their_groups_for_ever():
    """Groups with few living rows become one: all of them hold little more than the rows that live."""
    stored, dice = Stored(windows(8, 64)), np.random.default_rng(3)
    written = 0
    for turn in range(400):
        hot = dice.integers(0, 5, 90)
        cold = np.arange(1_000 + 2 * turn, 1_002 + 2 * turn)
        keys = np.append(hot, cold)
        stored.operator.process("in", Batch.of(key=keys, time=keys, price=keys))
        written += sum(rows.length for rows in stored.capture().written.values())
    living = 5 * 8 + 800
    assert len(stored.groups) <= 2 * living / 64 + 5
    assert written <= 3.1 * 400 * 92, "what came, the open group again, and once more for mergers"


def test_groups_have_the_strings_that_they_use():
    stored = Stored(windows(4_096, 64, ()))
    names = [f"a-rather-long-name-{n}" for n in range(2_000)]
    plan = SlidingPlan.of(("key",), {"n": "count"}, ("time",))
    stored.operator = SlidingRowWindows(plan, LastRows(3))
    stored.operator.by_group(64)
    words = Batch.of(key=names)["key"]
    stored.operator.process("in", Batch({"key": words, "time": np.arange(2_000)}))
    stored.capture()
    assert len(stored.groups) == 32
    assert max(map(len, stored.groups.values())) < 64 * 80


# Damage.


@pytest.mark.parametrize("keys", [("key",), ()], ids=["per key", "over all"])
@pytest.mark.parametrize("seed", range(6))
def test_a_lost_group_is_as_if_its_rows_had_never_come(keys, seed):
    dice = random.Random(seed)
    operator, size = windows(20, 8, keys), 20
    rows = [{"key": dice.randrange(3), "time": n, "price": dice.randrange(99)} for n in range(90)]
    operator.process("in", plain(rows))
    written = Written(operator.capture(full=True)).read()
    groups = dict(written.groups["rows"].written)
    lost = dice.choice(list(groups))
    del groups[lost]
    restored = windows(20, 8, keys)
    restored.restore([Capture(True, {}, groups={"rows": Groups(groups, lost=(lost,))})])
    model = SlidingRowsModel(size, *keys)
    for batch in groups.values():  # what is left, in the order in which it came
        for n in range(batch.length):
            key = {"key": int(batch["key"][n])} if keys else {}
            model.perform(Take("in", ({"key": 0, **key, "time": 0, "price": price(batch, n)},)))
    more = [{"key": dice.randrange(3), "time": n, "price": dice.randrange(99)} for n in range(60)]
    found = restored.process("in", plain(more))[0][1]
    expected = model.perform(Take("in", tuple(more)))["out"]
    assert found["total"].tolist() == [row["total"] for row in expected]
    assert found["n"].tolist() == [row["n"] for row in expected]
    again = restored.capture(full=True).groups["rows"]
    assert set(again.dropped) == {*groups, lost}, "all are written again, with other ordinals"
    last = windows(20, 8, keys)
    last.restore([Capture(True, {}, groups={"rows": Groups(again.written)})])
    one = [{"key": 1, "time": 9, "price": 5}]
    assert last.process("in", plain(one))[0][1] == restored.process("in", plain(one))[0][1]


def price(batch: Batch, n: int) -> int:
    return int(batch["(of price)"][n])
