"""Converts batches and schemas to Arrow and Spark, and back.

Snapline's columns have Arrow's layout, so most of them cross without a copy: fixed-width columns as their
buffer, `str`, `bytes` and `list` as offsets and values (Arrow's *large* types: 64-bit offsets), `words` as
codes with a dictionary. Two things are copied: bools, which Arrow packs into bits, and offsets or codes
that come from Arrow with another width.

Spark knows fewer types than Arrow: no dictionaries, no unsigned numbers, no half floats, and by default no
64-bit offsets. `to_spark` makes a batch of what it knows, and `spark_schema` says which types those are.

Columns of Snapline have no nulls. A column with nulls, or of a type for which Snapline has no kind, is
refused by name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from snapline.batch import Array, Batch, Column, Kind, Schema, Varlen, Words, concat, empty_column
from snapline.errors import UsageError
from snapline.storage.column_types import Meanings
from snapline.storage.parquet.meanings import as_meant, spelled

_FIXED: Final[Mapping[Kind, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
}
_VARIABLE: Final[Mapping[Kind, pa.DataType]] = {
    "words": pa.dictionary(pa.int32(), pa.string()),
    "str": pa.large_string(),
    "bytes": pa.large_binary(),
    "list": pa.large_list(pa.int64()),
}
_TYPES: Final = {**_FIXED, **_VARIABLE}

#: what Spark calls a kind, and the Arrow type that it takes for it; unsigned numbers get more room
_SPARK: Final[Mapping[Kind, tuple[str, pa.DataType]]] = {
    "bool": ("boolean", pa.bool_()),
    "int8": ("tinyint", pa.int8()),
    "int16": ("smallint", pa.int16()),
    "int32": ("int", pa.int32()),
    "int64": ("bigint", pa.int64()),
    "uint8": ("smallint", pa.int16()),
    "uint16": ("int", pa.int32()),
    "uint32": ("bigint", pa.int64()),
    "uint64": ("decimal(20,0)", pa.decimal128(20, 0)),
    "float16": ("float", pa.float32()),
    "float32": ("float", pa.float32()),
    "float64": ("double", pa.float64()),
    "words": ("string", pa.string()),
    "str": ("string", pa.string()),
    "bytes": ("binary", pa.binary()),
    "list": ("array<bigint>", pa.list_(pa.int64())),
}


# Schemas.


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of these kinds."""
    return pa.schema([pa.field(n, _type(n, k), nullable=False) for n, k in schema.items()])


def kinds(schema: pa.Schema) -> dict[str, Kind]:
    """The kinds of an Arrow schema; UsageError if there is no kind for the type of a column."""
    return {field.name: _kind(field.name, field.type) for field in schema}


def spark_schema(schema: Schema, meanings: Meanings = MappingProxyType({})) -> str:
    """The schema as Spark takes it (DDL): `bidder bigint, name string`; numbers as what they mean."""
    types = {
        name: spelled(meanings[name])
        if name in meanings and kind == "int64"
        else _spark(name, kind)[0]
        for name, kind in schema.items()
    }
    return ", ".join(f"`{name.replace('`', '``')}` {said}" for name, said in types.items())


def _type(name: str, kind: Kind) -> pa.DataType:
    if kind not in _TYPES:
        raise UsageError(f"column '{name}' is of kind {kind}, and Arrow has no type for that here")
    return _TYPES[kind]


def _spark(name: str, kind: Kind) -> tuple[str, pa.DataType]:
    _type(name, kind)
    return _SPARK[kind]


def _kind(name: str, kind: pa.DataType) -> Kind:
    for fixed, known in _FIXED.items():
        if kind == known:
            return fixed
    if pa.types.is_dictionary(kind):
        inner = _kind(name, kind.value_type)
        return "words" if inner == "str" else inner
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytes"
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list and pa.types.is_signed_integer(kind.value_type):
        return "list"
    raise UsageError(
        f"column '{name}' has the type {kind}, which Snapline has no kind for: "
        "cast it to a number (times to bigint, in milliseconds), a string, bytes or a list of bigint"
    )


# To Arrow.


def to_arrow(batch: Batch) -> pa.RecordBatch:
    """The batch as one of Arrow, without a copy where the layout allows it."""
    schema = arrow_schema(batch.schema)
    arrays = [_array(column) for column in batch.columns.values()]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def to_spark(
    batch: Batch, schema: Schema | None = None, meanings: Meanings = MappingProxyType({})
) -> pa.RecordBatch:
    """The batch with types that Spark knows: those of `spark_schema(schema)`, or of its own schema."""
    arrays, fields = [], []
    for name, kind in (batch.schema if schema is None else schema).items():
        column = batch.columns[name]
        if name in meanings and kind == "int64" and isinstance(column, np.ndarray):
            arrays.append(as_meant(column, meanings[name]))
            fields.append(pa.field(name, arrays[-1].type))
            continue
        wanted = _spark(name, kind)[1]
        narrow = _narrow(column) if isinstance(column, Varlen) else None
        array = _array(column) if narrow is None else narrow
        arrays.append(array if array.type == wanted else array.cast(wanted))
        fields.append(pa.field(name, wanted))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _array(column: Column) -> pa.Array:
    if isinstance(column, np.ndarray):
        return _fixed_array(column)
    if isinstance(column, Words):
        words = _array(Batch.of(values=list(column.values))["values"]).cast(pa.string())
        return pa.DictionaryArray.from_arrays(_fixed_array(column.codes), words)
    return _varlen_array(column, column.offsets, _VARIABLE[column.kind])


def _narrow(column: Varlen) -> pa.Array | None:
    """The column with 32-bit offsets; None if it is too large for them."""
    column = column.compact()
    if len(column.values) >= 1 << 31:
        return None
    return _varlen_array(column, column.offsets.astype(np.int32), _SPARK[column.kind][1])


def _fixed_array(column: Array) -> pa.Array:
    known, length = _FIXED[str(column.dtype)], len(column)
    if known == pa.bool_():
        column = np.packbits(column, bitorder="little")  # eight of them are a byte
    return pa.Array.from_buffers(known, length, [None, _buffer(column)])


def _varlen_array(column: Varlen, offsets: Array, known: pa.DataType) -> pa.Array:
    if column.kind == "list":
        values = _fixed_array(column.values)
        buffers = [None, _buffer(offsets)]
        return pa.Array.from_buffers(known, len(column), buffers, children=[values])
    buffers = [None, _buffer(offsets), _buffer(column.values)]
    return pa.Array.from_buffers(known, len(column), buffers)


def _buffer(array: Array) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(array))


# From Arrow.


def from_arrow(data: pa.RecordBatch | pa.Table) -> Batch:
    """The batch with these columns of Arrow, as views of their buffers where the layout allows it."""
    if isinstance(data, pa.Table):
        batches = [from_arrow(part) for part in data.to_batches()]
        return concat(batches) if batches else Batch.empty(kinds(data.schema))
    columns = {
        field.name: _column(field.name, array)
        for field, array in zip(data.schema, data.columns, strict=True)
    }
    return Batch(columns, data.num_rows)


def _column(name: str, array: pa.Array) -> Column:
    if array.null_count:
        raise UsageError(f"column '{name}' has nulls, and Snapline's columns have none: fill them")
    kind = _kind(name, array.type)
    if len(array) == 0:
        return empty_column(kind)
    if kind == "words":
        return _words(name, array)
    if pa.types.is_dictionary(array.type):  # a dictionary of numbers, for which there is no kind
        array = array.dictionary_decode()
    if kind in ("str", "bytes", "list"):
        return _varlen(name, kind, array)
    return _fixed(array, kind)


def _fixed(array: pa.Array, kind: Kind) -> Array:
    """The numbers of an array. Not by `to_numpy`, which would import pandas: that takes seconds."""
    if not len(array):
        return np.empty(0, kind)
    values, dtype = array.buffers()[1], np.dtype(kind)
    if kind == "bool":
        first, rest = divmod(array.offset, 8)
        some = np.frombuffer(values, np.uint8, offset=first)[: (rest + len(array) + 7) // 8]
        return np.unpackbits(some, bitorder="little")[rest : rest + len(array)].astype(dtype)
    return np.frombuffer(values, dtype, len(array), array.offset * dtype.itemsize)


def _words(name: str, array: pa.DictionaryArray) -> Words:
    if array.dictionary.null_count:
        return _words(name, array.dictionary_decode().dictionary_encode())
    codes = _fixed(array.indices.cast(pa.int32()), "int32")
    return Words(codes, tuple(array.dictionary.to_pylist()))


def _varlen(name: str, kind: Any, array: pa.Array) -> Varlen:
    dtype = np.dtype(np.int64 if _is_wide(array.type) else np.int32)
    _, raw, *rest = array.buffers()
    offsets = np.frombuffer(raw, dtype, len(array) + 1, array.offset * dtype.itemsize)
    values: Array
    if kind == "list":
        if array.values.null_count:
            raise UsageError(f"the lists of column '{name}' hold nulls: fill them")
        values = _fixed(array.values.cast(pa.int64()), "int64")
    else:
        values = np.frombuffer(rest[0] if rest[0] is not None else b"", np.uint8)
    return Varlen(kind, offsets.astype(np.int64, copy=False), values)


def _is_wide(kind: pa.DataType) -> bool:
    large = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)
    return any(check(kind) for check in large)
