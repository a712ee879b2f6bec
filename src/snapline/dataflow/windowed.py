"""Streams that are cut into windows: each step says what is computed of a window, and makes a stream again.

They are made by the streams of `stream.py`, which they know only by what they ask of them (`Windowable`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from snapline.arguments import shown
from snapline.batch import Schema
from snapline.dataflow.logical import Factory
from snapline.dataflow.operators.aggregate import Aggregate, AggregatePlan, WindowAggregate
from snapline.dataflow.operators.join import LEFT, RIGHT
from snapline.dataflow.operators.operator import IN
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.operators.window_count import WindowCount
from snapline.dataflow.sliding.matching import Match
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import SlidingAggregate, SlidingPlan
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows
from snapline.dataflow.sliding.time_join import SlidingTimeJoin, TimeJoinPlan
from snapline.dataflow.sliding.time_windows import SlidingTimeWindows
from snapline.dataflow.tail import Loop, Tail
from snapline.dataflow.usage.given import check_aggregates, check_callable, check_kind
from snapline.dataflow.usage.hints import SLIDING_HINTS, WINDOWED_HINTS, Hinted
from snapline.durations import millis
from snapline.errors import GraphError
from snapline.ids import Millis

Made_co = TypeVar("Made_co", covariant=True)


class Windowable(Protocol[Made_co]):
    """A keyed stream, as windows see it."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        ...

    @property
    def schema(self) -> Schema | None:
        """The columns, if they are known."""
        ...

    @property
    def _tail(self) -> Tail:
        """Where it comes from, for a step that takes two streams."""
        ...

    def _then(
        self,
        kind: str,
        factory: Factory,
        name: str | None,
        *,
        port: str = IN,
        ports: Mapping[str, Tail | Loop] | None = None,
        detail: str = "",
    ) -> Made_co:
        """Add an operator, and return the stream of what it puts out."""
        ...


@dataclass(frozen=True, slots=True)
class WindowedStream(Hinted, Generic[Made_co]):
    """A keyed stream cut into windows."""

    _hints = WINDOWED_HINTS

    stream: Windowable[Made_co]
    shape: Tumbling

    def count(self, *, name: str | None = None) -> Made_co:
        """One output per key when the window closes: the key, `window`, `count` and `time`.

        `bids.key_by("bidder").tumbling("10s").count()` is short for `aggregate(count="count")`.
        """
        refuse_results(self.stream.keys, ("window", "count", "time"))
        return self._aggregate("window-count", name, {"count": "count"})

    def running_count(self, *, name: str | None = None) -> Made_co:
        """One output per record, at once: the key, `window`, the `count` so far in it, and `time`.

        Late records go to the output `late`.
        """
        keys = self.stream.keys
        refuse_results(keys, ("window", "count", "time"))
        factory = partial(WindowCount, keys, self.shape)
        return self.stream._then("running-count", factory, name, detail=repr(self.shape))

    def aggregate(
        self,
        *,
        name: str | None = None,
        **aggregates: Aggregate,
    ) -> Made_co:
        """One output per key when the window closes: `aggregate(n="count", top=("max", "price"))`.

        Aggregates: count, sum, min, max, collect (a list). Late records go to the output `late`.
        """
        refuse_results(self.stream.keys, ("window", "time"))
        return self._aggregate("aggregate", name, aggregates)

    def _aggregate(
        self, kind: str, name: str | None, aggregates: Mapping[str, Aggregate]
    ) -> Made_co:
        check_aggregates(self.stream.schema, aggregates)
        plan = AggregatePlan.of(self.stream.keys, self.shape, aggregates)
        factory = partial(WindowAggregate, plan, self.shape)
        return self.stream._then(kind, factory, name, detail=repr((self.shape, plan)))


@dataclass(frozen=True, slots=True)
class SlidingStream(Hinted, Generic[Made_co]):
    """A stream cut into windows that overlap: by time, or the last rows before each record."""

    _hints = SLIDING_HINTS

    stream: Windowable[Made_co]
    shape: Sliding | LastRows

    def count(self, *, name: str | None = None) -> Made_co:
        """As `aggregate(count="count")`: `bids.key_by("item").sliding("10s", every="1s").count()`."""
        return self._aggregate("sliding-count", name, {"count": "count"})

    def aggregate(
        self,
        *,
        name: str | None = None,
        **aggregates: SlidingAggregate,
    ) -> Made_co:
        """What is computed of each window: `aggregate(n="count", average=("mean", "price"))`.

        Aggregates: count, sum, mean, min, max, first, last. A result also has the key and `time`: that of
        its record, or of the latest record of its window. By time it has `window`, the start; first and
        last go by the time of records, and late records go to the output `late`. By rows, they go by the
        order of arrival.
        """
        return self._aggregate("sliding", name, aggregates)

    def join(
        self,
        other: "SlidingStream[Made_co]",
        *,
        match: Literal["key", "scan"] = "key",
        on: Match | None = None,
        name: str | None = None,
    ) -> Made_co:
        """Pair records of two streams that are in each other's windows.

        By rows, each record meets the last rows of the other stream, as they are when it comes:
        `bids.key_by("item").sliding(rows=100).join(asks.key_by("item").sliding(rows=50))`. By time, there
        is a pair for every `window` that has both, as soon as it has, and both streams are cut alike; what
        is late goes to the outputs `late-left` and `late-right`.

        A record meets those of its key; `on`, a function of left and right rows, may choose among the
        pairs. Without keys, `match="scan"` has every record meet the whole other window, and `on` says
        which rows match: `a.sliding(rows=100).join(b.sliding(rows=100), match="scan",
        on=lambda left, right: left["x"] > right["x"])`. With `rows=0` records of a side meet the other
        side and are not kept. The result has the columns of both, as in `join`.
        """
        check_kind("join", SlidingStream, "another stream that is cut with sliding(...)", other)
        mine, theirs, ports = self.shape, other.shape, {RIGHT: other.stream._tail}
        if type(mine) is not type(theirs):
            raise GraphError("windows by rows and windows by time cannot be joined: cut both alike")
        keys = {LEFT: self.stream.keys, RIGHT: other.stream.keys}
        _check_match(keys, match, on)
        plan: RowJoinPlan | TimeJoinPlan
        if isinstance(mine, LastRows) and isinstance(theirs, LastRows):
            if not mine.rows and not theirs.rows:
                raise GraphError("rows=0 on both sides keeps no row, so nothing could be joined")
            plan = RowJoinPlan(keys, {LEFT: mine.rows, RIGHT: theirs.rows})
            factory: Factory = partial(SlidingRowJoin, plan, on)
        else:
            assert isinstance(mine, Sliding)
            assert isinstance(theirs, Sliding)
            refuse_results((*keys[LEFT], *keys[RIGHT]), ("window",))
            plan = TimeJoinPlan(keys, {LEFT: mine, RIGHT: theirs})
            factory = partial(SlidingTimeJoin, plan, on)
        detail = repr((plan, match))
        return self.stream._then(
            "sliding-join", factory, name, port=LEFT, ports=ports, detail=detail
        )

    def _aggregate(
        self, kind: str, name: str | None, aggregates: Mapping[str, SlidingAggregate]
    ) -> Made_co:
        stream, shape = self.stream, self.shape
        check_aggregates(stream.schema, aggregates)
        if isinstance(shape, Sliding):
            taken = ("window", "time")
            refuse_results(stream.keys, (*taken, *aggregates))
            plan = SlidingPlan.of(stream.keys, aggregates, taken, shape.time)
            factory: Factory = partial(SlidingTimeWindows, plan, shape)
        else:
            if not shape.rows:
                raise GraphError(
                    "a sliding window of 0 rows has no results: only a join can have it"
                )
            refuse_results(stream.keys, tuple(aggregates))
            plan = SlidingPlan.of(stream.keys, aggregates, ("time",))
            factory = partial(SlidingRowWindows, plan, shape)
        return stream._then(kind, factory, name, detail=repr((shape, plan)))


def _check_match(keys: Mapping[str, tuple[str, ...]], match: str, on: Match | None) -> None:
    """Raise GraphError unless it is clear which rows of two windows match."""
    if on is not None:
        check_callable("join(on=...)", "a function of left and right rows", on)
    if len(keys[LEFT]) != len(keys[RIGHT]):
        raise GraphError("a join needs key_by with the same number of columns on both sides")
    if match not in ("key", "scan"):
        raise GraphError(f"rows match by 'key' or by 'scan', not {shown(match)}")
    if match == "scan" and (keys[LEFT] or on is None):
        raise GraphError(
            "a scan is of windows without a key, and on= says which rows match: leave key_by out"
        )
    if match == "key" and not keys[LEFT]:
        raise GraphError(
            "without key_by a join looks at all rows of the window: say so with match='scan', and which "
            "of them match with on="
        )


def sliding_shape(
    schema: Schema | None,
    size: str | Millis | None,
    every: str | Millis | None,
    rows: int | None,
    time: str,
    lateness: str | Millis,
) -> Sliding | LastRows:
    """The shape of sliding windows, by time or by rows. Raises GraphError or UsageError."""
    if rows is not None:
        if size is not None or every is not None or lateness or time != "time":
            raise GraphError(
                "sliding windows are by rows or by time: give rows= alone, or a size and every="
            )
        return LastRows(rows)
    if size is None or every is None:
        raise GraphError(
            'sliding takes a size and every=, as in sliding("10s", every="1s"), or rows=, as in '
            "sliding(rows=100)"
        )
    check_kind("sliding(time=...)", str, "the name of a column", time)
    if schema is not None and time not in schema:
        raise GraphError(f"there is no column '{time}' for the windows: {', '.join(schema)}")
    return Sliding(
        millis(size, "the size of a window"),
        millis(every, "every"),
        time,
        millis(lateness, "lateness"),
    )


def refuse_results(keys: Sequence[str], results: Sequence[str]) -> None:
    """Raise GraphError if a key is called as a column of the results."""
    taken = [key for key in keys if key in results]
    if taken:
        raise GraphError(f"a key cannot be called {', '.join(taken)}: the results have that column")
