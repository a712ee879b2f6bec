"""Spark Structured Streaming as a system under test: micro-batches, its own checkpoint, its own sink.

A driver program (`streaming_driver`) runs the query in a process group of its own, with its Java. When it
dies, it is started again with the same checkpoint, as `spark-submit --supervise` or Kubernetes would do.
Input is a directory of Parquet files that appear by rename, whole or not at all; the file source takes
them in the order of their times. Output is one of two sinks:

- `exactly-once` (what Spark offers): Parquet files with a log of those that count.
- `at-least-once`, a control that has to be caught: `foreachBatch` appends Parquet files and does not ask
  whether an earlier life has written the same batch. It waits a moment before it returns, so that a
  `kill driver on=round` always finds output that is written and not committed.

**The last windows.** Spark closes a window when its watermark has passed the end, and the watermark
follows the input. So after the last record comes one that is far in the future and no input: it lies in a
directory of its own (`file_input`), its own window never closes, and nobody sees it.

**Executors.** Unless asked for, there are none: the session is `local[n]`, one process that does all.
With `executors=2` it is a local cluster (`streaming_cluster`).
"""

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from snapline.batch import Batch
from snapline.chaos.faults import (
    At,
    Cut,
    Delay,
    During,
    Fault,
    KillDriver,
    KillExecutor,
    Partition,
    PauseDriver,
)
from snapline.core.guarantee import Guarantee
from snapline.errors import SnaplineError, UsageError
from snapline.storage.files.places import make_directory, write_whole
from snapline.storage.parquet.arrow import spark_schema
from snapline.systems.harness.base import Network, State, Target, VisibleRows, Work
from snapline.systems.harness.file_input import FileInput
from snapline.systems.harness.processes import Group
from snapline.systems.harness.supervisor import Supervisor
from snapline.systems.structured_streaming.cluster import LocalCluster
from snapline.systems.structured_streaming.driver import END, PROGRESS, DriverPlan, Sink
from snapline.systems.structured_streaming.files import (
    MicroBatches,
    RowsSoFar,
    logged_files,
    present_files,
    read_files,
    rows_in,
)
from snapline.systems.structured_streaming.program import (
    PLAN,
    REPORTS,
    last_words,
    launch,
    reported,
)
from snapline.systems.structured_streaming.queries import QUERIES
from snapline.systems.structured_streaming.shapes import flush_ms, shape_of
from snapline.wording import are, plural

START_S = 240.0
TRIGGER_MS = 100
HOLD_MS = 1_500
FILES_PER_BATCH = 8
"""The most files of a stream in one micro-batch: after an outage, input is caught up in steps."""

POLL_S = 0.05
EXECUTORS_MAX = 16
SINKS: Final[Mapping[str, Sink]] = {
    "exactly-once": "exactly-once",
    "at-least-once": "at-least-once",
}


class StructuredStreaming:
    """Runs Structured Streaming as a system under test."""

    name = "structured-streaming"

    def __init__(self, sink: str = "exactly-once", executors: str = "0") -> None:
        if sink not in SINKS:
            raise UsageError(f"{self.name} has the sinks {' and '.join(SINKS)}, not {sink!r}")
        if not (executors.isascii() and executors.isdigit()) or int(executors) > EXECUTORS_MAX:
            raise UsageError(f"executors= takes a number from 0 to {EXECUTORS_MAX}: {executors!r}")
        self.sink: Sink = SINKS[sink]
        self.executors = int(executors)
        self._work: Work | None = None
        self._fed: FileInput
        self._rows: RowsSoFar  #: of the run that was started
        self._cluster: LocalCluster | None = None
        self._driver = Supervisor(
            self._launch, self._ready, lambda: self._batches.committed, self._last_words
        )
        self._open: list[int] = []  #: micro-batches that were under way when a driver was killed

    # What it promises and can run.

    @property
    def promise(self) -> Guarantee:
        """The guarantee that Spark's documentation gives for such a sink."""
        return Guarantee(self.sink)

    @property
    def workloads(self) -> Collection[str]:
        """The names of the workloads that it can run."""
        return tuple(QUERIES)

    # Starting and ending.

    def start(self, work: Work) -> None:
        """Start the first driver, and wait until its query runs."""
        self._work = work
        self._fed = FileInput(work.directory, tuple(work.streams))
        self._cluster = LocalCluster(self.executors) if self.executors else None
        make_directory(self._reports)
        self._rows = RowsSoFar(self._reports / PROGRESS)
        self._plan(work).save(self._directory / PLAN)
        deadline = time.monotonic() + START_S
        while self.look() is not State.RUNNING:
            if self.problem is not None or time.monotonic() > deadline:
                raise SnaplineError(f"{self.name} does not start: {self.problem or 'no answer'}")
            time.sleep(POLL_S)

    def _plan(self, work: Work) -> DriverPlan:
        return DriverPlan(
            work.workload,
            {
                name: (self._fed.pattern(name), spark_schema(schema))
                for name, schema in work.streams.items()
            },
            shape_of(work.workload, work.params),
            self.sink,
            work.cores,
            self.executors,
            self._cluster.master if self._cluster is not None else None,
            self._cluster.settings if self._cluster is not None else {},
            str(self._sink),
            str(self._batches.checkpoint),
            str(self._reports),
            TRIGGER_MS,
            FILES_PER_BATCH,
            HOLD_MS,
        )

    def _launch(self) -> Group:
        return launch("snapline.systems.structured_streaming.driver", self._directory)

    def _ready(self) -> list[int] | None:
        """The id of its Java process, once the driver has reported it: then the query runs."""
        said = reported(self._directory)
        if said is None:
            return None
        if self._cluster is not None:
            self._cluster.logs_at(Path(said["logs"]))
        return [int(said["java"])]

    def _last_words(self) -> str:
        return last_words(self._directory)

    def stop(self) -> None:
        """Kill what still runs; a query needs no orderly end."""
        self._driver.stop()
        if self._cluster is not None:
            self._cluster.close()

    def look(self) -> State:
        """Whether the query runs; a driver that died is started again."""
        return self._driver.look()

    @property
    def problem(self) -> str | None:
        """Why it failed."""
        why = self._driver.problem
        return None if why is None else f"the driver of {self.name} does not come back: {why}"

    # Input.

    def input(self, stream: str, batch: Batch) -> None:
        """Write a file for the file source."""
        self._fed.give(stream, batch)

    def end_input(self) -> None:
        """Close the windows, and let the driver end when all is processed."""
        work = self._doing
        if at_ms := flush_ms(work.workload, work.params):
            for name, schema in work.streams.items():
                self._fed.flush(name, schema, at_ms)
        write_whole(self._reports / END, "")

    # Faults.

    def refusal(self, fault: Fault) -> str | None:
        """Why a fault cannot be done to it; None if it can."""
        match fault:
            case KillDriver(At() | During("round")) | PauseDriver():
                return None
            case KillDriver():
                return "its driver can be killed at a time, or on=round"
            case KillExecutor(number) if number < self.executors:
                return None
            case KillExecutor() if self.executors:
                return f"it has the executors 0 to {self.executors - 1}"
            case KillExecutor():
                return "its driver does all the work, unless it has executors: executors=2"
            case Delay() | Cut() | Partition() if self.executors:
                return None
            case Delay() | Cut() | Partition():
                return "its driver talks to nobody, unless it has executors: executors=2"
            case _:
                return "it has no slots and no store of ours; its driver can be killed or paused"

    def kill(self, target: Target, number: int = 0) -> list[int]:
        """Send SIGKILL to an executor, or to the driver, its Java and so to all executors."""
        if target == "executor":
            _, *java = self._driver.pids() or [0]
            return self._cluster.kill(java[0], number) if self._cluster and java else []
        hit = self._driver.kill()
        if hit and self._batches.committed < self._batches.planned:
            self._open.append(self._batches.planned)
        return hit

    def pause(self) -> list[int]:
        """Send SIGSTOP to the driver, its Java and its executors."""
        return self._driver.pause()

    def resume(self) -> None:
        """Send SIGCONT to all of them."""
        self._driver.resume()

    def disturb(self, fault: Network) -> int:
        """Make the network between the driver and all its executors slow, or cut it."""
        return self._cluster.disturb(fault) if self._cluster is not None else 0

    def in_round(self) -> bool:
        """Whether a micro-batch has written rows and is not committed."""
        number = self._batches.planned
        if number < 0:
            return False
        wrote = any(rows_in(file) for file in self._batches.younger(number, self._sink))
        return wrote and self._batches.committed < number

    # Output.

    def output(self) -> Mapping[str, list[VisibleRows]]:
        """The rows that a reader of the sink sees."""
        exact = self.sink == "exactly-once"
        files = logged_files(self._sink) if exact else present_files(self._sink)
        return {shape_of(self._doing.workload, self._doing.params).sink: read_files(files)}

    def late_output(self) -> None:
        """None: Spark has no late output and drops what is behind the watermark."""
        return None

    def figures(self) -> Mapping[str, int]:
        """Micro-batches that were committed, rows read and dropped behind the watermark, and restarts."""
        self._rows.look()
        return {
            "batches": self._batches.committed + 1,
            "read": self._rows.read,
            "dropped": self._rows.dropped,
            "restarts": self._driver.restarts,
        }

    def account(self) -> Sequence[str]:
        """Sentences about micro-batches that were under way at a kill, and rows behind the watermark."""
        exact, told = self.sink == "exactly-once", []
        for number in dict.fromkeys(self._open):
            again = (
                f"micro-batch {number} was under way when the driver was killed and was run again"
            )
            told.append(
                again if exact else f"{again}; this sink does not ask whether it was written"
            )
        if self._cluster is not None and self._cluster.killed:
            told.append("what an executor was doing when it was killed, others did again")
        if exact and (unread := len(present_files(self._sink)) - len(logged_files(self._sink))):
            files = f"{plural(unread, 'file')} of attempts that never ended {are(unread)}"
            told.append(f"{files} in no entry of the sink's log")
        if dropped := self.figures()["dropped"]:
            told.append(
                f"Spark dropped {plural(dropped, 'row')} behind its watermark: it has no late output"
            )
        return told

    # Where things are.

    @property
    def _doing(self) -> Work:
        if self._work is None:
            raise SnaplineError(f"{self.name} was not started")
        return self._work

    @property
    def _directory(self) -> Path:
        return self._doing.directory

    @property
    def _reports(self) -> Path:
        return self._directory / REPORTS

    @property
    def _sink(self) -> Path:
        return self._directory / "sink"

    @property
    def _batches(self) -> MicroBatches:
        return MicroBatches(self._directory / "checkpoint")
