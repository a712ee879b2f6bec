"""A batch of records: named columns of one length.

Column kinds are closed. A fixed-width column is a numpy array as it is, so that operators compute on it
without any wrapper. `Words` holds strings of low cardinality as codes into a dictionary. `Varlen` holds
strings, bytes or lists of int64 as offsets plus values, which is Arrow's own layout: crossing to Arrow
copies nothing. Batches are immutable by agreement: an operator makes new columns, it never writes into
one that it was given.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Buffer: TypeAlias = bytes | memoryview | Array
Kind: TypeAlias = str
"""`int64`, `float64`, `bool`, ... (a numpy dtype name), `words`, `str`, `bytes` or `list`."""

VarlenKind: TypeAlias = Literal["str", "bytes", "list"]


@dataclass(frozen=True, slots=True)
class Words:
    """Strings of low cardinality: `values[codes[i]]` is the i-th."""

    codes: npt.NDArray[np.int32]
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """The size of the codes in bytes."""
        return self.codes.nbytes

    def take(self, index: Array) -> "Words":
        """The rows at these positions (or under this mask)."""
        return Words(self.codes[index], self.values)

    def slice(self, start: int, stop: int) -> "Words":
        """Rows start..stop, without a copy."""
        return Words(self.codes[start:stop], self.values)

    def to_list(self) -> list[Any]:
        """The strings."""
        return [self.values[code] for code in self.codes]


@dataclass(frozen=True, slots=True)
class Varlen:
    """Strings, bytes or lists of int64: row i is `values[offsets[i]:offsets[i + 1]]`."""

    kind: VarlenKind
    offsets: npt.NDArray[np.int64]  # one more than there are rows; need not begin at 0
    values: Array  # uint8 for str and bytes, int64 for list

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The size of the offsets and of the values that belong to rows."""
        used = int(self.offsets[-1] - self.offsets[0])
        return self.offsets.nbytes + used * self.values.itemsize

    @staticmethod
    def of(kind: VarlenKind, rows: Sequence[Any]) -> "Varlen":
        """Build a column from Python values."""
        parts: list[Array]
        if kind == "list":
            parts = [np.asarray(row, np.int64).reshape(-1) for row in rows]
        else:
            raw = [row.encode() if kind == "str" else bytes(row) for row in rows]
            parts = [np.frombuffer(row, np.uint8) for row in raw]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        dtype = np.int64 if kind == "list" else np.uint8
        return Varlen(kind, offsets, np.concatenate(parts) if parts else np.zeros(0, dtype))

    def take(self, index: Array) -> "Varlen":
        """The rows at these positions (or under this mask)."""
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)
        starts = self.offsets[:-1][index]
        lengths = self.offsets[1:][index] - starts
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        gather = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Varlen(self.kind, offsets, self.values[gather])

    def slice(self, start: int, stop: int) -> "Varlen":
        """Rows start..stop, without a copy."""
        stop = min(stop, len(self))
        return Varlen(self.kind, self.offsets[min(start, stop) : stop + 1], self.values)

    def compact(self) -> "Varlen":
        """The same rows with offsets from 0 and no unused values."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if first == 0 and last == len(self.values):
            return self
        return Varlen(self.kind, self.offsets - first, self.values[first:last])

    def to_list(self) -> list[Any]:
        """The rows as Python values."""
        rows = [self.values[a:b] for a, b in itertools.pairwise(self.offsets.tolist())]
        match self.kind:
            case "list":
                return [row.tolist() for row in rows]
            case "bytes":
                return [row.tobytes() for row in rows]
            case "str":
                return [row.tobytes().decode() for row in rows]


Column: TypeAlias = Array | Words | Varlen
Schema: TypeAlias = Mapping[str, Kind]


def kind_of(column: Column) -> Kind:
    """The kind of a column."""
    if isinstance(column, np.ndarray):
        return name_of(column.dtype)
    return "words" if isinstance(column, Words) else column.kind


@lru_cache(maxsize=256)  # numpy takes ten microseconds
def name_of(dtype: np.dtype[Any]) -> Kind:
    """The kind of the columns that have this dtype."""
    return str(dtype)


def empty_column(kind: Kind) -> Column:
    """A column of no rows."""
    match kind:
        case "words":
            return Words(np.zeros(0, np.int32), ())
        case "list":
            return Varlen("list", np.zeros(1, np.int64), np.zeros(0, np.int64))
        case "str" | "bytes":
            return Varlen(
                "str" if kind == "str" else "bytes", np.zeros(1, np.int64), np.zeros(0, np.uint8)
            )
        case _:
            return np.zeros(0, np.dtype(kind))


class Batch:
    """Named columns of one length."""

    __slots__ = ("columns", "length")

    def __init__(self, columns: Mapping[str, Column], length: int | None = None) -> None:
        self.columns = columns
        if length is None:
            length = len(next(iter(columns.values()))) if columns else 0
        self.length = length

    @staticmethod
    def of(**columns: Any) -> "Batch":
        """Build a batch from Python lists or arrays; strings become `str` columns."""
        return Batch({name: _column(values) for name, values in columns.items()})

    @staticmethod
    def empty(schema: Schema) -> "Batch":
        """A batch of no rows."""
        return Batch({name: empty_column(kind) for name, kind in schema.items()}, 0)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Any:
        """A column. `Any`, because its kind is known to whoever declared the schema."""
        return self.columns[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch) or self.length != other.length:
            return False
        return self.to_pydict() == other.to_pydict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Batch({self.length} x {', '.join(self.columns)})"

    @property
    def schema(self) -> dict[str, Kind]:
        """The kind of every column."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    @property
    def nbytes(self) -> int:
        """The size of the column buffers."""
        return sum([column.nbytes for column in self.columns.values()])

    def freeze(self) -> None:
        """Make all columns read-only: whoever writes into one of them from now on gets an error."""
        for column in self.columns.values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)  # a fifth of the time of `flags.writeable`
            elif isinstance(column, Words):
                column.codes.setflags(write=False)
            else:
                column.offsets.setflags(write=False)
                column.values.setflags(write=False)

    def select(self, *names: str) -> "Batch":
        """Only these columns."""
        return Batch({name: self.columns[name] for name in names}, self.length)

    def with_columns(self, **columns: Column) -> "Batch":
        """The batch with these columns added or replaced."""
        return Batch({**self.columns, **columns}, self.length)

    def rename(self, names: Mapping[str, str]) -> "Batch":
        """The batch with some columns renamed."""
        return Batch({names.get(n, n): c for n, c in self.columns.items()}, self.length)

    def take(self, index: Array) -> "Batch":
        """The rows at these positions, or under this mask."""
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)  # once: numpy would search the mask for every column
        return Batch(
            {name: column.take(index) for name, column in self.columns.items()},
            len(index),
        )

    def slice(self, start: int, stop: int) -> "Batch":
        """Rows start..stop, without a copy."""
        array, rows = np.ndarray, slice(start, stop)  # found once: sources cut record by record
        columns = {
            name: column[rows] if isinstance(column, array) else column.slice(start, stop)
            for name, column in self.columns.items()
        }
        if stop > self.length:
            stop = self.length
        return Batch(columns, stop - start if stop > start else 0)

    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as Python lists."""
        return {
            name: column.tolist() if isinstance(column, np.ndarray) else column.to_list()
            for name, column in self.columns.items()
        }

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python tuples; for tests and per-record functions, never on the hot path."""
        return list(zip(*self.to_pydict().values(), strict=True))


def _column(values: Any) -> Column:
    if isinstance(values, np.ndarray | Words | Varlen):
        return values
    values = list(values)
    if values and isinstance(values[0], str):
        return Varlen.of("str", values)
    if values and isinstance(values[0], bytes):
        return Varlen.of("bytes", values)
    if values and isinstance(values[0], list | tuple):
        return Varlen.of("list", values)
    return np.asarray(values) if values else np.zeros(0, np.int64)


def concat(batches: Sequence[Batch]) -> Batch:
    """One batch of all rows. All batches have the same columns."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        {name: _concat([batch.columns[name] for batch in batches]) for name in batches[0].columns},
        sum(batch.length for batch in batches),
    )


def _concat(columns: Sequence[Column]) -> Column:
    first = columns[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(columns)  # type: ignore[arg-type]
    if isinstance(first, Words):
        return _concat_words([column for column in columns if isinstance(column, Words)])
    parts = [column.compact() for column in columns if isinstance(column, Varlen)]
    bases = np.cumsum([0] + [len(part.values) for part in parts])
    offsets = [part.offsets[1:] + base for part, base in zip(parts, bases, strict=False)]
    return Varlen(
        first.kind,
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.values for part in parts]),
    )


def _concat_words(columns: Sequence[Words]) -> Words:
    if all(column.values == columns[0].values for column in columns):
        return Words(np.concatenate([column.codes for column in columns]), columns[0].values)
    codes: dict[str, int] = {}
    parts = []
    for column in columns:
        known = [codes.setdefault(value, len(codes)) for value in column.values]
        table = np.asarray(known, np.int32)
        parts.append(table[column.codes] if len(table) else column.codes)
    return Words(np.concatenate(parts), tuple(codes))


def size_of(buffer: Buffer) -> int:
    """The number of bytes in a buffer."""
    return buffer.nbytes if isinstance(buffer, np.ndarray) else len(buffer)


def bytes_of(buffer: Buffer) -> memoryview:
    """The bytes of a buffer, without a copy."""
    return buffer.view(np.uint8).data if isinstance(buffer, np.ndarray) else memoryview(buffer)
