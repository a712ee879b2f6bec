"""The join of sliding windows by rows: every record meets the last rows of the other side.

A record is paired with the rows that are in the other side's window as it comes, and then enters the window
of its own side, from which the oldest row goes; if that has 0 rows, it only asks. With a key the windows
are those of its key. Without one, all rows of the other window are looked at, and a function says which of
them match: a *scan*, whose cost grows with the window. With a key the function, if there is one, is asked
about the pairs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, concat
from snapline.dataflow.operators.join import LEFT, RIGHT, SIDES, pair_up
from snapline.dataflow.operators.known import Known, paired
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.dataflow.sliding.arena import ORDINAL, Arena, closed_up, rows_in
from snapline.dataflow.sliding.matching import Match, crossed, mask_of, places, portions
from snapline.dataflow.sliding.plan import ALL
from snapline.dataflow.state.columns import Fixed, Int64s
from snapline.dataflow.state.hashing import Hashes
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.missed_rows import MissedRows, key_hashes
from snapline.kernels import grouping


@dataclass(frozen=True)
class RowJoinPlan:
    """What is joined: of each side its key columns and how many rows its windows have."""

    keys: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]


class _Side:
    """The rows of one side, and how many each key had so far."""

    def __init__(self, size: int) -> None:
        self.arena: Final = Arena(size)
        self.counts: Final = Fixed(np.int64)

    def add(self, batch: Batch, keys: Int64s, known: int) -> None:
        """Let rows enter the windows of their keys."""
        self.counts.reach(known)
        self.counts.length = known
        ranks = np.empty(len(keys), np.int64)
        grouping.occurrences(keys, ranks)
        ordinals = self.counts.data[keys] + ranks + 1
        self.counts.data[keys] = ordinals  # the last of each key is kept, which is the largest
        self.arena.add(batch.columns, keys, ordinals, self.counts.view())

    def forget_stale(self, missed: MissedRows, hashed: Callable[[Batch], Hashes]) -> int:
        """Forget the rows that missed ones would have driven out; return how many."""
        counts = self.counts.view()
        found = self.arena.without_stale(counts, missed, hashed)
        if found is None:
            return 0
        rows, keys = found
        lived = self.arena.begin_anew()
        counts[:] = np.bincount(keys, minlength=len(counts))
        self.arena.restore(rows, keys, len(counts))
        return lived - rows.length


class SlidingRowJoin(Operator):
    """Joins the ports `left` and `right`, of each of which the last rows are kept."""

    def __init__(self, plan: RowJoinPlan, match: Match | None = None) -> None:
        self._keys: Final = plan.keys
        self._sizes: Final = plan.sizes
        self._pairs: Final = tuple(zip(plan.keys[LEFT], plan.keys[RIGHT], strict=True))
        self._shared: Final = {a for a, b in self._pairs if a == b}
        self.function: Final = match
        self._numbers: Final = KeyedState(plan.keys[LEFT] or (ALL,), {})
        self._sides: Final = {side: _Side(plan.sizes[side]) for side in SIDES}
        self.row_keys = {side: plan.keys[side] for side in SIDES if plan.sizes[side]}

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A pair has the columns of both sides."""
        return paired(given[LEFT], given[RIGHT], self._pairs)

    def process(self, port: str, batch: Batch) -> Outputs:
        """Pair the records with the window of the other port, and keep them."""
        keys = self._locate(port, batch)
        outputs = self._match(port, batch, keys)
        if self._sizes[port]:
            self._sides[port].add(batch, keys, len(self._numbers))
        return outputs

    def _locate(self, side: str, batch: Batch) -> Int64s:
        if not self._keys[side]:
            return self._numbers.locate([np.zeros(batch.length, np.int64)])
        return self._numbers.locate([batch.columns[name] for name in self._keys[side]])

    def _match(self, port: str, batch: Batch, keys: Int64s) -> list[tuple[str, Batch]]:
        """The pairs of these records with the rows in the window of the other port."""
        other = RIGHT if port == LEFT else LEFT
        if not self._sizes[other]:
            return []
        if not self._keys[port]:
            found = self._scanned(port, batch, self._sides[other])
        else:
            found = self._looked_up(port, batch, keys, other)
        return [(OUT, pairs) for pairs in found if pairs.length]

    def _looked_up(self, port: str, batch: Batch, keys: Int64s, other: str) -> Iterator[Batch]:
        """The pairs of these records with the rows of their keys."""
        side, known = self._sides[other], len(self._numbers)
        side.counts.reach(known)
        for some in portions(np.minimum(side.counts.data[keys], self._sizes[other])):
            positions, rows = side.arena.rows_of(keys[some], known, (ORDINAL,))
            if rows.length:
                yield self._chosen(port, batch.take(positions + some.start), rows)

    def _scanned(self, port: str, batch: Batch, others: _Side) -> Iterator[Batch]:
        """The pairs that match, among all; so many records at a time that their pairs fit."""
        rows, _ = others.arena.living(others.counts.view())
        if not rows.length:
            return
        window = rows.select(*(name for name in rows.columns if name != ORDINAL))
        for part in portions(np.full(batch.length, window.length)):
            some = batch.slice(part.start, part.stop)
            mine, theirs = places(self._mask(port, *crossed(some, window)), window)
            yield self._paired(port, some.take(mine), window.take(theirs))

    def _chosen(self, port: str, mine: Batch, others: Batch) -> Batch:
        if self.function is not None:
            mask = self._mask(port, mine, others)
            mine, others = mine.take(mask), others.take(mask)
        return self._paired(port, mine, others)

    def _mask(self, port: str, mine: Batch, others: Batch) -> Array:
        left, right = (mine, others) if port == LEFT else (others, mine)
        assert self.function is not None, "without a key a function says which rows match"
        return mask_of(self.function, left, right)

    def _paired(self, port: str, mine: Batch, others: Batch) -> Batch:
        left, right = (mine, others) if port == LEFT else (others, mine)
        kept = (name for name in right.columns if name not in self._shared)
        return pair_up(left, right.select(*kept))

    def living(self, port: str) -> Hashes:
        """The hashes of the keys of the rows in the windows of a port."""
        side = self._sides[port]
        rows, _ = side.arena.living(side.counts.view())
        return key_hashes(rows, self._keys[port])

    def forget_stale(self, port: str, missed: MissedRows) -> int:
        """Forget the rows of a port that missed ones would have driven out."""
        return self._sides[port].forget_stale(missed, lambda r: key_hashes(r, self._keys[port]))

    def by_group(self, rows: int | None) -> None:
        """Have the rows of both windows captured in groups, or as parts."""
        for side in self._sides.values():
            side.arena.by_group(rows)

    def capture(self, *, full: bool) -> Capture:
        """Capture the rows of both windows, all or those that are new; or groups of them."""
        sides = self._sides
        if sides[LEFT].arena.grouped:
            groups = {s: sides[s].arena.capture_groups(sides[s].counts.view()) for s in SIDES}
            return Capture(full, {}, groups=groups)
        taken = {s: sides[s].arena.capture(sides[s].counts.view(), full=full) for s in SIDES}
        parts = {side: rows for side, (rows, _) in taken.items()}
        return Capture(full, parts, sum(grown for _, grown in taken.values()))

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows."""
        for side in SIDES:
            given, stored = rows_in(captures, side)
            alive = np.zeros(0, np.int64)
            if stored:
                alive = self._restore(side, concat(stored), lost=bool(given.lost))
            self._sides[side].arena.adopt(given, alive)

    def _restore(self, name: str, rows: Batch, *, lost: bool) -> Int64s:
        """Restore the rows of a side, and return which of these live; some were not there if `lost`."""
        side, keys = self._sides[name], self._locate(name, rows)
        counts = side.counts
        counts.reach(len(self._numbers))
        counts.length = len(self._numbers)
        np.maximum.at(counts.data, keys, rows[ORDINAL])
        alive = np.flatnonzero(rows[ORDINAL] > counts.data[keys] - self._sizes[name])
        rows, keys = rows.take(alive), keys[alive]
        if lost:
            rows = closed_up(rows, keys)
            counts.data[keys] = rows[ORDINAL]  # the last of each key is kept
        side.arena.restore(rows, keys, len(self._numbers))
        return alive
