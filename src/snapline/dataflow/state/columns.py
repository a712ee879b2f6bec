"""Append-only columns: rows are added at the end and never change, so a length is a snapshot.

A capture takes views of the rows since the capture before, without a copy. A small column that grows moves
its rows to a larger buffer and leaves the old one to whoever still reads it. A large one reserves all the
room that it could ever need, and never moves again: to copy gigabytes would hold everything up.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Batch, Column, Varlen, VarlenKind, Words, kind_of
from snapline.errors import UsageError
from snapline.kernels import memory

Int64s: TypeAlias = npt.NDArray[np.int64]

_ROWS_MIN: Final = 16


class Fixed:
    """A growing column of fixed-width values; those that were never written are zeros."""

    __slots__ = ("data", "length")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.data: Array = np.zeros(_ROWS_MIN, dtype)  #: the rows, and the room behind them
        self.length = 0

    def fits(self, column: Column) -> bool:
        """Whether a column can be appended without losing anything of its values."""
        own = self.data.dtype
        return isinstance(column, np.ndarray) and (
            column.dtype == own or np.can_cast(column.dtype, own)
        )

    def reach(self, end: int) -> None:
        """Make room for so many rows: `data` may be another array then."""
        if end <= len(self.data):
            return
        dtype, size = self.data.dtype, 1 << (end - 1).bit_length()
        grown = memory.room_for_all(dtype) if size * dtype.itemsize >= memory.LARGE else None
        if grown is None or end > len(grown):
            grown = np.zeros(size, dtype)
        grown[: len(self.data)] = self.data
        self.data = grown

    def append(self, column: Array) -> None:
        """Add rows; amortised, each costs a constant."""
        start, end = self.length, self.length + len(column)
        self.reach(end)
        self.data[start:end] = column
        self.length = end

    def view(self, start: int = 0) -> Array:
        """The rows from `start` on."""
        return self.data[start : self.length]

    def take(self, rows: Array) -> Array:
        """A copy of the rows at these positions."""
        return self.data[rows]


class _Words:
    """Dictionary-coded strings; the dictionary grows with the strings that are seen."""

    def __init__(self) -> None:
        self._codes = Fixed(np.int32)
        self._dictionary: dict[str, int] = {}
        self._values: tuple[str, ...] = ()
        self._known: tuple[str, ...] = ()  # the dictionary of the batch appended before
        self._recode: Array = np.zeros(0, np.int32)  # from the codes of that batch to ours

    def fits(self, column: Column) -> bool:
        return isinstance(column, Words)

    def append(self, column: Words) -> None:
        if column.values != self._known:
            codes = self._dictionary
            recode = [codes.setdefault(value, len(codes)) for value in column.values]
            self._recode = np.asarray(recode, np.int32)
            self._known, self._values = column.values, tuple(codes)
        self._codes.append(self._recode[column.codes])

    def view(self, start: int = 0) -> Words:
        return Words(self._codes.view(start), self._values)

    def take(self, rows: Array) -> Words:
        return Words(self._codes.take(rows), self._values)


class _Varlen:
    """Strings, bytes or lists: growing offsets and growing values."""

    def __init__(self, kind: VarlenKind, dtype: npt.DTypeLike) -> None:
        self._kind: Final[VarlenKind] = kind
        self._offsets = Fixed(np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        self._values = Fixed(dtype)

    def fits(self, column: Column) -> bool:
        return isinstance(column, Varlen) and column.kind == self._kind

    def append(self, column: Varlen) -> None:
        column = column.compact()
        self._offsets.append(column.offsets[1:] + self._values.length)
        self._values.append(column.values)

    def view(self, start: int = 0) -> Varlen:
        return Varlen(self._kind, self._offsets.view(start), self._values.view())

    def take(self, rows: Array) -> Varlen:
        return self.view().take(rows)


_Growing: TypeAlias = Fixed | _Words | _Varlen


def _growing(column: Column) -> _Growing:
    if isinstance(column, np.ndarray):
        return Fixed(column.dtype)
    if isinstance(column, Words):
        return _Words()
    return _Varlen(column.kind, column.values.dtype)


class Rows:
    """Rows of named columns, append-only; the first rows fix the columns and their kinds."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}  # of _Growing, each for columns of one kind
        self.marked = 0  #: how many rows were captured
        self.length = 0

    def append(self, columns: Mapping[str, Column], count: int) -> int:
        """Add rows and return the number of the first."""
        if not self._columns:
            self._columns = {name: _growing(column) for name, column in columns.items()}
        for name, growing in self._columns.items():
            if not growing.fits(columns[name]):
                now, before = kind_of(columns[name]), kind_of(growing.view())
                raise UsageError(
                    f"the column '{name}' is {now} and was {before} in the rows before: what makes "
                    "it must always make the same kind"
                )
            growing.append(columns[name])
        first = self.length
        self.length += count
        return first

    def take(self, rows: Array, but: Collection[str] = ()) -> Batch:
        """A copy of the rows with these numbers, without the columns `but`."""
        columns = {n: c.take(rows) for n, c in self._columns.items() if n not in but}
        return Batch(columns, len(rows))

    def view(self, start: int = 0) -> Batch:
        """The rows from `start` on, without a copy."""
        return Batch({n: c.view(start) for n, c in self._columns.items()}, self.length - start)

    def capture(self, *, full: bool) -> Batch:
        """All rows, or those since the capture before; they never change."""
        start = 0 if full else self.marked
        self.mark()
        return self.view(start)

    def mark(self) -> None:
        """Count all rows so far as captured."""
        self.marked = self.length
