"""DataFrames in and out on a real Spark: staged, broken, resumed, and equal to their source at the end."""

import re

import numpy as np
import pytest
from pyspark.sql import functions as F

import snapline as sl
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import staged_place
from snapline.runs.run import create_run, prepare
from snapline.spark.staging import Staging, stage
from snapline.storage.files.ingress import FileIngress
from streaming import started

pytestmark = pytest.mark.spark

BEGIN_MS = 1_700_000_000_000


def bids(spark, rows=6_000, ms=3_000):
    """Rows with columns of many types, spread over some seconds of a day in 2023."""
    n, at = F.col("id"), (BEGIN_MS + F.col("id") * ms / rows).cast("bigint")
    return spark.range(0, rows, 1, 3).select(
        (n % 20).cast("int").alias("bidder"),
        F.concat(F.lit("käufer-"), n % 7).alias("name"),
        ((n * 37 - 5_000) / 100).cast("decimal(12,2)").alias("price"),
        F.timestamp_millis(at).alias("time"),
        F.date_add(F.lit("1969-12-25"), (n % 400).cast("int")).alias("day"),
        F.timestamp_micros(n * 1_234_567 - 10).alias("seen"),
        (n % 3 == 0).alias("first"),
        (n / 7).alias("weight"),
        F.encode(n.cast("string"), "utf-8").alias("raw"),
        F.sequence(F.lit(0), (n % 4).cast("int")).alias("tags"),
    )


def rows_of(frame):
    """The rows with the types of their values, in some order."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def test_a_frame_with_all_types_survives_a_kill_and_comes_out_as_it_went_in(spark, tmp_path):
    frame = bids(spark, rows=2_000, ms=2_000)
    flow = sl.Dataflow("bids")
    stream = flow.source(frame, name="bids")
    stream.sink("all")
    windows = stream.key_by("bidder", "name").tumbling("1s")
    totals = windows.aggregate(n="count", volume=("sum", "price"), last=("max", "day"))
    totals.sink("windows", to=tmp_path / "windows", format="parquet")
    run = sl.run(
        flow,
        spark,
        slots=2,
        interval="800ms",
        faults=["kill slot=1 at=1200ms"],
        spares=1,
        runs=tmp_path / "runs",
    )
    assert run.metrics["kills"] == 1
    expected, types = rows_of(frame), {**dict(frame.dtypes), "tags": "array<bigint>"}
    for found in (run.output("all"), streamed(spark, run)):
        assert dict(found.dtypes) == types
        assert rows_of(found.select(frame.columns)) == expected
    grouped = frame.groupBy("bidder", "name", F.window("time", "1 second").alias("w")).agg(
        F.count("*").alias("n"), F.sum("price").alias("volume"), F.max("day").alias("last")
    )
    totals = grouped.select(
        "bidder", "name", F.col("w.start").alias("window"), "n", "volume", "last"
    )
    files = spark.read.parquet(str(tmp_path / "windows"))
    assert files.schema == run.output("windows").schema
    assert files.select(totals.columns).dtypes == totals.dtypes
    assert rows_of(files.select(totals.columns)) == rows_of(totals)
    again = sl.open_run("last", spark, tmp_path / "runs", flow=flow)
    assert again.output("all").dtypes == run.output("all").dtypes
    assert {row.operator for row in again.state().collect()} == {"aggregate"}


def streamed(spark, run):
    """The sink `all` as a stream of Spark's reads it."""
    source = spark.readStream.format("snapline").option("sink", "all").load(str(run.directory.path))
    query = source.writeStream.format("memory").queryName("streamed").trigger(availableNow=True)
    started(query.start).awaitTermination()
    return spark.table("streamed")


def staged(spark, place, frame, disorder_ms=0):
    """The times of what was staged of a DataFrame, per partition."""
    columns = dict(frame.dtypes)
    schema = {"bidder": "int32", "time": "int64"}
    assert (
        stage(lambda: frame, place, Staging("bids", columns, schema, "time", disorder_ms, 2))
        == 6_000
    )
    ingress = FileIngress(place)
    return [ingress.read(p, 0, ingress.end(p))["time"] for p in range(ingress.partitions)]


def test_staged_rows_are_spread_over_all_partitions_and_sorted_up_to_the_disorder(spark, tmp_path):
    frame = bids(spark).select("bidder", "time").orderBy(F.rand(1))
    for times in staged(spark, tmp_path / "sorted", frame):
        assert abs(len(times) - 3_000) <= 3
        assert (times[1:] >= times[:-1]).all()
        assert times[-1] - times[0] > 2_900
    for times in staged(spark, tmp_path / "disorder", frame, 700):
        behind = np.maximum.accumulate(times) - times
        assert 500 < behind.max() <= 700


def test_a_resumed_run_reads_what_was_staged_and_not_the_frame(spark, tmp_path):
    """The files of the DataFrame are gone by then, so nothing can be staged again."""
    kept = bids(spark, rows=500, ms=500)
    rows = sorted(kept.select("bidder", "price").collect())
    kept.write.parquet(str(tmp_path / "bids"))
    broken = tmp_path / "broken"
    broken.touch()

    def check(batch):
        if broken.exists():
            raise ValueError("it is broken")
        return batch["bidder"] >= 0

    flow = sl.Dataflow("resumed")
    flow.source(sl.parquet(tmp_path / "bids", rate="max"), name="bids").filter(check).sink("all")
    with pytest.raises(sl.FlowFailed, match="it is broken"):
        sl.run(flow, spark, slots=2, interval="300ms", runs=tmp_path / "runs")
    for path in (tmp_path / "bids").iterdir():
        path.unlink()
    broken.unlink()
    run = sl.resume("last", spark, flow=flow, runs=tmp_path / "runs")
    assert sorted(run.output().select("bidder", "price").collect()) == rows


def test_a_run_that_died_early_stages_when_it_goes_on_and_never_takes_changed_rows(spark, tmp_path):
    frame = bids(spark, rows=300, ms=300)
    flow = sl.Dataflow("early")
    flow.source(frame, name="bids", rate="max").sink("all")
    spec = Spec("early", slots=2, interval_ms=300, reference=True)
    directory = create_run(prepare(spec, spark, flow=flow, runs=tmp_path))
    run = sl.resume(directory.name, spark, flow=flow, runs=tmp_path)
    assert run.verdict.kept == "yes", run.verdict
    assert rows_of(run.output().select(frame.columns)) == rows_of(frame)
    rows = sorted(staged_place(directory, "bids").glob("*.rows"))[0]
    changed = bytearray(rows.read_bytes())
    changed[4] ^= 1
    rows.write_bytes(changed)
    with pytest.raises(sl.UsageError, match="another input"):
        run.state()


def with_nulls(frame):
    price, tags = "if(bidder = 3, null, price)", "if(bidder = 3, array(1, null), tags)"
    return frame.withColumns({"price": F.expr(price), "tags": F.expr(tags)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            with_nulls,
            "the source 'source': the column 'price' has 5 nulls (and so have tags), and columns have "
            "none: fill them, df.na.fill({'price': 0}), or leave these rows out, "
            "df.na.drop(subset=['price'])",
        ),
        (lambda df: df.where("false"), "the source 'source' has no rows: a run needs at least one"),
        (
            lambda df: df.withColumn("bad", F.expr("raise_error('of its own')").cast("int")),
            "the source 'source' could not be staged: [USER_RAISED_EXCEPTION] of its own",
        ),
    ],
)
def test_what_only_the_rows_can_tell_is_said_and_nothing_is_left(spark, tmp_path, change, message):
    flow = sl.Dataflow("refused")
    sink = {"to": tmp_path / "out", "format": "parquet"}
    flow.source(change(bids(spark, rows=100))).sink("all", **sink)
    with pytest.raises(sl.SnaplineError, match=re.escape(message)):
        sl.run(flow, spark, slots=2, runs=tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []
    assert list((tmp_path / "out").iterdir()) == [], "another run may write there"


def test_a_frame_needs_its_session_and_does_not_stream(spark, tmp_path):
    flow = sl.Dataflow("alone")
    flow.source(bids(spark), name="bids").sink("all")
    with pytest.raises(
        sl.UsageError, match=r"'bids' is a DataFrame, .* say sl\.run\(flow, spark\)"
    ):
        sl.run(flow, slots=2, runs=tmp_path)
    with pytest.raises(sl.GraphError, match="a streaming DataFrame"):
        flow.source(spark.readStream.format("rate").load())
    assert list(tmp_path.iterdir()) == []
