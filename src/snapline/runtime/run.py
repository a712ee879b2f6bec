"""One real run: from a dataflow and a Spark session to published output and a verdict.

`run` takes the session that it is given and never stops it; without one it starts its own and ends it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from snapline.batch import Batch, concat
from snapline.chaos.faults import Fault, check, describe, parse
from snapline.core.policy import Guarantee
from snapline.core.protocol import Options
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job, Settings
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.journal.entry import Happened
from snapline.protocols import PROTOCOLS, refusal
from snapline.runtime.driver import Driver, Timeouts
from snapline.runtime.inject import Injector, check_possible
from snapline.runtime.rundir import RUNS, VERSION, RunDirectory
from snapline.runtime.spark import own_session
from snapline.runtime.spark_slots import SparkSlots
from snapline.runtime.timeline import Timeline
from snapline.workload import WORKLOADS
from snapline.workload.base import Params, Problem


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run: all that a resume needs to know again."""

    workload: str
    protocol: str
    guarantee: str | None = None  # None: the protocol's first promise
    slots: int = 2
    rate: int = 2_000  # records per second, all sources together
    duration_ms: Millis = 20_000
    interval_ms: Millis = 5_000
    faults: str = ""
    spares: int = 0
    seed: int = 1
    origin_s: float | None = None  # when input began to be due; a resumed run keeps it

    @property
    def params(self) -> Params:
        """The size of the generated input."""
        records = max(1, self.rate * self.duration_ms // 1000 // self.slots)
        return Params(self.seed, self.slots, records, self.duration_ms)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the output is what was promised."""

    kept: Literal["yes", "no", "unknown"]
    because: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over."""

    directory: RunDirectory
    spec: Spec
    verdict: Verdict
    metrics: Mapping[str, Any]
    outputs: Mapping[str, Batch] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.directory.name


def build_job(spec: Spec) -> Job:
    """The job of a spec; UsageError if it cannot be."""
    for name in ("slots", "rate", "duration_ms", "interval_ms"):
        if getattr(spec, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(spec, name)}")
    if spec.workload not in WORKLOADS:
        raise UsageError(f"there is no workload {spec.workload!r}: see 'snapline list workloads'")
    if spec.protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {spec.protocol!r}: see 'snapline list protocols'")
    protocol = PROTOCOLS[spec.protocol]
    levels = {level.value: level for level in protocol.guarantees}
    if spec.guarantee is not None and spec.guarantee not in levels:
        able = ", ".join(levels)
        raise UsageError(f"{spec.protocol} cannot promise {spec.guarantee}: it can promise {able}")
    guarantee = levels[spec.guarantee] if spec.guarantee else protocol.guarantees[0]
    deployment = deploy(WORKLOADS[spec.workload].build(spec.params), spec.slots)
    if reason := refusal(protocol, deployment.topology):
        raise UsageError(reason)
    options = Options(interval_ms=spec.interval_ms)
    settings = Settings(linger_ms=2)
    return Job(spec.workload, deployment, protocol, options, guarantee, settings, spec.seed)


def faults_of(spec: Spec) -> tuple[Fault, ...]:
    """The faults of a spec, checked."""
    faults = parse(spec.faults)
    check(faults, spec.slots)
    check_possible(faults)
    return faults


def run(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    runs: Path = RUNS,
    resume: str | None = None,
    timeouts: Timeouts | None = None,
    on_event: Callable[[Happened], None] = lambda happened: None,
) -> Run:
    """Run a workload on Spark to its end, break it as the spec says, and judge the output."""
    if resume is not None:
        directory = RunDirectory.open(runs, resume)
        spec = replace(_read_spec(directory), faults="")
    job = build_job(spec)
    faults = faults_of(spec)
    session = spark or own_session(spec.slots, spec.spares)
    try:
        if resume is None:
            spec = replace(spec, faults=describe(faults))
            directory = RunDirectory.create(runs, spec.workload, spec.protocol, asdict(spec))
        timeline = Timeline(on_event)
        problem = _drive(job, directory, session, spec, faults, timeouts, timeline)
    finally:
        if spark is None:
            session.stop()
    outputs = read_outputs(directory, job)
    verdict = _judge(spec, job, outputs, problem)
    finished = Run(directory, spec, verdict, timeline.metrics(), outputs)
    _write_result(finished)
    return finished


def _read_spec(directory: RunDirectory) -> Spec:
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
        on_event=timeline.see,
    )
    injector = Injector(driver, tuple(faults), spec.seed)

    def begin(origin_s: float) -> None:
        directory.write(
            "run.json", {"version": VERSION, **asdict(replace(spec, origin_s=origin_s))}
        )
        injector.begin()

    driver.on_begin = begin
    return driver.run()


def read_outputs(directory: RunDirectory, job: Job) -> dict[str, Batch]:
    """The public output of each sink."""
    outlet = directory.outlet
    read = outlet.committed if job.protocol.checkpoints else outlet.uncommitted
    outputs = {}
    for sink, tasks in job.deployment.sinks.items():
        batches = [batch for task in tasks for batch in read(task)]
        outputs[sink] = concat(batches) if batches else Batch({}, 0)
    return outputs


def _judge(spec: Spec, job: Job, outputs: Mapping[str, Batch], problem: str | None) -> Verdict:
    if problem is not None:
        return Verdict("unknown", problem)
    judge = WORKLOADS[spec.workload].judge
    problems = tuple(judge(spec.params, outputs, {}, job.guarantee))
    rows = sum(len(batch) for batch in outputs.values())
    if not problems:
        return Verdict("yes", f"{rows:,} rows of output are what the oracle expects")
    first = problems[0]
    because = f"{first.kind} {first.record}: {first.because}"
    if job.guarantee is Guarantee.NOTHING:
        because = f"nothing was promised, and the output is wrong: {because}"
    return Verdict("no", because, problems)


def _write_result(finished: Run) -> None:
    finished.directory.write(
        "result.json",
        {
            "kept": finished.verdict.kept,
            "because": finished.verdict.because,
            "problems": [asdict(problem) for problem in finished.verdict.problems],
            "metrics": dict(finished.metrics),
        },
    )


def default_slots() -> int:
    """The cores that this machine has for slots."""
    return max(1, len(os.sched_getaffinity(0)))
