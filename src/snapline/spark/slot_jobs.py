"""Slots as Spark jobs: one job of one long-running task per slot.

A dead slot must not take the others with it, so each is a Spark job of its own, submitted from a thread of
the driver. `SlotJobs` launches them, cancels them and tells when one has ended, for whatever reason. Who a
process is (slot, incarnation, spare) is not decided here: it asks the coordinator once it runs.

What Spark does with such a job, and what follows from it:

- **A killed Python process** ends its job at once on `local[n]`. On a cluster Spark first tries the task
  again, up to `spark.task.maxFailures` times; each try is a new process that registers like any other.
- **A cancelled job** is over for the driver at once, but its process lives on until its next row finds
  nobody. One that stands still is killed by Spark: `spark.python.task.killTimeout` (2 s unless set) after
  Spark looked, which it does not do often. Hence two moments: a job has `ended`, and a second or two later
  its core is `released`; a process that has lost its reader may be there for a second more.
- **A row each second** says that a slot lives. Spark's pages count these rows, and no time-out for workers
  that return nothing kills the slot; whether it works, the driver learns from its heartbeats. The slot runs
  in a thread of its own, beside the one that talks to Spark.
- **The task's input is not read to its end.** A Python process that leaves input behind is not used again
  by Spark: a slot that has returned is gone, with its sockets and threads, and nobody's task inherits it.
- **Code may lie in files.** Spark writes a closure of more than 1 MB to one, and a smaller one when memory
  is short. So the secret of a run is in no closure: it is the one record of the task's input, which travels
  with the task itself, from memory to memory, and is in no plan, page or event log.

The session is the user's: it is used and never stopped. Its workers must be able to import `snapline`: it
is installed there, or shipped with `--py-files` or `addPyFile`. Without a session, `own_session` makes one.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from logging import getLogger
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pyspark
from pyspark import SparkContext, SparkStageInfo, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from snapline.batch import Batch
from snapline.errors import NoSpark, SnaplineError, UsageError
from snapline.kernels import cache
from snapline.spark.java import keep
from snapline.spark.pool import POOL, ensure_pool
from snapline.spark.ready import check_version, reason
from snapline.spark.starting import (
    QUIET_LOGGING,
    Aside,
    environment,
    launch_environment,
    start_session,
)
from snapline.storage.parquet.arrow import to_spark

_LOG = getLogger(__name__)


CANCEL_AGAIN_SECONDS = 0.2
RELEASE_POLL_SECONDS = 0.1
RELEASE_SECONDS_MAX = 60.0

TASKS_MAX = 100
"""How many tries of a slot's task are looked at."""

PROGRESS_SECONDS = 1.0
PROGRESS = "second long, padding binary"
_PADDING = bytes(int(os.environ.get("SPARK_BUFFER_SIZE", 1 << 16)) + 64)
"""PySpark writes through a buffer and empties it when it is full: a row that is larger leaves at once."""

#: Compiling less halves the start-up time on few cores. It costs nothing here: slots are Python, and Java
#: only starts them, and judges small runs. Java then reserves room for only 48 MB of compiled code, which a
#: session that judges many runs fills, and then fails; with this it has as much as Java usually has.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def own_session(
    slots: int,
    spares: int = 0,
    master: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    java_options: str = QUICK_START,
) -> SparkSession:
    """Start a local session that logs little, with a core for every slot and spare and one more."""
    if SparkContext._active_spark_context is not None:
        raise UsageError("this process has a Spark session already: pass it, or stop it first")
    cache.compile_beside()
    logging = keep("log4j2.properties", QUIET_LOGGING)
    options = f"-Dlog4j2.configurationFile={logging.as_uri()} {java_options}"
    cores = slots + spares + 1
    master = master or f"local[{cores}]"
    chosen: dict[str, Any] = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.python.daemon.module": "snapline.spark.daemon",
        "spark.python.task.killTimeout": "200ms",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **settings,
    }
    check_version(pyspark.__version__)
    _LOG.info("starting Spark %s with the master %s", pyspark.__version__, master)
    builder = SparkSession.builder.appName("snapline").master(master).config(map=chosen)
    with environment(launch_environment()):
        try:
            return start_session(builder.getOrCreate)
        except Exception as error:
            raise NoSpark(
                f"Spark does not start ({reason(error)}): 'snapline doctor --try-spark' looks for the cause"
            ) from error


def batch_session(memory_mb: int, settings: Mapping[str, str]) -> SparkSession:
    """Start a local session for a job over much data: all cores, this much memory, Java's full compiler."""
    cores = len(os.sched_getaffinity(0))
    memory = {"spark.driver.memory": f"{memory_mb}m"}
    return own_session(cores, 0, f"local[{cores}]", {**memory, **settings}, java_options="")


def submitted_session() -> SparkSession | None:
    """The session of `spark-submit`, if that has started this program; None if not."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    return Aside(SparkSession.builder.getOrCreate).result()


def available_slots(spark: SparkSession) -> int:
    """How many tasks Spark says it can run at once. A hint: only trying shows what is free."""
    cpus_per_task = int(spark.conf.get("spark.task.cpus", "1") or 1)
    return max(1, spark.sparkContext.defaultParallelism // cpus_per_task)


def is_stopped(spark: SparkSession) -> bool:
    """Whether a session was stopped, or its Java has ended."""
    context: Any = spark._sc
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:  # py4j raises many kinds when nobody answers
        return True


class JobEnding(Enum):
    """Why the job of a slot ended before its body had returned."""

    CANCELLED = "cancelled"
    DIED = "its process died"
    RAISED = "its code raised"
    REFUSED = "Spark could not run it"


#: Patterns of Spark's error messages and what each means; the first one that is found decides.
SIGNS = (
    (JobEnding.CANCELLED, r"Job \d+ cancelled[^.\n]*?(?= SQLSTATE|\n|$)"),
    (JobEnding.DIED, r"Python worker exited unexpectedly[^.\n]*"),
    (JobEnding.DIED, r"Unexpected end of input[^.\n]*"),  # it was killed while it wrote a row
    (JobEnding.DIED, r"ExecutorLostFailure[^.\n]*"),
)


class SlotFailure(SnaplineError):
    """The job of a slot ended before its body had returned: how it ended, and with which message."""

    def __init__(self, ending: JobEnding, story: str) -> None:
        super().__init__(f"{ending.value}: {story}")
        self.ending = ending
        self.story = story


@dataclass(eq=False, slots=True)
class SlotJob:
    """One launched job. `ended` for the driver first, then `released`: its core is free."""

    name: str
    tag: str
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


Body = Callable[[bytes], None]
OnExit = Callable[[SlotJob, SlotFailure | None], None]


class SlotJobs:
    """The Spark jobs of one run: launched, cancelled, and reported once when they end.

    `body` runs in each of them, and is given `secret`; it may be anything that cloudpickle can carry, also
    a function of a script or a notebook. `on_exit` is called from a thread of its own per job, exactly
    once. No call here waits for Spark, except `stop`.
    """

    def __init__(
        self,
        spark: SparkSession,
        body: Body,
        on_exit: OnExit,
        secret: bytes = b"",
        tag_prefix: str = "snapline",
    ) -> None:
        self._context = _classic_context(spark)
        # One DataFrame serves all launches, so Spark plans and compiles it once: that halves a restart.
        one_task = _as_input(spark, self._context, secret)
        rows = one_task.mapInArrow(_map_function(body), PROGRESS)
        # Spark counts the rows and throws them away: of a job without an end nothing may pile up.
        self._frame = rows.where("second < 0")
        self._in_pool = ensure_pool(self._context)
        self._on_exit = on_exit
        self._tag_prefix = f"{tag_prefix}-{uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._launched = 0
        self._jobs: list[SlotJob] = []
        self._stopped = False

    def launch(self, name: str) -> SlotJob:
        """Submits one more job; its process starts as soon as Spark has a core for it."""
        with self._lock:
            if self._stopped:
                raise SnaplineError(f"cannot launch {name}: these jobs were stopped")
            self._launched += 1
            # Every launch has a tag of its own, so cancelling a lost slot never hits its replacement.
            job = SlotJob(name, f"{self._tag_prefix}-{self._launched}")
            self._jobs = [*(old for old in self._jobs if not old.released.is_set()), job]
        threading.Thread(target=self._live, args=(job,), name=job.tag, daemon=True).start()
        _LOG.info("launched %s as the Spark job %s", name, job.tag)
        return job

    def cancel(self, job: SlotJob) -> None:
        """Ends a job, running or still waiting for a core; the process is killed if it does not end."""
        if job.ended.is_set() or job.cancelled.is_set():
            return
        job.cancelled.set()
        _LOG.info("cancelling %s", job.tag)
        name = f"{job.tag} cancel"
        threading.Thread(target=self._cancel, args=(job,), name=name, daemon=True).start()

    def stop(self, timeout: float = 30.0) -> list[SlotJob]:
        """Cancels what runs and waits until its cores are free; returns those that still are not."""
        with self._lock:
            self._stopped = True
            jobs = list(self._jobs)
        for job in jobs:
            self.cancel(job)
        deadline = time.monotonic() + timeout
        return [job for job in jobs if not job.released.wait(max(0.0, deadline - time.monotonic()))]

    def _live(self, job: SlotJob) -> None:
        """Submit a job and wait for its end, in a driver thread that Spark pairs with one of the JVM."""
        failure = None
        try:
            self._submit(job)
        except Exception as error:
            failure = slot_failure(error)
        job.ended.set()
        _LOG.info("%s has ended%s", job.tag, "" if failure is None else f": {failure}")
        try:
            self._on_exit(job, failure)
        finally:
            if failure is not None:
                self._await_release(job)
            job.released.set()

    def _submit(self, job: SlotJob) -> None:
        # The group gives the job its name in Spark's pages, and lets us find its stages.
        self._context.setJobGroup(job.tag, job.name)
        self._context.addJobTag(job.tag)
        if self._in_pool:
            self._context.setLocalProperty("spark.scheduler.pool", POOL)
        if job.cancelled.is_set():
            raise SlotFailure(JobEnding.CANCELLED, "before it was submitted")
        self._frame.collect()

    def _cancel(self, job: SlotJob) -> None:
        # Spark only cancels jobs that have been submitted, and this one may just be: so ask until it ended.
        with suppress(Exception):  # a stopped or lost Spark has ended the job itself
            self._context.cancelJobsWithTag(job.tag)
            while not job.ended.wait(CANCEL_AGAIN_SECONDS):
                self._context.cancelJobsWithTag(job.tag)

    def _await_release(self, job: SlotJob) -> None:
        # What Spark says about its tasks may be 0.1 s old, so it must say twice that none is left.
        deadline = time.monotonic() + RELEASE_SECONDS_MAX
        quiet = 0
        with suppress(Exception):  # a stopped or lost Spark has no tasks
            while quiet < 2 and time.monotonic() < deadline:
                quiet = 0 if self._active_tasks(job) else quiet + 1
                time.sleep(RELEASE_POLL_SECONDS)

    def _active_tasks(self, job: SlotJob) -> int:
        return sum(stage.numActiveTasks for stage in self._stages(job))

    def _stages(self, job: SlotJob) -> list[SparkStageInfo]:
        tracker = self._context.statusTracker()
        infos = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(job.tag)]
        stages = [
            tracker.getStageInfo(number) for info in infos if info for number in info.stageIds
        ]
        return [stage for stage in stages if stage]

    def executors(self, job: SlotJob) -> set[str]:
        """Where the tasks of a job run, by Spark's ids of executors; none while it waits for a core."""
        found, store = set(), self._context._jsc.sc().statusStore()
        for stage in self._stages(job):
            tasks = store.taskList(stage.stageId, stage.currentAttemptId, TASKS_MAX)
            every = [tasks.apply(number) for number in range(tasks.size())]
            found |= {str(task.executorId()) for task in every if task.status() == "RUNNING"}
        return found


def slot_failure(error: Exception) -> SlotFailure:
    """What a failed job means for its slot, without the stack of Spark's own code."""
    if isinstance(error, SlotFailure):
        return error
    text = str(error)
    if "Traceback (most recent call last)" in text:
        return SlotFailure(JobEnding.RAISED, text[text.index("Traceback") :].strip())
    for ending, sign in SIGNS:
        if said := re.search(sign, text):
            return SlotFailure(ending, said[0].rstrip(". "))
    return SlotFailure(JobEnding.REFUSED, text.strip() or type(error).__name__)


def _as_input(spark: SparkSession, context: SparkContext, secret: bytes) -> DataFrame:
    """A DataFrame of one partition with one record, the secret, which is made inside Java.

    Whatever Python gives to Spark as data goes through a file, and a constant of a query is shown wherever
    its plan is. A collection of Java's is a part of the task that Spark sends to an executor.
    """
    java: Any = context._jvm
    session: Any = spark._jsparkSession
    gateway: Any = context._gateway
    values = gateway.new_array(java.java.lang.Object, 1)
    values[0] = bytearray(secret)
    rows = java.java.util.ArrayList()
    rows.add(java.org.apache.spark.sql.RowFactory.create(values))
    schema = StructType([StructField("secret", BinaryType(), nullable=False)])
    records = context._jsc.parallelize(rows, 1)
    return DataFrame(session.createDataFrame(records, session.parseDataType(schema.json())), spark)


def _map_function(body: Body) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What Spark runs in the task: `body` with the one record that it reads, and rows that say it lives."""
    try:
        pickler: Any = cloudpickle  # it has no types
        pickler.dumps(body)
    except Exception as error:
        raise UsageError(f"the slots' code cannot be sent to Spark's workers: {error}") from error

    def slot_main(batches: Iterator[Any]) -> Iterator[Any]:
        # What follows the first record is left: see the top of this file.
        secret = next(batches).column(0)[0].as_py()
        call = Aside(lambda: body(secret))
        second = 0
        while not call.wait(PROGRESS_SECONDS):
            second += 1
            yield to_spark(Batch.of(second=[second], padding=[_PADDING]))
        call.result()

    return slot_main


def _classic_context(spark: SparkSession) -> SparkContext:
    """The context of a session that can do what slots need, or one clear message."""
    try:
        context = spark.sparkContext
    except PySparkException as error:
        raise UsageError("slots need a classic Spark session, not Spark Connect") from error
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        raise UsageError(
            "slots need a JVM thread each: start Spark without PYSPARK_PIN_THREAD=false"
        )
    return context
