"""A sink that writes Parquet files, in a run on Spark; `tests/runtime/test_parquet_sink.py` kills it."""

import pytest

import snapline as sl
from snapline.storage.parquet.sink_files import HIDDEN

pytestmark = pytest.mark.spark


def test_spark_reads_the_files_of_a_sink_as_it_reads_the_run(spark, tmp_path):
    flow = sl.Dataflow("bids per bidder")
    bids = flow.source(sl.nexmark.bids(rate=500, seed=1))
    counts = bids.key_by("bidder").tumbling("1s").count()
    counts.sink("counts", to=tmp_path / "out", format="parquet")
    options = {"slots": 2, "duration": "2s", "interval": "300ms", "silence": "60s"}
    done = sl.run(flow, spark, runs=tmp_path / "runs", **options)
    found, expected = spark.read.parquet(str(tmp_path / "out")), done.output()
    assert found.schema == expected.schema
    rows = sorted(tuple(row) for row in expected.collect())
    assert sorted(tuple(row) for row in found.collect()) == rows
    assert len(rows) > 0
    assert [path.name for path in (tmp_path / "out" / HIDDEN).iterdir()] == ["owner.json"]
