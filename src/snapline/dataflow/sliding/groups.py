"""The rows of an arena in groups, each of which is captured, and stored, by itself.

A group is a run of rows of the arena, in the order of arrival. Rows never change, so a group that is full
is written once, and never again: rows that die stay in it until all are dead, and then it is dropped. Only
the last group, the *open* one, is written again as long as rows join it. So a capture costs what came since
the one before, and at most one group beside it, however large the windows are.

In an arena of many keys a group may live on for the sake of a few rows, of keys to which nothing comes any
more. So now and then the living rows are counted, and neighbours become one group if their living rows fit
into one. There are then at most twice as many groups as the living rows fill, and one more. Each merger
writes one group and leaves one group fewer, so all of them together write no more rows than have come.

The rows are looked through for that after a fourth as many have come as live: amortised, each row costs the
same, whatever the size of the windows.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Batch, Words
from snapline.dataflow.operators.operator import Groups
from snapline.dataflow.state.columns import Int64s

Alive: TypeAlias = Callable[[int], Int64s]
"""The rows from this one on that live, by their places in the arena."""

_ROWS_MIN: Final = 64
_GROUPS_MIN, _GROUPS_MAX = 16, 1_024  # about so many groups hold the rows that live, if nobody says


class RowGroups:
    """Which rows of an arena belong to which group, and what has changed since the last capture."""

    def __init__(self, rows: int) -> None:
        """So many rows make a group; 0: as many as come between two captures, within reason."""
        self._wanted: Final = rows
        self._numbers: list[int] = []  # of the groups, rising
        self._starts: list[int] = []  # the place in the arena at which each begins
        self._next = 0  # the next number
        self._covered = 0  # how many rows of the arena are in groups
        self._open = False  # whether rows may join the last group
        self._unchecked = 0  # rows that have come since all were looked through
        self._gone: list[int] = []  # groups that were dropped since the last capture

    def moved(self, alive: Int64s) -> None:
        """Note that the arena has only these rows left, in the same order."""
        self._starts = np.searchsorted(alive, self._starts).tolist()
        self._covered = int(np.searchsorted(alive, self._covered))

    def capture(
        self,
        alive: Alive,
        take: Callable[[Int64s], Batch],
        length: int,
        living: int,
        first: int | None,
    ) -> Groups:
        """What has changed. Of an arena with one key all rows from `first` on live, and no other."""
        fresh = length - self._covered
        size = self._wanted or _usual_size(fresh, living)
        changed: dict[int, Int64s] = {}
        if fresh:
            changed = self._cover(alive, size)
            self._covered = length
        if first is not None:
            self._drop_before(first)
        else:
            self._unchecked += fresh
            if self._unchecked >= max(size, living // 4):
                self._unchecked = 0
                changed |= self._merge(alive(0), size)
        dropped, self._gone = self._gone, []
        known = set(self._numbers)
        written = {n: _compact(take(rows)) for n, rows in sorted(changed.items()) if n in known}
        return Groups(written, dropped)

    def nothing(self) -> Groups:
        """What has changed in an arena without a row: groups that could not be read are dropped."""
        dropped, self._gone = self._gone, []
        return Groups({}, dropped)

    def begin_anew(self) -> None:
        """Drop all groups: the rows of the arena are others now, or have other ordinals."""
        self._gone += self._numbers
        self._numbers, self._starts = [], []
        self._covered, self._open, self._unchecked = 0, False, 0

    def _cover(self, alive: Alive, size: int) -> dict[int, Int64s]:
        """Put the rows behind the last group into groups, and into the open one if there is one."""
        begin, number = self._covered, self._next
        if self._open:
            begin, number = self._starts.pop(), self._numbers.pop()
        rows = alive(begin)
        if self._open and not len(rows):
            self._gone.append(number)
        changed: dict[int, Int64s] = {}
        for at in range(0, len(rows), size):
            changed[number] = rows[at : at + size]
            self._numbers.append(number)
            self._starts.append(int(rows[at]) if at else begin)
            self._next = max(self._next, number + 1)
            number = self._next
        self._open = len(rows) % size > 0
        return changed

    def _drop_before(self, first: int) -> None:
        """Drop the groups all of whose rows are before this one."""
        ends = [*self._starts[1:], self._covered]
        dead = next((i for i, end in enumerate(ends) if end > first), len(ends))
        self._gone += self._numbers[:dead]
        del self._numbers[:dead], self._starts[:dead]
        self._open = self._open and bool(self._numbers)

    def _merge(self, alive: Int64s, size: int) -> dict[int, Int64s]:
        """Drop groups without a living row, and make one of neighbours that fit into one."""
        places = np.searchsorted(alive, [*self._starts, self._covered]).tolist()
        numbers, starts, self._numbers, self._starts = self._numbers, self._starts, [], []
        changed: dict[int, Int64s] = {}
        begin = 0  # where the living rows begin of the last group that is kept
        last = len(numbers) - 1 if self._open else len(numbers)  # it changes anyway
        for i, number in enumerate(numbers):
            if places[i] == places[i + 1]:
                self._gone.append(number)
                self._open = self._open and i < last
            elif self._numbers and i < last and places[i + 1] - begin <= size:
                changed[self._numbers[-1]] = alive[begin : places[i + 1]]
                self._gone.append(number)
            else:
                begin = places[i]
                self._numbers.append(number)
                self._starts.append(starts[i])
        return changed

    def restore(self, given: Groups, alive: Int64s) -> None:
        """Go on with groups that were stored: of all their rows, one group after the other, these live.

        If some are lost, the rows that are left have been numbered anew, so all are written again.
        """
        numbers = [*given.written, *given.lost]
        self._next = max(numbers, default=-1) + 1
        if given.lost:
            self._gone = sorted(numbers)
            return
        lengths = [rows.length for rows in given.written.values()]
        places = np.searchsorted(alive, np.cumsum([0, *lengths])).tolist()
        self._numbers, self._starts, self._covered = numbers, places[:-1], places[-1]
        self._open = bool(lengths) and lengths[-1] < (self._wanted or _ROWS_MIN)


def _usual_size(fresh: int, living: int) -> int:
    """How many rows make a group if nobody says: about as many as have come since the last capture.

    Then the open group, which is written again, costs as much as what is new.
    """
    least = max(_ROWS_MIN, living // _GROUPS_MAX)
    most = max(_ROWS_MIN, living // _GROUPS_MIN)
    return 1 << (min(max(fresh, least), most) - 1).bit_length()


def _compact(rows: Batch) -> Batch:
    """The same rows; of dictionaries of strings, which are those of the whole arena, what they use."""
    columns = {
        name: _used(column) if isinstance(column, Words) else column
        for name, column in rows.columns.items()
    }
    return Batch(columns, rows.length)


def _used(column: Words) -> Words:
    if len(column.values) <= len(column.codes) // 4:
        return column
    codes, places = np.unique(column.codes, return_inverse=True)
    return Words(places.astype(np.int32), tuple(column.values[code] for code in codes))
