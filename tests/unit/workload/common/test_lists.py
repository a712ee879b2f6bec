"""Pairing by key and columns of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen
from snapline.workload.common.lists import (
    any_item,
    append,
    empty_lists,
    gathered,
    list_lengths,
    longest,
    pairs,
    spread,
    step_names,
    with_steps,
)

KEYS = st.lists(st.integers(0, 4), max_size=12)
LISTS = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=8)


def ints(values):
    return np.array(values, np.int64)


@given(KEYS, KEYS)
def test_pairs_are_all_equal_keys(left, right):
    i, j = pairs(ints(left), ints(right))
    brute = [(a, b) for a, x in enumerate(left) for b, y in enumerate(right) if x == y]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == brute


@given(LISTS, st.integers(0, 3))
def test_append_adds_one_item_to_every_list(rows, skipped):
    column = Varlen.of("list", rows).slice(min(skipped, len(rows)), len(rows))
    items = ints(range(100, 100 + len(column)))
    expected = [[*row, 100 + n] for n, row in enumerate(rows[skipped:])]
    assert append(column, items).to_list() == expected


@given(LISTS)
def test_a_list_is_hit_when_one_of_its_items_is(rows):
    column = Varlen.of("list", rows)
    assert any_item(column, column.values == 3).tolist() == [3 in row for row in rows]
    assert list_lengths(column).tolist() == [len(row) for row in rows]


def test_empty_lists_are_empty():
    assert empty_lists(3).to_list() == [[], [], []]


@given(LISTS, st.integers(0, 3))
def test_lists_as_columns_of_numbers_are_told_apart(rows, wider):
    column = Varlen.of("list", rows)
    width = longest(column) + wider
    assert width == max(map(len, rows), default=0) + wider
    assert spread(column, width).tolist() == [row + [-1] * (width - len(row)) for row in rows]
    batch = with_steps(Batch({"items": column}), "items", width)
    cells = [batch[name].tolist() for name in step_names(width)]
    assert cells[0] == list(map(len, rows))
    assert len(set(zip(*cells, strict=True))) == len(set(map(tuple, rows)))


def test_the_rows_of_a_matrix_are_lists():
    assert gathered(ints([[1, 2], [3, 4], [5, 6]])).to_list() == [[1, 2], [3, 4], [5, 6]]
    assert gathered(np.zeros((2, 0), np.int64)).to_list() == [[], []]
