"""One real run: from a dataflow and a Spark session to published output and a verdict.

`run` takes the session that it is given and never stops it; without one it starts its own and ends it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from snapline.batch import Batch, concat
from snapline.chaos.faults import Fault, check, describe, parse
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.dataflow.graph import Dataflow, deploy
from snapline.engine.job import Job, Settings
from snapline.errors import UsageError
from snapline.ids import TaskId, task_id
from snapline.protocols import PROTOCOLS, refusal
from snapline.runtime.driver import Driver, Timeouts
from snapline.runtime.flows import Program, find_program
from snapline.runtime.inject import Injector, check_possible
from snapline.runtime.interrupt import Interruption
from snapline.runtime.judge import Verdict, judge
from snapline.runtime.rundir import RUNS, VERSION, RunDirectory
from snapline.runtime.spark import own_session
from snapline.runtime.spark_slots import SparkSlots
from snapline.runtime.spec import Spec
from snapline.runtime.timeline import Timeline, Watcher, published_times
from snapline.workload import WORKLOADS
from snapline.workload.base import Problem


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over."""

    directory: RunDirectory
    spec: Spec
    verdict: Verdict
    metrics: Mapping[str, Any]
    rows: Mapping[str, int]  # of public output, per sink
    spark: SparkSession | None = field(repr=False, default=None)  # the caller's session

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.directory.name

    def output(self, sink: str | None = None, *, uncommitted: bool = False) -> DataFrame:
        """The public output of a sink, or all that was ever written to it."""
        public = PROTOCOLS[self.spec.protocol].checkpoints and not uncommitted
        from snapline.runtime import tables

        name = self._sink(sink)
        view: Literal["committed", "uncommitted"] = "committed" if public else "uncommitted"
        return tables.output(self._spark, self.directory, name, view)

    def batch(self, sink: str | None = None) -> Batch:
        """The public output of a sink, in memory, without Spark."""
        tasks = [task_id(self._sink(sink), index) for index in range(self.spec.slots)]
        return read_output(self.directory, PROTOCOLS[self.spec.protocol], tasks)

    def state(self, operator: str, part: str | None = None) -> DataFrame:
        """The state of an operator at the last committed line."""
        from snapline.runtime import tables

        return tables.state(self._spark, self.directory, operator, part)

    def channel_log(self) -> DataFrame:
        """The messages that the senders' logs still hold."""
        from snapline.runtime import tables

        return tables.channel_log(self._spark, self.directory)

    def journal(self) -> DataFrame:
        """What happened, in all processes."""
        from snapline.runtime import tables

        return tables.journal(self._spark, self.directory)

    def _sink(self, sink: str | None) -> str:
        sinks = ", ".join(self.rows)
        if sink is None and len(self.rows) != 1:
            raise UsageError(f"which sink? there are {sinks}")
        if sink is not None and sink not in self.rows:
            raise UsageError(f"there is no sink {sink!r}: there is {sinks}")
        return sink or next(iter(self.rows))

    @property
    def _spark(self) -> SparkSession:
        session = self.spark or SparkSession.getActiveSession()
        if session is None:
            raise UsageError(
                "a DataFrame needs a Spark session: pass one to run() or open_run(), or use batch()"
            )
        return session


def open_run(runs: Path, name: str, spark: SparkSession | None) -> Run:
    """A run that is over, as it was; UsageError if it is not there, or not over."""
    directory = RunDirectory.open(runs, name)
    result = directory.result()
    if result is None:
        raise UsageError(f"{directory.name} is not over: 'snapline run --resume {directory.name}'")
    problems = tuple(Problem(**problem) for problem in result["problems"])
    verdict = Verdict(result["kept"], result["because"], problems)
    spec = _spec_of(directory)
    return Run(directory, spec, verdict, result["metrics"], result["rows"], spark)


def build_job(spec: Spec, program: Program) -> Job:
    """The job of a spec; UsageError if it cannot be."""
    for name in ("slots", "rate", "duration_ms", "interval_ms"):
        if getattr(spec, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(spec, name)}")
    if spec.protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {spec.protocol!r}: see 'snapline list protocols'")
    protocol = PROTOCOLS[spec.protocol]
    levels = {level.value: level for level in protocol.guarantees}
    if spec.guarantee is not None and spec.guarantee not in levels:
        able = ", ".join(levels)
        raise UsageError(f"{spec.protocol} cannot promise {spec.guarantee}: it can promise {able}")
    guarantee = levels[spec.guarantee] if spec.guarantee else protocol.guarantees[0]
    deployment = deploy(program.flow, spec.slots)
    if reason := refusal(protocol, deployment.topology):
        raise UsageError(reason)
    options = Options(interval_ms=spec.interval_ms)
    settings = Settings(linger_ms=2, publish_lag=spec.publish_lag)
    return Job(program.flow.name, deployment, protocol, options, guarantee, settings, spec.seed)


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


def run(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | None = None,
    runs: Path = RUNS,
    resume: str | None = None,
    timeouts: Timeouts | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Run a dataflow on Spark to its end, break it as the spec says, and judge the output.

    `flow` is the dataflow of the spec where a program holds it. With `resume`, the spec is that of the
    run with this name, without its faults.
    """
    if resume is not None:
        directory = RunDirectory.open(runs, resume)
        spec = replace(_read_spec(directory, flow), faults="")
    program = find_program(spec, flow)
    job = build_job(spec, program)
    faults = faults_of(spec)
    with Interruption() as interruption:
        session = spark or own_session(spec.slots, spec.spares)
        try:
            if resume is None:
                spec = replace(spec, faults=describe(faults))
                directory = RunDirectory.create(runs, _slug(spec), spec.protocol, asdict(spec))
            interruption.run = directory.name
            timeline = Timeline(watcher)
            problem = _drive(
                job, directory, session, spec, faults, timeouts, timeline, interruption
            )
        finally:
            if spark is None:
                session.stop()
    outputs = read_outputs(directory, job)
    verdict = judge(program, job, outputs, reference=spec.reference, problem=problem)
    rows = {sink: len(batch) for sink, batch in outputs.items()}
    sinks = [task for tasks in job.deployment.sinks.values() for task in tasks]
    metrics = timeline.metrics(published_times(directory.outlet, sinks))
    finished = Run(directory, spec, verdict, metrics, rows, spark)
    _write_result(finished)
    return finished


def _slug(spec: Spec) -> str:
    """The flow as a part of a file name."""
    name = spec.flow if spec.flow in WORKLOADS else Path(spec.flow).name.replace(".py", "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "flow"


def _read_spec(directory: RunDirectory, flow: Dataflow | None) -> Spec:
    spec = _spec_of(directory)
    if flow is None and spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        raise UsageError(
            f"{directory.name} ran the dataflow '{spec.flow}' of a program: that program resumes it, "
            f"with snapline.run(flow, resume={directory.name!r})"
        )
    return spec


def _spec_of(directory: RunDirectory) -> Spec:
    fields = {name: value for name, value in directory.spec().items() if name != "version"}
    try:
        return Spec(**fields)
    except TypeError as error:
        raise UsageError(f"{directory.path} was written by another version: {error}") from error


def _drive(
    job: Job,
    directory: RunDirectory,
    session: SparkSession,
    spec: Spec,
    faults: Sequence[Fault],
    timeouts: Timeouts | None,
    timeline: Timeline,
    interruption: Interruption,
) -> str | None:
    def give_up(why: str) -> None:
        driver.loop.post(lambda: driver.finish(why))

    slots = SparkSlots(session, give_up)
    driver = Driver(
        job,
        directory,
        slots,
        spares=spec.spares,
        origin_s=spec.origin_s,
        timeouts=timeouts,
        listen=spec.listen,
        journal=spec.journal,
        timeline=timeline,
    )
    injector = Injector(driver, tuple(faults), spec.seed)

    def begin(origin_s: float) -> None:
        directory.write(
            "run.json", {"version": VERSION, **asdict(replace(spec, origin_s=origin_s))}
        )
        injector.begin()

    driver.on_begin = begin
    interruption.pass_on(lambda: driver.loop.post(driver.interrupt))
    return driver.run()


def read_outputs(directory: RunDirectory, job: Job) -> dict[str, Batch]:
    """The public output of each sink."""
    return {
        sink: read_output(directory, job.protocol, tasks)
        for sink, tasks in job.deployment.sinks.items()
    }


def read_output(
    directory: RunDirectory, protocol: CheckpointProtocol, tasks: Sequence[TaskId]
) -> Batch:
    """The public output of one sink: where nothing is ever committed, all that was written."""
    outlet = directory.outlet
    read = outlet.committed if protocol.checkpoints else outlet.uncommitted
    batches = [batch for task in tasks for batch in read(task)]
    return concat(batches) if batches else Batch({}, 0)


def _write_result(finished: Run) -> None:
    finished.directory.write(
        "result.json",
        {
            "kept": finished.verdict.kept,
            "because": finished.verdict.because,
            "problems": [asdict(problem) for problem in finished.verdict.problems],
            "metrics": dict(finished.metrics),
            "rows": dict(finished.rows),
        },
    )


def default_slots() -> int:
    """The cores that this machine has for slots."""
    return max(1, len(os.sched_getaffinity(0)))
