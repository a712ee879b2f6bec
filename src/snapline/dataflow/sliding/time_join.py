"""The join of sliding windows by time: a pair for every window that has both of its records.

A record meets those of the other side as soon as it comes, so a pair is put out with the later of the two,
once for each of their common windows that is open then; which window is in its column `window`. The result
does not depend on the order of arrival, but for what is late. Each side keeps its rows in one arena, with
the pane of each; a row is dead when the last window has closed that its pane belongs to, and dead rows are
dropped now and then, all at once. So what a record costs depends on the rows that are alive under its key
and on the pairs that it makes, and not on how many panes a window has.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.dataflow.operators.join import LEFT, RIGHT, SIDES, pair_up
from snapline.dataflow.operators.known import Known, paired, windowed
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.dataflow.operators.window import CLOCK, NO_WATERMARK, WINDOW
from snapline.dataflow.sliding.matching import Match, mask_of, portions
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import ALL
from snapline.dataflow.state.columns import Fixed, Int64s, Rows
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.multi_map import Chains
from snapline.errors import GraphError
from snapline.ids import Millis

PANE: Final = "(pane)"
_DEAD_MIN: Final = 4_096  # rows, or keys without a row, that may be dead however few live


@dataclass(frozen=True)
class TimeJoinPlan:
    """What is joined: of each side its key columns and the shape of its windows."""

    keys: Mapping[str, tuple[str, ...]]
    shapes: Mapping[str, Sliding]

    def __post_init__(self) -> None:
        left, right = ((s.size_ms, s.every_ms, s.lateness_ms) for s in self.shapes.values())
        if left != right:
            raise GraphError(
                "windows by time are joined if both sides have the same size, every and lateness"
            )


class _TimeSide:
    """The rows of one side, chained per key, each with its pane."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.panes = Fixed(np.int64)
        self._owners = Fixed(np.int64)
        self._chains = Chains()
        self._counts = Fixed(np.int64)  # rows of each key, dead ones too
        self._living: dict[Millis, int] = {}  # rows of each pane that is alive
        self._starts: list[Millis] = []  # a heap of these panes
        self.living = 0  #: how many rows are alive

    def add(self, batch: Batch, panes: Int64s, keys: Int64s, known: int) -> None:
        """Keep rows, whose keys are given by number."""
        self.rows.append(batch.columns, batch.length)
        self.panes.append(panes)
        self._owners.append(keys)
        self._chains.add(keys, known)
        self._counts.reach(known)
        np.add.at(self._counts.data, keys, 1)
        distinct, counts = np.unique(panes, return_counts=True)
        for pane, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            if pane not in self._living:
                heapq.heappush(self._starts, pane)
            self._living[pane] = self._living.get(pane, 0) + count
        self.living += batch.length

    def counts(self, keys: Int64s, known: int) -> Int64s:
        """How many rows each of these keys has, dead ones too."""
        self._counts.reach(known)
        return self._counts.take(keys)

    def walk(self, keys: Int64s, known: int) -> tuple[Int64s, Int64s]:
        """All rows of these keys, dead ones too: which of the keys, and the row."""
        return self._chains.walk(keys, known)

    def close(self, horizon: Millis) -> set[Millis]:
        """Let panes die that begin here or earlier, and return which did."""
        dead = set()
        while self._starts and self._starts[0] <= horizon:
            pane = heapq.heappop(self._starts)
            self.living -= self._living.pop(pane)
            dead.add(pane)
        return dead

    def without_dead(
        self, horizon: Millis, locate: Callable[[Batch], Int64s] | None = None
    ) -> "_TimeSide":
        """A side with the rows that live; this one is left to whoever still writes its columns.

        `locate` numbers the keys of rows, if they are numbered anew.
        """
        alive = np.flatnonzero(self.panes.view() > horizon)
        living = _TimeSide()
        if len(alive):
            rows = self.rows.take(alive)
            keys = self._owners.take(alive) if locate is None else locate(rows)
            living.add(rows, self.panes.take(alive), keys, int(keys.max()) + 1)
        living.rows.marked = int(np.searchsorted(alive, self.rows.marked))
        return living

    def capture(self, horizon: Millis, *, full: bool) -> Batch:
        """The rows that live, all or those that are new, with their panes."""
        start = 0 if full else self.rows.marked
        alive = start + np.flatnonzero(self.panes.view(start) > horizon)
        self.rows.mark()
        if not len(alive):
            return Batch({})
        return self.rows.take(alive).with_columns(**{PANE: self.panes.take(alive)})


class SlidingTimeJoin(Operator):
    """Joins the ports `left` and `right` within each window; late records go to `late-<port>`."""

    uses_time = True

    def __init__(self, plan: TimeJoinPlan, match: Match | None = None) -> None:
        self._keys: Final = plan.keys
        self._shapes: Final = plan.shapes
        self._pairs: Final = tuple(zip(plan.keys[LEFT], plan.keys[RIGHT], strict=True))
        self._shared: Final = {a for a, b in self._pairs if a == b}
        self.function: Final = match
        self._numbers = KeyedState(plan.keys[LEFT] or (ALL,), {})
        self._sides: Final = {side: _TimeSide() for side in SIDES}
        self._watermark: Millis = NO_WATERMARK
        self._closed = 0

    @property
    def _horizon(self) -> Millis:
        """Windows that begin here or earlier have closed."""
        shape = self._shapes[LEFT]
        return self._watermark - shape.size_ms - shape.lateness_ms

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A pair has the columns of both sides, and its window; late records stay as they are."""
        if output != OUT:
            return given[output.removeprefix("late-")]
        pairs = paired(given[LEFT], given[RIGHT], self._pairs)
        cut = {side: windowed(given[side], (), self._shapes[side].time, {}) for side in SIDES}
        left = cut[LEFT]
        return {**pairs, WINDOW: left[WINDOW]} if pairs is not None and left is not None else None

    def process(self, port: str, batch: Batch) -> Outputs:
        """Pair the records with those of the other port, and keep them; pass the late ones on."""
        panes = self._shapes[port].starts(batch).each
        late = panes <= self._horizon
        outputs: list[tuple[str, Batch]] = []
        if late.any():
            outputs.append((f"late-{port}", batch.take(late)))
            batch, panes = batch.take(~late), panes[~late]
        if batch.length:
            keys = self._locate(port, batch)
            outputs += self._match(port, batch, panes, keys)
            self._sides[port].add(batch, panes, keys, len(self._numbers))
        return outputs

    def _locate(self, side: str, batch: Batch) -> Int64s:
        if not self._keys[side]:
            return self._numbers.locate([np.zeros(batch.length, np.int64)])
        return self._numbers.locate([batch.columns[name] for name in self._keys[side]])

    def _match(
        self, port: str, batch: Batch, panes: Int64s, keys: Int64s
    ) -> list[tuple[str, Batch]]:
        """The pairs of these records, so many records at a time that their pairs fit."""
        other, known = self._sides[RIGHT if port == LEFT else LEFT], len(self._numbers)
        outputs = []
        for some in portions(other.counts(keys, known)):
            positions, rows = other.walk(keys[some], known)
            positions = positions + some.start
            begin, count = self._common(panes[positions], other.panes.take(rows))
            both = np.flatnonzero(count > 0)
            if len(both):
                mine, theirs = batch.take(positions[both]), other.rows.take(rows[both])
                pairs = self._paired(port, mine, theirs, begin[both], count[both])
                if pairs.length:
                    outputs.append((OUT, pairs))
        return outputs

    def _common(self, mine: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """The first window that is open and has both panes, and how many there are from it on."""
        shape = self._shapes[LEFT]
        opened = self._horizon // shape.every_ms * shape.every_ms + shape.every_ms
        begin = np.maximum(np.maximum(mine, theirs) - shape.size_ms + shape.every_ms, opened)
        return begin, (np.minimum(mine, theirs) - begin) // shape.every_ms + 1

    def _paired(self, port: str, mine: Batch, theirs: Batch, begin: Int64s, count: Int64s) -> Batch:
        """The rows of pairs: one for each of their common windows, of which the first begins at `begin`."""
        left, right = (mine, theirs) if port == LEFT else (theirs, mine)
        if self.function is not None:
            mask = mask_of(self.function, left, right)
            left, right, begin, count = left.take(mask), right.take(mask), begin[mask], count[mask]
        each = np.repeat(np.arange(left.length), count)
        nth = np.arange(len(each)) - np.repeat(np.cumsum(count) - count, count)
        kept = (name for name in right.columns if name not in self._shared)
        pairs = pair_up(left, right.select(*kept)).take(each)
        return pairs.with_columns(**{WINDOW: begin[each] + nth * self._shapes[LEFT].every_ms})

    def on_watermark(self, time: Millis) -> Outputs:
        """Forget the records that no open window can have."""
        self._closed += self._close(time)
        return ()

    def _close(self, time: Millis) -> int:
        self._watermark = max(self._watermark, time)
        horizon = self._horizon
        dead = set[Millis]().union(*(side.close(horizon) for side in self._sides.values()))
        if dead:
            self._drop_dead(horizon)
        return len(dead)

    def _drop_dead(self, horizon: Millis) -> None:
        """Drop dead rows, and the keys of dead rows, if they are more than those that live."""
        sides = self._sides
        if len(self._numbers) > 2 * sum(side.living for side in sides.values()) + _DEAD_MIN:
            self._numbers = KeyedState(self._keys[LEFT] or (ALL,), {})
            for name, side in sides.items():
                sides[name] = side.without_dead(horizon, partial(self._locate, name))
            return
        for name, side in sides.items():
            if side.rows.length > 2 * side.living + _DEAD_MIN:
                sides[name] = side.without_dead(horizon)

    @property
    def windows_closed(self) -> int:
        """How many windows that had begun with records were closed."""
        return self._closed

    def expire(self, time: Millis) -> int:
        """Forget the windows that have ended by then."""
        return self._close(time)

    def capture(self, *, full: bool) -> Capture:
        """Capture the rows of both sides that live, all or those that are new; and the watermark."""
        parts = {s: self._sides[s].capture(self._horizon, full=full) for s in SIDES}
        clock = Batch.of(watermark=np.array([self._watermark], np.int64))
        grown = 0 if full else sum(rows.nbytes for rows in parts.values())
        return Capture(full, {**parts, CLOCK: clock}, grown)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows that live."""
        if not captures:
            return
        self._watermark = int(captures[-1].parts[CLOCK]["watermark"][0])
        for side in SIDES:
            stored = [c.parts[side] for c in captures if c.parts[side].length]
            rows = concat(stored) if stored else Batch({})
            rows = rows.take(rows[PANE] > self._horizon) if stored else rows
            if rows.length:
                own = rows.select(*(name for name in rows.columns if name != PANE))
                keys = self._locate(side, own)
                self._sides[side].add(own, rows[PANE], keys, len(self._numbers))
            self._sides[side].rows.mark()
