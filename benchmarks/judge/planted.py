"""Many events of MST and their output with a few planted faults, made by Spark jobs and stored as Parquet.

The events are a pure function of their offset; every ten million are the same again, with other ids and at
a later time. One event of 10,007 is late. Of the right outputs a few are dropped, doubled, moved to the
next window, given another count, or made to count an event twice.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from snapline.storage.parquet.arrow import spark_schema, to_spark
from snapline.workload.common.base import Params
from snapline.workload.lineage import model

PARTITIONS = 4
EVENTS_PER_S = 100_000
PIECE = 1 << 18
BLOCK = 10_000_000
BLOCK_BITS = 44  # of ids: above partition and offset, below the bit of a POST
GAP_MS = 10_000  # between the times of two blocks: no window has events of both
LATE_EVERY = 10_007
KINDS = {"id": "int64", "time": "int64", "resource": "int64", "post": "bool"}

#: what is planted -> how many of the places 0, 1, 2, ... and the cause by which the judge has to call it
PLANTED = {
    "dropped": (3, "missing"),
    "doubled": (3, "duplicate"),
    "moved": (3, "wrong window"),
    "recounted": (2, "wrong value"),
    "counted twice": (2, "twice inside"),
}


def params_of(events: int) -> Params:
    """An input of so many events."""
    duration_ms = max(20_000, events * 1_000 // EVENTS_PER_S)
    return Params(1, PARTITIONS, events // PARTITIONS, duration_ms, full=True)


def make(spark: SparkSession, events: int, home: Path) -> None:
    """Write the tables: one block of events and its right output, and then as many blocks as it takes."""
    params = params_of(min(events, BLOCK))
    size_ms = model.shape_of(params).window_ms
    block = home / "block"
    _events(spark, params).write.parquet(str(block / "in"))
    inputs = spark.read.parquet(str(block / "in"))
    late = F.pmod(F.xxhash64("id"), F.lit(LATE_EVERY)) == 0
    window = F.col("time") - F.pmod("time", F.lit(size_ms))
    side = F.col("post")
    inputs.where(~late).groupBy("resource", window.alias("window")).agg(
        F.count_if(~side).alias("gets"),
        F.count_if(side).alias("posts"),
        F.collect_list(F.when(~side, F.col("id"))).alias("get_ids"),
        F.collect_list(F.when(side, F.col("id"))).alias("post_ids"),
    ).write.parquet(str(block / "out"))
    right = spark.read.parquet(str(block / "out"))
    tables = {"in": inputs, "late": inputs.where(late).select("id"), "out": right}
    for number in range(max(1, events // BLOCK)):
        for name, table in tables.items():
            if name == "out" and number == 0:
                table = _planted(table, size_ms)
            later = _later(table, number, params.duration_ms)
            later.write.mode("append").parquet(str(home / name))
    shutil.rmtree(block)


def _later(table: DataFrame, number: int, duration_ms: int) -> DataFrame:
    """The same rows with other ids, at a later time."""
    more, after = F.lit(number << BLOCK_BITS), F.lit(number * (duration_ms + GAP_MS))
    changed = {
        "id": F.col("id") + more,
        "time": F.col("time") + after,
        "window": F.col("window") + after,
        "get_ids": F.transform("get_ids", lambda id: id + more),
        "post_ids": F.transform("post_ids", lambda id: id + more),
    }
    return table.withColumns({n: column for n, column in changed.items() if n in table.columns})


def _events(spark: SparkSession, params: Params) -> DataFrame:
    sources = {"gets": model.gets_beside_posts(params), "posts": model.posts(params)}
    pieces = [
        (name, partition, start)
        for name, source in sources.items()
        for partition in range(source.partitions)
        for start in range(0, source.records, PIECE)
    ]

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, partition, start = pieces[number]
                source = sources[name]
                stop = min(start + PIECE, source.records)
                yield to_spark(source.make(partition, start, stop), KINDS)

    tasks_of = spark.range(0, len(pieces), 1, max(2, len(pieces) // 8))
    return tasks_of.mapInArrow(tasks, spark_schema(KINDS))


def _planted(right: DataFrame, size_ms: int) -> DataFrame:
    """The right output but for some places: the first resources of window 3."""
    kinds = [kind for kind, (count, _) in PLANTED.items() for _ in range(count)]
    at = F.when(F.col("window") == 3 * size_ms, F.col("resource"))

    def spoiled(kind: str) -> Any:
        return F.coalesce(at.isin(*(n for n, k in enumerate(kinds) if k == kind)), F.lit(False))

    twice = F.concat("get_ids", F.slice("get_ids", 1, 1))
    changed = right.where(~spoiled("dropped")).withColumns(
        {
            "window": F.when(spoiled("moved"), F.col("window") + size_ms).otherwise(
                F.col("window")
            ),
            "gets": F.when(spoiled("recounted"), F.col("gets") + 1)
            .when(spoiled("counted twice"), F.col("gets") + 1)
            .otherwise(F.col("gets")),
            "get_ids": F.when(spoiled("counted twice"), twice).otherwise(F.col("get_ids")),
        }
    )
    return changed.unionByName(right.where(spoiled("doubled")))
