"""The binary form of a batch: a small header that names the columns, then their raw buffers."""

import itertools
import struct
from functools import lru_cache
from typing import Any

import numpy as np

from snapline.batch import Array, Batch, Buffer, Column, Kind, Varlen, Words, name_of

_HEAD = struct.Struct("<IH")  # rows, columns
_FEW = 64
_FIELD = struct.Struct("<BBQ")  # length of the name, length of the kind, extra bytes


def encode(batch: Batch) -> bytes:
    """The binary form of a batch."""
    return b"".join(pieces_of(batch))  # type: ignore[arg-type]  # arrays are buffers


def pieces_of(batch: Batch, before: bytes = b"") -> list[Buffer]:
    """The binary form in pieces, `before` in the first one; others are the columns themselves, if long."""
    head = before + _HEAD.pack(batch.length, len(batch.columns))
    columns: Any = batch.columns.values()
    try:
        fields = _fields(*batch.columns, *[column.dtype for column in columns])
    except AttributeError:  # texts and lists have no dtype
        return _pieces_of_any(batch, head)
    if batch.length <= _FEW:  # to copy a few bytes takes less than to name them
        return [b"".join([head, fields, *[column.tobytes() for column in columns]])]
    return [head + fields, *[_whole(column) for column in columns]]


@lru_cache(maxsize=1024)
def _fields(*names_and_dtypes: Any) -> bytes:
    """The fields of a batch of arrays: all names, then all dtypes."""
    half = len(names_and_dtypes) // 2
    pairs = zip(names_and_dtypes[:half], names_and_dtypes[half:], strict=True)
    return b"".join(_field(name, name_of(dtype)) for name, dtype in pairs)


def _pieces_of_any(batch: Batch, head: bytes) -> list[Buffer]:
    pieces: list[Buffer] = []
    for name, column in batch.columns.items():
        if isinstance(column, np.ndarray):
            head += _field(name, name_of(column.dtype))
            pieces.append(_whole(column))
        elif isinstance(column, Words):
            words = _write_words(column.values)
            head += _field(name, "words", len(words))
            pieces += (_whole(column.codes.astype(np.int32, copy=False)), words)
        else:
            column = column.compact()
            head += _field(name, column.kind, column.values.nbytes)
            pieces += (_whole(column.offsets), _whole(column.values))
    return [head, *pieces]


def _whole(array: Array) -> Array:
    """The array in one piece, as a buffer."""
    if array.dtype.kind in "mM":
        array = array.view(np.int64)  # numpy gives no buffer of times
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


@lru_cache(maxsize=1024)
def _field(name: str, kind: Kind, extra: int = 0) -> bytes:
    raw_name, raw_kind = name.encode(), kind.encode()
    return _FIELD.pack(len(raw_name), len(raw_kind), extra) + raw_name + raw_kind


@lru_cache(maxsize=256)
def _write_words(values: tuple[str, ...]) -> bytes:
    """A dictionary: the number of its words, the size of each, and the words."""
    words = [value.encode() for value in values]
    return np.array([len(words), *map(len, words)], np.int32).tobytes() + b"".join(words)


def decode(data: bytes | memoryview) -> Batch:
    """The batch behind a binary form. The columns are views of `data`."""
    view = memoryview(data)
    length, count = _HEAD.unpack_from(view)
    at = _HEAD.size
    fields: list[tuple[str, Kind, int]] = []
    for _ in range(count):
        name_size, kind_size, extra = _FIELD.unpack_from(view, at)
        words = bytes(view[at + _FIELD.size : at + _FIELD.size + name_size + kind_size])
        fields.append((words[:name_size].decode(), words[name_size:].decode(), extra))
        at += _FIELD.size + len(words)
    columns: dict[str, Column] = {}
    for name, kind, extra in fields:
        columns[name], at = _read_column(view, at, kind, length, extra)
    return Batch(columns, length)


def _read_words(view: memoryview) -> tuple[str, ...]:
    """A dictionary: the number of its words, the size of each, and the words. Any word is legal."""
    (count,) = np.frombuffer(view, np.int32, 1)
    ends = np.cumsum(np.frombuffer(view, np.int32, count, 4)) + 4 * (1 + int(count))
    starts = (4 * (1 + int(count)), *ends.tolist())
    return tuple(bytes(view[a:b]).decode() for a, b in itertools.pairwise(starts))


def _read_column(
    view: memoryview, at: int, kind: Kind, length: int, extra: int
) -> tuple[Column, int]:
    match kind:
        case "words":
            codes = np.frombuffer(view, np.int32, length, at)
            at += codes.nbytes
            return Words(codes, _read_words(view[at : at + extra])), at + extra
        case "str" | "bytes" | "list":
            offsets = np.frombuffer(view, np.int64, length + 1, at)
            at += offsets.nbytes
            dtype = np.dtype(np.int64 if kind == "list" else np.uint8)
            values = np.frombuffer(view, dtype, extra // dtype.itemsize, at)
            return Varlen(kind, offsets, values), at + extra
        case _:
            array = np.frombuffer(view, np.dtype(kind), length, at)
            return array, at + array.nbytes
