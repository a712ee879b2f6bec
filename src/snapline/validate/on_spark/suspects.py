"""The first pass on Spark: computes what is expected, and finds the outputs that differ from it.

The oracle is the state `s` of PGVal's Algorithm 1: for every (resource, window) the events that should
have been counted, without those that are late. Its ids are sorted, so an output is right if its sorted ids
are the same arrays. Nearly all outputs of nearly all systems are, and each of them costs one comparison.
What is left is *suspect*: outputs that differ, several outputs of one (resource, window), and expected ones
that are not there. Only suspects are taken apart, by `spark_causes`.

Memory: one (resource, window) has to fit into a task, about 40 bytes for each of its ids; everything else
is spilled by Spark.
"""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from snapline.errors import UsageError
from snapline.validate.on_spark.tables import ROW, LineageFrames

BROADCAST_ROWS_MAX = 2_000_000
"""Up to this many ids are broadcast to every executor; more of them are joined by sorting."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """The outputs and places that are not exactly as expected; Spark keeps them until `release`."""

    #: place, gets, posts, get_ids, post_ids, position, row (null where an output is missing); want_get_ids,
    #: want_post_ids (null where nothing is expected, or another row of the place has them); first: the
    #: lowest position of an output of the place
    frame: DataFrame
    rows: int
    claims: int  # how many ids the outputs among them claim

    def release(self) -> None:
        """Give the memory back."""
        self.frame.unpersist()


def expected_of(tables: LineageFrames, late_rows: int) -> DataFrame:
    """For every (resource, window) the counts and sorted ids of both sides: input without late events."""
    inputs = tables.inputs
    if late_rows and tables.late is not None:
        ids = tables.late.select(*tables.by, "id").distinct()
        inputs = inputs.join(few(ids, late_rows), [*tables.by, "id"], "left_anti")
    grouped = inputs.groupBy(*tables.place).agg(
        F.sort_array(F.collect_list(F.when(~F.col("post"), F.col("id")))).alias("get_ids"),
        F.sort_array(F.collect_list(F.when(F.col("post"), F.col("id")))).alias("post_ids"),
    )
    sizes = (F.size("get_ids").alias("gets"), F.size("post_ids").alias("posts"))
    return grouped.select(*tables.place, *sizes, "get_ids", "post_ids")


def few(frame: DataFrame, rows: int) -> DataFrame:
    """The frame, to be broadcast if it is small."""
    return F.broadcast(frame) if rows <= BROADCAST_ROWS_MAX else frame


def find_suspects(tables: LineageFrames, late_rows: int) -> Suspects:
    """Compare every output with what is expected. The result is kept in memory and on disk."""
    wanted = expected_of(tables, late_rows).select(
        *tables.place,
        F.col("get_ids").alias("want_get_ids"),
        F.col("post_ids").alias("want_post_ids"),
    )
    in_order = Window.partitionBy(*tables.place).orderBy("position", ROW)
    outputs = tables.outputs.select(
        "*",
        F.first("position").over(in_order).alias("first"),
        F.lag(ROW).over(in_order).alias("before"),
        F.lead(ROW).over(in_order).alias("after"),
    )
    alone = F.col("before").isNull() & F.col("after").isNull()
    right = alone & honest() & _same("get_ids") & _same("post_ids")
    leads = F.col("before").isNull()  # the first row of a place, which holds what is expected there
    joined = wanted.join(outputs, tables.place, "full_outer")
    frame = joined.where(~F.coalesce(right, F.lit(False))).select(
        *tables.place,
        *("gets", "posts", "get_ids", "post_ids", "position", ROW, "first"),
        *(F.when(leads, F.col(name)).alias(name) for name in ("want_get_ids", "want_post_ids")),
    )
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return Suspects(frame, *_sizes(frame))
    except BaseException:
        frame.unpersist()  # or the session would use it again, even if the files were mended
        raise


def honest() -> Column:
    """The counts of an output are the numbers of its ids."""
    gets = F.col("gets") == F.size("get_ids")
    return gets & (F.col("posts") == F.size("post_ids"))


def _same(name: str) -> Column:
    return F.sort_array(name) == F.col(f"want_{name}")


def _sizes(frame: DataFrame) -> tuple[int, int]:
    """How many suspects there are, and how many ids they claim; here Spark does the work."""
    lists = ("get_ids", "post_ids")
    claims = sum((F.coalesce(F.size(name), F.lit(0)) for name in lists), start=F.lit(0))
    nulls = [F.max(F.exists(name, lambda id: id.isNull())) for name in lists]
    found = frame.agg(F.count("*"), F.sum(claims), *nulls).first()
    assert found is not None
    rows, claimed, *empty = found
    if any(empty):
        raise UsageError("the lists of ids in the output hold nulls: fill them, or leave them out")
    return rows, claimed or 0
