"""A dataflow on real slots, on Spark or as plain processes: what all benchmarks of the engine run.

Everything but the start of a process is the same: sockets, files, checkpoints, heartbeats. Time counts from
the moment at which the first record is due to the last pulse in which something was read or written; CPU
time is that of all slots from the same moment on to the end of the job.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.on_spark import OnSpark
from benchmarks.common.usage import Usage
from snapline.batch import Batch
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.engine.job import Job, Settings
from snapline.ids import TaskId
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import Happening
from snapline.metrics.second import Second, Volume
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RETAIN, RunDirectory
from snapline.runs.drive import drive
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.timeline import Timeline
from snapline.runtime.launch import processes
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.launch.processes import ProcessSlots
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import View, rows_of

SETTINGS = Settings()  # as any run has them
#: a heartbeat says what was read: so the end of a run is known to 50 ms
TIMEOUTS = Timeouts(heartbeat_s=0.05, silence_s=30, lease_s=30, register_s=300, restore_s=60)
#: for runs at a rate, whose end is known, and whose CPU time counts: heartbeats as any run has them
PACED_TIMEOUTS = Timeouts(silence_s=30, lease_s=30, register_s=300, restore_s=60)
#: a slot that has its compiled kernels before input is due, as one that Spark forks
PROGRAM = f"from snapline.kernels import cache\ncache.load()\n{processes.PROGRAM}"
PATIENCE_S = 20.0  # for a process to end by itself
BATCH = 4_000  # records: the unit in which costs are told


class Slots(ProcessSlots):
    """Processes that are let end by themselves: what they write at their end is there then."""

    def stop(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        for process in self.processes.values():
            how = os.WEXITED | os.WNOWAIT | os.WNOHANG
            while time.monotonic() < deadline_s and not os.waitid(os.P_PID, process.pid, how):
                time.sleep(0.005)
        super().stop()


class Stopwatch(Timeline):
    """Adds up what was read and written, and remembers when that was last, to a heartbeat."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = 0
        self.last_s = 0.0
        self.happened: Counter[type[Happening]] = Counter()

    def see(self, entry: Entry) -> None:
        super().see(entry)
        if isinstance(entry, Happened):
            self.happened[type(entry.what)] += 1

    def pulse(self, slot: int, pulse: Pulse) -> None:
        super().pulse(slot, pulse)
        if pulse.read or pulse.written:
            self.read += pulse.read
            self.written += pulse.written
            self.last_s = time.time()


@dataclass
class Finished:
    """A run that is over; its files are there as long as the `with` block lasts."""

    job: Job
    directory: RunDirectory
    elapsed_s: float
    read: int  # by sources; what was read again after a rollback counts again
    written: int  # by sinks
    usage: Usage
    seconds: list[Second]
    happened: Counter[type[Happening]]  # what stands in the driver's journal, and how often
    volume: Volume = field(default_factory=Volume)

    def __post_init__(self) -> None:
        for second in self.seconds:
            self.volume.add(second.volume)

    @property
    def lines(self) -> int:
        """How many were committed."""
        return self.seconds[-1].lines if self.seconds else 0

    @property
    def us_per_batch(self) -> float:
        """CPU time of all slots for 4,000 input records."""
        return sum(self.usage.cpu_s.values()) * 1e6 / max(self.read / BATCH, 1e-9)

    def rows(self, sink: str) -> Iterator[tuple[TaskId, Batch]]:
        """What a sink has put out: published, or written where nothing is ever published."""
        view: View = "uncommitted" if self.job.protocol.publishes_at_once else "committed"
        for task in self.job.deployment.sinks[sink]:
            for rows in rows_of(self.directory.output, [task], view):
                yield task, rows


def when_begun(driver: Driver, delay_s: float, act: Callable[[], None]) -> None:
    """Do something so long after the first record was due."""
    before = driver.on_begin

    def begin(origin_s: float) -> None:
        before(origin_s)
        driver.loop.after(delay_s, act)

    driver.on_begin = begin


def every(driver: Driver, period_s: float, act: Callable[[], None]) -> None:
    """Do something again and again, from the first record due to the end."""

    def again() -> None:
        act()
        driver.loop.after(period_s, again)

    when_begun(driver, period_s, again)


@contextmanager
def finished(
    flow: Dataflow,
    slots: int,
    *,
    protocol: str,
    interval_ms: int = 1_000,
    settings: Settings = SETTINGS,
    prepare: Callable[[Driver], None] = lambda driver: None,
    program: str = PROGRAM,
    spark: OnSpark | None = None,
    timeouts: Timeouts = TIMEOUTS,
    warm_s: float = 0.0,
    runs: Path | None = None,
    journal_bytes: int | None = None,
    retain_ms: int | None = None,
    lean: bool = True,
) -> Iterator[Finished]:
    """Run a dataflow to its end, on Spark or else as plain processes that run `program`.

    `prepare` sees the driver before it starts: to watch, or to kill. Output is kept for `retain_ms`. Unless
    it is `lean`, every operator has a task of its own.
    """
    chosen = PROTOCOLS[protocol]
    options = Options(interval_ms=interval_ms)
    job = Job(
        flow.name,
        deploy(flow, slots, lean=lean),
        chosen,
        options,
        chosen.guarantees[0],
        settings,
    )
    with tempfile.TemporaryDirectory(prefix="snapline-bench-", dir=runs) as where:
        asked = {RETAIN: retain_ms}
        directory = RunDirectory.create(Path(where), flow.name, protocol, asked)
        watch = Stopwatch()
        if journal_bytes is None:
            watch.kept_s = sys.maxsize  # its seconds are looked at one by one
        launcher: Launcher = Slots(program=program) if spark is None else spark.launcher()
        usage = Usage(() if spark is None else (spark.pid,))

        def ready(driver: Driver) -> None:
            when_begun(driver, 0.0, lambda: usage.begin(driver))
            if warm_s:
                when_begun(driver, warm_s, lambda: usage.warm(driver))
            prepare(driver)

        driver = drive(
            job,
            directory,
            launcher,
            observers=[usage.observe],
            timeouts=timeouts,
            timeline=watch,
            prepare=ready,
            journal_bytes=journal_bytes,
        )
        if driver.problem is not None:
            story = f"{flow.name} under {protocol} on {slots} slots failed: {driver.problem}"
            said = launcher.complaints() if isinstance(launcher, ProcessSlots) else []
            raise RuntimeError("\n".join([story, *said]))
        elapsed_s = watch.last_s - driver.origin_s
        yield Finished(
            job,
            directory,
            elapsed_s,
            watch.read,
            watch.written,
            usage,
            watch.seconds,
            watch.happened,
        )
