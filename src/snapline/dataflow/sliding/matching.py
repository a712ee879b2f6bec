"""Which rows of two windows match, where a function of the user's says so.

Without a key it is asked about all pairs of some records with the rows of a window. They are many, and it
looks at a column or two of them. So a column of pairs is made when it is asked for, and rows are taken only
for the pairs that match.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Array, Batch, Column
from snapline.dataflow.state.columns import Int64s
from snapline.errors import UsageError

PAIRS_AT_ONCE: Final = 1 << 18
"""How many pairs are made and looked at together."""

Match: TypeAlias = Callable[[Batch, Batch], Array]
"""(left rows, right rows), as many of each -> a mask of those that match."""


def mask_of(function: Match, left: Batch, right: Batch) -> Array:
    """Which of these pairs of rows a function chooses. Raises UsageError."""
    mask = np.asarray(function(left, right))
    if mask.dtype != np.bool_ or mask.shape != (left.length,):
        raise UsageError(
            f"the function of a join got {left.length} pairs of rows, and has to return as many "
            "bools, such as left['price'] > right['price']"
        )
    return mask


def portions(pairs: Int64s) -> Iterator[slice]:
    """Records one after the other, so many at a time that their pairs fit, and at least one.

    `pairs` says how many pairs each of them makes at most.
    """
    ends = np.cumsum(pairs)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        stop = int(np.searchsorted(ends, before + PAIRS_AT_ONCE, side="right"))
        stop = max(stop, first + 1)
        yield slice(first, stop)
        first = stop


class Crossed(Mapping[str, Column]):
    """The columns of one side of all pairs."""

    def __init__(self, columns: Mapping[str, Column], stretch: Callable[[Column], Column]) -> None:
        self._columns = columns
        self._stretch: Final = stretch

    def __getitem__(self, name: str) -> Column:
        return self._stretch(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def crossed(records: Batch, window: Batch) -> tuple[Batch, Batch]:
    """Every record with all rows of the window, then the next record: both sides of these pairs."""
    n, m = records.length, window.length

    def each(column: Column) -> Column:
        if isinstance(column, np.ndarray):
            return np.repeat(column, m)
        return column.take(np.repeat(np.arange(n), m))

    def all_of(column: Column) -> Column:
        if isinstance(column, np.ndarray):
            return np.tile(column, n)
        return column.take(np.tile(np.arange(m), n))

    one = Batch(Crossed(records.columns, each), n * m)
    return one, Batch(Crossed(window.columns, all_of), n * m)


def places(mask: Array, window: Batch) -> tuple[Array, Array]:
    """Which record, and which row of the window, each of the chosen pairs is made of."""
    records, rows = np.divmod(np.flatnonzero(mask), window.length)
    return records, rows
