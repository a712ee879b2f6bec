"""Spark's DataFrames as inputs: what a dataflow knows of one before it is run.

The columns are known at once, so that what cannot be used is refused in the user's line. The rows are not
touched before a run begins: then a Spark job stores them once in the run's directory (*stages* them), and
slots read what was staged, as often as they have to. Nothing here knows Spark: a DataFrame is asked for its
schema, and who stages it (`runs/sources/staging.py`) is given what returns it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, TypeAlias

from snapline.arguments import RATE_MAX, refused, shown
from snapline.batch import Batch, Schema
from snapline.durations import millis
from snapline.errors import GraphError, UsageError
from snapline.ids import Millis
from snapline.storage.column_types import TIMESTAMP, TIMESTAMP_MS, Meanings, column_type

TIME: Final = "time"

Rate: TypeAlias = int | Literal["max"]
"""Records per second over all partitions, or `max`: all are due at once."""


@dataclass(frozen=True, slots=True)
class FrameFeed:
    """A `Feed` of the rows of a DataFrame, which a run stages before it reads them."""

    #: the type of every column, as Spark spells it, in the order of the DataFrame
    columns: Mapping[str, str]
    #: returns the DataFrame, for the session of the run
    read: Callable[[Any], Any] = field(repr=False, compare=False)
    time: str | None = None  # the column with the time of a record
    disorder_ms: Millis = 0  # how far records come behind their times, at most
    rate: Rate | None = None  # None: records are due at their times
    of_session: bool = True  # the DataFrame belongs to a session of the user's

    @property
    def schema(self) -> Schema:
        """The kinds of the columns; with a time there is `time`, in milliseconds."""
        kinds = {name: column_type(name, spelled).kind for name, spelled in self.columns.items()}
        return {**kinds, TIME: "int64"} if self.time is not None else kinds

    @property
    def meanings(self) -> Meanings:
        """What the numbers of some columns mean."""
        types = {name: column_type(name, spelled) for name, spelled in self.columns.items()}
        found = {name: held.meaning for name, held in types.items() if held.meaning is not None}
        if self.time is not None and self.columns[self.time] == TIMESTAMP:
            found[TIME] = TIMESTAMP_MS
        return found

    @property
    def pace(self) -> Rate | None:
        """When records are due: by their times (None), or by a rate."""
        return "max" if self.rate is None and self.time is None else self.rate

    def bind(self, partitions: int, duration_ms: Millis) -> "Unstaged":
        """An input with these columns that nobody can read yet."""
        return Unstaged(self.schema, partitions)


@dataclass(frozen=True, slots=True)
class StreamFeed(FrameFeed):
    """A `Feed` of the rows of a streaming DataFrame, which come while the run goes on."""

    idle_ms: Millis = 5_000  # after how long without rows it holds nobody back
    available_now: bool = False  # it ends when all that is there at its start was read


@dataclass(frozen=True, slots=True)
class Unstaged:
    """An `Ingress` in place of one that is not staged yet: a dataflow can be checked with it, not run."""

    schema: Schema
    partitions: int
    identity: str = "not staged yet"

    def end(self, partition: int) -> int | None:
        """Nobody knows."""
        self._refuse()

    def due_ms(self, partition: int, offset: int) -> Millis:
        """Nobody knows."""
        self._refuse()

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """Nobody knows."""
        self._refuse()

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """There is nothing to read yet."""
        self._refuse()

    def watermark(self, partition: int, offset: int) -> Millis:
        """Nobody knows."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            "a DataFrame is staged by a Spark session before it can be read: use sl.run(flow, spark)"
        )


def is_frame(value: Any) -> bool:
    """Whether something is a DataFrame of Spark's, by what it can do."""
    return hasattr(value, "mapInArrow") and hasattr(value, "isStreaming")


def frame_feed(
    frame: Any, *, time: str | None = None, disorder: str | Millis = 0, rate: Rate | None = None
) -> FrameFeed:
    """The feed of a DataFrame; see `columns_feed`."""
    _refuse_connect(frame)
    if frame.isStreaming:
        raise GraphError(
            "this is a streaming DataFrame, and a source takes a batch one: say "
            "flow.source(sl.stream(df)), or use spark.read instead of readStream"
        )
    read = _same(frame)
    return columns_feed(_columns(frame), read, time=time, disorder=disorder, rate=rate)


def stream_feed(
    frame: Any, *, time: str | None, disorder_ms: Millis, idle_ms: Millis, available_now: bool
) -> StreamFeed:
    """The feed of a streaming DataFrame; see `columns_feed`. Raises GraphError."""
    if not is_frame(frame):
        raise GraphError(
            f"sl.stream takes a streaming DataFrame of Spark's, as spark.readStream makes one, not "
            f"{shown(frame)}"
        )
    _refuse_connect(frame)
    if not frame.isStreaming:
        raise GraphError(
            "this DataFrame is no streaming one: say flow.source(df), or use spark.readStream instead of "
            "read"
        )
    feed = columns_feed(_columns(frame), _same(frame), time=time, disorder=disorder_ms)
    return StreamFeed(
        feed.columns, feed.read, feed.time, feed.disorder_ms, None, True, idle_ms, available_now
    )


def _same(frame: Any) -> Callable[[Any], Any]:
    return lambda spark: frame


def _refuse_connect(frame: Any) -> None:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise GraphError(
            "this DataFrame is one of Spark Connect, and slots need a classic session: make it with "
            "SparkSession.builder.master(...), without remote(...) and SPARK_REMOTE"
        )


def _columns(frame: Any) -> dict[str, str]:
    """The types of the columns of a DataFrame, as Spark spells them. Raises GraphError."""
    fields = frame.schema.fields
    names = [column.name for column in fields]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise GraphError(f"two columns are called '{twice[0]}': rename one with df.toDF(...)")
    return {column.name: column.dataType.simpleString() for column in fields}


def columns_feed(
    columns: Mapping[str, str],
    read: Callable[[Any], Any],
    *,
    time: str | None = None,
    disorder: str | Millis = 0,
    rate: Rate | None = None,
    of_session: bool = True,
) -> FrameFeed:
    """The feed of a DataFrame with these columns. Raises GraphError if it cannot be an input.

    `time` names the column with the times of records: a timestamp, or a bigint in milliseconds; `time` if
    there is one. Records are due at their times, counted from the first; with `rate`, and without a time,
    by that. `disorder` lets them come out of order, by up to so much.
    """
    if not columns:
        raise GraphError("the DataFrame has no columns")
    try:
        for name, spelled in columns.items():
            column_type(name, spelled)
    except UsageError as error:
        raise GraphError(str(error)) from None
    found = _time_column(columns, time)
    disorder_ms = millis(disorder, "disorder")
    if disorder_ms and found is None:
        raise GraphError("disorder= is how far records come behind their times: say time=, too")
    if rate is not None:
        _check_rate(rate)
    return FrameFeed(dict(columns), read, found, disorder_ms, rate, of_session)


def _time_column(columns: Mapping[str, str], time: str | None) -> str | None:
    """The column with the times of the records; None if there is none. Raises GraphError."""
    if time is not None and (not isinstance(time, str) or time not in columns):
        raise GraphError(
            f"there is no column {shown(time)} for time=: there is {', '.join(columns)}"
        )
    found = time if time is not None else (TIME if TIME in columns else None)
    if found is None:
        return None
    if columns[found] not in (TIMESTAMP, "bigint"):
        raise GraphError(
            f"the column '{found}' is a {columns[found]}, and the time of a record is a timestamp or a "
            f"bigint (milliseconds): cast it, or rename it if it is no time of the record"
        )
    if found != TIME and TIME in columns:
        raise GraphError(
            f"time='{found}' becomes the column 'time', and there is one already: rename that with "
            "df.withColumnRenamed('time', ...)"
        )
    return found


def _check_rate(rate: Any) -> None:
    whole = isinstance(rate, int) and not isinstance(rate, bool)
    if rate != "max" and not (whole and 1 <= rate <= RATE_MAX):
        allowed = f"a whole number of records per second from 1 to {RATE_MAX:,}, or 'max'"
        raise GraphError(str(refused("rate", allowed, rate)))
