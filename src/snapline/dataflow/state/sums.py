"""Sums of integers: they are kept in 64 bits, and one that does not fit is refused instead of wrong.

Sums stay below 2**62. So a step that leaves the range of 64 bits always shows: it begins below that bound,
and what it wraps around to lies beyond it.
"""

from typing import Final

import numpy as np

from snapline.batch import Array
from snapline.dataflow.state.columns import Int64s
from snapline.errors import UsageError

_BOUND: Final = 1 << 62


def check_sums(sums: Array, column: str) -> None:
    """Raise UsageError if a sum of a column does not fit. Fractions always do."""
    if sums.dtype.kind != "f" and len(sums) and not (-_BOUND < sums.min() <= sums.max() < _BOUND):
        _refuse(column)


def add_up(sums: Array, rows: Int64s, values: Array, column: str) -> None:
    """Add each value to the sum in its row. Raises UsageError if a sum does not fit."""
    if sums.dtype.kind != "f" and len(values):
        largest = max(int(values.max()), -int(values.min()))
        if largest * len(values) >= _BOUND:  # several could wrap around together
            rough = sums.astype(np.float64)
            np.add.at(rough, rows, values)
            if np.abs(rough[rows]).max() >= _BOUND:
                _refuse(column)
    np.add.at(sums, rows, values)
    check_sums(sums if len(sums) < len(rows) else sums[rows], column)


def check_unsigned(column: Array, name: str) -> None:
    """Raise UsageError if a column has numbers that are too large to be kept with a sign."""
    if column.dtype == np.uint64 and len(column) and int(column.max()) >= 1 << 63:
        raise UsageError(
            f"the column '{name}' has numbers beyond 2**63 - 1: make it a float, or its numbers smaller"
        )


def _refuse(column: str) -> None:
    raise UsageError(
        f"a sum of '{column}' is too large for 64 bits: make the column a float, or its numbers smaller"
    )
