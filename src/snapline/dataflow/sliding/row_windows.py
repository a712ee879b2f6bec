"""Aggregates of the last rows of each key: one output per record, as soon as it comes.

A window has its record and those before it that have the same key, as many as it is large, or all if there
are fewer: what SQL calls `ROWS BETWEEN n - 1 PRECEDING AND CURRENT ROW`. Rows are in the order of arrival.
That is the same again after a failure; but where the records of a key come from several partitions, nobody
knows beforehand in which order they will arrive.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, concat
from snapline.dataflow.operators.fold import carried
from snapline.dataflow.operators.known import Known, running
from snapline.dataflow.operators.operator import IN, OUT, Capture, Operator, Outputs
from snapline.dataflow.sliding.arena import ORDINAL, Arena, closed_up, rows_in
from snapline.dataflow.sliding.blocks import Blocks, Earlier, Turn
from snapline.dataflow.sliding.partials import Layout
from snapline.dataflow.sliding.plan import COUNT, Partial, SlidingPlan, neutral
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.hashing import Hashes
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.missed_rows import MissedRows, key_hashes
from snapline.errors import GraphError

ROWS: Final = "rows"
_ROWS_MAX: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class LastRows:
    """The shape of windows by rows."""

    rows: int  # 0: one side of a join, whose records meet those of the other side and are not kept

    def __post_init__(self) -> None:
        try:
            size = operator.index(self.rows)
        except TypeError:
            size = -1
        if isinstance(self.rows, bool) or not 0 <= size <= _ROWS_MAX:
            raise GraphError(f"a sliding window has from 1 to {_ROWS_MAX} rows, not {self.rows!r}")


class SlidingRowWindows(Operator):
    """Emits for each record the aggregates of the last rows of its key."""

    def __init__(self, plan: SlidingPlan, shape: LastRows) -> None:
        self.reads = (*plan.keys, *plan.columns, "time")
        self._plan: Final = plan
        self._size: Final = operator.index(shape.rows)
        self._layout: Final = Layout(plan)
        self._keys: Final = KeyedState(plan.key_names, {})
        self._blocks = Blocks(self._size, plan.partials)
        self._arena: Final = Arena(self._size)
        self.row_keys = {IN: plan.keys}

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has the key and the time of its record, and what was aggregated."""
        columns = given[IN]
        plain = running(columns, self._plan.keys, ())
        if columns is None or plain is None:
            return None
        return {**plain, **self._plan.meanings(columns)}

    def process(self, port: str, batch: Batch) -> Outputs:
        """Compute the window of every record, and keep the records."""
        numbers = self._layout.numbers(batch)
        keys = self._keys.locate(self._plan.key_columns(batch))
        blocks, known = self._blocks, len(self._keys)
        blocks.reach(known, numbers)
        order = np.argsort(keys, kind="stable")
        turn = Turn(keys[order], blocks.counts.data[keys[order]], self._size)
        ordered = {name: column[order] for name, column in numbers.items()}
        found = blocks.add(turn, ordered, partial(self._rows_before, known))
        found[COUNT] = np.minimum(turn.ordinals, self._size)
        found |= {p: ordered[p[1]] for p in self._plan.partials if p[0] == "last"}
        ordinals = _as_they_came(turn.ordinals, order)
        kept = {name: batch.columns[name] for name in self._plan.keys}
        kept |= {_kept(name): column for name, column in numbers.items()}
        self._arena.add(kept, keys, ordinals, blocks.counts.view())
        partials: dict[Partial, Array] = {p: _as_they_came(c, order) for p, c in found.items()}
        results = self._plan.put_together(partials)
        return ((OUT, Batch({**carried(batch, self._plan.keys), **results}, batch.length)),)

    def _rows_before(self, known: int, keys: Int64s) -> Earlier:
        """The rows of keys that have not filled a block yet: they are all there."""
        positions, rows = self._arena.rows_of(keys, known)
        if not rows.length:
            none = np.zeros(0, np.int64)
            return Earlier(none, none, dict.fromkeys(self._plan.columns, none))
        numbers = {name: rows[_kept(name)] for name in self._plan.columns}
        return Earlier(keys[positions], rows[ORDINAL] - 1, numbers)

    def living(self, port: str) -> Hashes:
        """The hashes of the keys of the rows in the windows."""
        rows, _ = self._arena.living(self._blocks.counts.view())
        return key_hashes(rows, self._plan.keys)

    def forget_stale(self, port: str, missed: MissedRows) -> int:
        """Forget the rows that missed ones would have driven out."""
        counts = self._blocks.counts.view()
        found = self._arena.without_stale(
            counts, missed, lambda rows: key_hashes(rows, self._plan.keys)
        )
        if found is None:
            return 0
        rows, keys = found
        lived = self._arena.begin_anew()
        self._blocks = Blocks(self._size, self._plan.partials)
        if rows.length:
            self._take_back(rows, keys)
        return lived - rows.length

    def by_group(self, rows: int | None) -> None:
        """Have the rows captured in groups, or as a part."""
        self._arena.by_group(rows)

    def capture(self, *, full: bool) -> Capture:
        """Capture the last rows of every key, or the rows that are new; or groups of them."""
        counts = self._blocks.counts.view()
        if self._arena.grouped:
            return Capture(full, {}, groups={ROWS: self._arena.capture_groups(counts)})
        rows, grown = self._arena.capture(counts, full=full)
        return Capture(full, {ROWS: rows}, grown)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows, and make of them what was not captured."""
        given, stored = rows_in(captures, ROWS)
        alive = np.zeros(0, np.int64)
        if stored:
            rows = concat(stored)
            keys, counts = self._locate(rows)
            alive = np.flatnonzero(rows[ORDINAL] > counts[keys] - self._size)
            rows, keys = rows.take(alive), keys[alive]
            self._take_back(closed_up(rows, keys) if given.lost else rows, keys)
        self._arena.adopt(given, alive)

    def _take_back(self, rows: Batch, keys: Int64s) -> None:
        numbers = self._layout.numbers(rows.rename({_kept(n): n for n in self._plan.columns}))
        self._blocks.reach(len(self._keys), numbers)
        self._repeat(keys, rows[ORDINAL], numbers)
        self._arena.restore(rows, keys, len(self._keys))

    def _locate(self, rows: Batch) -> tuple[Int64s, Int64s]:
        """The key of each row, by number, and how many rows each key had."""
        keys = self._keys.locate(self._plan.key_columns(rows))
        counts = np.zeros(len(self._keys), np.int64)
        np.maximum.at(counts, keys, rows[ORDINAL])
        return keys, counts

    def _repeat(self, keys: Int64s, ordinals: Int64s, numbers: Mapping[str, Array]) -> None:
        """Add the rows that live again.

        Blocks whose first rows are dead begin with others in their place: nothing looks at these again.
        """
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        dead = (ordinals[order][starts] - 1) % self._size
        before = ordinals[order][starts] - 1 - dead
        gaps = np.repeat(starts, dead)
        all_keys = np.insert(ordered, gaps, ordered[gaps])
        self._blocks.counts.data[ordered[starts]] = before
        turn = Turn(all_keys, self._blocks.counts.data[all_keys], self._size)
        filled = {n: np.insert(c[order], gaps, neutral("sum", c.dtype)) for n, c in numbers.items()}
        nothing = np.zeros(0, np.int64)
        none = Earlier(nothing, nothing, dict.fromkeys(numbers, nothing))
        self._blocks.add(turn, filled, lambda keys: none, results=False)


def _kept(name: str) -> str:
    """The column of an arena with the numbers of a column of the records."""
    return f"(of {name})"


def _as_they_came(column: Array, order: Int64s) -> Array:
    """A column that was ordered by key, in the order of arrival again."""
    found: Array = np.empty_like(column)
    found[order] = column
    return found
