"""Append-only rows of every kind of column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.batch_form import encode
from snapline.dataflow.state.columns import Rows
from snapline.errors import UsageError

pytestmark = pytest.mark.usefixtures("both_forms")

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


@pytest.mark.parametrize(
    ("first", "then", "story"),
    [
        (np.array([1]), np.array([0.5]), "is float64 and was int64"),
        (np.array([1]), Varlen.of("str", ["a"]), "is str and was int64"),
        (Varlen.of("str", ["a"]), Words(np.zeros(1, np.int32), ("a",)), "is words and was str"),
        (Varlen.of("list", [[1]]), Varlen.of("bytes", [b"1"]), "is bytes and was list"),
    ],
)
def test_a_column_that_changes_its_kind_is_refused_before_anything_is_lost(first, then, story):
    rows = Rows()
    rows.append({"n": first}, 1)
    with pytest.raises(UsageError, match=f"'n' {story}"):
        rows.append({"n": then}, 1)


def test_a_narrower_number_is_welcome():
    rows = Rows()
    rows.append({"n": np.array([1])}, 1)
    rows.append({"n": np.array([2], np.int32)}, 1)
    assert rows.view()["n"].tolist() == [1, 2]
