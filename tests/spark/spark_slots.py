"""Slots whose whole work is to be seen and killed, and how to look at their processes."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from snapline.spark.slot_jobs import Body, SlotFailure, SlotJob, SlotJobs

PATIENCE_SECONDS = 180  # a Spark needs a minute to start where others are at work


def eventually(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"in vain for {PATIENCE_SECONDS} s: {what}"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """A process that is there, and not as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def sleeper(directory: Path, seconds: float = 600.0) -> Body:
    """A body that leaves its pid behind and sleeps. A closure: workers cannot import the tests."""

    def body(_secret: bytes) -> None:
        (directory / str(os.getpid())).touch()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.02)

    return body


def pids(directory: Path) -> set[int]:
    """The processes that a sleeper has had, dead or alive."""
    return {int(path.name) for path in directory.iterdir()}


class Slots:
    """Slot jobs whose processes and ends are kept in view."""

    def __init__(self, spark: SparkSession, directory: Path, body: Body) -> None:
        self.directory = directory
        self.ends: dict[SlotJob, SlotFailure | None] = {}
        self.jobs = SlotJobs(spark, body, self.ended)
        self._lock = threading.Lock()

    def ended(self, job: SlotJob, failure: SlotFailure | None) -> None:
        with self._lock:
            assert job not in self.ends, "told twice"
            self.ends[job] = failure

    def pids(self) -> set[int]:
        return pids(self.directory)

    def next_pid(self, before: set[int]) -> int:
        """The process that was not there before."""
        eventually(lambda: self.pids() - before, "a new process")
        (pid,) = self.pids() - before
        return pid

    def launch(self, name: str) -> tuple[SlotJob, int]:
        """A job whose process runs."""
        before = self.pids()
        job = self.jobs.launch(name)
        return job, self.next_pid(before)
