"""How long a killed slot takes to come back beside another job of the same session.

    python -m benchmarks.engine.beside

q12 on 2 slots of a session with 4 cores; slot 1 is killed six seconds after the start: once alone, once
beside a job of 1,000 tasks of 0.1 s each under Spark's fair scheduler, with the pool of slots, and once
beside it under FIFO, which is Spark's own default. Prints the times of one run each: kill -> noticed
(detection), noticed -> all tasks ready (restart), and whether the output was right.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

import snapline as sl
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobRunning
from snapline.metrics.second import Second
from snapline.spark.session_settings import SettingsHurt
from snapline.spark.slot_jobs import own_session
from snapline.spark.starting import Aside

TAG = "beside"


class Neighbour:
    """A watcher that starts a job of many short tasks when the slots run."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self.spark = spark
        self.tasks = tasks
        self.jobs: list[Aside[None]] = []

    def event(self, happened: Happened) -> None:
        if self.tasks and not self.jobs and isinstance(happened.what, JobRunning):
            self.jobs.append(Aside(self._work))

    def second(self, second: Second) -> None:
        """Do nothing: only events matter."""

    def _work(self) -> None:
        context = self.spark.sparkContext
        context.addJobTag(TAG)
        context.parallelize(range(self.tasks), self.tasks).foreach(lambda _: time.sleep(0.1))

    def leave(self) -> None:
        self.spark.sparkContext.cancelJobsWithTag(TAG)
        for job in self.jobs:
            job.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SettingsHurt)
    print("beside          scheduler  detection  restart  verdict")
    measure("nothing", 0, "FAIR")
    for mode in ("FAIR", "FIFO"):
        measure(f"{asked.tasks} tasks", asked.tasks, mode)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def measure(what: str, tasks: int, mode: str) -> None:
    spark = own_session(3, settings={"spark.scheduler.mode": mode})
    neighbour = Neighbour(spark, tasks)
    with tempfile.TemporaryDirectory() as runs:
        run = sl.run(
            "q12",
            spark,
            slots=2,
            rate=1_000,
            interval="1s",
            duration="12s",
            faults="kill slot=1 at=6s",
            runs=Path(runs),
            watcher=neighbour,
        )
    neighbour.leave()
    spark.stop()
    times = [run.metrics[name] for name in ("detection_s", "restart_s")]
    detection, restart = (f"{each[0]} s" if each and each[0] else "-" for each in times)
    print(f"{what:15} {mode:9}  {detection:9}  {restart:7}  {run.verdict.kept}", flush=True)


if __name__ == "__main__":
    main()
