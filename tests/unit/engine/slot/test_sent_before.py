"""Rows that were sent before are left out once each, however they are cut and ordered the second time."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch
from snapline.engine.slot.outbox import SentBefore

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30)
CUTS = st.lists(st.integers(1, 6), min_size=1, max_size=6)


def batch(rows) -> Batch:
    keys, counts = ([row[n] for row in rows] for n in (0, 1))
    columns = {"key": np.array(keys, np.int64), "count": np.array(counts, np.int64)}
    return Batch(columns, len(rows))


def rows(found: Batch) -> list[tuple[int, int]]:
    return list(zip(found["key"].tolist(), found["count"].tolist(), strict=True))


def cut(items, sizes) -> list[list[tuple[int, int]]]:
    pieces, at, turn = [], 0, 0
    while at < len(items):
        size = sizes[turn % len(sizes)]
        pieces.append(items[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@given(ROWS, ROWS, CUTS, CUTS, st.randoms())
def test_each_row_that_was_sent_is_left_out_once(sent, later, first, second, random):
    before = SentBefore([batch(piece) for piece in cut(sent, first)])
    assert before.left == len(sent)
    again = [*sent, *later]
    random.shuffle(again)
    passed = [row for piece in cut(again, second) for row in rows(before.without(batch(piece)))]
    assert Counter(passed) == Counter(later)
    assert before.left == 0


@given(ROWS, ROWS, CUTS)
def test_what_was_never_sent_passes_in_its_order(sent, other, sizes):
    before = SentBefore([batch(sent)])
    left = Counter(sent)
    expected = []
    for row in other:
        if left[row]:
            left[row] -= 1
        else:
            expected.append(row)
    passed = [row for piece in cut(other, sizes) for row in rows(before.without(batch(piece)))]
    assert passed == expected


def test_nothing_that_was_sent_means_that_everything_passes():
    whole = batch([(1, 1), (1, 1)])
    assert SentBefore([]).without(whole) is whole
