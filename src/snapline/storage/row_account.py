"""An account of rows that need not be there any more: how many there were, and the sum of their hashes.

The sum does not depend on the order of the rows, and accounts are added and taken apart like the rows
behind them: that of expected rows, less that of the rows which are left, is that of those which were
deleted. If these agree, so do the rows, each as often: by accident two different multisets have the same
sum once in 2^128. It is no proof against somebody who makes rows up for that purpose.

A row is hashed by the names and values of its columns, in whichever order they stand and however they are
stored: whole numbers by their value, of any width; strings by their bytes, coded or not; a zero without its
sign.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from snapline.batch import Array, Batch, Column, Varlen, Words

_MODULUS: Final = 1 << 128
_WORD: Final = 8  # bytes of a number, and of the length that stands before a string or a list


@dataclass(frozen=True, slots=True)
class RowAccount:
    """How many rows there are, and the sum of their hashes modulo 2^128."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: "RowAccount") -> "RowAccount":
        return RowAccount(self.rows + other.rows, (self.total + other.total) % _MODULUS)

    def __sub__(self, other: "RowAccount") -> "RowAccount":
        return RowAccount(self.rows - other.rows, (self.total - other.total) % _MODULUS)


class _Cells(NamedTuple):
    """The values of a column as bytes."""

    kind: str
    lengths: npt.NDArray[np.int64] | None  # of each row, in bytes; None: a word each
    data: npt.NDArray[np.uint8]


def account_of(batch: Batch) -> RowAccount:
    """The account of the rows of a batch."""
    cells = {name: _cells(batch.columns[name]) for name in sorted(batch.columns)}
    said = repr([(name, each.kind) for name, each in cells.items()])
    seed = xxh3_64_intdigest(said.encode())
    sizes = np.full(len(batch), _WORD * len(cells), np.int64)
    for each in cells.values():
        if each.lengths is not None:
            sizes += each.lengths
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    joined = _joined(list(cells.values()), bounds).data
    total = sum(xxh3_128_intdigest(joined[a:b], seed) for a, b in pairwise(bounds.tolist()))
    return RowAccount(len(batch), total % _MODULUS)


def _joined(cells: list[_Cells], bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The bytes of all rows, one row after the other; row n lies between bounds n and n + 1."""
    joined = np.empty(int(bounds[-1]), np.uint8)
    at = bounds[:-1].copy()
    word = np.arange(_WORD)
    for each in cells:
        if each.lengths is None:
            joined[at[:, None] + word] = each.data.reshape(-1, _WORD)
            at += _WORD
            continue
        joined[at[:, None] + word] = _bytes_of(each.lengths).reshape(-1, _WORD)
        at += _WORD
        before = np.cumsum(each.lengths) - each.lengths
        joined[np.repeat(at - before, each.lengths) + np.arange(len(each.data))] = each.data
        at += each.lengths
    return joined


def _cells(column: Column) -> _Cells:
    if isinstance(column, Words):
        column = Varlen.of("str", column.values).take(column.codes.astype(np.int64))
    if isinstance(column, Varlen):
        rows = column.compact()
        lengths = np.diff(rows.offsets) * rows.values.itemsize
        return _Cells(rows.kind, lengths, _bytes_of(rows.values))
    match column.dtype.kind:
        case "b" | "i":
            return _Cells("int", None, _bytes_of(column.astype(np.int64)))
        case "u":
            kind = "int" if column.dtype.itemsize < _WORD else "uint64"
            return _Cells(kind, None, _bytes_of(column.astype(np.int64)))
        case "f":
            plain = column.astype(np.float64) + 0.0  # which makes a positive zero of a negative one
            return _Cells("float", None, _bytes_of(np.where(np.isnan(plain), np.nan, plain)))
        case _:
            raise TypeError(f"there is no account of a column of {column.dtype}")


def _bytes_of(values: Array) -> npt.NDArray[np.uint8]:
    """The bytes of numbers, the lowest one first on every machine."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    found: npt.NDArray[np.uint8] = little.view(np.uint8)
    return found
