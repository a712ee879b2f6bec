"""Keyed streams: the operators that keep state per key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from snapline.batch import Schema
from snapline.dataflow.hints import KEYED_HINTS, WINDOWED_HINTS, Hinted
from snapline.dataflow.operators.aggregate import Aggregate, AggregatePlan, WindowAggregate
from snapline.dataflow.operators.cogroup import Pairing, Side, WindowCogroup
from snapline.dataflow.operators.fold import Count, Fold, Step
from snapline.dataflow.operators.join import LEFT, RIGHT, Join, WindowJoin
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.operators.window_count import WindowCount
from snapline.dataflow.partition import ByKey
from snapline.dataflow.stream import Stream
from snapline.durations import millis
from snapline.errors import GraphError
from snapline.ids import Millis


class KeyedStream(Stream):
    """Records routed by key to the next operator."""

    _hints = KEYED_HINTS

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        assert isinstance(self._routing, ByKey)
        return self._routing.columns

    def count(self, *, name: str | None = None) -> Stream:
        """The running count per key, one output per record: `bids.key_by("bidder").count()`."""
        _refuse(self.keys, ("count",))
        schema = _running_schema(self.schema, self.keys, count="int64")
        return self._add("count", partial(Count, self.keys), name, schema=schema)

    def fold(
        self,
        initial: Mapping[str, Any],
        step: Step,
        *,
        name: str | None = None,
    ) -> Stream:
        """A fold per key, one output per record, with the values after it.

        `fold({"total": 0}, lambda state, batch: {"total": state["total"] + batch["price"]})`: the step
        works on whole columns and never sees the same key twice in one call.
        """
        _refuse(self.keys, tuple(initial))
        factory = partial(Fold, self.keys, dict(initial), step)
        return self._add("fold", factory, name, detail=repr(sorted(initial)))

    def tumbling(
        self, size: str | Millis, *, time: str = "time", lateness: str | Millis = 0
    ) -> "WindowedStream":
        """Cut the stream into windows of event time: `bids.key_by("bidder").tumbling("10s")`.

        What is made of them is said next: `count`, `running_count` or `aggregate`.
        """
        schema = self.schema
        if schema is not None and time not in schema:
            raise GraphError(f"there is no column '{time}' for the windows: {', '.join(schema)}")
        return WindowedStream(self, Tumbling(millis(size), time, millis(lateness)))

    def join(
        self,
        other: "KeyedStream",
        *,
        name: str | None = None,
    ) -> Stream:
        """All pairs with equal keys: `persons.key_by("id").join(auctions.key_by("seller"))`.

        The result has the columns of both; those of the right whose names are taken end in `_right`.
        """
        self._same_keys(other)
        factory = partial(Join, self.keys, other.keys)
        return self._add("join", factory, name, port=LEFT, ports={RIGHT: other})

    def window_join(
        self,
        other: "KeyedStream",
        size: str | Millis,
        *,
        time: str = "time",
        lateness: str | Millis = 0,
        name: str | None = None,
    ) -> Stream:
        """All pairs with equal keys in the same window, and its `window`; see `join`.

        Late records go to the outputs `late-left` and `late-right`.
        """
        self._same_keys(other)
        shape = Tumbling(millis(size), time, millis(lateness))
        factory = partial(WindowJoin, self.keys, other.keys, shape)
        ports = {RIGHT: other}
        return self._add("window-join", factory, name, port=LEFT, ports=ports, detail=repr(shape))

    def window_cogroup(
        self,
        other: "KeyedStream",
        size: str | Millis,
        *,
        left: Mapping[str, Aggregate],
        right: Mapping[str, Aggregate],
        time: str = "time",
        lateness: str | Millis = 0,
        name: str | None = None,
    ) -> Stream:
        """One output per key when the window closes, with what is made of the rows of each side.

        `gets.key_by("page").window_cogroup(posts.key_by("page"), "10s", left={"gets": "count"},
        right={"posts": ("collect", "id")})`: a side may be empty. Late records go to the outputs
        `late-left` and `late-right`.
        """
        self._same_keys(other)
        shape = Tumbling(millis(size), time, millis(lateness))
        pairing = Pairing.of(Side.of(self.keys, left), Side.of(other.keys, right), shape)
        factory, ports = partial(WindowCogroup, pairing), {RIGHT: other}
        return self._add(
            "window-cogroup", factory, name, port=LEFT, ports=ports, detail=repr(pairing)
        )

    def _same_keys(self, other: "KeyedStream") -> None:
        if not isinstance(other, KeyedStream) or len(self.keys) != len(other.keys):
            raise GraphError("a join needs key_by with the same number of columns on both sides")


@dataclass(frozen=True, slots=True)
class WindowedStream(Hinted):
    """A keyed stream cut into windows."""

    _hints = WINDOWED_HINTS

    stream: KeyedStream
    shape: Tumbling

    def count(self, *, name: str | None = None) -> Stream:
        """One output per key when the window closes: the key, `window`, `count` and `time`.

        `bids.key_by("bidder").tumbling("10s").count()` is short for `aggregate(count="count")`.
        """
        _refuse(self.stream.keys, ("window", "count", "time"))
        return self._aggregate("window-count", name, {"count": "count"})

    def running_count(self, *, name: str | None = None) -> Stream:
        """One output per record, at once: the key, `window`, the `count` so far in it, and `time`.

        Late records go to the output `late`.
        """
        keys = self.stream.keys
        _refuse(keys, ("window", "count", "time"))
        factory = partial(WindowCount, keys, self.shape)
        return self.stream._add("running-count", factory, name, detail=repr(self.shape))

    def aggregate(
        self,
        *,
        name: str | None = None,
        **aggregates: Aggregate,
    ) -> Stream:
        """One output per key when the window closes: `aggregate(n="count", top=("max", "price"))`.

        Aggregates: count, sum, min, max, collect (a list). Late records go to the output `late`.
        """
        _refuse(self.stream.keys, ("window", "time"))
        return self._aggregate("aggregate", name, aggregates)

    def _aggregate(
        self, kind: str, name: str | None, aggregates: Mapping[str, Aggregate]
    ) -> Stream:
        plan = AggregatePlan.of(self.stream.keys, self.shape, aggregates)
        factory = partial(WindowAggregate, plan, self.shape)
        return self.stream._add(kind, factory, name, detail=repr((self.shape, plan)))


def _refuse(keys: Sequence[str], results: Sequence[str]) -> None:
    taken = [key for key in keys if key in results]
    if taken:
        raise GraphError(f"a key cannot be called {', '.join(taken)}: the results have that column")


def _running_schema(
    schema: Schema | None, keys: Sequence[str], **results: str
) -> dict[str, str] | None:
    if schema is None:
        return None
    kept = (*keys, "time") if "time" in schema and "time" not in keys else tuple(keys)
    return {**{name: schema[name] for name in kept}, **results}
