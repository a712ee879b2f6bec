"""One run of a system under test: input at its pace, faults at their time, and a verdict on what came out.

A run directory has `run.json` and `result.json` as every run has, and

system/    all that the system wrote: its checkpoint, its sink, what its processes said
input/     lineage only: the events as Parquet, with `partition`, `offset` and `arrival`
output/    what a reader of the sink saw, as Parquet, with `position` and `written`
late/      likewise the late output, if the system has one
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from snapline.chaos.faults import Fault, describe, parse
from snapline.chaos.strikes import Strike
from snapline.errors import UsageError
from snapline.journal.entry import Happened
from snapline.judge.evidence import RunEnding
from snapline.judge.run_directory import judge
from snapline.judge.verdict import Verdict
from snapline.rundir.directory import RUNS, VERSION, RunDirectory
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import sources_of
from snapline.runs.finished import write_result
from snapline.storage.api import Ingress
from snapline.storage.files.places import make_directory
from snapline.systems.harness.base import System, Work
from snapline.systems.harness.course import TELL_S, Course, SystemFigures, Tell
from snapline.systems.harness.inject import check
from snapline.systems.harness.tables import tables_of
from snapline.workload import WORKLOADS


@dataclass(frozen=True, slots=True)
class SystemRun:
    """A run of a system that is over."""

    directory: RunDirectory
    spec: Spec
    verdict: Verdict
    figures: SystemFigures
    rows: Mapping[str, int]  # how many rows came out of each sink
    faults: tuple[Strike, ...] = ()  # every fault of the plan, and whether it struck

    events: tuple[Happened, ...] = ()  # what happened to it

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.directory.name


def check_spec(spec: Spec, system: System) -> tuple[Fault, ...]:
    """The faults of a spec that this system can run. Raises UsageError; starts nothing."""
    for name in ("slots", "rate", "duration_ms"):
        if getattr(spec, name) != "max" and getattr(spec, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(spec, name)}")
    if spec.flow not in system.workloads:
        able = ", ".join(system.workloads)
        known = "" if spec.flow in WORKLOADS else "is no workload, and "
        raise UsageError(f"{spec.flow} {known}cannot be run on {system.name}: it runs {able}")
    faults = parse(spec.faults)
    check(system, faults)
    return faults


def run(
    spec: Spec,
    system: System,
    *,
    runs: Path = RUNS,
    tell: Tell = lambda happened: None,
    tell_every_s: float = TELL_S,
) -> SystemRun:
    """Run a workload on a system to its end, break it as the spec says, and judge what came out.

    `tell` is called with all that happens, and with the figures of the system every `tell_every_s`. What it
    raises ends the run: the system is stopped, and nothing is judged.
    """
    faults = check_spec(spec, system)
    spec = replace(spec, faults=describe(faults))
    sources = sources_of(spec.flow, spec.params)
    directory = RunDirectory.create(runs, spec.flow, system.name, _described(spec))
    course = Course(spec.system, system, faults, sources, tell, tell_every_s)
    try:
        system.start(_work(spec, sources, directory))
        course.begin()
        known = {"version": VERSION, "id": directory.identity}
        directory.write("run.json", {**known, **_described(spec, course.origin_s)})
        problem = course.go()
        tables = tables_of(spec.flow, spec.params, system, course.origin_s)
    finally:
        system.stop()
    tables.save(directory.path)
    ending = RunEnding(problem, course.events, course.now_ms(), [*system.account()], system.promise)
    judgement = judge(directory, ending=ending)
    figures = course.figures(judgement.figures)
    write_result(directory, judgement, figures, problem, events=course.events)
    return SystemRun(
        directory,
        spec,
        judgement.verdict,
        figures,
        judgement.rows,
        judgement.strikes,
        tuple(course.events),
    )


def _described(spec: Spec, origin_s: float | None = None) -> dict[str, Any]:
    """The spec as `run.json` has it, without a protocol: a system under test has none of ours."""
    return asdict(replace(spec, protocol="", origin_s=origin_s))


def _work(spec: Spec, sources: Mapping[str, Ingress], directory: RunDirectory) -> Work:
    home = directory.path / "system"
    make_directory(home)
    streams = {name: source.schema for name, source in sources.items()}
    return Work(spec.flow, spec.params, streams, home, spec.slots)
