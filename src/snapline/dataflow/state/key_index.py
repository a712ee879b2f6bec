"""The index of keys: numbers int64 keys 0, 1, 2, ... in the order in which they first appear.

These numbers are rows: what is kept for a key lies at its row, in columns as long as there are keys. A key
keeps its row for ever, and nothing is ever deleted: windows are dropped as whole tables. The index grows
bit by bit, so that no call does work in proportion to the size of the table (`kernels/table.py`).
"""

from typing import Final

import numpy as np

from snapline.dataflow.state.columns import Fixed, Int64s
from snapline.kernels import memory, table

_CELLS_MIN: Final = 32
_AT_ONCE: Final = 1 << 10  # an old table with so few cells is moved in one call
_GIVE_BACK: Final = 1 << 18  # cells of the old table that are given back together


class KeyIndex:
    """Rows by key."""

    def __init__(self) -> None:
        self._known: Final = Fixed(np.int64)
        self._state: Final = np.zeros(table.STATE_SIZE, np.int64)
        self._given_back = 0  # cells of the old table
        self.room = 0  #: how many rows there may be before the index grows
        self._cells = self._old = np.zeros(2 * _CELLS_MIN, np.int64)
        self._state[table.PASSED] = table.ALL
        self._state[table.SHIFT] = _shift(_CELLS_MIN)
        self._reach()

    def __len__(self) -> int:
        return self._known.length

    @property
    def parts(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """What kernels of `table` want besides their keys."""
        return self._cells, self._old, self._known.data, self._state

    def keys(self) -> Int64s:
        """The keys by row; a view that later keys do not change."""
        return self._known.view()

    def locate(self, keys: Int64s) -> Int64s:
        """The row of every key; keys that are new get one."""
        rows = np.empty(len(keys), np.int64)
        done = 0
        while (done := table.locate(keys, done, rows, *self.parts)) < len(keys):
            self.make_room()
        self.tidy()
        return rows

    def find(self, keys: Int64s) -> Int64s:
        """The row of every key; -1 for one that is not there."""
        rows = np.empty(len(keys), np.int64)
        table.find(keys, rows, self._cells, self._old, self._state)
        return rows

    def reserve(self, count: int) -> None:
        """Make room for so many new keys."""
        if len(self) + count > self.room:
            self._state[table.WANTED] = count
            self.make_room()

    def make_room(self) -> None:
        """Make the room that a kernel has missed, if it has: an index twice as large, or even larger."""
        self.tidy()
        wanted = int(self._state[table.WANTED])
        if not wanted:
            return
        if self._old is not self._cells:  # after a batch as large as the index: else it is done
            table.move(len(self._old), self._cells, self._old, self._state)
        self._old, self._given_back = self._cells, 0
        size = max(len(self._old), 1 << (2 * (len(self) + wanted) - 1).bit_length())
        self._cells = memory.zeros(2 * size, np.int64)
        state = self._state
        state[table.OLD_SHIFT], state[table.SHIFT] = state[table.SHIFT], _shift(size)
        state[table.START] = _free_cell(self._old) + 1
        state[table.PASSED] = state[table.WANTED] = 0
        if len(self._old) <= 2 * _AT_ONCE:
            table.move(len(self._old), self._cells, self._old, state)
        self._reach()

    def _reach(self) -> None:
        self.room = self._state[table.ROOM] = len(self._cells) // 4
        self._known.reach(self.room)

    def tidy(self) -> None:
        """To be called behind every kernel: note how many keys there are, and give the old table back."""
        self._known.length = int(self._state[table.COUNT])
        if self._old is self._cells:
            return
        passed = int(self._state[table.PASSED])
        if passed == table.ALL:
            self._old = self._cells
        elif passed - self._given_back >= _GIVE_BACK:
            start = int(
                self._state[table.START]
            )  # all cells before it are passed at once, at the end
            memory.give_back(self._old, 2 * (start + self._given_back), 2 * (start + passed))
            self._given_back = passed


def _shift(size: int) -> int:
    return 64 - size.bit_length() + 1


def _free_cell(cells: Int64s) -> int:
    """A free cell: at most half are taken, so that one is near."""
    rows, at = cells[1::2], 0
    while rows[at]:
        at += 1
    return at
