"""Recorded tables as DataFrames, for the judge on Spark: the same rows, numbered as in process.

Spark reads files in an order of its own, so the number of a row, which is its position where it has none,
is made of the file's place in the table and of the row's place in the file.
"""

import re
from collections.abc import Collection
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from snapline.errors import UsageError
from snapline.spark.slot_jobs import batch_session
from snapline.systems.recorded.tables import RecordedTable, RecordedTables
from snapline.validate.columns import FAR
from snapline.validate.on_spark.tables import ROW

MEMORY_MB_MIN = 1_024
VALUES_PER_PARTITION = 2_000_000
PARTITION_MB = 32
_SCHEME = "^file:/+"  # Spark writes one slash or three


def session_for(recorded: RecordedTables, memory_mb: int | None = None) -> SparkSession:
    """Start a session that is large enough for the recorded tables; it spills to local disk."""
    if memory_mb is None:
        memory_mb = max(MEMORY_MB_MIN, _available_mb() // 2)
    return batch_session(memory_mb, settings_for(recorded.values))


def settings_for(values: int) -> dict[str, str]:
    """Settings of Spark that suit this number of events and claims."""
    return {
        # Times without a zone count as UTC, whatever the zone of this machine.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.shuffle.partitions": str(max(4, values // VALUES_PER_PARTITION)),
        # A task holds the lists of all that it has read, so it should not read much at once ...
        "spark.sql.files.maxPartitionBytes": f"{PARTITION_MB}m",
        # ... and then it can aggregate in memory, without sorting by (resource, window).
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    }


def _available_mb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split()[:2] for line in lines)
    return int(fields["MemAvailable:"]) // 1024


def frames_of(
    recorded: RecordedTables, spark: SparkSession
) -> tuple[DataFrame, DataFrame, DataFrame | None]:
    """The tables as DataFrames. `told` makes a UsageError of Spark's errors about damaged files."""
    return (
        _read(recorded.inputs, spark).select(*_columns(recorded.inputs)),
        _numbered(recorded.outputs, spark),
        _numbered(recorded.late, spark) if recorded.late else None,
    )


def _read(table: RecordedTable, spark: SparkSession) -> DataFrame:
    return spark.read.parquet(*(str(file) for file in table.files))


def _columns(table: RecordedTable) -> list[Column]:
    return [_column(table.called[name], type).alias(name) for name, type in table.types.items()]


def _column(called: str, type: pa.DataType) -> Column:
    quoted = "`" + called.replace("`", "``") + "`"
    if not pa.types.is_timestamp(type):
        return F.col(quoted)
    if type.unit == "ns":  # which Spark has no type for
        return F.expr(f"({quoted} - pmod({quoted}, 1000000)) div 1000000")
    return F.unix_millis(F.col(quoted).cast("timestamp"))


def _numbered(table: RecordedTable, spark: SparkSession) -> DataFrame:
    frame = _read(table, spark)
    firsts = dict(zip(table.files, accumulate(table.rows, initial=0), strict=False))
    known = [
        value
        for url in frame.inputFiles()
        for value in (F.lit(_path(url)), F.lit(firsts[Path(unquote(_path(url)))]))
    ]
    path = F.regexp_replace(F.col("_metadata.file_path"), _SCHEME, "/")
    first = F.create_map(*known)[path]
    row = (first + F.col("_metadata.row_index")).cast("bigint")
    frame = frame.select(*_columns(table), row.alias(ROW))
    return frame if "position" in table.types else frame.withColumn("position", F.col(ROW))


def _path(url: str) -> str:
    """The path in a URL, as it is written there."""
    return re.sub(_SCHEME, "/", url)


def latest(inputs: DataFrame, column: str) -> int:
    """The highest value of a column; the lowest possible number if the column is empty."""
    (found,) = inputs.agg(F.max(column)).collect()
    return -(1 << 63) if found[0] is None else int(found[0])


def events_with(inputs: DataFrame, ids: Collection[int | str]) -> list[dict[str, Any]]:
    """The events with these ids."""
    if not ids:
        return []
    return [row.asDict() for row in inputs.where(F.col("id").isin(*ids)).collect()]


def told(error: Exception, recorded: RecordedTables) -> UsageError | None:
    """The UsageError for an error of Spark that concerns a recorded file; None if it does not."""
    text = str(error)
    if "ARITHMETIC_OVERFLOW" in text:
        return UsageError(FAR)
    tables = [recorded.inputs, recorded.outputs, *([recorded.late] if recorded.late else [])]
    for file in (file for table in tables for file in table.files):
        if str(file) in text or file.as_uri() in text:
            why = re.search(r"(?:Caused by: |Exception: )([^\n]*)", text)
            words = f" ({why[1]})" if why else ""
            return UsageError(f"{file} is damaged or cut short{words}: write it again")
    return None
