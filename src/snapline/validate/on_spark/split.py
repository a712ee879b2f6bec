"""Finds split places on Spark: their events lie in several outputs, and no output has them all.

Of every output it is known how many events it counts rightly that are not late (`mine`), of every place
how many such events there are (`shared`): it is split if no output has as many. The first output that
counts some of them is named, and the lowest id that it lacks, with the first output that has it.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from snapline.validate.causes import Cause
from snapline.validate.on_spark.tables import CLAIMED, EXPECTED, LATE, ROW, LineageFrames


def parts() -> list[Column]:
    """What is added up for each output and each place."""
    once = ~F.coalesce(F.col("row_before") == F.col(ROW), F.lit(False))
    mine = (F.col("kind") == CLAIMED) & F.col("right") & (F.col("lates") == 0) & once
    first = F.struct("position", ROW) == F.col("first_right")
    shared = (F.col("kind") == EXPECTED) & F.col("right_position").isNotNull()
    return [
        F.count_if(mine).alias("mine"),
        F.count_if(shared).alias("shared"),
        F.min(F.when(mine & first, F.col("id"))).alias("new_id"),
    ]


def with_split(tables: LineageFrames, added_up: DataFrame) -> DataFrame:
    """Add `is_split`, `begins` and `lacks` to the rows; no event of a split place is reliable."""
    late, claimed = F.col("kind") == LATE, F.col("kind") == CLAIMED
    # A late row has no place, so its row number keeps it apart from the others.
    place = Window.partitionBy(*tables.place, F.when(late, F.col(ROW)))
    here = F.struct("position", ROW)
    rows = added_up.select(
        "*",
        (F.max("mine").over(place) < F.max("shared").over(place)).alias("split"),
        F.min(F.when(F.col("mine") > 0, here)).over(place).alias("begins"),
    )
    lacking = claimed & F.col("new_id").isNotNull() & (here != F.col("begins"))
    lacks = F.when(lacking, F.struct(F.col("new_id").alias("id"), "position", ROW))
    wrong = F.col("split") & claimed
    rows = rows.select("*", F.min(lacks).over(place).alias("lacks"))
    rows = rows.withColumn("reliable", F.when(wrong, 0).otherwise(F.col("reliable")))
    return rows.withColumn("is_split", F.col("split") & (F.col("kind") == EXPECTED))


def split_of(found: Callable[[Cause, Column, Column, Column], Column]) -> Column:
    """The finding of a split place."""
    lacks = F.col("lacks")
    return found(Cause.SPLIT, F.col("begins")["position"], lacks["id"], lacks["position"])
