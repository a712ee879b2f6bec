"""One real run: from a description to published output and a verdict.

To prepare a run is to build its job once and to check everything that can be known beforehand; nothing is
started or written, so bad input costs nothing. To carry it out is to start Spark, drive the job to its end
and have it judged. A new run (`run`), one that goes on (`resume`) and one that goes on from a line of
another (`fork`) differ only in how they are prepared.

A session that is given is used and never stopped; without one, a local one is started and ended.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from snapline.chaos.faults import Fault, describe, parse
from snapline.chaos.targets import aimed, check
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.pools import pool_slots
from snapline.engine.coordinator.holding import STOPPED
from snapline.engine.job import Job
from snapline.errors import StoreUnavailable, UsageError
from snapline.ids import Millis
from snapline.judge.evidence import RunEnding
from snapline.judge.run_directory import judge
from snapline.rundir.directory import FOLDERS, RUNS, RunDirectory, remove_run
from snapline.rundir.journal_file import BOUNDED_BYTES
from snapline.rundir.lines.fork import Fork, fill_fork, plan_fork
from snapline.rundir.past import read_past
from snapline.rundir.presence import refuse_if_driven
from snapline.rundir.program import Program, build_job, find_program, with_pool_sizes
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.rundir.stored_input import unstaged
from snapline.runs.drive import drive, flow_failed
from snapline.runs.finished import Run, write_result
from snapline.runs.interrupt import Interruption
from snapline.runs.listener import Listening
from snapline.runs.sink_folders import (
    check_claimed,
    check_new,
    claim,
    folders_of,
    refuse_fork,
    release,
    tidy,
)
from snapline.runs.sources.staging import check_frames, said_of_frames, stage_sources
from snapline.runs.sources.streams import StreamQueries, start_streams
from snapline.runs.supervise import later_faults
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.inject import check_executors, check_possible
from snapline.runtime.driver.timeline import Timeline, Watcher, published_times
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.launch.spark import SparkSlots
from snapline.spark.cores import holding
from snapline.spark.ready import check_ready, check_sendable, check_workers
from snapline.spark.slot_jobs import own_session
from snapline.workload import WORKLOADS

KEPT = {"yes": "kept", "no": "broken", "unknown": "kept or not, nobody knows"}


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that can be carried out: everything is checked, and nothing is started or written."""

    spec: Spec
    job: Job
    faults: tuple[Fault, ...]  # those that are still to strike
    program: Program
    spark: SparkSession | None  # the caller's session
    runs: Path
    directory: RunDirectory | None = None  # of the run that goes on; None: it is a new one
    fork: Fork | None = None  # of what the new run goes on from; None: it begins at the beginning
    launcher: Launcher | None = None  # starts the slots; None: they are Spark jobs
    on_ui: Callable[[str], None] | None = None  # told where our Spark's pages are; None: no pages


def run(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Run a dataflow on Spark to its end, break it as the spec says, and judge the output.

    `flow` is the dataflow of the spec where a program holds it.
    """
    return carry_out(prepare(spec, spark, flow=flow, runs=runs), timeouts, watcher)


def resume(
    name: str,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    after_ms: Millis | None = None,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Go on with a run from its last line, as it was described when it began.

    Of its faults, those after `after_ms` happen (-1: all; None: none).
    """
    prepared = prepare_resume(name, spark, flow=flow, runs=runs, after_ms=after_ms)
    return carry_out(prepared, timeouts, watcher)


def fork(
    name: str,
    line: int,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Make a new run that begins at a kept line of another run, and carry it out, without faults."""
    prepared = prepare_fork(name, line, spark, flow=flow, runs=runs)
    return carry_out(prepared, timeouts, watcher)


def prepare(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
) -> PreparedRun:
    """Prepare a new run. Raises UsageError if it cannot be; starts and writes nothing."""
    program = find_program(spec, flow)
    spec = with_pool_sizes(spec, program.flow)
    faults = faults_of(spec)
    job = build_job(spec, program)
    check_frames(program.given, spec, spark)
    check_sendable(job)
    check_executors(faults, spark)
    check_ready(spec, spark, runs)
    check_new(program.flow, job.protocol)
    said = replace(spec, faults=describe(faults))
    return PreparedRun(said, job, faults, program, spark, runs)


def prepare_resume(
    name: str,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    after_ms: Millis | None = None,
) -> PreparedRun:
    """Prepare to go on with a run. Raises UsageError if it is over or cannot go on; changes nothing."""
    directory = RunDirectory.open(runs, name)
    spec = _read_spec(directory, flow)
    # A file that the run names is executed: whoever resumes a run trusts it.
    program = find_program(spec, flow, directory)
    job = build_job(spec, program)
    check_frames(program.given, spec, spark, directory)
    faults = later_faults(faults_of(spec), directory, after_ms)
    check_sendable(job)
    check_executors(faults, spark)
    check_ready(spec, spark, directory.path)
    check_claimed(directory)
    _refuse_resume(directory, job)
    return PreparedRun(spec, job, faults, program, spark, runs, directory)


def prepare_fork(
    name: str,
    line: int | None,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
) -> PreparedRun:
    """Prepare a new run that begins at a kept line of a run that is over. Raises UsageError.

    All that the line needs is read here; nothing is written, and the other run is never changed.
    """
    origin = RunDirectory.open(runs, name)
    # The faults of the origin have struck, or never will: the fork is a run without faults.
    spec = replace(_read_spec(origin, flow), faults="", drawn=False)
    program = find_program(spec, flow, origin)  # as for a resume: whoever forks a run trusts it
    refuse_fork(program.flow)
    job = build_job(spec, program)
    check_frames(program.given, spec, spark, origin)
    check_sendable(job)
    check_ready(spec, spark, runs)
    fork = plan_fork(origin, line, job.deployment.fingerprint)
    return PreparedRun(spec, job, (), program, spark, runs, fork=fork)


def carry_out(
    prepared: PreparedRun, timeouts: Timeouts | None = None, watcher: Watcher | None = None
) -> Run:
    """Carry out a run that was prepared: start it, drive it to its end, judge it, write its result."""
    listening = watcher if isinstance(watcher, Listening) else Listening(None, watcher)
    try:
        prepared, driver = drive_prepared(prepared, timeouts, listening, listening.begins)
        finished = conclude(prepared, driver)
    except BaseException as error:
        listening.ended(str(error), None)
        raise
    listening.ended(driver.problem, finished.verdict.kept)
    return finished


def drive_prepared(
    prepared: PreparedRun,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
    begun: Callable[[Driver], None] = lambda driver: None,
) -> tuple[PreparedRun, Driver]:
    """Start a run that was prepared, and drive it to its end; `begun` is given the driver before it starts.

    Returns the driver, which has ended, and the run as its directory has it. A signal ends it at once, but
    one without an end first waits for a last line, unless a second signal comes.
    """
    spec, spark = prepared.spec, prepared.spark

    def prepare(driver: Driver) -> None:
        at_once, post = driver.interrupt, driver.loop.post
        end = driver.stop if spec.endless else at_once
        interruption.pass_on(lambda: post(end), lambda: post(at_once))
        streams.attach(driver)
        begun(driver)

    with Interruption() as interruption, _slots_of(prepared, interruption) as (session, launcher):
        directory = prepared.directory or create_run(prepared)
        prepared, streams = _staged(prepared, directory, session)
        interruption.run = directory.name
        with streams, holding(spark, spec, streams.names):
            driver = drive(
                prepared.job,
                directory,
                launcher,
                prepared.faults,
                spares=spec.spares,
                origin_s=spec.origin_s,
                timeouts=timeouts,
                listen=spec.listen,
                journal=spec.journal,
                journal_bytes=BOUNDED_BYTES if spec.endless else None,
                timeline=Timeline(watcher, spec.warm_up_ms * 1000),
                prepare=prepare,
            )
        interruption.whole = driver.problem == STOPPED
    if driver.raised is not None:
        raise flow_failed(driver.raised, directory)
    if driver.problem is not None:
        streams.check(directory)
    return prepared, driver


@contextmanager
def _slots_of(
    prepared: PreparedRun, interruption: Interruption
) -> Iterator[tuple[SparkSession | None, Launcher]]:
    """Who starts the slots of a run, and in which session; one of our own ends with the run."""
    if prepared.launcher is not None:
        yield None, prepared.launcher
        return
    spec, pages = prepared.spec, {} if prepared.on_ui is None else {"spark.ui.enabled": "true"}
    session = prepared.spark or own_session(spec.all_slots, spec.spares, None, pages)
    try:
        if prepared.on_ui is not None:
            prepared.on_ui(str(session.sparkContext.uiWebUrl))
        if prepared.spark is not None:
            check_workers(prepared.spark)
        yield session, SparkSlots(session, prepared.program.flow.name)
    finally:
        if prepared.spark is None:
            interruption.hold()
            session.stop()


def _staged(
    prepared: PreparedRun, directory: RunDirectory, session: SparkSession | None
) -> tuple[PreparedRun, StreamQueries]:
    """Stage the DataFrames of a run, and build its job anew with what lies in its directory.

    The queries of its streams are started. A new run that fails here has not begun, and leaves nothing.
    """
    spec, flow = prepared.spec, prepared.program.given
    if flow is None or not unstaged(flow):
        return prepared, StreamQueries()
    assert session is not None  # who stages DataFrames has one
    try:
        stage_sources(flow, directory, session, spec.slots)
        program = find_program(spec, flow, directory)
        staged = replace(prepared, program=program, job=build_job(spec, program))
        return staged, start_streams(flow, directory, session, spec)
    except BaseException:
        if prepared.directory is None:
            release(directory)
            remove_run(directory.path.parent, directory.name)
        raise


def conclude(prepared: PreparedRun, driver: Driver) -> Run:
    """Have a run that has ended judged, and write its result."""
    directory, problem = driver.directory, driver.problem
    sinks = [task for tasks in prepared.job.deployment.sinks.values() for task in tasks]
    asked_ms = prepared.job.options.interval_ms
    measured = driver.timeline.figures(published_times(directory.output, sinks), asked_ms)
    judgement = judge(directory, ending=RunEnding(problem), program=prepared.program)
    figures = replace(measured, lineage=judgement.figures, deviation=judgement.deviation)
    write_result(directory, judgement, figures, problem, driver.tenure.author)
    if problem is None:
        tidy(directory)
    return Run(
        directory,
        spec_of(directory),
        judgement.verdict,
        figures,
        judgement.rows,
        prepared.spark,
        prepared.program.given,
        judgement.strikes,
    )


def create_run(prepared: PreparedRun) -> RunDirectory:
    """Make the directory of a new run. The run begins when it is carried out, or resumed."""
    spec, fork, sinks = prepared.spec, prepared.fork, list(prepared.job.deployment.sinks)
    folders = {sink: str(path) for sink, path in folders_of(prepared.program.flow).items()}
    said = {**spec.said(), "sinks": sinks, **({FOLDERS: folders} if folders else {})}
    said |= said_of_frames(prepared.program.given, fork.origin if fork is not None else None)
    if fork is not None:
        said["forked_from"] = fork.said
    directory = RunDirectory.create(
        prepared.runs,
        _slug(spec),
        spec.protocol,
        said,
        shared=spec.shared,
        fill=None if fork is None else partial(fill_fork, fork),
    )
    claim(directory)
    return directory


def faults_of(spec: Spec) -> tuple[Fault, ...]:
    """The faults of a spec; raises UsageError if one is wrong."""
    faults = aimed(parse(spec.faults), pool_slots(spec.slots, dict(spec.pools)))
    check(faults, spec.all_slots)
    check_possible(faults)
    return faults


def _refuse_resume(directory: RunDirectory, job: Job) -> None:
    """Raise UsageError if a run cannot be resumed, or has nothing left to do; changes nothing.

    A run that came to its end has nothing left to do. It is refused as bad input is (exit code 2), because
    nothing ran: an exit code of 0 or 1 would be a verdict on this very call.
    """
    refuse_if_driven(directory)
    result = directory.result()
    if result is not None and result.get("problem") is None:
        told = f"its promise was {KEPT[result['kept']]}: {result.get('because')}"
        show = f"'snapline runs show {directory.name}'"
        raise UsageError(
            f"{directory.name} is over, and {told}. There is nothing to resume; see {show}"
        )
    with suppress(StoreUnavailable):  # the store may come back: the driver asks again
        read_past(directory, job)


def _slug(spec: Spec) -> str:
    """The flow as a part of a file name."""
    name = spec.flow if spec.flow in WORKLOADS else Path(spec.flow).name.replace(".py", "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "flow"


def _read_spec(directory: RunDirectory, flow: Dataflow | None) -> Spec:
    """Read what a run was asked to do. Raises UsageError if it is not ours, or needs a flow."""
    spec = spec_of(directory)
    if spec.system != OWN:
        raise UsageError(
            f"{directory.name} is a run of {spec.system}: only Snapline's own are resumed, or forked"
        )
    if flow is None and spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        raise UsageError(
            f"{directory.name} ran the dataflow '{spec.flow}' of a program: that program resumes it, "
            f"with snapline.resume({directory.name!r}, flow=flow), or forks it, with snapline.fork"
        )
    return spec
