"""The driver program of Structured Streaming under test: one query, from its checkpoint to the end.

`python -m snapline.systems.structured_streaming.driver PLAN.json` runs it, in a process of its own with a
Java of its own. It knows nothing of faults: it is started, perhaps killed, and started again with
the same plan, and goes on from the checkpoint that Spark itself has kept. It reports in files beside its
checkpoint:

driver.json      the process ids of this life, once the query runs
progress.jsonl   what Spark says of each micro-batch
failed.txt       why the query failed, in Spark's words

When the file `end` is there, all input is: what is available then is processed, and the program ends with
0.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from snapline.spark.slot_jobs import own_session
from snapline.storage.files.places import make_file, write_whole
from snapline.systems.harness.processes import die_with_parent
from snapline.systems.structured_streaming.queries import QUERIES
from snapline.systems.structured_streaming.shapes import QueryShape

DRIVER, PROGRESS, FAILED, END = "driver.json", "progress.jsonl", "failed.txt", "end"
POLL_S = 0.1
EXECUTORS_S = 60.0

Sink = Literal["exactly-once", "at-least-once"]


@dataclass(frozen=True, slots=True)
class DriverPlan:
    """All that a life of the driver needs to know."""

    workload: str
    streams: dict[str, tuple[str, str]]  # name -> (the files of it, its schema as Spark writes it)
    shape: QueryShape
    sink: Sink
    cores: int
    executors: int  # 0: the driver does the work itself
    master: str | None  # Spark's master, if there are executors; None if there are none
    settings: dict[str, str]  # of Spark
    output: str
    checkpoint: str
    reports: str  # the directory for the driver's reports
    trigger_ms: int
    files_per_batch: int  # the most files of each stream in one micro-batch
    hold_ms: int  # how long the at-least-once sink waits between its write and its return

    def save(self, path: Path) -> None:
        """Write the plan to a file for the driver."""
        write_whole(path, json.dumps(asdict(self), indent=2))

    @staticmethod
    def load(path: Path) -> "DriverPlan":
        """Read what `save` wrote."""
        fields = json.loads(path.read_text())
        return DriverPlan(**{**fields, "shape": QueryShape(**fields["shape"])})


def main(plan: DriverPlan) -> int:
    """Run the query until all input is processed."""
    reports = Path(plan.reports)
    parallel = {"spark.sql.shuffle.partitions": str(plan.cores)}
    spark = own_session(plan.cores, master=plan.master, settings={**parallel, **plan.settings})
    try:
        _await_executors(spark, plan.executors)
        query = start_query(spark, plan)
        write_whole(reports / DRIVER, json.dumps(processes(spark)))
        watch(query, reports, ProgressFile(reports))
        query.stop()
    except PySparkException as error:
        write_whole(reports / FAILED, str(error))
        return 1
    finally:
        spark.stop()
    return 0


def _await_executors(spark: SparkSession, count: int) -> None:
    """Wait until the executors are there, or for as long as they may take."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()  # that of Python has no executors
    deadline = time.monotonic() + EXECUTORS_S
    while len(tracker.getExecutorInfos()) <= count and time.monotonic() < deadline:
        time.sleep(POLL_S)  # the driver itself is counted as one of them


def start_query(spark: SparkSession, plan: DriverPlan) -> StreamingQuery:
    """Start the query of a plan."""
    streams = {
        name: spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", plan.files_per_batch)
        .parquet(files)
        for name, (files, schema) in plan.streams.items()
    }
    result = QUERIES[plan.workload](streams, plan.shape)
    writer = result.writeStream.outputMode("append").queryName(plan.workload)
    writer = writer.trigger(processingTime=f"{plan.trigger_ms} milliseconds")
    writer = writer.option("checkpointLocation", plan.checkpoint)
    if plan.sink == "exactly-once":
        return writer.format("parquet").option("path", plan.output).start()

    def append(batch: DataFrame, number: int) -> None:
        # This is the mistake that the control makes on purpose: it does not check if the batch was written.
        batch.write.mode("append").parquet(plan.output)
        time.sleep(plan.hold_ms / 1000)

    return writer.foreachBatch(append).start()


class ProgressFile:
    """Writes down what Spark says of each micro-batch, each once; any thread may ask for it."""

    def __init__(self, reports: Path) -> None:
        self._file = os.fdopen(make_file(reports / PROGRESS, os.O_APPEND), "a")
        self._lock = threading.Lock()
        self._told = -1

    def note(self, query: StreamingQuery) -> None:
        """Write down the micro-batches that ended since the last time."""
        with self._lock:
            for progress in _progresses(query):
                number = progress["batchId"]
                if number > self._told and "addBatch" in progress["durationMs"]:
                    self._file.write(json.dumps(progress) + "\n")
                    self._told = number
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def watch(query: StreamingQuery, reports: Path, progress: ProgressFile) -> None:
    """Note the progress until the end of input, then process what is there."""
    while query.isActive and not (reports / END).exists():
        time.sleep(POLL_S)
        progress.note(query)
    query.processAllAvailable()
    progress.note(query)
    progress.close()


def _progresses(query: StreamingQuery) -> Iterator[dict[str, Any]]:
    for progress in query.recentProgress:
        yield json.loads(progress.json)


def processes(spark: SparkSession) -> dict[str, Any]:
    """The ids of this process and its Java, and where a local cluster keeps the logs of its executors."""
    gateway: Any = spark.sparkContext._gateway  # nothing public says which process Java is
    logs = Path(pyspark.__file__).parent / "work" / str(spark.sparkContext.applicationId)
    return {"python": os.getpid(), "java": gateway.proc.pid, "logs": str(logs)}


if __name__ == "__main__":
    threading.Thread(target=die_with_parent, daemon=True).start()
    sys.exit(main(DriverPlan.load(Path(sys.argv[1]))))
