"""Batches cross to Arrow and to Spark's types and come back as they were."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.errors import UsageError
from snapline.storage.parquet.arrow import (
    arrow_schema,
    from_arrow,
    kinds,
    spark_schema,
    to_arrow,
    to_spark,
)

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
KINDS = ("bool", *INTS, *FLOATS, "words", "str", "bytes", "list")
WIDE = st.integers(-(1 << 63), (1 << 63) - 1)


def columns(kind: str, rows: int) -> st.SearchStrategy:
    def many(values):
        return st.lists(values, min_size=rows, max_size=rows)

    if kind in INTS:
        info = np.iinfo(kind)
        each = st.integers(int(info.min), int(info.max))
        return many(each).map(lambda values: np.array(values, kind))
    if kind in FLOATS:
        each = st.floats(allow_nan=False, width=int(kind[5:]))
        return many(each).map(lambda values: np.array(values, kind))
    if kind == "bool":
        return many(st.booleans()).map(lambda values: np.array(values, np.bool_))
    if kind == "words":
        return many(st.integers(0, 2)).map(
            lambda codes: Words(np.array(codes, np.int32), ("", "a", "Köln"))
        )
    each = {"str": st.text(max_size=5), "bytes": st.binary(max_size=5)}.get(
        kind, st.lists(WIDE, max_size=3)
    )
    return many(each).map(lambda values: Varlen.of(kind, values))


@st.composite
def batches(draw) -> Batch:
    """Columns of any kind, cut out of longer ones or picked with a stride."""
    rows = draw(st.integers(0, 6))
    names = draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
    batch = Batch({name: draw(columns(name, rows)) for name in names}, rows)
    if draw(st.booleans()):
        start = draw(st.integers(0, rows))
        return batch.slice(start, draw(st.integers(start, rows)))
    if draw(st.booleans()):
        strided = {n: c[::2] for n, c in batch.columns.items() if isinstance(c, np.ndarray)}
        return Batch(strided) if strided else batch
    return batch


@given(batches())
def test_a_batch_comes_back_from_arrow_as_it_was(batch):
    there = to_arrow(batch)
    there.validate(full=True)
    back = from_arrow(there)
    assert back == batch
    assert back.schema == batch.schema
    assert kinds(arrow_schema(batch.schema)) == batch.schema


@given(batches(), st.integers(0, 6))
def test_a_slice_that_arrow_made_comes_back(batch, start):
    start = min(start, len(batch))
    assert from_arrow(to_arrow(batch).slice(start)) == batch.slice(start, len(batch))


@given(st.lists(batches(), max_size=3))
def test_a_table_of_several_batches_is_one_batch(parts):
    parts = [part for part in parts if list(part.schema) == list(parts[0].schema)]
    if not parts:
        return
    table = pa.Table.from_batches([to_arrow(part) for part in parts])
    rows = [row for part in parts for row in part.rows()]
    assert from_arrow(table).rows() == rows


@given(batches())
def test_what_spark_is_given_has_the_same_values_and_no_type_unknown_to_it(batch):
    there = to_spark(batch)
    there.validate(full=True)
    assert there.to_pydict() == batch.to_pydict()
    assert not any(
        pa.types.is_dictionary(t) or pa.types.is_unsigned_integer(t) or pa.types.is_large_string(t)
        for t in there.schema.types
    )


def test_spark_takes_a_schema_in_words():
    schema = {"id": "int64", "a`b": "words", "hash": "uint64", "ids": "list", "ok": "bool"}
    assert spark_schema(schema) == (
        "`id` bigint, `a``b` string, `hash` decimal(20,0), `ids` array<bigint>, `ok` boolean"
    )


@pytest.mark.parametrize(
    "column",
    [
        np.arange(5),
        np.arange(5.0)[1:],
        Varlen.of("str", ["a", "bc"]).slice(1, 2),
        Varlen.of("list", [[1], [2, 3]]),
        Words(np.zeros(3, np.int32), ("a",)),
    ],
)
def test_nothing_is_copied_where_the_layouts_agree(column):
    array = to_arrow(Batch({"x": column})).column(0)
    back = from_arrow(to_arrow(Batch({"x": column})))["x"]
    if isinstance(column, np.ndarray):
        ours, theirs, again = column, array.buffers()[1], back
    elif isinstance(column, Words):
        ours, theirs, again = column.codes, array.indices.buffers()[1], back.codes
    else:
        ours, again = column.values, back.values
        theirs = array.values.buffers()[1] if column.kind == "list" else array.buffers()[2]
    assert theirs.address == ours.ctypes.data == again.ctypes.data


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (pa.array([1, None]), "'x' has nulls"),
        (pa.array([[1, None]]), "lists of column 'x' hold nulls"),
        (pa.array([0], pa.timestamp("us")), "'x' has the type timestamp"),
        (pa.array([["a"]]), "'x' has the type list"),
    ],
)
def test_what_snapline_has_no_column_for_is_refused_by_name(array, word):
    with pytest.raises(UsageError, match=word):
        from_arrow(pa.RecordBatch.from_arrays([array], ["x"]))


def test_narrow_forms_of_arrow_are_widened():
    arrays = {
        "s": pa.array(["a", "bcd", ""], pa.string()).slice(1),
        "b": pa.array([b"a", b"", b"x"], pa.binary()).slice(1),
        "l": pa.array([[1], [2, 3], []], pa.list_(pa.int32())).slice(1),
        "w": pa.array(["u", "v", "u"])
        .dictionary_encode()
        .cast(pa.dictionary(pa.int8(), pa.large_string()))
        .slice(1),
        "n": pa.array([7, 8, 7]).dictionary_encode().slice(1),
    }
    batch = from_arrow(pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)))
    assert batch.schema == {"s": "str", "b": "bytes", "l": "list", "w": "words", "n": "int64"}
    assert batch.rows() == [("bcd", b"", [2, 3], "v", 8), ("", b"x", [], "u", 7)]


def test_a_kind_that_arrow_has_no_type_for_is_refused_by_name():
    with pytest.raises(UsageError, match="column 'x' is of kind complex128"):
        to_arrow(Batch.of(x=np.zeros(1, np.complex128)))


WITHOUT_PANDAS = """
import sys
import numpy as np
import pyarrow as pa
from snapline.batch import Batch, Words
from snapline.storage.parquet.arrow import from_arrow, to_arrow, to_spark
from snapline.storage.parquet.meanings import as_numbers

rows = Batch.of(n=[1], f=[1.5], s=["a"], r=[b"a"], l=[[1]], day=[1], price=[5], seen=[7], at=[8])
rows = rows.with_columns(b=np.array([True]), w=Words(np.zeros(1, np.int32), ("x",)))
meanings = {"day": "date", "price": "decimal(5,2)", "seen": "timestamp", "at": "timestamp_ms"}
meant = to_spark(rows, None, meanings)
arrays = [as_numbers(array) for array in meant.columns]
back = from_arrow(pa.RecordBatch.from_arrays(arrays, names=meant.schema.names))
assert len(from_arrow(to_arrow(rows))) == len(back) == 1
assert "pandas" not in sys.modules, "it was imported"
"""


def test_nothing_of_it_imports_pandas_for_which_every_task_of_spark_would_wait():
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=True)
