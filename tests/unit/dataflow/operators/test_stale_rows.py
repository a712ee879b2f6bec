"""Rows that others would have driven out of windows by rows while their task was away."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, concat
from snapline.dataflow.operators.join import LEFT, RIGHT
from snapline.dataflow.operators.operator import IN, Capture, Groups, Operator
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows
from snapline.dataflow.state.missed_rows import MissedRows, key_hashes

SIZE = 4
KEYS = st.lists(st.integers(0, 2), max_size=14)


def rows(keys, start=0):
    numbers = np.arange(start, start + len(keys))
    return Batch.of(key=np.array(keys, np.int64), n=numbers, time=numbers)


def join(by_key=True):
    key = ("key",) if by_key else ()
    on = None if by_key else (lambda left, right: np.ones(len(left), np.bool_))
    return SlidingRowJoin(RowJoinPlan({LEFT: key, RIGHT: key}, {LEFT: 0, RIGHT: SIZE}), on)


def window():
    results = {"rows": "count", "sum": ("sum", "n")}
    return SlidingRowWindows(SlidingPlan.of(("key",), results, ("time",)), LastRows(SIZE))


def after_a_checkpoint(operator: Operator, fresh: Operator, groups: int | None) -> Operator:
    """Another instance, with the state of the first as a checkpoint has it."""
    operator.by_group(groups)
    fresh.by_group(groups)
    taken = operator.capture(full=True)
    fresh.restore([taken])
    return fresh


def left_in_windows(keys: list[int], missed: list[int]) -> dict[int, list[int]]:
    """The plain model: the numbers of rows among the last ones of each key, had the missed ones come."""
    windows = defaultdict(list)
    for number, key in enumerate(keys):
        windows[key].append(number)
    for key in missed:
        windows[key].append(None)
    return {
        key: [n for n in numbers[-SIZE:] if n is not None]
        for key, numbers in windows.items()
        if any(n is not None for n in numbers[-SIZE:])
    }


def missed_of(keys: list[int]) -> MissedRows:
    return MissedRows.of([key_hashes(rows(keys), ("key",))])


@given(KEYS, KEYS, KEYS, st.sampled_from([None, 0, 2]))
def test_a_join_meets_the_rows_that_would_be_there_and_those_that_came_since(
    before, missed, since, groups
):
    first = join()
    if before:
        first.process(RIGHT, rows(before))
    again = after_a_checkpoint(first, join(), groups)
    stays = left_in_windows(before, missed)
    gone = again.forget_stale(RIGHT, missed_of(missed))
    lived = sum(min(before.count(key), SIZE) for key in set(before))
    assert gone == lived - sum(map(len, stays.values()))
    for number, key in enumerate(since, len(before)):
        again.process(RIGHT, rows([key], number))
        stays.setdefault(key, []).append(number)
    for key in range(3):
        met = [number for _, number in pairs(again.process(LEFT, rows([key], 1_000)))]
        assert met == stays.get(key, [])[-SIZE:]


@given(KEYS, KEYS, KEYS, st.sampled_from([0, 2]))
def test_what_is_left_is_captured_whole(before, missed, since, groups):
    """A checkpoint after that has what is left, and nothing of the groups before it."""
    first = join()
    first.by_group(groups)
    if before:
        first.process(RIGHT, rows(before))
    held = first.capture(full=True).groups[RIGHT].written
    again = join()
    again.by_group(groups)
    again.restore([Capture(True, {}, groups={RIGHT: Groups(held)})])
    again.forget_stale(RIGHT, missed_of(missed))
    if since:
        again.process(RIGHT, rows(since, len(before)))
    taken = again.capture(full=True).groups[RIGHT]
    held = {n: r for n, r in {**held, **taken.written}.items() if n not in taken.dropped}
    third = join()
    third.by_group(groups)
    third.restore([Capture(True, {}, groups={RIGHT: Groups(dict(sorted(held.items())))})])
    asked = rows([0, 1, 2], 1_000)
    assert pairs(third.process(LEFT, asked)) == pairs(again.process(LEFT, asked))


def pairs(outputs) -> list[tuple[int, int]]:
    found = [batch for _, batch in outputs]
    if not found:
        return []
    every = concat(found)
    return sorted(zip(every["key"].tolist(), every["n_right"].tolist(), strict=True))


@given(KEYS, KEYS, KEYS, st.sampled_from([None, 0, 2]))
def test_aggregates_are_of_what_is_left_and_of_what_came_since(before, missed, since, groups):
    first = window()
    if before:
        first.process(IN, rows(before))
    again = after_a_checkpoint(first, window(), groups)
    stays = left_in_windows(before, missed)
    again.forget_stale(IN, missed_of(missed))
    for number, key in enumerate(since, len(before)):
        ((_, out),) = again.process(IN, rows([key], number))
        stays.setdefault(key, []).append(number)
        inside = stays[key][-SIZE:]
        assert (out["rows"].tolist(), out["sum"].tolist()) == ([len(inside)], [sum(inside)])


def test_one_window_for_all_rows_forgets_by_number_alone():
    first = join(by_key=False)
    first.process(RIGHT, rows([0, 1, 2, 0, 1, 2]))
    again = after_a_checkpoint(first, join(by_key=False), 0)
    assert again.forget_stale(RIGHT, MissedRows.of([key_hashes(rows([7, 8, 9]), ())])) == 3
    assert pairs(again.process(LEFT, rows([5], 1_000))) == [(5, 5)]


def test_an_estimate_is_shared_out_as_the_rows_are():
    living = key_hashes(rows([0, 0, 0, 1]), ("key",))
    shared = MissedRows.shared_out(8, living)
    asked = key_hashes(rows([0, 1, 2]), ("key",))
    assert shared.among(asked).tolist() == [6, 2, 0]
    assert MissedRows.summed([shared, missed_of([1, 2])]).among(asked).tolist() == [6, 3, 1]
    assert MissedRows.summed([]).total == 0


@pytest.mark.parametrize("operator", [join, window])
def test_an_operator_without_rows_has_nothing_to_forget(operator):
    port = RIGHT if operator is join else IN
    assert operator().forget_stale(port, missed_of([0, 1])) == 0
    assert len(operator().living(port)) == 0
