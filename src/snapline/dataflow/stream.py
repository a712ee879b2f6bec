"""Streams: the fluent way to build a dataflow. Every step adds one operator to the graph.

A stream is the open end of a dataflow (`tail.py`): where records come from, and how they are routed to
whatever comes next: to the same slot, by key after `key_by`, or to every slot after `broadcast`. A keyed
stream has the operators that keep state per key, and cuts itself into windows. Both kinds of stream
make each other, so they are in one module; what a step does to the graph is not here, and streams that are
cut into windows are in `windowed.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from snapline.batch import Array, Batch, Schema
from snapline.dataflow.logical import Factory
from snapline.dataflow.operators.aggregate import Aggregate
from snapline.dataflow.operators.barrier import Barrier, BarrierPlan
from snapline.dataflow.operators.cogroup import Pairing, Side, WindowCogroup
from snapline.dataflow.operators.fold import Count, Fold, Step
from snapline.dataflow.operators.join import LEFT, RIGHT, Join, WindowJoin
from snapline.dataflow.operators.operator import IN
from snapline.dataflow.operators.stateless import Filter, Map, MapRecords, RecordFunction
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.partition import Broadcast, ByKey
from snapline.dataflow.tail import Loop, Tail, keyed_alike
from snapline.dataflow.usage.given import (
    PathLike,
    check_callable,
    check_kind,
    given_folder,
)
from snapline.dataflow.usage.hints import KEYED_HINTS, STREAM_HINTS
from snapline.dataflow.usage.policies import Saying
from snapline.dataflow.usage.protectable import Protectable
from snapline.dataflow.windowed import SlidingStream, WindowedStream, refuse_results, sliding_shape
from snapline.durations import millis
from snapline.errors import GraphError
from snapline.ids import Millis


class Stream(Protectable):
    """Records on their way to the next operator."""

    _hints = STREAM_HINTS

    def __init__(self, tail: Tail) -> None:
        self._tail: Final = tail

    @property
    def schema(self) -> Schema | None:
        """The columns, if they are known: functions may return anything."""
        return self._tail.schema

    # Steps that change the route, not the records.

    def key_by(self, *columns: str) -> "KeyedStream":
        """Send records with equal values in these columns to one task: `bids.key_by("bidder")`."""
        return KeyedStream(self._tail.by_key(columns))

    def broadcast(self) -> "Stream":
        """Send every record to every task of the next operator: `deletions.broadcast()`."""
        return Stream(replace(self._tail, routing=Broadcast()))

    def union(self, *others: "Stream") -> "Stream":
        """Merge streams, in no particular order: `a.union(b, c)`. Route the result, not the parts."""
        for other in others:
            check_kind("union", Stream, "streams", other)
        return Stream(self._tail.union([other._tail for other in others]))

    def output(self, name: str) -> "Stream":
        """Another output of the operator behind this stream: `windows.output("late")`."""
        return Stream(self._tail.output(name))

    def pool(self, name: str) -> "Stream":
        """Place the operator behind this stream into slots of its own: `model.pool("model")`.

        It then fails without the others, and they without it. How many slots a pool has is said when the
        dataflow is run: `sl.run(flow, pools={"model": 2})`; 1 if nobody says so. A sink is where its input
        is, and all other operators that are in no pool share the slots of the default pool.
        """
        return Stream(self._tail.pool(name))

    # Steps that add an operator, or cut the stream into windows.

    def sliding(
        self,
        size: str | Millis | None = None,
        *,
        every: str | Millis | None = None,
        rows: int | None = None,
        time: str = "time",
        lateness: str | Millis = 0,
    ) -> "SlidingStream[Stream]":
        """Cut the stream into windows that overlap: `bids.key_by("item").sliding("10s", every="1s")`.

        By time, windows begin at every multiple of `every`, and there is one result per window and key
        when a window closes. By rows, `sliding(rows=100)`, there is one result per record, of it and the
        99 before it that have its key. Without `key_by` all records are in the same windows, in one task.
        The next step says what is computed: `count` or `aggregate`.
        """
        shape = sliding_shape(self.schema, size, every, rows, time, lateness)
        keyed = self if isinstance(self, KeyedStream) else KeyedStream(self._tail.to_one_task())
        return SlidingStream(keyed, shape)

    def map(
        self,
        function: Callable[[Batch], Batch],
        *,
        name: str | None = None,
    ) -> "Stream":
        """Replace each batch by another: `bids.map(lambda b: b.with_columns(euro=b["price"] * 0.9))`."""
        check_callable("map", "a function of a batch", function)
        return self._then("map", partial(Map, function), name)

    def flat_map(
        self,
        function: Callable[[Batch], Batch],
        *,
        name: str | None = None,
    ) -> "Stream":
        """As `map`, where the result may have another number of records, even none."""
        check_callable("flat_map", "a function of a batch", function)
        return self._then("flat-map", partial(Map, function), name)

    def filter(
        self,
        function: Callable[[Batch], Array],
        *,
        name: str | None = None,
    ) -> "Stream":
        """Keep the records under a mask: `bids.filter(lambda b: b["price"] > 100)`."""
        check_callable("filter", "a function of a batch", function)
        return self._then("filter", partial(Filter, function), name, schema=self.schema)

    def map_records(
        self,
        function: RecordFunction,
        *,
        name: str | None = None,
    ) -> "Stream":
        """Call a function per record: it takes a dict and returns a dict, a list of them, or None."""
        check_callable("map_records", "a function of a record", function)
        return self._then("map-records", partial(MapRecords, function), name)

    def apply(
        self,
        factory: Factory,
        *,
        name: str,
        port: str = IN,
        ports: Mapping[str, "Stream | Loop"] | None = None,
    ) -> "Stream":
        """Add an operator of your own: `links.apply(Paths, name="paths", ports={"back": loop})`.

        This stream feeds `port`; `ports` names the streams and loops that feed the operator's other inputs.
        """
        check_callable("apply", "the class of an operator, or a function that makes one", factory)
        check_kind("apply(ports=...)", Mapping, "a dict of streams and loops", ports or {})
        others = {
            other_port: other._tail if isinstance(other, Stream) else other
            for other_port, other in (ports or {}).items()
        }
        return self._then("apply", factory, name, port=port, ports=others)

    def barrier(
        self,
        *others: "Stream",
        by: str | tuple[str, ...] = (),
        name: str | None = None,
    ) -> "Stream":
        """One output for the n-th record of each stream: `a.barrier(b)`; it waits for the last of them.

        Keyed streams are brought together per key, other streams in each slot. `by="id"` routes by this
        column, and says that records belong together because of it: then a record that is lost leaves
        another one waiting, and moves none. A column whose name is taken ends in the number of its stream,
        as in `price_2`.
        """
        for other in others:
            check_kind("barrier", Stream, "streams", other)
        check_kind("by=", (str, tuple), "the name of a column, or a tuple of names", by)
        tails, keys = keyed_alike(
            [s._tail for s in (self, *others)], (by,) if isinstance(by, str) else by
        )
        plan = BarrierPlan.of(keys, by_value=bool(by))
        ports = dict(zip(plan.ports[1:], tails[1:], strict=True))
        factory, detail = partial(Barrier, plan), repr(plan)
        return Stream(tails[0].add("barrier", factory, name, ports=ports, detail=detail))

    def sink(
        self, name: str, *, to: str | PathLike | None = None, format: str | None = None
    ) -> None:
        """End the stream: `counts.sink("counts")` names the output that is written and published.

        With `to`, a directory that is empty or not there yet, what is published is also in files there:
        every row exactly once, for any reader that leaves out names which begin with a dot. `format` is
        `"parquet"`, and may be left out.
        """
        self._tail.end(name, given_folder(name, to, format))

    def feed(self, loop: Loop) -> None:
        """Close a cycle: `extended.key_by("end").feed(loop)`."""
        self._tail.feed(loop)

    def _then(
        self,
        kind: str,
        factory: Factory,
        name: str | None,
        *,
        port: str = IN,
        ports: Mapping[str, Tail | Loop] | None = None,
        detail: str = "",
        schema: Schema | None = None,
    ) -> "Stream":
        """Add an operator (`Tail.add`), and return the stream of what it puts out."""
        added = self._tail.add(
            kind, factory, name, port=port, ports=ports, detail=detail, schema=schema
        )
        return Stream(added)

    def _protect(self, said: Saying) -> None:
        self._tail.protect(said)


class KeyedStream(Stream):
    """Records routed by key to the next operator."""

    _hints = KEYED_HINTS

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        routing = self._tail.routing
        assert isinstance(routing, ByKey)
        return routing.columns

    def count(self, *, name: str | None = None) -> Stream:
        """The running count per key, one output per record: `bids.key_by("bidder").count()`."""
        refuse_results(self.keys, ("count",))
        schema = _running_schema(self.schema, self.keys, count="int64")
        return self._then("count", partial(Count, self.keys), name, schema=schema)

    def fold(
        self,
        initial: Mapping[str, Any],
        step: Step,
        *,
        name: str | None = None,
    ) -> Stream:
        """Fold the records of each key: one output per record, with the values of its key after it.

        `fold({"total": 0}, lambda state, batch: {"total": state["total"] + batch["price"]})`: the step
        works on whole columns and never sees the same key twice in one call.
        """
        check_kind("fold", Mapping, "a dict of values to begin with", initial)
        check_callable("fold", "a function of the state and a batch", step)
        refuse_results(self.keys, tuple(initial))
        factory = partial(Fold, self.keys, dict(initial), step)
        return self._then("fold", factory, name, detail=repr(sorted(initial)))

    def tumbling(
        self, size: str | Millis, *, time: str = "time", lateness: str | Millis = 0
    ) -> WindowedStream[Stream]:
        """Cut the stream into windows of event time: `bids.key_by("bidder").tumbling("10s")`.

        The next step says what is computed per window: `count`, `running_count` or `aggregate`.
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
        """Join on equal keys, all pairs: `persons.key_by("id").join(auctions.key_by("seller"))`.

        The result has the columns of both; those of the right whose names are taken end in `_right`.
        """
        self._same_keys(other)
        factory = partial(Join, self.keys, other.keys)
        return self._then("join", factory, name, port=LEFT, ports={RIGHT: other._tail})

    def window_join(
        self,
        other: "KeyedStream",
        size: str | Millis,
        *,
        time: str = "time",
        lateness: str | Millis = 0,
        name: str | None = None,
    ) -> Stream:
        """Join as `join` does, but only records in the same window, which pairs have as `window`.

        Late records go to the outputs `late-left` and `late-right`.
        """
        self._same_keys(other)
        shape = Tumbling(millis(size), time, millis(lateness))
        factory = partial(WindowJoin, self.keys, other.keys, shape)
        ports = {RIGHT: other._tail}
        return self._then("window-join", factory, name, port=LEFT, ports=ports, detail=repr(shape))

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
        """One output per key when the window closes, with counts and lists of the rows of each side.

        `gets.key_by("page").window_cogroup(posts.key_by("page"), "10s", left={"gets": "count"},
        right={"posts": ("collect", "id")})`: a side may be empty. Late records go to the outputs
        `late-left` and `late-right`.
        """
        self._same_keys(other)
        shape = Tumbling(millis(size), time, millis(lateness))
        pairing = Pairing.of(Side.of(self.keys, left), Side.of(other.keys, right), shape)
        factory, ports = partial(WindowCogroup, pairing), {RIGHT: other._tail}
        return self._then(
            "window-cogroup", factory, name, port=LEFT, ports=ports, detail=repr(pairing)
        )

    def _same_keys(self, other: "KeyedStream") -> None:
        if not isinstance(other, KeyedStream) or len(self.keys) != len(other.keys):
            raise GraphError("a join needs key_by with the same number of columns on both sides")


def _running_schema(
    schema: Schema | None, keys: Sequence[str], **results: str
) -> dict[str, str] | None:
    if schema is None:
        return None
    kept = (*keys, "time") if "time" in schema and "time" not in keys else tuple(keys)
    return {**{name: schema[name] for name in kept}, **results}
