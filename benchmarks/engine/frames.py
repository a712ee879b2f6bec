"""A DataFrame of millions of rows with strings and decimals, in and out, beside records that are made.

    python -m benchmarks.engine.frames --rows 10000000

Two slots on a Spark of our own, `aligned` with checkpoints every second. The rows are staged, read as fast
as the flow takes them, and put out as they are; then Spark compares what came out with the source: the
number of rows, and two sums of hashes over all of their columns. The same flow with generated records of
the same columns shows what staging and reading cost.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import snapline as sl
from snapline.runs.finished import Run
from snapline.spark.slot_jobs import own_session

SLOTS = 2
DIGITS = 10
COLUMNS = ("n", "word", "price")


def frame(spark: SparkSession, rows: int) -> DataFrame:
    """Rows with a number, a text of ten digits, and a decimal."""
    n = F.col("id")
    word, price = F.lpad(n, DIGITS, "0"), (n * 7 % 1_000_000) / 100
    return spark.range(rows).select(
        n.alias("n"), word.alias("word"), price.cast("decimal(12,2)").alias("price")
    )


def made(n: Any) -> dict[str, Any]:
    """The same columns, computed."""
    digits = n[:, None] // 10 ** np.arange(DIGITS - 1, -1, -1) % 10 + ord("0")
    offsets = np.arange(len(n) + 1) * DIGITS
    word = sl.Varlen("str", offsets, digits.astype(np.uint8).reshape(-1))
    return {"n": n, "word": word, "price": n * 7 % 1_000_000}


def digest(rows: DataFrame) -> tuple[Any, ...]:
    """The number of rows and two sums of hashes: equal for equal rows, in whatever order they come."""
    hashes = [F.xxhash64(*COLUMNS), F.hash(*COLUMNS)]
    sums = [F.sum(each.cast("decimal(38,0)")) for each in hashes]
    return tuple(rows.agg(F.count("*"), *sums).first() or ())


def run(name: str, source: Any, spark: SparkSession, runs: Path, **asked: Any) -> Run:
    """Pass a source on to a sink, and print how fast that went."""
    flow = sl.Dataflow(name)
    reading: dict[str, Any] = {} if hasattr(source, "bind") else {"rate": "max"}
    flow.source(source, **reading).sink("out")
    began = time.time()
    finished = sl.run(flow, spark, slots=SLOTS, interval="1s", runs=runs, **asked)
    took_s = time.time() - began
    staged = sorted(finished.directory.path.glob("input/*/*"))
    if staged:
        print(f"{name}: staged after {staged[-1].stat().st_mtime - began:.1f} s")
    figures, rows = finished.figures, finished.rows["out"]
    print(f"{name}: {rows:,} rows, {figures.rate}, {took_s:.1f} s in all")
    return finished


def main() -> None:
    """Run both, and compare what came out of the DataFrame with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    spark = own_session(SLOTS)
    try:
        with tempfile.TemporaryDirectory() as place:
            source = frame(spark, rows)
            finished = run("frame", source, spark, Path(place))
            same = digest(finished.output().select(*COLUMNS)) == digest(source)
            print(f"what came out is {'equal' if same else 'NOT EQUAL'} to the source")
            run("generated", sl.generated(made, rate=rows), spark, Path(place), duration="1s")
            print(f"load {os.getloadavg()[0]:.1f}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
