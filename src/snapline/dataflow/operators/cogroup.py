"""The cogroup: brings two streams together by key and window, one output per key when the window closes.

The rows of both sides are kept, append-only, while their window is open, and grouped by key when it closes.
A key that only one side has comes out, too, with nothing of the other: a full outer join, but of groups, so
that no row is repeated for each row of the other side. What is made of a side's rows is named as in
`left={"gets": "count", "get_ids": ("collect", "id")}`. Every output also has `window`, and `time`: the
latest of the rows behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np

from snapline.batch import Batch, Column, Varlen, Words, concat
from snapline.dataflow.operators.aggregate import TIME, Aggregate, gathered
from snapline.dataflow.operators.join import LABEL, LEFT, RIGHT, SIDES
from snapline.dataflow.operators.known import Known, check_keys, windowed
from snapline.dataflow.operators.operator import OUT, TENTATIVE, Capture, Operator, Outputs
from snapline.dataflow.operators.window import WINDOW, Starts, Tumbling, Windows, take_rows
from snapline.dataflow.state.columns import Int64s, Rows
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.errors import GraphError
from snapline.ids import Millis
from snapline.kernels import grouping


@dataclass(frozen=True, slots=True)
class Side:
    """What is computed of one side: its key columns, and its counts and lists by name of the result."""

    keys: tuple[str, ...]
    counts: tuple[str, ...]
    lists: Mapping[str, str]  # name of the result -> the column that is collected

    @staticmethod
    def of(keys: Sequence[str], made: Mapping[str, Aggregate]) -> "Side":
        """Make a side of what the user wrote; raises GraphError."""
        counts, lists = [], {}
        for name, aggregate in made.items():
            match aggregate:
                case "count":
                    counts.append(name)
                case ("collect", str(column)):
                    lists[name] = column
                case _:
                    raise GraphError(
                        f"'{name}' cannot be {aggregate!r}: of a side that may be empty there are "
                        '"count" and ("collect", column)'
                    )
        return Side(tuple(keys), tuple(counts), lists)

    def columns(self, time: str) -> tuple[str, ...]:
        """The columns of a row that are kept."""
        return tuple(dict.fromkeys((*self.keys, time, *self.lists.values())))


@dataclass(frozen=True, slots=True)
class Pairing:
    """Both sides, and the shape of the windows."""

    sides: Mapping[str, Side]
    shape: Tumbling

    @staticmethod
    def of(left: Side, right: Side, shape: Tumbling) -> "Pairing":
        """Make a pairing; raises GraphError unless every result has a name of its own."""
        names = [*left.keys, WINDOW, TIME]
        for side in (left, right):
            for name in (*side.counts, *side.lists):
                if name in names:
                    raise GraphError(f"two columns of the result are called '{name}'")
                names.append(name)
        return Pairing({LEFT: left, RIGHT: right}, shape)


class _Window:
    """The rows of both sides in one window."""

    def __init__(self, pairing: Pairing) -> None:
        self._pairing: Final = pairing
        self._rows: Final = {side: Rows() for side in SIDES}

    def add(self, side: str, batch: Batch) -> None:
        """Keep the rows of a batch."""
        self._rows[side].append(batch.columns, batch.length)

    def result(self, start: Millis) -> Batch:
        """One row per key, with what was made of each side."""
        state = KeyedState(self._pairing.sides[LEFT].keys, {})
        located = self._locate(state)
        times = np.full(len(state), np.iinfo(np.int64).min)
        made: dict[str, Column] = {}
        for name in SIDES:
            made |= self._make(name, located[name], times)
        window = np.full(len(state), start, np.int64)
        columns = {**state.keys(), WINDOW: window, **made, TIME: times}
        return Batch(columns, len(state))

    def _make(self, name: str, keys: Int64s, times: Int64s) -> dict[str, Column]:
        """The counts and lists of a side for every key; raises `times` to its latest rows."""
        side, rows = self._pairing.sides[name], self._rows[name].view()
        bounds: Int64s = np.zeros(len(times) + 1, np.int64)
        if not rows.length:
            nothing = Varlen("list", bounds, np.zeros(0, np.int64))
            counts = dict.fromkeys(side.counts, bounds[1:])
            return {**counts, **dict.fromkeys(side.lists, nothing)}
        order = np.empty(len(keys), np.int64)
        grouping.group(keys, bounds, order)
        np.maximum.at(times, keys, rows[self._pairing.shape.time].astype(np.int64, copy=False))
        columns = rows.columns
        lists = {r: gathered(columns[c], order, bounds) for r, c in side.lists.items()}
        return {**dict.fromkeys(side.counts, np.diff(bounds)), **lists}

    def _locate(self, state: KeyedState) -> dict[str, Int64s]:
        """The number of every row's key in `state`, by side."""
        keys = [
            [self._rows[name].view()[key] for key in side.keys]
            for name, side in self._pairing.sides.items()
            if self._rows[name].length
        ]
        numbers = state.locate([_joined(columns) for columns in zip(*keys, strict=True)])
        left = self._rows[LEFT].length
        return {LEFT: numbers[:left], RIGHT: numbers[left:]}

    def capture(self, side: str, *, full: bool) -> Batch:
        """All rows of a side, or those since the capture before."""
        return self._rows[side].capture(full=full)

    def restore(self, side: str, batches: Sequence[Batch]) -> None:
        """Restore rows that were captured."""
        for batch in batches:
            self.add(side, batch)
        self._rows[side].mark()


class WindowCogroup(Operator):
    """Brings the ports `left` and `right` together in each window; late rows go to `late-<port>`."""

    uses_time = True

    def __init__(self, pairing: Pairing) -> None:
        time = pairing.shape.time
        self._kept: Final = {name: side.columns(time) for name, side in pairing.sides.items()}
        self._pairing: Final = pairing
        self._windows: Final = Windows(pairing.shape, partial(_Window, pairing), LABEL)

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has its key, its window, and counts and lists; late rows stay as they are."""
        left, right = (self._pairing.sides[side] for side in SIDES)
        check_keys(given[LEFT], given[RIGHT], tuple(zip(left.keys, right.keys, strict=True)))
        names = (*left.counts, *left.lists, *right.counts, *right.lists)
        time, results = self._pairing.shape.time, dict.fromkeys(names)
        closed = [windowed(given[side], left.keys, time, results) for side in SIDES]
        return closed[0] if output in (OUT, TENTATIVE) else given[output.removeprefix("late-")]

    def process(self, port: str, batch: Batch) -> Outputs:
        """Keep the rows that are in time; pass the late ones on."""
        starts = self._windows.shape.starts(batch)
        late = self._windows.late(starts)
        if late is None:
            self._add(port, batch, starts)
            return ()
        if not late.all():
            self._add(port, batch.take(~late), starts.take(~late))
        return ((f"late-{port}", batch.take(late)),)

    def _add(self, port: str, batch: Batch, starts: Starts) -> None:
        kept = batch.select(*self._kept[port])
        for start, rows in starts.runs():
            self._windows.at(start).add(port, take_rows(kept, rows))

    def on_watermark(self, time: Millis) -> Outputs:
        """Emit the windows that have closed, the oldest first."""
        return [(OUT, window.result(start)) for start, window in self._windows.advance(time)]

    @property
    def windows_closed(self) -> int:
        """How many windows were closed."""
        return self._windows.closed

    def expire(self, time: Millis) -> int:
        """Forget the windows that have ended by then."""
        return len(self._windows.expire(time))

    def mark_stale(self, time: Millis) -> Outputs:
        """Emit the windows that have ended by then as tentative."""
        ended = self._windows.expire(time)
        return [(TENTATIVE, window.result(start)) for start, window in ended]

    def capture(self, *, full: bool) -> Capture:
        """Capture the rows of the open windows, all or those that are new."""
        parts = {side: methodcaller("capture", side, full=full) for side in SIDES}
        return self._windows.capture(parts, full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows."""
        self._windows.restore(captures, {side: partial(_restore, side) for side in SIDES})


def _restore(side: str, window: _Window, batches: Sequence[Batch]) -> None:
    window.restore(side, batches)


def _joined(columns: Sequence[Column]) -> Column:
    """One key column of both sides, one after the other; words become `str` if only one side has them."""
    if len({isinstance(column, Words) for column in columns}) > 1:
        columns = [_spelled(column) if isinstance(column, Words) else column for column in columns]
    return concat([Batch({"key": column}) for column in columns]).columns["key"]


def _spelled(words: Words) -> Varlen:
    return Varlen.of("str", words.values).take(words.codes)
