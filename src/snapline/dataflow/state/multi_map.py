"""Many rows per key: chains through append-only rows, and a map from integer keys to rows.

A chain holds the rows of one key: `head` at the key's slot is its last row, `before` at a row is the row
before it with the same key. To add a row is to put it in front, and all chains of a batch are walked
together, one step at a time, so a batch costs what it adds and finds, whatever else is there. Chains are
not captured: they follow from the rows, which are added again in the same order.
"""

from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.state.columns import Fixed, Rows
from snapline.dataflow.state.slot_table import Groups, Int64s, SlotTable

_FEW: Final = 12
_HEAD: Final = "head"


class Chains:
    """Chains of row numbers, one per key. The caller keeps the rows, and the heads by slot."""

    def __init__(self) -> None:
        self._before: Final = Fixed(np.int64)  # by row: the row before it with the same key, or -1

    def add(self, slots: Int64s, heads: Int64s) -> None:
        """Put the next rows in front of the chains of their keys."""
        groups = Groups(slots)
        added = self._before.length + groups.order
        before = np.empty(len(slots), np.int64)
        before[groups.order[1:]] = added[:-1]
        before[groups.order[groups.starts]] = heads[groups.slots]
        heads[groups.slots] = added[groups.ends - 1]
        self._before.append(before)

    def walk(self, heads: Int64s) -> tuple[Int64s, Int64s]:
        """All rows of the chains, as two arrays: positions in `heads`, and the rows that belong to them."""
        positions = np.flatnonzero(heads >= 0)
        rows = heads[positions]
        steps = [(positions, rows)]
        while len(rows) > _FEW:
            rows = self._before.take(rows)
            more = rows >= 0
            positions, rows = positions[more], rows[more]
            steps.append((positions, rows))
        if len(rows):
            steps.append(self._walk_few(positions.tolist(), rows.tolist()))
        return np.concatenate([p for p, _ in steps]), np.concatenate([r for _, r in steps])

    def _walk_few(self, positions: list[int], rows: list[int]) -> tuple[Int64s, Int64s]:
        """Walk the rest of a few chains, one after the other: numpy would be slow for so few."""
        before = self._before.view().data
        found_at, found = [], []
        for position, row in zip(positions, rows, strict=True):
            step = before[row]
            while step >= 0:
                found_at.append(position)
                found.append(step)
                step = before[step]
        return np.array(found_at, np.int64), np.array(found, np.int64)


class MultiMap:
    """Many rows per integer key. Rows can be removed: they stay stored, but are not found any more."""

    def __init__(self) -> None:
        self.rows: Final = Rows()
        self.removed = 0
        self._alive: Final = Fixed(np.bool_)
        self._table: Final = SlotTable({_HEAD: -1})
        self._chains: Final = Chains()

    def __len__(self) -> int:
        return self.rows.length - self.removed

    def add(self, keys: Int64s, batch: Batch) -> int:
        """Keep the rows of a batch, each under its key; return the number of the first."""
        first = self.rows.append(batch.columns, batch.length)
        slots = self._table.locate(keys)
        self._chains.add(slots, self._table.columns[_HEAD])
        self._alive.append(np.ones(batch.length, np.bool_))
        return first

    def find(self, keys: Int64s) -> tuple[Int64s, Int64s]:
        """All rows under these keys: positions in `keys`, and the numbers of the rows."""
        positions, rows = self._chains.walk(self._table.columns[_HEAD][self._table.find(keys)])
        if self.removed:
            alive = self._alive.take(rows)
            positions, rows = positions[alive], rows[alive]
        return positions, rows

    def remove(self, rows: Int64s) -> None:
        """Remove rows by number; to remove one twice does nothing."""
        there = np.unique(rows[self._alive.take(rows)])
        self._alive.view()[there] = False
        self.removed += len(there)

    def left(self) -> tuple[Batch, Batch]:
        """Copies of the rows that were not removed: those that were captured, and those that are new."""
        rows = np.flatnonzero(self._alive.view())
        captured = np.searchsorted(rows, self.rows.marked)
        return self.rows.take(rows[:captured]), self.rows.take(rows[captured:])

    def capture(self, *, full: bool) -> Batch:
        """All rows that were not removed; or with `full=False` all new ones, even if removed since."""
        captured = self.rows.capture(full=full)
        return captured.take(self._alive.view()) if full and self.removed else captured
