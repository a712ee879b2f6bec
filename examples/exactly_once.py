"""Join two DataFrames on slots that are killed, and stream each pair exactly once into Parquet files.

The notebook beside this file has the same cells. In a cluster: `MASTER=spark://host:7077 spark-submit ...`.
"""

# %% A session as you have it: two cores for slots, one for a slot that comes back, one to spare.
import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import snapline as sl

spark = (
    SparkSession.builder.master(os.environ.get("MASTER", "local[4]"))
    .config("spark.scheduler.mode", "FAIR")
    .getOrCreate()
)

# %% Two DataFrames: ten seconds of bids and of clicks on 50 auctions.
auction = (F.col("id") % 50).alias("auction")
bids = spark.range(10_000).select(
    F.col("id").alias("bid"), auction, F.timestamp_millis(F.col("id")).alias("time")
)
clicks = spark.range(2_000).select(
    F.col("id").alias("click"), auction, F.timestamp_millis(F.col("id") * 5).alias("time")
)

# %% A flow: which bids and clicks were on the same auction in the same second?
flow = sl.Dataflow("bids and clicks")
left = flow.source(bids, name="bids").key_by("auction")
right = flow.source(clicks, name="clicks").key_by("auction")
left.window_join(right, "1s").sink("pairs")

# %% Run it, and kill its slots: one while a checkpoint is taken, the other while the first comes back.
run = sl.run(
    flow,
    spark,
    slots=2,
    interval="1s",
    silence="30s",  # so that slots of a busy machine are not taken for dead
    faults=["kill slot=1 on=round", "kill slot=0 on=recovery"],
    reference=True,
    runs=os.path.abspath("runs"),
)
print(run.verdict)

# %% Stream what was published into Parquet files; a resumed run would go on in this stream.
source = spark.readStream.format("snapline").load(str(run.directory.path)).select("bid", "click")
sink = source.writeStream.format("parquet").option("checkpointLocation", f"{run.name}-at")
sink.trigger(availableNow=True).start(f"{run.name}-pairs").awaitTermination()

# %% Count: what Spark joins itself, what is in the files, and what is in one of the two only.
second = F.date_trunc("second", "time")
expected = bids.withColumn("second", second).join(
    clicks.withColumn("second", second), ["auction", "second"]
)
expected, found = expected.select("bid", "click"), spark.read.parquet(f"{run.name}-pairs")
lost, twice = expected.exceptAll(found).count(), found.exceptAll(expected).count()
print(f"{expected.count()} pairs, {found.count()} in the files, {lost} lost, {twice} too many")
