"""What to write instead of a step that a builder does not have.

Users of Spark, Flink, Kafka Streams and pandas know the same steps under other names. `Hinted` answers such
a name with the one that Snapline has, instead of Python's bare AttributeError. Names are compared without
capitals and underscores, so `groupBy`, `groupby` and `group_by` are one.
"""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from snapline.errors import NoSuchStep

_MAP: Final = 'use map(lambda batch: batch.with_columns(euro=batch["price"] * 0.9))'
_FILTER: Final = 'use filter(lambda batch: batch["price"] > 100)'
_KEY: Final = 'use key_by("column", ...)'
_WINDOWS: Final = 'use key_by(...).tumbling("10s").aggregate(n="count", most=("max", "price"))'
_OUTPUT: Final = 'end the stream with sink("name"), run it with sl.run(flow), and read run.output()'
_WINDOW_FIRST: Final = (
    "say first what is made of a window: count(), running_count() or aggregate(...)"
)
_SLIDING: Final = 'use key_by(...).sliding("10s", every="1s"), or sliding(rows=100)'
_SESSION: Final = (
    'there are no sessions: use key_by(...).tumbling("10s"), or sliding("10s", every="1s")'
)
_NO_ORDER: Final = (
    "a stream has no end at which it could be sorted or cut off: do it with run.output()"
)

STREAM_HINTS: Final[Mapping[str, str]] = {
    "groupby": _KEY,
    "keyed": _KEY,
    "partitionby": _KEY,
    "repartition": _KEY,
    "select": 'use map(lambda batch: batch.select("column", ...))',
    "drop": 'use map(lambda batch: batch.select("column", ...)) with the columns that stay',
    "withcolumn": _MAP,
    "withcolumns": _MAP,
    "assign": _MAP,
    "where": _FILTER,
    "query": _FILTER,
    "explode": "use flat_map, or map_records with a function that returns a list",
    "foreach": "use map_records(function)",
    "process": "use apply(MyOperator, name=...)",
    "transform": "use apply(MyOperator, name=...)",
    "merge": "use union(other, ...)",
    "unionall": "use union(other, ...)",
    "concat": "use union(other, ...)",
    "agg": _WINDOWS,
    "aggregate": _WINDOWS,
    "window": _WINDOWS,
    "tumbling": 'use key_by(...).tumbling("10s")',
    "count": 'use key_by(...).count(), or key_by(...).tumbling("10s").count()',
    "runningcount": 'use key_by(...).tumbling("10s").running_count()',
    **dict.fromkeys(("sum", "min", "max", "mean", "avg"), _WINDOWS),
    **dict.fromkeys(
        ("hopping", "slidingwindow", "hop", "rolling", "over", "rowsbetween"), _SLIDING
    ),
    "session": _SESSION,
    "reduce": "use key_by(...).fold(initial, step)",
    "fold": "use key_by(...).fold(initial, step)",
    "distinct": "use key_by(...).count() and keep the records whose count is 1",
    "dropduplicates": "use key_by(...).count() and keep the records whose count is 1",
    "join": "use key_by(...).join(other.key_by(...))",
    "windowjoin": 'use key_by(...).window_join(other.key_by(...), "10s")',
    "windowcogroup": 'use key_by(...).window_cogroup(other.key_by(...), "10s", left=..., right=...)',
    "withwatermark": 'use tumbling("10s", time="column", lateness="2s")',
    "write": _OUTPUT,
    "writestream": _OUTPUT,
    "to": _OUTPUT,
    "addsink": _OUTPUT,
    "sinkto": _OUTPUT,
    "print": _OUTPUT,
    "show": _OUTPUT,
    "collect": _OUTPUT,
    "topandas": _OUTPUT,
    "orderby": _NO_ORDER,
    "sort": _NO_ORDER,
    "sortvalues": _NO_ORDER,
    "limit": _NO_ORDER,
    "head": _NO_ORDER,
}
KEYED_HINTS: Final[Mapping[str, str]] = {
    **STREAM_HINTS,
    "agg": 'use tumbling("10s").aggregate(n="count"), or fold(initial, step) without windows',
    "aggregate": 'use tumbling("10s").aggregate(n="count"), or fold(initial, step) without windows',
    "window": 'use tumbling("10s")',
    "runningcount": 'use count(), or tumbling("10s").running_count()',
    **dict.fromkeys(
        ("sum", "min", "max", "mean", "avg"),
        'use tumbling("10s").aggregate(total=("sum", "column")), or fold(initial, step)',
    ),
    "reduce": "use fold(initial, step)",
    "cogroup": 'use window_cogroup(other, "10s", left=..., right=...)',
}
WINDOWED_HINTS: Final[Mapping[str, str]] = {
    "agg": 'use aggregate(n="count", most=("max", "price"))',
    "sum": 'use aggregate(total=("sum", "column"))',
    "min": 'use aggregate(least=("min", "column"))',
    "max": 'use aggregate(most=("max", "column"))',
    "reduce": 'use aggregate(total=("sum", "column"))',
    **dict.fromkeys(
        ("mean", "avg", "first", "last"),
        'use sliding("10s", every="10s").aggregate(average=("mean", "column")), or divide in a map',
    ),
    **dict.fromkeys(
        ("map", "flatmap", "filter", "sink", "keyby", "groupby", "join", "union", "output"),
        _WINDOW_FIRST,
    ),
    **dict.fromkeys(("pool", "checkpoint", "inputs", "buffered", "besteffort"), _WINDOW_FIRST),
}
SLIDING_HINTS: Final[Mapping[str, str]] = {
    **{
        name: f'use aggregate(result=("{name}", "column"))'
        for name in ("sum", "mean", "min", "max")
    },
    **{name: f'use aggregate(result=("{name}", "column"))' for name in ("first", "last")},
    "agg": 'use aggregate(n="count", average=("mean", "price"))',
    "avg": 'use aggregate(average=("mean", "column"))',
    "collect": "the rows of a sliding window cannot be collected: use a tumbling one",
    "runningcount": "use count(): by rows there is one result per record",
    **dict.fromkeys(
        ("map", "flatmap", "filter", "sink", "keyby", "groupby", "union", "output"),
        "say first what is made of a window: count() or aggregate(...)",
    ),
}
DATAFLOW_HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("map", "flatmap", "filter", "keyby", "groupby", "union", "sink", "addsource", "read"),
        "begin a stream with source(...): its steps are methods of what that returns",
    ),
    **dict.fromkeys(("readstream", "fromsource", "fromcollection"), "use source(...)"),
    "run": "use sl.run(flow)",
    "execute": "use sl.run(flow)",
    "start": "use sl.run(flow)",
}
LOOP_HINTS: Final[Mapping[str, str]] = dict.fromkeys(
    ("map", "filter", "keyby", "union", "sink", "feed"),
    "a loop is no stream: give it to apply(ports={...}) and close it with stream.feed(loop)",
)


class Hinted:
    """A builder that says what to write instead of a public name that it does not have."""

    __slots__ = ()
    _hints: ClassVar[Mapping[str, str]] = {}  # by name, in small letters without underscores

    if not TYPE_CHECKING:  # hidden from type checkers, so that they still find wrong names

        def __getattr__(self, name: str) -> Any:
            """Raise NoSuchStep, an AttributeError, so that hasattr, copy and pickle work as usual."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise NoSuchStep(f"a {type(self).__name__} has no {name!r}: {_advice(self, name)}")


def _advice(builder: Hinted, name: str) -> str:
    plain = {own.lower().replace("_", ""): own for own in dir(builder) if not own.startswith("_")}
    wanted = name.lower().replace("_", "")
    if wanted in plain:
        return f"use {plain[wanted]}"
    if wanted in builder._hints:
        return builder._hints[wanted]
    near = difflib.get_close_matches(wanted, {**builder._hints, **plain}, n=2)
    if near and near[0] not in plain:
        return builder._hints[near[0]]
    if near:
        return f"did you mean {' or '.join(plain[found] for found in near if found in plain)}?"
    return f"it has {', '.join(plain.values())}"
