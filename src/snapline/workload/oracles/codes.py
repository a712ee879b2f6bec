"""Rows as numbers, so that many of them can be sorted, found and compared at once.

`Codes` gives every distinct row of some columns of numbers a number of its own. It is exact: rows have
the same number if and only if they are equal. `same_rows` compares two batches row by row, whatever the
kinds of their columns; strings are compared as bytes, and never become Python strings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Batch, Column, Varlen, Words
from snapline.workload.common.generated import Generated, Ints
from snapline.workload.common.lists import any_item, list_lengths

Bools: TypeAlias = npt.NDArray[np.bool_]

UNKNOWN: Final = -1
"""The number of a row that is not among the known ones."""

_CODES_MAX = 1 << 62
_PIECE = 1 << 20


def pieces(source: Generated, *columns: str) -> Iterator[Batch]:
    """These columns of a whole input, so many records at a time that memory hardly grows.

    A partition of which nothing was read is one empty piece, so that there is always one.
    """
    for partition in range(source.partitions):
        seen = source.seen(partition)
        for start in range(0, max(seen, 1), _PIECE):
            yield source.make(partition, start, min(start + _PIECE, seen)).select(*columns)


def ranges(starts: Ints, counts: Ints) -> Ints:
    """The numbers start, start + 1, ... for each start, `counts` of them, one after the other."""
    before = np.cumsum(counts) - counts
    numbers: Ints = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    return numbers


@dataclass(frozen=True, slots=True)
class _Digit:
    """One column as digits 0..base-1: the distance from the least value, or the rank among all."""

    low: int
    base: int
    values: Array | None  # all values, in order, where the distances are too large
    prefixes: Ints | None  # all numbers so far, in order, where they had to be made smaller

    def append(self, codes: Ints, column: Array) -> Ints:
        """The numbers with one more digit."""
        known = np.ones(len(codes), np.bool_)
        if self.prefixes is not None:
            codes, known = _ranks(self.prefixes, codes)
        if self.values is not None:
            digits, inside = _ranks(self.values, column)
        else:
            inside = (column >= self.low) & (column < self.low + self.base)
            digits = column.astype(np.int64, copy=False) - self.low
            if column.dtype.kind == "f":
                inside &= digits + self.low == column  # no fraction was cut off
        known &= inside & (codes >= 0)
        return np.where(known, codes * self.base + digits, UNKNOWN)


def _ranks(values: Array, column: Array) -> tuple[Ints, Bools]:
    """The position of each value of the column among sorted `values`, and whether it is one of them."""
    at = np.minimum(np.searchsorted(values, column), max(len(values) - 1, 0))
    return at, values[at] == column if len(values) else np.zeros(len(column), np.bool_)


class Codes:
    """A number for each distinct row of some columns. `own` are the numbers of the rows themselves."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self._digits: Final[list[_Digit]] = []
        self.own: Ints = np.zeros(len(columns[0]), np.int64)
        size = 1
        for column in columns:
            digit = self._digit(column, size)
            self._digits.append(digit)
            self.own = digit.append(self.own, column)
            size = digit.base * (size if digit.prefixes is None else len(digit.prefixes))

    def _digit(self, column: Array, size: int) -> _Digit:
        if not len(column):
            return _Digit(0, 0, None, None)
        low, high = column.min().item(), column.max().item()
        if column.dtype.kind in "iub" and size * (high - low + 1) <= _CODES_MAX:
            return _Digit(int(low), int(high) - int(low) + 1, None, None)
        values = np.unique(column)
        return _Digit(0, len(values), values, np.unique(self.own))

    def of(self, columns: Sequence[Array]) -> Ints:
        """The numbers of other rows; `UNKNOWN` for rows that are not among the known ones."""
        codes = np.zeros(len(columns[0]), np.int64)
        for digit, column in zip(self._digits, columns, strict=True):
            codes = digit.append(codes, column)
        return codes


def same_rows(left: Batch, right: Batch, columns: Sequence[str]) -> Bools:
    """Whether row i of one batch equals row i of the other in these columns."""
    same = np.ones(left.length, np.bool_)
    for name in columns:
        same &= _same(left[name], right[name])
    return same


def _same(left: Column, right: Column) -> Bools:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.asarray(left == right, np.bool_)
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.zeros(len(left), np.bool_)  # a string is no number
    if isinstance(left, Words) and isinstance(right, Words):
        place = {value: code for code, value in enumerate(left.values)}
        table = np.array([place.get(value, UNKNOWN) for value in right.values], np.int64)
        return np.asarray(left.codes == table[right.codes], np.bool_)
    return _same_varlen(_spelt(left), _spelt(right))


def _spelt(column: Words | Varlen) -> Varlen:
    if isinstance(column, Varlen):
        return column
    return Varlen.of("str", column.values).take(column.codes)


def _same_varlen(left: Varlen, right: Varlen) -> Bools:
    if left.kind != right.kind:
        return np.zeros(len(left), np.bool_)
    same: Bools = list_lengths(left) == list_lengths(right)
    if not same.all():
        left, right = left.take(same), right.take(same)
    left, right = left.compact(), right.compact()
    same[same] = ~any_item(left, left.values != right.values)
    return same
