"""The driver program of a user's own query: from its checkpoint to the end of its input.

`python -m snapline.systems.own_query.driver PLAN.json` runs it, in a process of its own with a Java of its
own. It is started, perhaps killed, and started again, and goes on from the checkpoint that Spark itself has
kept. What it reports, and when it ends, is as in `structured_streaming.driver`; one file more says which
micro-batch was put out last, by which process (`written`).

The query puts its micro-batches out by `foreachBatch`: with the user's function, or into a directory per
micro-batch that is overwritten if the micro-batch is run again. In one micro-batch, which the plan names,
it then stands still for a moment, so that a kill finds output that is written and not committed.
"""

import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from snapline.spark.slot_jobs import own_session
from snapline.storage.files.places import write_whole
from snapline.systems.harness.processes import die_with_parent
from snapline.systems.structured_streaming.driver import (
    DRIVER,
    FAILED,
    ProgressFile,
    processes,
    watch,
)

Build: TypeAlias = Callable[[DataFrame], DataFrame]
"""A query without a source and without a sink."""

Write: TypeAlias = Callable[[DataFrame, int], None]
"""What `foreachBatch` takes: puts the rows of a micro-batch out, whose number is given."""

WRITTEN = "written"
HOLD_S = 20.0
"""How long a micro-batch stands still at most; whoever waits for it kills it at once."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """All that a life of the driver needs to know."""

    schema: dict[str, Any]  # of the input, as Spark writes it as JSON
    functions: str  # the file with `build` and `write`, pickled
    mode: str  # Spark's output mode
    cores: int
    settings: dict[str, str]  # of Spark
    input: str
    output: str
    checkpoint: str
    reports: str
    hold_from: int | None  # the first micro-batch that stands still; None: none does

    def save(self, path: Path) -> None:
        """Write the plan to a file for the driver."""
        write_whole(path, json.dumps(asdict(self), indent=2))

    @staticmethod
    def load(path: Path) -> "QueryPlan":
        """Read what `save` wrote."""
        return QueryPlan(**json.loads(path.read_text()))


class QuerySink:
    """Puts micro-batches out, and writes down what a kill would take away."""

    def __init__(self, spark: SparkSession, write: Write, plan: QueryPlan) -> None:
        self._spark = spark
        self._write = write
        self._hold_from = plan.hold_from
        self._reports = Path(plan.reports)
        self.progress = ProgressFile(self._reports)
        self.failure: str | None = None  #: what `write` raised

    def put_out(self, batch: DataFrame, number: int) -> None:
        """Put a micro-batch out, and stand still if a kill waits for that."""
        for query in self._spark.streams.active:
            self.progress.note(query)  # Spark has reported on all micro-batches before this one
        try:
            self._write(batch, number)
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            self.failure = f"write failed in micro-batch {number}: {type(error).__name__}: {first}"
            raise
        write_whole(self._reports / WRITTEN, f"{os.getpid()} {number}")
        if self._hold_from is not None and number >= self._hold_from:
            time.sleep(HOLD_S)


def main(plan: QueryPlan) -> int:
    """Run the query until all input is processed."""
    reports = Path(plan.reports)
    spark = own_session(plan.cores, master=f"local[{plan.cores}]", settings=plan.settings)
    build: Build
    write: Write | None
    build, write = pickle.loads(Path(plan.functions).read_bytes())
    sink = QuerySink(spark, write or _to_directories(plan.output), plan)
    try:
        query = start_query(build(_input(spark, plan)), sink, plan)
        write_whole(reports / DRIVER, json.dumps(processes(spark)))
        watch(query, reports, sink.progress)
        query.stop()
    except Exception as error:  # the code is the user's: it may raise anything
        write_whole(reports / FAILED, sink.failure or f"{type(error).__name__}: {error}")
        return 1
    finally:
        spark.stop()
    return 0


def _input(spark: SparkSession, plan: QueryPlan) -> DataFrame:
    """The stream of files, one in each micro-batch."""
    files = spark.readStream.schema(StructType.fromJson(plan.schema))
    return files.option("maxFilesPerTrigger", 1).parquet(plan.input)


def start_query(stream: DataFrame, sink: QuerySink, plan: QueryPlan) -> StreamingQuery:
    """Start the query of a plan, from its checkpoint if there is one."""
    writer = stream.writeStream.outputMode(plan.mode)
    writer = writer.option("checkpointLocation", plan.checkpoint)
    return writer.foreachBatch(sink.put_out).start()


def _to_directories(output: str) -> Write:
    def overwrite(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{output}/{number:06}")

    return overwrite


if __name__ == "__main__":
    threading.Thread(target=die_with_parent, daemon=True).start()
    sys.exit(main(QueryPlan.load(Path(sys.argv[1]))))
