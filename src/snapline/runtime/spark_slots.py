"""Slots as Spark jobs: the launcher that the driver uses."""

import threading
from collections.abc import Callable

from pyspark import TaskContext
from pyspark.sql import SparkSession

from snapline.runtime.slot_process import SlotProcess, SlotSpec
from snapline.runtime.spark import Ending, SlotFailure, SlotJob, SlotJobs

_TAGS = "spark.job.tags"
REFUSALS_MAX = 8
"""So many jobs in a row that end before they were a slot mean that none ever will be."""


class SparkSlots:
    """Starts one Spark job per process, from the user's session."""

    def __init__(self, spark: SparkSession, on_hopeless: Callable[[str], None]) -> None:
        self._spark = spark
        self._on_hopeless = on_hopeless
        self._jobs: SlotJobs | None = None
        self._by_tag: dict[str, SlotJob] = {}
        self._refusals = 0
        self._trouble: str | None = None
        self._lock = threading.Lock()

    def start(self, spec: SlotSpec, secret: bytes) -> None:
        """Remember what the processes are to run, and the secret of the run."""

        def body(secret: bytes) -> None:
            context = TaskContext.get()
            tags = (context.getLocalProperty(_TAGS) or "") if context is not None else ""
            SlotProcess(spec, secret, tags).run()

        self._jobs = SlotJobs(self._spark, body, self._on_exit, secret)

    def launch(self) -> None:
        """Start one more process."""
        assert self._jobs is not None
        job = self._jobs.launch("slot")
        with self._lock:
            self._by_tag[job.tag] = job

    def _on_exit(self, job: SlotJob, failure: SlotFailure | None) -> None:
        with self._lock:
            self._by_tag.pop(job.tag, None)
            refused = failure is not None and failure.ending in (Ending.REFUSED, Ending.RAISED)
            self._refusals = self._refusals + 1 if refused else 0
            hopeless = self._refusals >= REFUSALS_MAX
            if failure is not None and refused:
                self._trouble = _in_short(failure)
        if hopeless:
            self._on_hopeless(f"the slots do not run: {self._trouble}")

    def trouble(self) -> str | None:
        """Why the last process that could not run did not."""
        return self._trouble

    def cancel(self, tag: str) -> None:
        """End the process that introduced itself with these tags, even if it stands still."""
        with self._lock:
            jobs = [job for known, job in self._by_tag.items() if known in tag]
        for job in jobs:
            assert self._jobs is not None
            self._jobs.cancel(job)

    def stop(self) -> None:
        """End all that still run."""
        if self._jobs is not None:
            self._jobs.stop()


def _in_short(failure: SlotFailure) -> str:
    """What we raised on purpose says itself what is wrong; for all else the whole story is needed."""
    kind, _, message = failure.story.rpartition("\n")[2].partition(": ")
    return message if kind.startswith("snapline.errors.") else str(failure)
