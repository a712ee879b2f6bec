"""What a run left, as Spark DataFrames: output, state, channel logs, checkpoints, journal, seconds.

What there is, and how it is read, is in `readings`: here each piece of it becomes one Spark task. What is
computed from the journals of drivers is one piece. Where nobody knows the columns of something that is
empty, its DataFrame has none.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snapline.dataflow.graph import Dataflow
from snapline.judge.history import journals_of_drivers
from snapline.metrics.checkpointing.history import COLUMNS, checkpoint_rows, flat
from snapline.rundir.directory import RunDirectory
from snapline.runs import readings
from snapline.runs.readings import KeptState, Reading
from snapline.storage.api import View


def output(
    spark: SparkSession, directory: RunDirectory, sink: str, view: View = "committed"
) -> DataFrame:
    """The output of a sink: what was published, or all that any life of it ever wrote."""
    return _frame(spark, readings.output(directory, sink, view))


def state(
    spark: SparkSession,
    directory: RunDirectory,
    operator: str | None = None,
    part: str | None = None,
    *,
    flow: Dataflow | None = None,
) -> DataFrame:
    """The state at the last committed line: one part of an operator, or a list of what there is.

    A part has its own columns and `_task`. `part` may be left out where an operator has only one. The list
    has operator, task, part, rows and columns.
    """
    kept = KeptState(directory, flow)
    listing = _frame(spark, kept.listing())
    if operator is None:
        return listing
    rows = sorted(listing.collect(), key=lambda row: (str(row.operator), str(row.task)))
    return _frame(spark, kept.part([row.asDict() for row in rows], operator, part))


def channel_log(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """The messages that the senders' logs still hold, one row each, without their records."""
    return _frame(spark, readings.channel_log(directory))


def checkpoints(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """Every checkpoint that was stored, one row each: how its time was spent, and what became of it."""
    return _frame(spark, checkpoint_reading(directory))


def checkpoint_reading(directory: RunDirectory) -> Reading:
    """Every checkpoint that was stored: see `metrics.checkpointing.history.flat`; null: not measured."""
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return Reading(schema, [str(directory.path)], _read_checkpoints)


_ARROW = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def _read_checkpoints(run: str) -> Iterator[pa.RecordBatch]:
    journals, _ = journals_of_drivers(RunDirectory(Path(run)))
    entries = (entry for journal in journals for entry in journal)
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])
    yield pa.RecordBatch.from_pylist([*flat(checkpoint_rows(entries))], schema=schema)


def journal(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """What happened in all processes of a run, one row per entry; `body` is the entry itself, as JSON.

    `spark.read.json` reads the same files with all that is in them, and headers and cut lines, too.
    """
    return _frame(spark, readings.journal(directory))


def seconds(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """What was measured, one row for each second and slot; where the slot is null, of all slots."""
    return _frame(spark, readings.seconds(directory))


def _frame(spark: SparkSession, reading: Reading) -> DataFrame:
    """A DataFrame of what there is to read, one Spark task per piece."""
    if reading.schema is None:
        return spark.createDataFrame([], StructType([]))
    pieces, read = reading.pieces, reading.read

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read(pieces[number])

    numbers = spark.range(0, len(pieces), 1, max(1, len(pieces)))
    return numbers.mapInArrow(tasks, reading.schema)
