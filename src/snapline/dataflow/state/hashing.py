"""One hash per row over the columns of a key.

Keys are hashed by their content, the same in every process and for every kind of column that can hold
it: an int32 equals an int64, a `words` column equals a `str` column.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Column, Varlen, Words
from snapline.kernels import routing

Hashes: TypeAlias = npt.NDArray[np.uint64]


def hash_columns(columns: Sequence[Column]) -> Hashes:
    """One hash per row over one or more key columns."""
    hashes = routing.mixed(np.ascontiguousarray(_raw(columns[0])))
    for column in columns[1:]:
        hashes = routing.mixed(hashes + _raw(column))
    return hashes


def _raw(column: Column) -> Hashes:
    if isinstance(column, Words):
        table = _hash_words(column.values)
        return table[column.codes]
    if isinstance(column, Varlen):
        return _hash_varlen(column)
    if column.dtype.kind == "f":
        # -0.0 and 0.0 are equal keys, so both become 0.0.
        return (column.astype(np.float64) + 0.0).view(np.uint64)
    if column.dtype.kind == "U":
        return _hash_varlen(Varlen.of("str", column.tolist()))
    if column.dtype.kind not in "biumM":
        # Other kinds are hashed by their bytes: to make a number of them could lose something.
        size, whole = column.dtype.itemsize, np.ascontiguousarray(column)
        offsets = np.arange(len(column) + 1, dtype=np.int64) * size
        return _hash_varlen(Varlen("bytes", offsets, whole.view(np.uint8)))
    return column.astype(np.int64, copy=False).view(np.uint64)


@lru_cache(maxsize=256)
def _hash_words(values: tuple[str, ...]) -> Hashes:
    return _hash_varlen(Varlen.of("str", values))


_powers: Hashes = np.ones(1, np.uint64)


def _powers_to(length: int) -> Hashes:
    global _powers
    if len(_powers) < length:
        size = max(64, 1 << length.bit_length())
        _powers = np.cumprod(np.full(size, routing.ODD_1), dtype=np.uint64)
    return _powers


def _hash_varlen(column: Varlen) -> Hashes:
    """Hash each row by a polynomial in its items, as differences of one running sum: no loop over rows."""
    column = column.compact()
    offsets, values = column.offsets, column.values
    lengths = offsets[1:] - offsets[:-1]
    if not len(values):
        return lengths.view(np.uint64)
    place = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    powers = _powers_to(int(lengths.max()))
    running = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values.astype(np.uint64) * powers[place], out=running[1:])
    return running[offsets[1:]] - running[offsets[:-1]] + lengths.view(np.uint64)
