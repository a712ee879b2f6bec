"""Aggregates per key and window, emitted once, when the window closes.

They are named as in `aggregate(bids="count", volume=("sum", "price"), ids=("collect", "id"))`. The order
of records never matters (but for the last bits of sums of floats). Collected values are kept with their
key as append-only rows and grouped when the window closes; of a column of lists the lists are put one
behind the other. Every result also has `time`, the latest of the records behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from snapline.batch import Array, Batch, Column, Varlen, Words
from snapline.dataflow.operators.fold import STATE
from snapline.dataflow.operators.known import Known, windowed
from snapline.dataflow.operators.operator import IN, OUT, TENTATIVE, Capture, Operator, Outputs
from snapline.dataflow.operators.window import LATE, WINDOW, Starts, Tumbling, Windows, take_rows
from snapline.dataflow.state.columns import Int64s, Rows
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.sums import add_up, check_unsigned
from snapline.errors import GraphError, UsageError
from snapline.ids import Millis
from snapline.kernels import grouping
from snapline.storage.column_types import Meaning, summed

Combine: TypeAlias = Literal["count", "sum", "min", "max", "collect"]
Aggregate: TypeAlias = Literal["count"] | tuple[Combine, str]
"""How a user writes one aggregate: `count`, or (`sum` | `min` | `max` | `collect`, a column)."""

COLLECTED: Final = "collected"
TIME: Final = "time"

_UFUNCS: Final[Mapping[str, np.ufunc]] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """What is computed per key, by name of the result."""

    keys: tuple[str, ...]
    reduced: Mapping[str, tuple[Combine, str]]  # kept as one number per key
    collected: Mapping[str, str]  # name -> the column that is collected; kept as rows

    @staticmethod
    def of(
        keys: Sequence[str], shape: Tumbling, aggregates: Mapping[str, Aggregate]
    ) -> "AggregatePlan":
        """Make a plan of what the user wrote; raises GraphError."""
        reduced: dict[str, tuple[Combine, str]] = {TIME: ("max", shape.time)}
        collected: dict[str, str] = {}
        for name, aggregate in aggregates.items():
            combine, column = (aggregate, "") if isinstance(aggregate, str) else aggregate
            if name in (TIME, WINDOW, *keys):
                raise GraphError(
                    f"an aggregate cannot be called '{name}': the results have that column"
                )
            if combine == "collect":
                collected[name] = column
            elif combine == "count" or combine in _UFUNCS:
                reduced[name] = (combine, column)
            else:
                raise GraphError(
                    f"'{combine}' is no aggregate: count, sum, min, max, collect are; sliding windows "
                    "have mean, first and last, too"
                )
        return AggregatePlan(tuple(keys), reduced, collected)

    def meanings(self, given: Mapping[str, Meaning | None]) -> dict[str, Meaning | None]:
        """What the results mean: minimum and maximum what their column does, and a sum of decimals."""
        found: dict[str, Meaning | None] = dict.fromkeys(self.collected)
        for name, (how, column) in self.reduced.items():
            meaning = given.get(column) if how != "count" else None
            found[name] = summed(meaning) if how == "sum" and meaning is not None else meaning
        return found


class _Window:
    """The aggregates of one window."""

    def __init__(self, plan: AggregatePlan) -> None:
        self._plan: Final = plan
        self._state: KeyedState | None = None  # made with the first records, which fix the dtypes
        self._collected: Final = Rows()

    def add(self, batch: Batch) -> None:
        """Add the records of a batch to the aggregates."""
        plan = self._plan
        dtypes = {n: batch[column].dtype for n, (_, column) in plan.reduced.items() if column}
        state = self._state_for(dtypes)
        rows = state.locate([batch[name] for name in plan.keys])
        state.touch(rows)
        for name, (how, column) in plan.reduced.items():
            live = state[name]
            if how == "count":
                np.add.at(live, rows, 1)
            elif how == "sum":
                add_up(live, rows, _as(batch[column], live.dtype, column), column)
            else:
                _UFUNCS[how].at(live, rows, _as(batch[column], live.dtype, column))
        if plan.collected:
            values = {name: batch.columns[column] for name, column in plan.collected.items()}
            self._collected.append({**batch.select(*plan.keys).columns, **values}, batch.length)

    def _state_for(self, dtypes: Mapping[str, np.dtype[Any]]) -> KeyedState:
        if self._state is None:
            fills = {n: _first(how, dtypes.get(n)) for n, (how, _) in self._plan.reduced.items()}
            self._state = KeyedState(self._plan.keys, fills)
        return self._state

    def result(self, start: Millis) -> Batch:
        """What the window puts out when it closes: one row per key."""
        state = self._state
        assert state is not None, "a window opens with a record"
        values: dict[str, Column] = {name: state[name] for name in self._plan.reduced}
        time = values.pop(TIME)
        window = np.full(len(state), start, np.int64)
        columns = {**state.keys(), WINDOW: window, **values, **self._lists(state), TIME: time}
        return Batch(columns, len(state))

    def _lists(self, state: KeyedState) -> dict[str, Column]:
        if not self._plan.collected:
            return {}
        kept = self._collected.view()
        rows = state.locate([kept[name] for name in self._plan.keys])
        bounds, order = np.zeros(len(state) + 1, np.int64), np.empty(len(rows), np.int64)
        grouping.group(rows, bounds, order)
        columns = kept.columns
        return {n: gathered(columns[n], order, bounds) for n in self._plan.collected}

    def capture_state(self, *, full: bool) -> Batch:
        """The numbers of all keys, or of those that changed."""
        return self._state.capture(full=full) if self._state is not None else Batch({})

    def capture_collected(self, *, full: bool) -> Batch:
        """All collected rows, or those that are new."""
        return self._collected.capture(full=full)

    def restore_state(self, batches: Sequence[Batch]) -> None:
        """Restore the numbers of keys."""
        dtypes = {name: batches[0][name].dtype for name in self._plan.reduced}
        self._state_for(dtypes).restore(batches)

    def restore_collected(self, batches: Sequence[Batch]) -> None:
        """Restore collected rows."""
        for batch in batches:
            self._collected.append(batch.columns, batch.length)
        self._collected.mark()


def _first(how: Combine, dtype: np.dtype[Any] | None) -> Array:
    """The value with which a new key begins: it combines with any other value to that value.

    Its dtype, int64 or float64, is that of the result.
    """
    if how == "count" or dtype is None:
        return np.zeros((), np.int64)
    if dtype.kind == "f":
        return np.array({"sum": 0, "min": np.inf, "max": -np.inf}[how], np.float64)
    limits = np.iinfo(np.int64)
    return np.array({"sum": 0, "min": limits.max, "max": limits.min}[how], np.int64)


def _as(column: Column, dtype: np.dtype[Any], name: str) -> Array:
    """Numbers as the results have them. Raises UsageError."""
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biuf":
        raise UsageError(f"windows compute of numbers, and the column '{name}' has others")
    check_unsigned(column, name)
    return column.astype(dtype, copy=False)


def gathered(column: Column, order: Int64s, bounds: Int64s) -> Varlen:
    """Make one list per group of rows: `order` has the rows, group by group, `bounds` where each begins."""
    if isinstance(column, np.ndarray):
        return Varlen("list", bounds, column[order])
    if isinstance(column, Words) or column.kind != "list":
        raise UsageError("only numbers and lists of them can be collected, not text")
    rows = column.take(order)
    return Varlen("list", rows.offsets[bounds], rows.values)


class WindowAggregate(Operator):
    """Emits the aggregates of a window when it closes; late records go to `late`."""

    uses_time = True

    def __init__(self, plan: AggregatePlan, shape: Tumbling) -> None:
        columns = (*(column for _, column in plan.reduced.values()), *plan.collected.values())
        self.reads = (*plan.keys, *(column for column in columns if column))
        self._plan: Final = plan
        self._windows: Final = Windows(shape, partial(_Window, plan))

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has its key, its window and what was aggregated; late records stay as they are."""
        columns = given[IN]
        results = self._plan.meanings(columns) if columns is not None else {}
        closed = windowed(columns, self._plan.keys, self._windows.shape.time, results)
        return columns if output == LATE else closed

    def process(self, port: str, batch: Batch) -> Outputs:
        """Aggregate the records that are in time; pass the late ones on."""
        starts = self._windows.shape.starts(batch)
        late = self._windows.late(starts)
        if late is None:
            self._add(batch, starts)
            return ()
        if not late.all():
            self._add(batch.take(~late), starts.take(~late))
        return ((LATE, batch.take(late)),)

    def _add(self, batch: Batch, starts: Starts) -> None:
        for start, rows in starts.runs():
            self._windows.at(start).add(take_rows(batch, rows))

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
        """Capture the open windows, or what changed in them."""
        parts = {
            STATE: methodcaller("capture_state", full=full),
            COLLECTED: methodcaller("capture_collected", full=full),
        }
        return self._windows.capture(parts, full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the open windows."""
        parts = {STATE: _Window.restore_state, COLLECTED: _Window.restore_collected}
        self._windows.restore(captures, parts)
