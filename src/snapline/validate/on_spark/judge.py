"""The judge on Spark: the oracle and the validator as DataFrame jobs, for outputs of any size.

The same rules as in process (`causes`), the same judgement, field by field. Two passes: `spark_suspects`
makes the oracle's table and compares each output with it as a whole; `spark_causes` takes apart only what
differs. No row passes through Python, and the driver sees one row for each cause of each case.

Everything is exact: ids are compared, not hashes or counts of them. The events of one (resource, window)
have to fit into a task; all other sizes are bounded by disk.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, NoReturn

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.validate.causes import Cause
from snapline.validate.judged import Judged, Unjudged, Witness
from snapline.validate.on_spark.causes import SUMS, causes_of
from snapline.validate.on_spark.suspects import expected_of, find_suspects
from snapline.validate.on_spark.tables import CASE, LineageFrames, inputs_of, late_of, tables_of

_ALL: Final = 0
"""The number of the case in tables that have no column `case`."""

_NAMES: Final = {"inputs": "input", "outputs": "output", "late": "late output"}
_BITS: Final = 6  # the last bits of an id, which choose one bit of a 64-bit number


@dataclass(slots=True)
class _Counts:
    """The rows of one case, per table; of inputs and outputs those that are judged."""

    inputs: int = 0
    outputs: int = 0
    late: int = 0
    unjudged: Unjudged = field(default_factory=Unjudged)


def expected(inputs: DataFrame, late: DataFrame | None, size_ms: Millis) -> DataFrame:
    """The oracle: for every (case, resource, window) the counts and the sorted ids of both sides.

    Columns: case (if the input has one), resource, window, gets, posts, get_ids, post_ids. Events that are
    late are left out.
    """
    by = (CASE,) if CASE in inputs.columns else ()
    events = inputs_of(inputs, by, size_ms)
    tables = LineageFrames(events, events, None if late is None else late_of(late, by), by, size_ms)
    return expected_of(tables, 0 if late is None else late.count())


def judge_frames(
    inputs: DataFrame,
    outputs: DataFrame,
    late: DataFrame | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
) -> Judged:
    """Judge an output, as `check.judge` does. Raises UsageError."""
    tables = tables_of(inputs, outputs, late, size_ms, lateness_ms, until_ms)
    if tables.by:
        raise UsageError("the tables have a column 'case': judge_cases judges each of them")
    return _judge(tables)[_ALL]


def judge_cases(
    inputs: DataFrame,
    outputs: DataFrame,
    late: DataFrame | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    until_ms: Millis | None = None,
) -> dict[int, Judged]:
    """Judge many cases in one job, each for itself: those of the column `case` of the tables."""
    tables = tables_of(inputs, outputs, late, size_ms, lateness_ms, until_ms)
    if not tables.by:
        raise UsageError("the tables have no column 'case': judge_frames judges them as one")
    return _judge(tables)


def _judge(tables: LineageFrames) -> dict[int, Judged]:
    counts = _counted(tables)
    late_rows = sum(count.late for count in counts.values())
    suspects = find_suspects(tables, late_rows)
    try:
        found = (
            causes_of(tables, suspects, late_rows).collect() if suspects.rows or late_rows else []
        )
    finally:
        suspects.release()
    rows: dict[int, list[Row]] = {case: [] for case in counts}
    for row in found:
        rows[_case(row)].append(row)
    return {case: _judged(counts[case], rows[case]) for case in counts}


def _case(row: Row) -> int:
    return int(row[CASE]) if CASE in row else _ALL


def _judged(count: _Counts, rows: Iterable[Row]) -> Judged:
    sums = dict.fromkeys(SUMS, 0)
    causes: dict[Cause, int] = {}
    witnesses: dict[Cause, Witness] = {}
    for row in rows:
        for name in SUMS:
            sums[name] += row[name]
        if row["cause"] is not None:
            cause, seen = Cause(row["cause"]), row["witness"]
            causes[cause] = row["count"]
            fields = (seen[name] for name in ("resource", "window", "id", "position", "other"))
            witnesses[cause] = Witness(cause, *fields)
    # The events of places that are not suspect, and that no suspect output claims.
    untouched = count.inputs - sums["late_events"] - sums["expected"] - sums["met"]
    return Judged(
        count.inputs,
        count.outputs,
        sums["late_rows"],
        sums["lost"],
        sums["repeated"],
        untouched + sums["reliable"],
        untouched + sums["met"] + sums["counted"],
        sums["late_events"],
        causes,
        witnesses,
        unjudged=count.unjudged,
    )


# Counting rows, and refusing ids that occur twice.


def _counted(tables: LineageFrames) -> dict[int, _Counts]:
    """The rows of each table and case. Raises UsageError for nulls, and for ids that are not unique."""
    frames = {"inputs": tables.inputs, "outputs": tables.outputs}
    if tables.late is not None:
        frames["late"] = tables.late
    totals = [
        _totals(tables, name, frame, distinct=name == "inputs") for name, frame in frames.items()
    ]
    counts: dict[int, _Counts] = {} if tables.by else {_ALL: _Counts()}
    for row in reduce(DataFrame.union, totals).collect():
        if row["nulls"]:
            _tell_nulls(row["table"], frames[row["table"]])
        if row["distinct"] not in (None, row["rows"]):
            _tell_twice(tables)
        count = counts.setdefault(_case(row), _Counts())
        setattr(count, row["table"], row["judged"] or 0)
    for row in _left_out(tables) if tables.until_ms is not None else ():
        counts[_case(row)].unjudged = Unjudged(row["events"], row["windows"])
    return counts


def _left_out(tables: LineageFrames) -> list[Row]:
    """The events of each case whose windows are not judged, and how many windows these are."""
    rest = tables.inputs.where(~tables.judged(F.col("window")))
    by_window = rest.groupBy(*tables.by, "window").agg(F.count("*").alias("events"))
    both = (F.sum("events").alias("events"), F.count("*").alias("windows"))
    found = by_window.groupBy(*tables.by).agg(*both)
    return found.where(F.col("windows") > 0).collect()


def _totals(tables: LineageFrames, name: str, frame: DataFrame, *, distinct: bool) -> DataFrame:
    """How many rows a table has, in how many something is null, and how many ids there are."""
    null = reduce(Column.__or__, (F.col(column).isNull() for column in frame.columns))
    inside = tables.judged(F.col("window")) if "window" in frame.columns else F.lit(True)
    counts = (
        F.count("*").alias("rows"),
        F.count_if(null).alias("nulls"),
        F.count_if(inside).alias("judged"),
    )
    if not distinct:
        sums = frame.groupBy(*tables.by).agg(*counts)
        ids = F.lit(None).cast("bigint")
    else:
        key, kinds = _distinct(tables)
        shared = frame.groupBy(*tables.by, key).agg(*counts, kinds.alias("ids"))
        sums = shared.groupBy(*tables.by).agg(
            *(F.sum(name).alias(name) for name in ("rows", "nulls", "judged", "ids"))
        )
        ids = F.col("ids")
    return sums.select(
        *tables.by, F.lit(name).alias("table"), "rows", "nulls", "judged", ids.alias("distinct")
    )


def _distinct(tables: LineageFrames) -> tuple[Column, Column]:
    """By what events are grouped to count their ids, and how many ids there are in a group."""
    if tables.id_type == "string":
        return F.col("id").alias("group"), F.lit(1)
    # Ids that differ only in their last bits share a row, so dense ids need little shuffling.
    bit = F.expr("shiftleft(1L, cast(id & 63 as int))")
    return F.shiftright("id", _BITS).alias("group"), F.bit_count(F.bit_or(bit))


def _tell_nulls(table: str, frame: DataFrame) -> NoReturn:
    nulls = frame.agg(*(F.count_if(F.col(name).isNull()).alias(name) for name in frame.columns))
    (found,) = nulls.collect()
    names = [name for name, count in found.asDict().items() if count]
    if table == "inputs":  # a window without a time
        names = ["time" if name == "window" else name for name in names]
    told = " and ".join(f"'{name}'" for name in names)
    if "time" in names:
        told += ", or a time that lies too far from 1970"
    raise UsageError(f"the {_NAMES[table]} has nulls in {told}: fill them, or leave those rows out")


def _tell_twice(tables: LineageFrames) -> NoReturn:
    often = tables.inputs.groupBy(*tables.by, "id").count().where("count > 1")
    (found,) = often.agg(F.min("id")).collect()
    raise UsageError(
        f"the id {found[0]!r} stands twice in the input: an event needs an id of its own"
    )
