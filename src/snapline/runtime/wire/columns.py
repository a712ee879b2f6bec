"""A batch on the wire: its schema once in a few bytes, then the raw buffers of its columns.

The buffers are those of the batch itself on the way out, and views of what was received on the way in;
each begins at a multiple of eight. A schema, and a dictionary of words, is the same from one batch to the
next, so its bytes are made and read once. What the columns hold is not checked: a peer belongs to
the same run.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from snapline.batch import Array, Batch, Buffer, Column, Kind, Varlen, Words, kind_of, size_of
from snapline.net.framing import Body, WireError, padding

_COUNT: Final = struct.Struct("<H")
_FIELD: Final = struct.Struct("<BB")  # sizes of name and kind
_FIXED: Final = re.compile(
    r"bool|u?int(8|16|32|64)|float(16|32|64)|[<>](i|u|f)[248]|(datetime|timedelta)64\[\w{1,4}\]"
    r"|\|S[1-9]\d{0,5}|[<>]U[1-9]\d{0,5}"
)
_WORDS_WIDTH: Final = 4
_OFFSET_WIDTH: Final = 8
_FEW: Final = 64  # to copy the columns of so few records takes less than to name each


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is known about batches of one schema."""

    schema: bytes
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    dtypes: tuple[np.dtype[Any] | None, ...]  # None for a column that is no plain array
    extras: int  # columns that are no plain array; the size of each goes before the buffers
    row_bytes: int  # of the plain arrays
    plain: bool  # nothing but arrays of int64: the form that is worth a short cut


# Schemas.


@lru_cache(maxsize=1024)
def _plan_of(*names_and_kinds: Any) -> _Plan:
    """The plan for these columns: all names, then for each its dtype, or its kind if it has none."""
    half = len(names_and_kinds) // 2
    names, kinds = names_and_kinds[:half], tuple(map(str, names_and_kinds[half:]))
    pieces = [_COUNT.pack(half)]
    for name, kind in zip(names, kinds, strict=True):
        raw_name, raw_kind = name.encode(), kind.encode()
        pieces += (_FIELD.pack(len(raw_name), len(raw_kind)), raw_name, raw_kind)
    schema = b"".join(pieces)
    dtypes = tuple(_dtype(kind) for kind in kinds)
    return _Plan(
        schema + padding(len(schema)),
        names,
        kinds,
        dtypes,
        sum(dtype is None for dtype in dtypes),  # numpy says that float64 == None: never `count`
        sum(dtype.itemsize for dtype in dtypes if dtype is not None),
        all(kind == "int64" for kind in kinds),
    )


def _dtype(kind: Kind) -> np.dtype[Any] | None:
    if kind in ("words", "str", "bytes", "list"):
        return None
    if not _FIXED.fullmatch(kind):
        raise WireError(f"a column of kind {kind!r} cannot be sent")
    return np.dtype(kind)


@lru_cache(maxsize=1024)
def _read_schema(schema: bytes) -> _Plan:
    (count,) = _COUNT.unpack_from(schema)
    at = _COUNT.size
    fields: list[tuple[str, Kind]] = []
    for _ in range(count):
        name_size, kind_size = _FIELD.unpack_from(schema, at)
        at += _FIELD.size + name_size + kind_size
        name = schema[at - name_size - kind_size : at - kind_size].decode()
        fields.append((name, schema[at - kind_size : at].decode()))
    names, kinds = [name for name, _ in fields], [kind for _, kind in fields]
    plan = _plan_of(*names, *kinds)
    if plan.schema != schema or len(set(names)) != count:
        raise WireError("the schema of a batch is not written as it should be")
    return plan


# Out.


def encode(batch: Batch) -> tuple[bytes, list[Buffer], int]:
    """The schema, the buffers behind it, and their total size; both sizes are multiples of eight."""
    columns: Any = batch.columns.values()
    try:
        plan = _plan_of(*batch.columns, *[column.dtype for column in columns])
    except AttributeError:
        plan = _plan_of(*batch.columns, *[_dtype_or_kind(column) for column in columns])
    if not plan.plain:
        return plan.schema, *_encode_mixed(batch, columns)
    buffers: list[Buffer] = []
    size = 0
    if batch.length <= _FEW:
        joined = b"".join([column.tobytes() for column in columns])
        buffers, size = [joined], len(joined)
        columns = ()
    for column in columns:
        if not column.flags.c_contiguous:
            column = np.ascontiguousarray(column)
        buffers.append(column)
        size += column.nbytes
    if size != plan.row_bytes * batch.length:
        raise WireError(f"the columns of {batch} differ in length")
    return plan.schema, buffers, size


def _dtype_or_kind(column: Column) -> np.dtype[Any] | Kind:
    return column.dtype if isinstance(column, np.ndarray) else kind_of(column)


def _whole(array: Array) -> Array:
    """The array, in one piece."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _encode_mixed(batch: Batch, columns: Iterable[Column]) -> tuple[list[Buffer], int]:
    extras: list[int] = []  # the sizes that rows and schema do not tell
    buffers: list[Buffer] = [b""]
    for column in columns:
        if len(column) != batch.length:
            raise WireError(f"the columns of {batch} differ in length")
        if isinstance(column, np.ndarray):
            buffers.append(_whole(column))
        elif isinstance(column, Words):
            words = _write_words(column.values)
            extras.append(len(words))
            buffers += (_whole(column.codes.astype(np.int32, copy=False)), words)
        else:
            column = column.compact()
            extras.append(column.values.nbytes)
            buffers += (_whole(column.offsets), _whole(column.values))
    buffers[0] = struct.pack(f"<{len(extras)}Q", *extras)
    return _padded(buffers)


def _padded(buffers: list[Buffer]) -> tuple[list[Buffer], int]:
    padded: list[Buffer] = []
    total = 0
    for buffer in buffers:
        size = size_of(buffer)
        if size:
            padded.append(buffer)
        if size % 8:
            padded.append(padding(size))
        total += size + -size % 8
    return padded, total


# In.


def decode(schema: bytes, rows: int, body: Body, at: int) -> Batch:
    """The batch whose buffers begin at this place and end with the body."""
    plan = _read_schema(schema)
    if plan.plain:
        numbers = np.frombuffer(body, np.int64)  # once; a slice costs a quarter of it
        columns: dict[str, Column] = {}
        start = at // 8
        for name in plan.names:
            columns[name] = numbers[start : start + rows]
            start += rows
        at = start * 8
    else:
        columns, at = _decode_mixed(plan, rows, body, at)
    if at != len(body):
        raise WireError(f"a batch of {at} bytes stands in a frame of {len(body)}")
    return Batch(columns, rows)


def _decode_mixed(plan: _Plan, rows: int, body: Body, at: int) -> tuple[dict[str, Column], int]:
    extras = iter(struct.unpack_from(f"<{plan.extras}Q", body, at))
    at += 8 * plan.extras
    columns: dict[str, Column] = {}
    for name, kind, dtype in zip(plan.names, plan.kinds, plan.dtypes, strict=True):
        if dtype is not None:
            columns[name] = np.frombuffer(body, dtype, rows, at)
            at = _behind(at, rows * dtype.itemsize)
        elif kind == "words":
            size = next(extras)
            words_at = _behind(at, rows * _WORDS_WIDTH)
            codes = np.frombuffer(body, np.int32, rows, at)
            columns[name] = Words(codes, _read_words(bytes(body[words_at : words_at + size])))
            at = _behind(words_at, size)
        else:
            size = next(extras)
            values_at = _behind(at, (rows + 1) * _OFFSET_WIDTH)
            columns[name] = _read_varlen(kind, rows, size, body, at, values_at)
            at = _behind(values_at, size)
    return columns, at


def _behind(at: int, size: int) -> int:
    """Where the next buffer begins."""
    return at + size + -size % 8


def _read_varlen(
    kind: Kind, rows: int, size: int, body: Body, offsets_at: int, values_at: int
) -> Varlen:
    dtype = np.dtype(np.int64 if kind == "list" else np.uint8)
    offsets = np.frombuffer(body, np.int64, rows + 1, offsets_at)
    values = np.frombuffer(body, dtype, size // dtype.itemsize, values_at)
    if offsets[0] != 0 or int(offsets[-1]) * dtype.itemsize != size:
        raise WireError(f"the offsets of a column of kind {kind} do not fit its values")
    return Varlen(
        "list" if kind == "list" else "str" if kind == "str" else "bytes", offsets, values
    )


@lru_cache(maxsize=256)
def _write_words(values: tuple[str, ...]) -> bytes:
    """A dictionary: the number of its words, the size of each, and the words. Any word is legal."""
    words = [value.encode() for value in values]
    return struct.pack(f"<I{len(words)}I", len(words), *map(len, words)) + b"".join(words)


@lru_cache(maxsize=256)
def _read_words(data: bytes) -> tuple[str, ...]:
    (count,) = struct.unpack_from("<I", data)
    sizes = struct.unpack_from(f"<{count}I", data, 4)
    at = 4 * (1 + count)
    words = []
    for size in sizes:
        words.append(data[at : at + size].decode())
        at += size
    if at != len(data):
        raise WireError(f"a dictionary of {at} bytes stands in {len(data)}")
    return tuple(words)
