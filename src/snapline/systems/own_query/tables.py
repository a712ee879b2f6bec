"""The rows that are compared: those of the query as a batch, and those that came out of the stream."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructType

from snapline.errors import UsageError
from snapline.systems.own_query.driver import Build
from snapline.systems.own_query.judge import Rows

Mode: TypeAlias = Literal["append", "complete", "update"]
"""Spark's output modes."""

Read: TypeAlias = Callable[[SparkSession], DataFrame]
"""Reads what the user's own `write` has put out."""


def built(build: Build, df: DataFrame) -> DataFrame:
    """The query on a batch. Raises UsageError if that cannot be: nothing could be compared then."""
    try:
        result = build(df)
    except Exception as error:  # the code is the user's: it may raise anything
        raise UsageError(f"build fails on a batch: {_said(error)}") from error
    if not isinstance(result, DataFrame):
        raise UsageError(f"build must return a DataFrame, not {type(result).__name__}")
    if twice := sorted({name for name in result.columns if result.columns.count(name) > 1}):
        raise UsageError(f"build returns two columns {twice[0]!r}: give them names of their own")
    return result


def batch_rows(query: DataFrame) -> Rows:
    """The rows of the query as a batch, computed now."""
    try:
        return query.collect()
    except Exception as error:
        raise UsageError(f"build fails on a batch: {_said(error)}") from error


def read_rows(spark: SparkSession, read: Read, names: Sequence[str]) -> Rows:
    """The rows that the user's own reader finds, with the columns that the query has."""
    try:
        found = read(spark)
        lacking = [name for name in names if name not in found.columns]
        if not lacking:
            return found.select(*(f"`{name}`" for name in names)).collect()
    except Exception as error:  # the code is the user's: it may raise anything
        raise UsageError(f"read fails after the stream has ended: {_said(error)}") from error
    raise UsageError(
        f"read returns no column {lacking[0]!r}, which build has: it has {', '.join(found.columns)}"
    )


def written_rows(
    spark: SparkSession, output: Path, schema: StructType, mode: Mode, key: Sequence[str]
) -> Rows:
    """The rows that the driver's own sink has, one directory for each micro-batch."""
    directories = sorted(output.glob("[0-9]*"))
    if not directories:
        return []
    if mode == "complete":  # every micro-batch puts out everything
        directories = directories[-1:]
    stored = spark.read.schema(schema).parquet(*(f"file://{path}" for path in directories))
    if mode != "update":
        return stored.collect()
    numbered = stored.select("*", col("_metadata.file_path")).collect()
    return _latest([(_number(row[-1]), row[:-1]) for row in numbered], _places(schema, key))


def _latest(rows: list[tuple[int, Any]], places: Sequence[int]) -> Rows:
    """The row of each key that came out last; several of one micro-batch all count."""
    newest: dict[tuple[Any, ...], tuple[int, list[Any]]] = {}
    for number, row in rows:
        identity = tuple(row[place] for place in places)
        known = newest.get(identity)
        if known is None or known[0] < number:
            newest[identity] = number, [row]
        elif known[0] == number:
            known[1].append(row)
    return [row for _, several in newest.values() for row in several]


def _places(schema: StructType, key: Sequence[str]) -> list[int]:
    return [schema.names.index(name) for name in key]


def _number(file: str) -> int:
    return int(file.rsplit("/", 2)[1])


def _said(error: Exception) -> str:
    """What an exception says, in one line."""
    text = error.getMessage() if isinstance(error, PySparkException) else str(error)
    first = (text or "").strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
