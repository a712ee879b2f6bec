"""Many rows per key: chains through append-only rows, and a map from integer keys to rows.

A chain holds the rows of one key, the last in front (`kernels/chains.py`). A batch costs what it adds and
finds, whatever else is there. Chains are not captured: they follow from the rows, which are added again in
the same order.
"""

from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.state.columns import Fixed, Int64s, Rows
from snapline.dataflow.state.key_index import KeyIndex
from snapline.kernels import chains

_ALL: Final = (1 << 63) - 1


class Chains:
    """Chains of row numbers, one per key. The caller keeps the rows, and numbers the keys."""

    def __init__(self) -> None:
        self._heads: Final = Fixed(np.int64)  # by key: the first of its chain
        self._before: Final = Fixed(np.int64)  # by row: the row before it with the same key

    def add(self, keys: Int64s, known: int) -> None:
        """Put the next rows in front of the chains of these keys, of which `known` are numbered."""
        first = self._before.length
        self._before.reach(first + len(keys))
        self._before.length = first + len(keys)
        chains.push(keys, first, self._reached(known), self._before.data)

    def walk(self, keys: Int64s, known: int, most: int = _ALL) -> tuple[Int64s, Int64s]:
        """The last rows of these keys, as positions in `keys` and rows; a key below 0 has none."""
        return chains.walk(keys, self._reached(known), self._before.data, most)

    def _reached(self, known: int) -> Int64s:
        self._heads.reach(known)
        self._heads.length = known
        return self._heads.data


class MultiMap:
    """Many rows per integer key. Rows can be removed: they stay stored, but are not found any more."""

    def __init__(self) -> None:
        self.rows: Final = Rows()
        self.removed = 0
        self._gone: Final = Fixed(np.bool_)
        self._index: Final = KeyIndex()
        self._chains: Final = Chains()

    def __len__(self) -> int:
        return self.rows.length - self.removed

    def add(self, keys: Int64s, batch: Batch) -> int:
        """Keep the rows of a batch, each under its key; return the number of the first."""
        first = self.rows.append(batch.columns, batch.length)
        rows = self._index.locate(np.ascontiguousarray(keys))
        self._chains.add(rows, len(self._index))
        self._gone.reach(self.rows.length)
        self._gone.length = self.rows.length
        return first

    def find(self, keys: Int64s) -> tuple[Int64s, Int64s]:
        """All rows under these keys: positions in `keys`, and the numbers of the rows."""
        known = self._index.find(np.ascontiguousarray(keys))
        positions, rows = self._chains.walk(known, len(self._index))
        if self.removed:
            alive = ~self._gone.take(rows)
            positions, rows = positions[alive], rows[alive]
        return positions, rows

    def remove(self, rows: Int64s) -> None:
        """Remove rows by number; to remove one twice does nothing."""
        there = np.unique(rows[~self._gone.take(rows)])
        self._gone.data[there] = True
        self.removed += len(there)

    def left(self) -> tuple[Batch, Batch]:
        """Copies of the rows that were not removed: those that were captured, and those that are new."""
        rows = np.flatnonzero(~self._gone.view())
        captured = np.searchsorted(rows, self.rows.marked)
        return self.rows.take(rows[:captured]), self.rows.take(rows[captured:])

    def capture(self, *, full: bool) -> Batch:
        """All rows that were not removed; or with `full=False` all new ones, even if removed since."""
        captured = self.rows.capture(full=full)
        return captured.take(~self._gone.view()) if full and self.removed else captured
