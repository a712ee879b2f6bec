"""Batches of all kinds of columns, against plain Python lists."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Column, Varlen, Words, concat, empty_column, kind_of
from snapline.batch_form import decode, encode

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": INT64,
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint8": st.integers(0, 255),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "words": TEXT,
    "str": TEXT,
    "bytes": st.binary(max_size=8),
    "list": st.lists(INT64, max_size=5),
}
KINDS = list(VALUES)
DATA: dict[str, list[Any]] = {
    "int64": [3, -1, 2**63 - 1, 0],
    "int32": [1, 2, -3, 4],
    "uint8": [0, 255, 7, 7],
    "float64": [0.5, -0.0, float("inf"), 1e300],
    "bool": [True, False, False, True],
    "words": ["a", "", "a", "nul\0inside"],
    "str": ["", "ä€", "x\0y", "x"],
    "bytes": [b"", b"\0", b"\xff\xfe", b"ab"],
    "list": [[], [1, -2], [2**63 - 1], []],
}


def column(kind: str, rows: list[Any]) -> Column:
    if kind == "words":
        values = tuple(dict.fromkeys([*rows, "never used"]))
        return Words(np.array([values.index(row) for row in rows], np.int32), values)
    if kind in ("str", "bytes", "list"):
        return Varlen.of(kind, rows)
    return np.array(rows, kind)


def batch_of(rows: dict[str, list[Any]], length: int) -> Batch:
    return Batch({kind: column(kind, values) for kind, values in rows.items()}, length)


@st.composite
def tables(draw: st.DrawFn, length: st.SearchStrategy[int]) -> tuple[dict[str, list[Any]], int]:
    """Rows of every kind, as Python lists by kind."""
    count = draw(length)
    rows = {k: draw(st.lists(v, min_size=count, max_size=count)) for k, v in VALUES.items()}
    return rows, count


LENGTHS = st.integers(0, 6)


@given(tables(LENGTHS), LENGTHS, LENGTHS)
def test_a_slice_has_the_rows_of_a_list_slice(table, start, stop):
    rows, length = table
    part = batch_of(rows, length).slice(start, stop)
    assert part.to_pydict() == {kind: values[start:stop] for kind, values in rows.items()}
    assert len(part) == len(rows["int64"][start:stop])
    assert all(len(part[kind]) == len(part) for kind in KINDS)


@given(tables(st.integers(1, 6)), st.data())
def test_take_by_position_may_repeat_and_reorder(table, data):
    rows, length = table
    index = data.draw(st.lists(st.integers(0, length - 1), max_size=8))
    taken = batch_of(rows, length).take(np.array(index, np.int64))
    assert taken.to_pydict() == {k: [values[i] for i in index] for k, values in rows.items()}
    assert len(taken) == len(index)


@given(tables(LENGTHS), st.data())
def test_take_by_mask_keeps_the_rows_under_it(table, data):
    rows, length = table
    mask = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    taken = batch_of(rows, length).take(np.array(mask, np.bool_))
    kept = [i for i, keep in enumerate(mask) if keep]
    assert taken.to_pydict() == {k: [values[i] for i in kept] for k, values in rows.items()}
    assert len(taken) == len(kept)


@given(st.lists(tables(LENGTHS), min_size=1, max_size=4))
def test_concat_is_list_concatenation(parts):
    joined = concat([batch_of(rows, length) for rows, length in parts])
    assert joined.to_pydict() == {k: [v for rows, _ in parts for v in rows[k]] for k in KINDS}
    assert len(joined) == sum(length for _, length in parts)


@given(tables(LENGTHS))
def test_the_binary_form_holds_every_kind(table):
    rows, length = table
    batch = batch_of(rows, length)
    again = decode(encode(batch))
    assert again.to_pydict() == rows
    assert again.schema == batch.schema == dict(zip(KINDS, KINDS, strict=True))
    assert len(again) == length


@given(tables(LENGTHS), LENGTHS, LENGTHS, st.data())
def test_everything_can_be_done_to_what_something_was_done_to(table, start, stop, data):
    """Slices and decoded views have offsets that do not begin at 0 and buffers that are not aligned."""
    rows, length = table
    part = decode(encode(batch_of(rows, length).slice(start, stop))).slice(1, 4)
    expected = {kind: values[start:stop][1:4] for kind, values in rows.items()}
    mask = data.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part)))
    both = concat([part, part.take(np.array(mask, np.bool_)), part.slice(0, 2)])
    kept = [i for i, keep in enumerate(mask) if keep]
    assert decode(encode(both)).to_pydict() == {
        kind: values + [values[i] for i in kept] + values[:2] for kind, values in expected.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_knows_its_kind_and_its_size(kind):
    made = column(kind, DATA[kind])
    assert kind_of(made) == kind
    assert kind_of(empty_column(kind)) == kind
    assert len(empty_column(kind)) == 0
    assert Batch({"x": made}).nbytes > 0
    assert decode(encode(Batch({"x": made}))).to_pydict() == {"x": DATA[kind]}


def test_batches_are_equal_by_their_rows():
    assert Batch.of(a=[1, 2]) == Batch.of(a=[1, 2])
    assert Batch.of(a=[1, 2]) != Batch.of(a=[1, 3])
    assert Batch.of(a=[1, 2]) != Batch.of(b=[1, 2])
    assert Batch.of(a=[1]) != "a batch"


def test_python_values_become_the_kind_that_they_look_like():
    batch = Batch.of(i=[1], f=[1.5], b=[True], s=["x"], y=[b"x"], n=[[1]], t=[(1, 2)])
    kinds = ("int64", "float64", "bool", "str", "bytes", "list", "list")
    assert tuple(batch.schema.values()) == kinds
    assert Batch.of(i=[]).schema == {"i": "int64"}


def test_an_empty_batch_has_the_columns_of_its_schema():
    schema = dict(zip(KINDS, KINDS, strict=True))
    assert Batch.empty(schema).schema == schema
    assert decode(encode(Batch.empty(schema))).schema == schema
    assert len(concat([Batch.empty(schema), Batch.empty(schema)])) == 0


def test_columns_are_selected_added_and_renamed():
    batch = Batch.of(a=[1, 2], b=["x", "y"])
    assert batch.select("b").to_pydict() == {"b": ["x", "y"]}
    assert batch.with_columns(c=np.array([3, 4])).rows() == [(1, "x", 3), (2, "y", 4)]
    assert batch.rename({"a": "z"}).to_pydict() == {"z": [1, 2], "b": ["x", "y"]}
    assert repr(batch) == "Batch(2 x a, b)"


def test_a_batch_without_columns_keeps_its_length():
    assert len(decode(encode(Batch({}, 3)))) == 3
    assert len(Batch({})) == 0


def test_a_slice_beyond_the_end_is_empty():
    batch = Batch.of(s=["a", "b"], n=[[1], [2]])
    assert batch.slice(5, 9).to_pydict() == {"s": [], "n": []}
    assert decode(encode(batch.slice(5, 9))).to_pydict() == {"s": [], "n": []}


def test_a_slice_copies_nothing_and_its_size_is_its_own():
    batch = Batch.of(a=np.arange(1000), s=["four"] * 1000)
    part = batch.slice(10, 12)
    assert np.shares_memory(part["a"], batch["a"])
    assert np.shares_memory(part["s"].values, batch["s"].values)
    assert part.nbytes == 2 * 8 + (3 * 8 + 2 * 4)
    assert len(encode(part)) < 100


def test_columns_that_are_not_contiguous_are_written_in_their_order():
    assert decode(encode(Batch({"a": np.arange(10)[::3]}))).to_pydict() == {"a": [0, 3, 6, 9]}


def test_words_of_different_dictionaries_are_merged():
    left = Words(np.array([1, 0], np.int32), ("a", "b"))
    right = Words(np.array([0, 1], np.int32), ("c", "a"))
    joined = concat([Batch({"w": left}), Batch({"w": right})])
    assert joined.to_pydict() == {"w": ["b", "a", "c", "a"]}
    assert joined["w"].values == ("a", "b", "c")


def test_an_empty_list_of_rows_makes_an_empty_column():
    for kind in ("str", "bytes", "list"):
        assert Varlen.of(kind, []).to_list() == []


def test_times_are_written_though_numpy_gives_them_no_buffer():
    batch = Batch({"at": np.array(["2026-01-01", "2026-01-02"], "datetime64[s]")})
    assert decode(encode(batch))["at"].tolist() == batch["at"].tolist()


def test_arrays_keep_their_names_in_any_order_of_columns():
    batch = Batch.of(b=np.array([1, 2]), a=np.array([0.5, 1.5]), c=np.array([True, False]))
    again = decode(encode(batch))
    assert again.to_pydict() == {"b": [1, 2], "a": [0.5, 1.5], "c": [True, False]}
    assert again.schema == batch.schema


def test_a_frozen_batch_cannot_be_written_to():
    words = Words(np.array([0, 1], np.int32), ("a", "b"))
    batch = Batch({"n": np.array([1, 2]), "word": words, "text": Varlen.of("str", ["x", "yz"])})
    batch.freeze()
    arrays = (batch["n"], words.codes, batch["text"].offsets, batch["text"].values)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
