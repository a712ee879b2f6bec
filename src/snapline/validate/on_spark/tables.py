"""Brings three DataFrames with lineage into one form, or refuses them with a message about the column.

The columns are those of `judged`'s tables: `input`, `output`, `late`. An output with `count` and `ids` is
one whose POST side is empty. A `case` column, if there is one, stands in all three tables and separates
judgements from each other; `by` holds its name, or nothing.

Ids are whole numbers or strings, the same everywhere; strings are compared by the bytes of UTF-8.

`row` is a number of our own for every row of output and late output: it tells rows with the same position
apart, and it is the position where there is none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from snapline.errors import UsageError
from snapline.ids import Millis

CASE: Final = "case"
ROW: Final = "row"

#: the kinds of rows about an id, in the order in which they are sorted
CLAIMED, LATE, EXPECTED, THERE = range(4)

_WHOLE: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_KINDS: Final[Mapping[str, tuple[str, tuple[type[T.DataType], ...]]]] = {
    "whole number": ("bigint", _WHOLE),
    "true or false": ("boolean", (T.BooleanType,)),
    "list of whole numbers or strings": ("", (T.ArrayType,)),
    "whole number or string": ("", (*_WHOLE, T.StringType)),
}
_NUMBER, _FLAG, _IDS, _NAME = _KINDS
_PARTITION_BITS: Final = 33  # of `monotonically_increasing_id`: row numbers below them


@dataclass(frozen=True, slots=True)
class LineageFrames:
    """What is judged: every event with its window, every output with both sides, every late row."""

    inputs: DataFrame  # by, id, resource, window, post; watermark, if it is known
    outputs: DataFrame  # by, resource, window, gets, posts, get_ids, post_ids, position, row
    late: DataFrame | None  # by, id, position, row; None: there is no late output
    by: tuple[str, ...]
    size_ms: Millis
    lateness_ms: Millis = 0  # how far the watermark must be beyond the end of a window to close it
    until_ms: Millis | None = None  # only windows that end then or before are judged; None: all

    def judged(self, window: Column) -> Column:
        """Whether a window is judged; a null, which stands for no window, is."""
        if self.until_ms is None:
            return F.lit(True)
        return F.coalesce(window <= self.until_ms - self.size_ms, F.lit(True))

    @property
    def id_type(self) -> str:
        """The type of ids."""
        return self.inputs.schema["id"].dataType.simpleString()

    @property
    def place(self) -> list[str]:
        """The columns that say to which output an event belongs."""
        return [*self.by, "resource", "window"]


def tables_of(
    inputs: DataFrame,
    outputs: DataFrame,
    late: DataFrame | None,
    size_ms: Millis,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
) -> LineageFrames:
    """The tables in one form. Raises UsageError for columns that lack or have another type."""
    if size_ms <= 0:
        raise UsageError(f"a window is longer than nothing, not {size_ms} ms")
    named = {"input": inputs, "output": outputs} | ({"late output": late} if late else {})
    with_case = [name for name, frame in named.items() if CASE in frame.columns]
    if with_case and len(with_case) != len(named):
        lacking = next(name for name in named if name not in with_case)
        raise UsageError(f"the {lacking} has no column '{CASE}', which the {with_case[0]} has")
    by = (CASE,) if with_case else ()
    events, results = inputs_of(inputs, by, size_ms), outputs_of(outputs, by)
    if events.schema["resource"].dataType != results.schema["resource"].dataType:
        raise UsageError(
            "the resources of the input and of the output must be of one type: numbers or strings"
        )
    rows = None if late is None else late_of(late, by)
    _check_ids(events, results, rows)
    return LineageFrames(events, results, rows, by, size_ms, lateness_ms, until_ms)


def _check_ids(events: DataFrame, results: DataFrame, late: DataFrame | None) -> None:
    """Ids are of one type in all tables. Raises UsageError."""
    wanted = events.schema["id"].dataType
    found = [results.schema[name].dataType for name in ("get_ids", "post_ids")]
    types = [type.elementType for type in found if isinstance(type, T.ArrayType)]
    if any(type != wanted for type in [*types, *([late.schema["id"].dataType] if late else [])]):
        raise UsageError("the ids of all tables must be of one type: whole numbers or strings")


def inputs_of(inputs: DataFrame, by: tuple[str, ...], size_ms: Millis) -> DataFrame:
    """Every event with its window and its side."""
    time = _column(inputs, "input", "time", _NUMBER)
    columns = [_column(inputs, "input", name, _NUMBER) for name in by]
    columns += [_column(inputs, "input", name, _NAME) for name in ("id", "resource")]
    # Of a time with which nobody can calculate the window is null, as of one that is null itself.
    columns.append(F.try_subtract(time, F.pmod(time, F.lit(size_ms))).alias("window"))
    side = "post" in inputs.columns
    columns.append(_column(inputs, "input", "post", _FLAG) if side else F.lit(False).alias("post"))
    if "watermark" in inputs.columns:
        columns.append(_column(inputs, "input", "watermark", _NUMBER))
    return inputs.select(*columns)


def outputs_of(outputs: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """Every output with both of its sides."""
    has_sides = {"gets", "posts", "get_ids", "post_ids"} & {*outputs.columns}
    if has_sides:
        sides = [_column(outputs, "output", name, _NUMBER) for name in ("gets", "posts")]
        sides += [_column(outputs, "output", name, _IDS) for name in ("get_ids", "post_ids")]
    else:
        sides = [
            _column(outputs, "output", "count", _NUMBER).alias("gets"),
            F.lit(0).cast("bigint").alias("posts"),
            _column(outputs, "output", "ids", _IDS).alias("get_ids"),
            F.slice(_column(outputs, "output", "ids", _IDS), 1, 0).alias("post_ids"),
        ]
    numbered = _numbered(outputs, "output")
    columns = [_column(outputs, "output", name, _NUMBER) for name in (*by, "window")]
    columns.append(_column(outputs, "output", "resource", _NAME))
    return numbered.select(*columns, *sides, F.col("position").cast("bigint"), ROW)


def late_of(late: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """Every row of the late output."""
    columns = [_column(late, "late output", name, _NUMBER) for name in by]
    columns.append(_column(late, "late output", "id", _NAME))
    return _numbered(late, "late output").select(*columns, F.col("position").cast("bigint"), ROW)


def _column(frame: DataFrame, table: str, name: str, kind: str) -> Column:
    """A column, cast to its type. Raises UsageError if it is missing or of another kind."""
    if name not in frame.columns:
        there = ", ".join(frame.columns) or "nothing"
        raise UsageError(f"the {table} has no column '{name}' ({kind}): its columns are {there}")
    found = frame.schema[name].dataType
    spelled, allowed = _KINDS[kind]
    fits = isinstance(found, allowed)
    inner = found.elementType if isinstance(found, T.ArrayType) else found
    if isinstance(found, T.ArrayType):
        fits = fits and isinstance(inner, (*_WHOLE, T.StringType))
    if not fits:
        raise UsageError(
            f"column '{name}' of the {table} is {found.simpleString()}, but has to be a {kind}: cast it"
        )
    if not spelled:
        spelled = "string" if isinstance(inner, T.StringType) else "bigint"
        spelled = f"array<{spelled}>" if kind == _IDS else spelled
    return F.col(name).cast(spelled).alias(name)


def _numbered(frame: DataFrame, table: str) -> DataFrame:
    """Add `row`, unique and in order, and a `position` where there is none: the number of the row."""
    if ROW not in frame.columns:
        frame = frame.withColumn(ROW, F.monotonically_increasing_id())
    if "position" in frame.columns:
        _column(frame, table, "position", _NUMBER)
        return frame
    partition = F.shiftright(ROW, _PARTITION_BITS)
    rows = frame.groupBy(partition.alias("partition")).count().collect()
    ends = list(_running(sorted((row["partition"], row["count"]) for row in rows)))
    if not ends:
        return frame.withColumn("position", F.col(ROW))
    firsts = F.create_map(*(F.lit(value) for pair in ends for value in pair))
    within = F.col(ROW) - F.shiftleft(partition, _PARTITION_BITS)
    return frame.withColumn("position", firsts[partition] + within)


def _running(counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(partition, number of rows in those before it)"""
    before = 0
    for partition, count in counts:
        yield partition, before
        before += count
