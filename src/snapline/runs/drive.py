"""Put a driver together and run one job with it: the one place where that is done.

A driver needs somebody who starts slots (the launcher), somebody who breaks them (the injector) and those
who watch (a timeline, observers). Runs on Spark, tests and benchmarks all come here, so what is tested and
measured is wired exactly as what a user runs.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from snapline.chaos.faults import Fault
from snapline.engine.job import Job
from snapline.errors import FlowFailed, OperatorFailed
from snapline.journal.entry import Happened
from snapline.net.listener import LOOPBACK
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import Detail
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.inject import RunInjector
from snapline.runtime.driver.timeline import Timeline
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.launch.processes import ProcessSlots

Observer: TypeAlias = Callable[[Driver, Happened], None]
"""A function that the driver's loop calls with everything that happens to the job."""


def drive(
    job: Job,
    directory: RunDirectory,
    launcher: Launcher | None = None,
    faults: Sequence[Fault] = (),
    observers: Sequence[Observer] = (),
    *,
    spares: int = 0,
    origin_s: float | None = None,
    timeouts: Timeouts | None = None,
    listen: str = LOOPBACK,
    journal: Detail = "brief",
    timeline: Timeline | None = None,
    journal_bytes: int | None = None,
    prepare: Callable[[Driver], None] = lambda driver: None,
) -> Driver:
    """Run a job to its end, break it as the faults say, and return its driver, which has ended.

    Without a launcher, slots are plain processes of this machine. `prepare` is given the driver before it
    starts. `driver.problem` says afterwards why the job ended early, if it did. Raises RunDamaged, Deposed.
    """

    def observe(happened: Happened) -> None:
        for observer in observers:
            observer(driver, happened)

    def begin(origin_s: float) -> None:
        # All drivers of a run agree on the origin, so whoever writes this writes the same.
        directory.write("run.json", {**directory.spec(), "origin_s": origin_s})
        injector.begin()

    driver = Driver(
        job,
        directory,
        launcher or ProcessSlots(),
        spares=spares,
        origin_s=origin_s,
        timeouts=timeouts,
        journal=journal,
        listen=listen,
        timeline=timeline,
        journal_bytes=journal_bytes,
        on_event=observe,
    )
    injector = RunInjector(driver.fault_port, tuple(faults), job.seed)
    driver.on_begin = begin
    prepare(driver)
    driver.run()
    return driver


def flow_failed(raised: OperatorFailed, directory: RunDirectory) -> FlowFailed:
    """Make the error for a user whose dataflow failed twice; it says how the run can be resumed."""
    story = (
        f"{raised}. Starting again did not help. The traceback is in {directory.errors}. Once the dataflow "
        f"is mended, go on with: snapline run --resume {directory.path}"
    )
    where = ", ".join(filter(None, (raised.code, raised.where)))
    return FlowFailed(story, raised.operator, where, raised.cause)
