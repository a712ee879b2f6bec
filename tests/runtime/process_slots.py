"""Whole runs without Spark: slots are plain processes of this machine, and all else is as on Spark.

Nothing here depends on the speed of the machine. Nobody is given up for being slow, unless a test asks for
other time-outs. Where a run must not be over before something has happened, a test says so with `until`.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from held_input import Hold
from snapline.batch import Batch
from snapline.chaos.faults import parse
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.journal.entry import Happened
from snapline.journal.happenings import Happening, LineDecided, SlotLost
from snapline.judge.history import journal_entries
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import FOLDERS, RETAIN, RunDirectory
from snapline.rundir.journal_file import Detail
from snapline.runs.drive import drive
from snapline.runs.finished import read_output
from snapline.runs.sink_folders import claim
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.inject import RunInjector, check_possible
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.launch.processes import PROGRAM, ProcessSlots
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params, Problem

PATIENCE_S = 240
PATIENT = Timeouts(heartbeat_s=0.2, silence_s=60, lease_s=150, restore_s=150, register_s=150)
"""Nobody is given up for being slow: only a broken connection is a loss."""

OnEvent = Callable[[Driver, Happened], None]
Moment = Callable[[Driver, Happened], bool]


@dataclass
class Outcome:
    """A run that is over, and what it left."""

    problem: str | None
    problems: list[Problem]
    outputs: dict[str, Batch]
    happened: list[Happened]
    driver: Driver
    complaints: list[str]

    def what(self, kind: type[Happening]) -> list[Happened]:
        return [entry for entry in self.happened if isinstance(entry.what, kind)]

    @property
    def commits(self) -> int:
        return sum(entry.what.epoch == entry.epoch for entry in self.what(LineDecided))

    @property
    def lost(self) -> list[int]:
        return [entry.what.slot for entry in self.what(SlotLost)]


BATCH = Settings().batch_max_records


def committed(driver: Driver, entry: Happened) -> bool:
    """A line was committed; a decision that begins an epoch commits nothing new."""
    return isinstance(entry.what, LineDecided) and bool(entry.what.epoch == entry.epoch)


def lost(driver: Driver, entry: Happened) -> bool:
    """A slot was lost."""
    return isinstance(entry.what, SlotLost)


def nothing(driver: Driver, entry: Happened) -> None:
    """Do nothing about what happens."""


class EndingSlots(ProcessSlots):
    """Processes that are let end by themselves: what they write at their end is there then."""

    def stop(self) -> None:
        for waiting in self._waiting:
            waiting.join(PATIENCE_S)
        super().stop()


def a_job(
    workload: str, protocol: str, params: Params, publish_lag: int = 0, batch: int = BATCH
) -> Job:
    return Job(
        workload,
        deploy(WORKLOADS[workload].build(params), params.partitions, lean=True),
        PROTOCOLS[protocol],
        Options(interval_ms=300),
        PROTOCOLS[protocol].guarantees[0],
        Settings(linger_ms=2, publish_lag=publish_lag, batch_max_records=batch),
    )


def run_processes(
    tmp_path: Path,
    protocol: str,
    faults: str = "",
    *,
    workload: str = "q12",
    duration_ms: int = 3_000,
    slots: int = 2,
    hot: int = 0,
    settings: tuple[tuple[str, int], ...] = (),
    publish_lag: int = 0,
    batch: int = BATCH,
    spares: int = 0,
    timeouts: Timeouts | None = None,
    program: str = PROGRAM,
    on_event: OnEvent = nothing,
    until: Moment | None = None,
    folder: Path | None = None,
    journal: Detail = "brief",
) -> Outcome:
    """Run a workload to its end, and judge the output; its input does not end before the moment `until`.

    With a folder, its sink writes Parquet files there, too. A full journal is there to its last line.
    """
    records = 300 * duration_ms // 1000
    params = Params(1, slots, records, duration_ms, hot=hot, settings=settings)
    job = a_job(workload, protocol, params, publish_lag, batch)
    launcher = (EndingSlots if journal == "full" else ProcessSlots)(program=program)
    driven = run_job(
        tmp_path, job, launcher, faults, spares, timeouts, on_event, until, folder, journal
    )
    outputs = public(driven.directory, job)
    problems = list(WORKLOADS[workload].judge(params, outputs, {}, job.guarantee))
    complaints = launcher.complaints()
    return Outcome(driven.problem, problems, outputs, driven.happened, driven.driver, complaints)


@dataclass
class Driven:
    """A job that is over."""

    problem: str | None
    happened: list[Happened]
    driver: Driver
    directory: RunDirectory


def a_directory(
    runs: Path, job: Job, folder: Path | None, retain_ms: int | None = None
) -> RunDirectory:
    """A new run directory; with a folder, the sinks of the job write Parquet files there, too."""
    folders = {sink: str(folder) for sink in job.deployment.sinks if folder is not None}
    asked = {"protocol": job.protocol.name, FOLDERS: folders, RETAIN: retain_ms}
    directory = RunDirectory.create(runs, job.name, job.protocol.name, asked)
    claim(directory)
    return directory


def run_job(
    tmp_path: Path,
    job: Job,
    launcher: Launcher,
    faults: str = "",
    spares: int = 0,
    timeouts: Timeouts | None = None,
    on_event: OnEvent = nothing,
    until: Moment | None = None,
    folder: Path | None = None,
    journal: Detail = "brief",
) -> Driven:
    """Run any job to its end."""
    hold = Hold(tmp_path)
    if until is not None:
        job = hold.held(job)
    directory = a_directory(tmp_path, job, folder)
    happened: list[Happened] = []

    def see(driver: Driver, entry: Happened) -> None:
        happened.append(entry)
        on_event(driver, entry)
        if until is not None and until(driver, entry):
            hold.let_go()

    planned = parse(faults)
    check_possible(planned)

    def be_patient(driver: Driver) -> None:
        driver.loop.after(PATIENCE_S, lambda: driver.finish(f"in vain for {PATIENCE_S} s"))

    driver = drive(
        job,
        directory,
        launcher,
        planned,
        [see],
        spares=spares,
        timeouts=replace(PATIENT) if timeouts is None else timeouts,
        prepare=be_patient,
        journal=journal,
    )
    return Driven(driver.problem, happened, driver, directory)


def strike(driver: Driver, faults: str) -> RunInjector:
    """Break a run now, and not at a time; the faults say `at=0ms`."""
    injector = RunInjector(driver.fault_port, parse(faults), seed=1)
    injector.begin()
    return injector


def processes_of(driver: Driver) -> dict[str, subprocess.Popen[bytes]]:
    """All that were ever launched for a run, by the name of the launch."""
    assert isinstance(driver.launcher, ProcessSlots)
    return driver.launcher.processes


def public(directory: RunDirectory, job: Job) -> dict[str, Batch]:
    """What is public of each sink."""
    return {
        sink: read_output(directory, job.protocol.name, tasks)
        for sink, tasks in job.deployment.sinks.items()
    }


def slot_journals(directory: RunDirectory) -> list[Happened]:
    """What happened in the slots, as far as they wrote it down."""
    found: list[Happened] = []
    for path in (directory.path / "journal").glob("slot-*.jsonl"):
        entries = journal_entries(directory, path)
        found.extend(entry for entry in entries if isinstance(entry, Happened))
    return found
