"""The arena: the last rows of every key, one behind the other as they came, and no more than twice as many.

Each row has the number that it has in its key, its *ordinal*. A row lives as long as its ordinal is among
the last ones of its key, and those that do not are dropped now and then, all at once. A row never changes,
so a delta has those that came since and still live, however large the windows are; or its rows are captured
in groups (`groups`). One arena serves all keys, so that a key with few rows costs nothing while others have
many.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np

from snapline.batch import Batch, Column
from snapline.dataflow.operators.operator import Capture, Groups
from snapline.dataflow.sliding.groups import RowGroups
from snapline.dataflow.state.columns import Fixed, Int64s, Rows
from snapline.dataflow.state.hashing import Hashes
from snapline.dataflow.state.missed_rows import MissedRows
from snapline.dataflow.state.multi_map import Chains
from snapline.kernels import grouping

ORDINAL: Final = "(ordinal)"
_DEAD_MIN: Final = 4_096  # rows that may be dead whatever the number of those that live


def rows_in(captures: Sequence[Capture], part: str) -> tuple[Groups, list[Batch]]:
    """The rows of a part in captures that are restored, oldest first: in groups, or as parts."""
    given = captures[-1].groups.get(part) if captures else None
    if given is not None:
        return given, list(given.written.values())
    parts = (capture.parts.get(part) for capture in captures)
    return Groups({}), [rows for rows in parts if rows is not None and rows.length]


def closed_up(rows: Batch, keys: Int64s) -> Batch:
    """The same rows with ordinals that have no gaps: as if what is missing had never come."""
    ranks = np.empty(len(keys), np.int64)
    grouping.occurrences(keys, ranks)
    return rows.with_columns(**{ORDINAL: ranks + 1})


class Arena:
    """Rows of keys, which are given by number, of which the last `size` live."""

    def __init__(self, size: int) -> None:
        self._size: Final = size
        self._rows = Rows()
        self._owners = Fixed(np.int64)  # the key of each row
        self._chains = Chains()
        self._living = 0  # how many rows live
        self._captured = 0  # how many did when it was captured
        self._groups: RowGroups | None = None  # if its rows are captured in groups

    def add(
        self, columns: Mapping[str, Column], keys: Int64s, ordinals: Int64s, counts: Int64s
    ) -> None:
        """Keep rows in the order in which they came; `counts` has the rows of each key so far."""
        self._append(Batch({**columns, ORDINAL: ordinals}, len(keys)), keys, len(counts))
        self._living += int(np.count_nonzero(ordinals <= self._size))
        if self._rows.length > 2 * self._living + _DEAD_MIN:
            self._drop_dead(counts)

    def _append(self, rows: Batch, keys: Int64s, known: int) -> None:
        self._rows.append(rows.columns, rows.length)
        self._owners.append(keys)
        self._chains.add(keys, known)

    def rows_of(self, keys: Int64s, known: int, but: Collection[str] = ()) -> tuple[Int64s, Batch]:
        """The rows of these keys that live, the last ones first: which of the keys, and the row."""
        positions, rows = self._chains.walk(keys, known, self._size)
        return positions, self._rows.take(rows, but)

    def _alive(self, counts: Int64s, start: int = 0) -> Int64s:
        """The rows from `start` on that live."""
        ordinals = self._rows.view(start)[ORDINAL]
        oldest = counts[self._owners.view(start)] - self._size
        return start + np.flatnonzero(ordinals > oldest)

    def _drop_dead(self, counts: Int64s) -> None:
        """Begin a new arena; the old one is left to whoever still writes it."""
        alive = self._alive(counts)
        captured = int(np.searchsorted(alive, self._rows.marked))
        if self._groups is not None:
            self._groups.moved(alive)
        kept, owners = self._rows.take(alive), self._owners.take(alive)
        self._rows, self._owners, self._chains = Rows(), Fixed(np.int64), Chains()
        self._append(kept, owners, len(counts))
        self._rows.marked = captured

    def living(self, counts: Int64s) -> tuple[Batch, Int64s]:
        """The rows that live, as they came, and the key of each."""
        if not self._rows.length:
            return Batch({}), np.zeros(0, np.int64)
        alive = self._alive(counts)
        return self._rows.take(alive), self._owners.take(alive)

    def without_stale(
        self, counts: Int64s, missed: MissedRows, hashed: Callable[[Batch], Hashes]
    ) -> tuple[Batch, Int64s] | None:
        """The living rows that would be left had the missed ones come, numbered anew; None: all of them."""
        rows, keys = self.living(counts)
        if not rows.length:
            return None
        oldest = counts[keys] - self._size + missed.among(hashed(rows))
        left = np.flatnonzero(rows[ORDINAL] > oldest)
        if len(left) == rows.length:
            return None
        return closed_up(rows.take(left), keys[left]), keys[left]

    def begin_anew(self) -> int:
        """Forget all rows; return how many lived."""
        living, self._living, self._captured = self._living, 0, 0
        self._rows, self._owners, self._chains = Rows(), Fixed(np.int64), Chains()
        if self._groups is not None:
            self._groups.begin_anew()
        return living

    def capture(self, counts: Int64s, *, full: bool) -> tuple[Batch, int]:
        """The rows that live, all or those that are new; and by how many bytes all have grown."""
        born, self._captured = self._living - self._captured, self._living
        if not self._rows.length:
            return Batch({}), 0
        start = 0 if full else self._rows.marked
        alive = self._alive(counts, start)
        self._rows.mark()
        whole = len(alive) == self._rows.length - start
        rows = self._rows.view(start) if whole else self._rows.take(alive)
        return rows, 0 if full else rows.nbytes * born // max(rows.length, 1)

    def by_group(self, rows: int | None) -> None:
        """Have its rows captured in groups of so many rows (0: as many as seem right), or not."""
        self._groups = None if rows is None else RowGroups(rows)

    @property
    def grouped(self) -> bool:
        """Whether its rows are captured in groups."""
        return self._groups is not None

    def capture_groups(self, counts: Int64s) -> Groups:
        """The groups of rows that have changed since the capture before."""
        assert self._groups is not None
        if not self._rows.length:
            return self._groups.nothing()
        length, living = self._rows.length, self._living
        return self._groups.capture(
            lambda start: self._alive(counts, start),
            self._rows.take,
            length,
            living,
            first=length - living if len(counts) == 1 else None,
        )

    def adopt(self, given: Groups, alive: Int64s) -> None:
        """Take over the groups from which its rows came: of all their rows these live."""
        if self._groups is not None:
            self._groups.restore(given, alive)

    def restore(self, rows: Batch, keys: Int64s, known: int) -> None:
        """Take rows back, all of which live."""
        self._append(rows, keys, known)
        self._rows.mark()
        self._living = self._captured = rows.length
