"""Append-only rows of every kind of column."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Words, encode
from snapline.dataflow.columns import Rows

ROW = st.tuples(
    st.integers(0, 9),
    st.text("ab", max_size=3),
    st.sampled_from("xyz"),
    st.lists(st.integers(0, 3)),
)


def batch_of(rows: list[tuple]) -> Batch:
    values = tuple(sorted({row[2] for row in rows}))
    words = Words(np.array([values.index(row[2]) for row in rows], np.int32), values)
    batch = Batch.of(i=[row[0] for row in rows], s=[row[1] for row in rows])
    return batch.with_columns(w=words, **Batch.of(n=[row[3] for row in rows]).columns)


@given(st.lists(st.tuples(st.lists(ROW, min_size=1, max_size=40), st.booleans()), max_size=6))
def test_captures_are_the_rows_since_the_one_before_and_never_change(steps):
    rows, everything, pending, seen = Rows(), [], [], []
    for batch, full in steps:
        assert rows.append(batch_of(batch).columns, len(batch)) == len(everything)
        everything += batch
        pending += batch
        if full or len(batch) % 2:
            capture = rows.capture(full=full)
            assert capture.rows() == (everything if full else pending)
            seen.append((capture, encode(capture)))
            pending = []
    assert all(encode(capture) == raw for capture, raw in seen)
    assert rows.length == len(everything)


@given(st.lists(ROW, min_size=1, max_size=90), st.data())
def test_rows_are_taken_by_their_number(batch, data):
    rows = Rows()
    for row in batch:
        rows.append(batch_of([row]).columns, 1)
    numbers = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=9))
    assert rows.take(np.array(numbers, np.int64)).rows() == [batch[n] for n in numbers]
