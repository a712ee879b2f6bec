"""One real run: from a dataflow and a Spark session to published output and a verdict.

`run` takes the session that it is given and never stops it; without one it starts its own and ends it.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from pyspark.sql import SparkSession

from snapline.chaos.faults import Fault, check, describe, parse, start_ms
from snapline.dataflow.graph import Dataflow
from snapline.engine.job import Job
from snapline.errors import FlowFailed, OperatorFailed, StoreUnavailable, UsageError
from snapline.ids import Millis
from snapline.judge.history import history_of
from snapline.judge.run_directory import RunEnding, judge
from snapline.rundir.directory import RUNS, RunDirectory
from snapline.rundir.job import build_job
from snapline.rundir.past import read_past
from snapline.rundir.presence import refuse_if_driven
from snapline.rundir.program import find_program, load_flow
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.runs.finished import Run, write_result
from snapline.runs.interrupt import Interruption
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.inject import RunInjector, check_executors, check_possible
from snapline.runtime.driver.timeline import Timeline, Watcher, published_times
from snapline.runtime.launch.spark import SparkSlots
from snapline.spark.ready import check_ready, check_workers
from snapline.spark.slot_jobs import own_session
from snapline.workload import WORKLOADS

KEPT = {"yes": "kept", "no": "broken", "unknown": "kept or not, nobody knows"}


def faults_of(spec: Spec) -> tuple[Fault, ...]:
    """The faults of a spec, checked."""
    faults = parse(spec.faults)
    check(faults, spec.slots)
    check_possible(faults)
    return faults


def check_spec(spec: Spec, flow: Dataflow | None = None) -> None:
    """Raise UsageError if a spec cannot be run; starts and writes nothing."""
    build_job(spec, find_program(spec, flow))
    faults_of(spec)


def check_resume(runs: Path, name: str) -> None:
    """Raise UsageError if a run cannot be resumed; starts and writes nothing."""
    directory = RunDirectory.open(runs, name)
    spec = _read_spec(directory, None)
    _refuse_resume(directory, build_job(spec, find_program(spec, None)))


def _refuse_resume(directory: RunDirectory, job: Job) -> None:
    """Raise UsageError if nobody can go on with a run, or nobody needs to; changes nothing.

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


def create_run(spec: Spec, runs: Path) -> RunDirectory:
    """The directory of a run that has not begun; whoever resumes it begins it."""
    said = replace(spec, faults=describe(faults_of(spec)))
    return RunDirectory.create(runs, _slug(spec), spec.protocol, asdict(said), shared=spec.shared)


def run(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    resume: str | None = None,
    after_ms: Millis | None = None,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Run a dataflow on Spark to its end, break it as the spec says, and judge the output.

    `flow` is the dataflow of the spec where a program holds it. With `resume`, the spec is that of the
    run with this name; of its faults, those after `after_ms` happen (-1: all; None: none).
    """
    if resume is not None:
        directory = RunDirectory.open(runs, resume)
        spec = _read_spec(directory, flow)
    if flow is None and spec.flow not in WORKLOADS:
        flow = load_flow(spec.flow)  # named by the user, or by a run that is started again: trusted
    program = find_program(spec, flow)
    job = build_job(spec, program)
    faults = faults_of(spec) if resume is None else _later_faults(spec, directory, after_ms)
    check_executors(faults, spark)
    check_ready(spec, spark, runs if resume is None else directory.path)
    if resume is not None:
        _refuse_resume(directory, job)
    with Interruption() as interruption:
        session = spark or own_session(spec.slots, spec.spares)
        try:
            if spark is not None:
                check_workers(spark)
            if resume is None:
                directory = create_run(spec, runs)
                spec = spec_of(directory)
            interruption.run = directory.name
            timeline = Timeline(watcher)
            problem, author = _drive(
                job, directory, session, spec, faults, timeouts, timeline, interruption
            )
        finally:
            if spark is None:
                interruption.hold()
                session.stop()
    sinks = [task for tasks in job.deployment.sinks.values() for task in tasks]
    metrics = timeline.metrics(published_times(directory.outlet, sinks))
    judgement = judge(directory, ending=RunEnding(problem), flow=flow)
    if judgement.figures:
        metrics["lineage"] = dict(judgement.figures)
    write_result(directory, judgement, metrics, problem, author)
    return Run(
        directory,
        spec,
        judgement.verdict,
        metrics,
        judgement.rows,
        spark,
        flow,
        judgement.strikes,
    )


def _slug(spec: Spec) -> str:
    """The flow as a part of a file name."""
    name = spec.flow if spec.flow in WORKLOADS else Path(spec.flow).name.replace(".py", "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "flow"


def _read_spec(directory: RunDirectory, flow: Dataflow | None) -> Spec:
    """What is resumed: the run as it was."""
    spec = spec_of(directory)
    if spec.system != OWN:
        raise UsageError(
            f"{directory.name} is a run of {spec.system}: only Snapline's own are resumed"
        )
    if flow is None and spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        raise UsageError(
            f"{directory.name} ran the dataflow '{spec.flow}' of a program: that program resumes it, "
            f"with snapline.run(flow, resume={directory.name!r})"
        )
    return spec


def _later_faults(
    spec: Spec, directory: RunDirectory, after_ms: Millis | None
) -> tuple[Fault, ...]:
    """The faults of a run that are still to come when its driver has died at `after_ms`.

    What waits for a recovery or a round still does, unless a journal says that it has struck.
    """
    planned = faults_of(spec)
    if after_ms is None or after_ms < 0:
        return planned if after_ms is not None else ()
    strikes = history_of(directory, spec.faults).strikes
    return tuple(
        fault
        for fault, strike in zip(planned, strikes, strict=True)
        if not strike.struck and ((at_ms := start_ms(fault)) is None or at_ms > after_ms)
    )


def _drive(
    job: Job,
    directory: RunDirectory,
    session: SparkSession,
    spec: Spec,
    faults: Sequence[Fault],
    timeouts: Timeouts | None,
    timeline: Timeline,
    interruption: Interruption,
) -> tuple[str | None, str]:
    """Run a job; the problem that ended it early, if any, and who decided."""
    driver = Driver(
        job,
        directory,
        SparkSlots(session),
        spares=spec.spares,
        origin_s=spec.origin_s,
        timeouts=timeouts,
        listen=spec.listen,
        journal=spec.journal,
        timeline=timeline,
    )
    injector = RunInjector(driver, tuple(faults), spec.seed)

    def begin(origin_s: float) -> None:
        # All drivers of a run agree on it, so whoever writes this writes the same.
        directory.write("run.json", {**directory.spec(), "origin_s": origin_s})
        injector.begin()

    driver.on_begin = begin
    interruption.pass_on(lambda: driver.loop.post(driver.interrupt))
    problem = driver.run()
    if driver.raised is not None:
        raise flow_failed(driver.raised, directory)
    return problem, driver.tenure.author


def flow_failed(raised: OperatorFailed, directory: RunDirectory) -> FlowFailed:
    """What to tell the user whose dataflow cannot run: the run stays, and can be resumed."""
    story = (
        f"{raised}. Starting again did not help. The traceback is in {directory.errors}. Once the dataflow "
        f"is mended, go on with: snapline run --resume {directory.path}"
    )
    where = ", ".join(filter(None, (raised.code, raised.where)))
    return FlowFailed(story, raised.operator, where, raised.cause)


def default_slots() -> int:
    """The cores that this machine has for slots."""
    return max(1, len(os.sched_getaffinity(0)))
