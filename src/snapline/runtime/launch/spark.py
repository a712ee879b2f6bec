"""Slots as Spark jobs: the launcher that the driver uses."""

import threading

from pyspark import TaskContext
from pyspark.sql import SparkSession

from snapline.runtime.launch.decommissioning import DecommissionWatch, is_watched
from snapline.runtime.launch.launcher import LauncherGone, OnExit, OnLeaving
from snapline.runtime.slot.process import SlotProcess, SlotSpec
from snapline.spark.slot_jobs import JobEnding, SlotFailure, SlotJob, SlotJobs, is_stopped

_TAGS = "spark.job.tags"


class SparkSlots:
    """Starts one Spark job per process, from the user's session."""

    def __init__(self, spark: SparkSession, flow: str = "snapline") -> None:
        self._spark = spark
        self._flow = flow  #: whose slots they are: so its jobs are called in Spark's pages
        self._jobs: SlotJobs | None = None
        self._on_exit: OnExit = lambda tag, why: None
        self._by_tag: dict[str, SlotJob] = {}
        self._lock = threading.Lock()
        self._watch: DecommissionWatch | None = None

    def start(self, spec: SlotSpec, secret: bytes, on_exit: OnExit, on_leaving: OnLeaving) -> None:
        """Remember what the processes are to run, and who is told when one has ended, or is to leave."""

        def body(secret: bytes) -> None:
            context = TaskContext.get()
            tags = (context.getLocalProperty(_TAGS) or "") if context is not None else ""
            SlotProcess(spec, secret, tags).run()

        self._on_exit = on_exit
        self._jobs = SlotJobs(self._spark, body, self._ended, secret)
        if is_watched(self._spark.sparkContext):
            self._watch = DecommissionWatch(self._spark.sparkContext, self._executors, on_leaving)
            self._watch.start()

    def launch(self, role: str) -> str:
        """Start one more process; return its tag, one of those with which it introduces itself."""
        assert self._jobs is not None
        if is_stopped(self._spark):
            raise LauncherGone(
                "the Spark session was stopped while the run went on: resume it with another session"
            )
        with self._lock:  # a job that ends at once is entered BEFORE it is removed
            job = self._jobs.launch(f"{self._flow}/{role}")
            self._by_tag[job.tag] = job
        return job.tag

    def _executors(self) -> dict[str, set[str]]:
        """By tag, the executors on which the processes of a job run."""
        with self._lock:
            known = dict(self._by_tag)
        return {} if self._jobs is None else {t: self._jobs.executors(j) for t, j in known.items()}

    def _ended(self, job: SlotJob, failure: SlotFailure | None) -> None:
        with self._lock:
            self._by_tag.pop(job.tag, None)
        self._on_exit(job.tag, in_short(failure) if failure is not None else None)

    def cancel(self, tag: str) -> None:
        """End the process with this tag, even if it stands still."""
        with self._lock:
            job = self._by_tag.get(tag)
        if job is not None and self._jobs is not None:
            self._jobs.cancel(job)

    def stop(self) -> None:
        """End all that still run."""
        if self._watch is not None:
            self._watch.stop()
        if self._jobs is not None:
            self._jobs.stop()


def in_short(failure: SlotFailure) -> str:
    """Why the job of a slot ended, in one line; our own errors come without their class name."""
    if failure.ending is not JobEnding.RAISED:
        first = failure.story.strip().partition("\n")[0]
        return f"a process is gone: {failure.ending.value} ({first})"
    last = failure.story.rpartition("\n")[2]
    kind, _, message = last.partition(": ")
    return message if kind.startswith("snapline.errors.") else last
