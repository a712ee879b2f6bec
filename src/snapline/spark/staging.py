"""`stage`: the rows of a DataFrame, stored once by a Spark job where slots read them again and again.

The rows are dealt out evenly to as many partitions as a run has slots, sorted by time inside each, and
written there by one Spark task per partition, block by block: the embedded log of
`storage/files/ingress.py`. The number of a row in its partition is its offset. Rows with the same time are
sorted by their other columns, so that their order is a matter of what they hold. The driver only learns the
sizes.

With `disorder_ms` a row is sorted as if it had been delayed, by less than that and by a number that follows
from what it holds. So rows come out of order, and always in the same one.

Columns have no nulls. The same job counts them, and a column that has some is refused by its name.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from snapline.batch import Batch, Schema, concat
from snapline.errors import SnaplineError, UsageError
from snapline.ids import Millis
from snapline.spark.generate import draft_of, job_reason
from snapline.spark.starting import Aside
from snapline.storage.column_types import TIMESTAMP
from snapline.storage.files.ingress import Segment, describe_ingress, write_segment
from snapline.storage.files.places import make_directory
from snapline.storage.parquet.arrow import from_arrow, to_spark
from snapline.storage.parquet.meanings import as_numbers
from snapline.wording import plural

BLOCK_RECORDS: Final = 1 << 14
BLOCK_BYTES: Final = 1 << 24
"""A block ends when it has so many records or bytes: a source holds a few blocks in memory."""

TIME: Final = "time"


@dataclass(frozen=True, slots=True)
class Staging:
    """What a DataFrame is staged as."""

    source: str  # its name, for messages
    columns: Mapping[str, str]  # the types that were found when the dataflow was built
    schema: Schema  # of what is stored
    time: str | None
    disorder_ms: Millis
    partitions: int


def stage(read: Callable[[], DataFrame], target: Path, staging: Staging) -> int:
    """Store the rows of a DataFrame in a new directory, and return how many there are.

    Raises UsageError if it is not what it was, or has nulls. The directory is there when everything is.
    """
    try:
        frame = read()
        check_columns(frame, staging)
    except PySparkException as error:
        raise UsageError(
            f"the source '{staging.source}' cannot be read: {job_reason(error)}"
        ) from error
    make_directory(target.parent)
    with draft_of(target) as draft:
        written = _write(frame, draft, staging)
        segments = segments_told(written, staging)
        kept = {segment.file for segment in segments.values()}
        for path in draft.iterdir():  # what an attempt left that Spark has not counted
            if path.name not in kept:
                path.unlink()
        partitions = [[segments[p]] if p in segments else [] for p in range(staging.partitions)]
        describe_ingress(draft, staging.schema, partitions)
    return sum(segment.records for segment in segments.values())


def check_columns(frame: DataFrame, staging: Staging) -> None:
    """Raise UsageError if a DataFrame has other columns than when the dataflow was built."""
    found = {column.name: column.dataType.simpleString() for column in frame.schema.fields}
    if found != staging.columns:
        raise UsageError(
            f"the source '{staging.source}' had the columns {_listed(staging.columns)} when the dataflow "
            f"was built, and has {_listed(found)} now"
        )


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {spelled}" for name, spelled in columns.items())


# The job.


def _write(frame: DataFrame, folder: Path, staging: Staging) -> dict[int, dict[str, Any]]:
    """Write all partitions; returns what the tasks have told, by the number of their partition.

    The job runs in a thread of its own, so that the names that the user gave to jobs stay, and so that
    an interruption ends it.
    """
    context = frame.sparkSession.sparkContext
    group = f"snapline-stage-{uuid4().hex[:8]}"

    def write() -> dict[int, dict[str, Any]]:
        context.setJobGroup(group, f"snapline: stage {staging.source}", interruptOnCancel=True)
        return write_rows(frame, folder, staging)

    job = Aside(write)
    try:
        return job.result()
    except PySparkException as error:
        raise SnaplineError(
            f"the source '{staging.source}' could not be staged: {job_reason(error)}"
        ) from error
    except BaseException:
        context.cancelJobGroup(group)
        raise


def write_rows(frame: DataFrame, folder: Path, staging: Staging) -> dict[int, dict[str, Any]]:
    """Write the rows with one task per partition; returns what the tasks have told, by partition."""
    where = str(folder.resolve())

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, told = _write_partition(batches, Path(where), staging)
        yield to_spark(Batch.of(partition=[partition], told=[json.dumps(told)]))

    rows = _ordered(frame, staging).mapInArrow(write, "partition long, told string").collect()
    return {row.partition: json.loads(row.told) for row in rows}


def segments_told(written: Mapping[int, Mapping[str, Any]], staging: Staging) -> dict[int, Segment]:
    """The segments that tasks have written, by partition. Raises UsageError if there were nulls."""
    _refuse_nulls(staging, [told["nulls"] for told in written.values()])
    told = {partition: told["segment"] for partition, told in written.items()}
    return {p: Segment.from_json(fields) for p, fields in told.items() if fields is not None}


def _ordered(frame: DataFrame, staging: Staging) -> DataFrame:
    """The rows dealt out to the partitions, each sorted as it will be read."""
    dealt = frame.repartition(staging.partitions)
    if staging.time is None:
        return dealt
    names = [_named(name) for name in frame.columns]
    time = _named(staging.time)
    if staging.disorder_ms:
        millis = F.unix_millis(time) if staging.columns[staging.time] == TIMESTAMP else time
        time = millis + F.pmod(F.xxhash64(*names), F.lit(staging.disorder_ms + 1))
    return dealt.sortWithinPartitions(time, *names)


def _named(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


# In the tasks.


def _write_partition(
    batches: Iterable[pa.RecordBatch], folder: Path, staging: Staging
) -> tuple[int, dict[str, Any]]:
    """Write the rows of one partition. Returns its number, and what the driver must know of it."""
    context = TaskContext.get()
    assert context is not None
    partition, attempt = context.partitionId(), context.taskAttemptId()
    nulls: dict[str, int] = {}
    blocks = _blocks(batches, staging, nulls)
    first = next(blocks, None)
    if first is None:
        return partition, {"segment": None, "nulls": nulls}
    # Every attempt has a file of its own: one that Spark has given up may still write.
    segment = write_segment(folder, partition, attempt, chain([first], blocks))
    return partition, {"segment": segment.to_json(), "nulls": nulls}


def _blocks(
    batches: Iterable[pa.RecordBatch], staging: Staging, nulls: dict[str, int]
) -> Iterator[Batch]:
    """The rows in blocks of some size. Once there are nulls they are only counted."""
    held: list[Batch] = []
    for raw in batches:
        _count_nulls(raw, nulls)
        if not nulls:
            held.append(_batch(raw, staging))
            if sum(map(len, held)) >= BLOCK_RECORDS or sum(b.nbytes for b in held) >= BLOCK_BYTES:
                yield concat(held)
                held = []
    if held and not nulls:
        yield concat(held)


def _batch(raw: pa.RecordBatch, staging: Staging) -> Batch:
    """The columns as Snapline has them, with the time of every row in milliseconds."""
    arrays = [as_numbers(array) for array in raw.columns]
    batch = from_arrow(pa.RecordBatch.from_arrays(arrays, names=raw.schema.names))
    if staging.time is None:
        return batch
    time = batch[staging.time]
    if staging.columns[staging.time] == TIMESTAMP:
        time = time // 1000
    return batch.with_columns(**{TIME: time})


def _count_nulls(raw: pa.RecordBatch, nulls: dict[str, int]) -> None:
    for name, array in zip(raw.schema.names, raw.columns, strict=True):
        found = array.null_count
        if not found and pa.types.is_nested(array.type):
            found = array.flatten().null_count
        if found:
            nulls[name] = nulls.get(name, 0) + found


# What is refused.


def _refuse_nulls(staging: Staging, counted: Sequence[Mapping[str, int]]) -> None:
    """Raise UsageError if a column has nulls; the message names the first, and how to fill it."""
    nulls = {
        name: found
        for name in staging.columns
        if (found := sum(each.get(name, 0) for each in counted))
    }
    if not nulls:
        return
    name, found = next(iter(nulls.items()))
    others = f" (and so have {', '.join(list(nulls)[1:])})" if len(nulls) > 1 else ""
    raise UsageError(
        f"the source '{staging.source}': the column '{name}' has {plural(found, 'null')}{others}, and "
        f"columns have none: fill them, {_filled(name, staging.columns[name])}, or leave these rows "
        f"out, df.na.drop(subset=['{name}'])"
    )


def _filled(name: str, spelled: str) -> str:
    if spelled.startswith("array<"):
        return f"df.withColumn('{name}', F.array_compact(F.coalesce('{name}', F.array())))"
    value = {"string": "''", "boolean": "False"}.get(spelled)
    if value is None and spelled not in ("binary", "date", "timestamp", "timestamp_ntz"):
        value = "0"
    if value is None:
        return f"df.withColumn('{name}', F.coalesce('{name}', F.lit(...)))"
    return f"df.na.fill({{'{name}': {value}}})"
