"""A run that is over, judged once more from what it left: nothing is started, no file is changed.

The verdict of a run was made when it ended. Whoever doubts it, or has another question (what was written
but never published, another guarantee), asks again here. Runs of other systems are judged from the tables
that were recorded of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from snapline.batch import Batch, concat
from snapline.core.policy import Guarantee
from snapline.errors import UsageError
from snapline.runtime.finished import spec_of
from snapline.runtime.flows import find_program
from snapline.runtime.judge import Verdict, judge, verdict_of
from snapline.runtime.lineage import LineageReport, judge_run
from snapline.runtime.output_rows import View, public_view, sinks_of, walk_output
from snapline.runtime.run import build_job
from snapline.runtime.rundir import RunDirectory
from snapline.runtime.spec import OWN, Spec
from snapline.systems.tables import saved_output, saved_tables
from snapline.systems.verdict import report_on
from snapline.validate.causes import Cause
from snapline.validate.judged import Judged
from snapline.workload import WORKLOADS
from snapline.workload.lineage.oracle import SINK

NO_PROGRAM = (
    "the dataflow '{flow}' is that of a program, which nobody but that program can build again"
)


@dataclass(frozen=True, slots=True)
class Again:
    """What there is to say about a run."""

    verdict: Verdict
    promise: Guarantee  # what decides
    view: View
    judged: Judged | None = None  # where outputs name the inputs behind them
    sentences: Mapping[Cause, str] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)  # PGVal's, likewise


def judge_again(
    directory: RunDirectory,
    promise: Guarantee | None = None,
    *,
    uncommitted: bool = False,
    reference: bool = False,
) -> Again:
    """Judge a run from its files: what was published, or all that was written. Raises UsageError."""
    spec, result = spec_of(directory), directory.result()
    if result is None:
        again = (
            f"'snapline run --resume {directory.name}' goes on with it; --follow judges meanwhile"
        )
        raise UsageError(f"{directory.name} is not over: {again}")
    if spec.system != OWN:
        if uncommitted or reference:
            option = "--uncommitted" if uncommitted else "--reference"
            raise UsageError(f"{option} is for Snapline's own runs, not for those of {spec.system}")
        return _of_system(directory, spec, result, promise)
    view: View = "uncommitted" if uncommitted else public_view(spec.protocol)
    if spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        told = Verdict("unknown", NO_PROGRAM.format(flow=spec.flow))
        return Again(told, promise or Guarantee(spec.guarantee or Guarantee.EXACTLY_ONCE), view)
    program = find_program(spec)
    job = build_job(spec, program)
    job = replace(job, guarantee=promise or job.guarantee)
    reference = reference or spec.reference
    can_judge = reference or program.judge is not None
    problem = result["because"] if result["kept"] == "unknown" and can_judge else None
    if program.lineage is not None and not reference:
        return again_of(judge_run(directory, program.lineage, view), problem, job.guarantee, view)
    there = sinks_of(directory)
    outputs = {
        sink: _whole(directory, sink, view) if sink in there else Batch({}, 0)
        for sink in job.deployment.sinks
    }
    verdict = judge(program, job, outputs, reference=reference, problem=problem)
    return Again(verdict, job.guarantee, view)


def _whole(directory: RunDirectory, sink: str, view: View) -> Batch:
    parts = list(walk_output(directory, sink, view))
    return concat(parts) if parts else Batch({}, 0)


def again_of(report: LineageReport, problem: str | None, promise: Guarantee, view: View) -> Again:
    """What a report says of a run that ended early because of `problem`, or well."""
    if problem is not None:  # what is missing might have come
        report = replace(report, judged=replace(report.judged, undecided=problem))
    verdict = report.verdict(promise)
    return Again(verdict, promise, view, report.judged, report.sentences, report.figures)


def _of_system(
    directory: RunDirectory, spec: Spec, result: Mapping[str, Any], promise: Guarantee | None
) -> Again:
    held_to = promise or Guarantee(spec.guarantee or Guarantee.EXACTLY_ONCE)
    problem = result["because"] if result["kept"] == "unknown" else None
    workload = WORKLOADS[spec.flow]
    if workload.lineage is not None:
        tables, metrics = saved_tables(directory.path, SINK), result["metrics"]
        inputs = tables.inputs
        if inputs is None:
            raise UsageError(f"{directory.path / 'input'} is gone: the run cannot be judged again")
        lineage = replace(workload.lineage(spec.params), events=lambda: inputs)
        end_ms = int(metrics.get("duration_s", 0) * 1000)
        report = report_on(lineage, tables, metrics.get("events", ()), end_ms)
        return again_of(report, problem, held_to, "committed")
    if problem is not None:
        return Again(Verdict("unknown", problem), held_to, "committed")
    sink = next(name for name in result["rows"] if name != "late")
    _, parts = saved_output(directory.path)
    rows = [*parts]
    output = concat(rows) if rows else Batch({}, 0)
    verdict = verdict_of(
        lambda level: workload.judge(spec.params, {sink: output}, {}, level),
        held_to,
        f"{len(output):,} rows of output are what the oracle expects",
    )
    return Again(verdict, held_to, "committed")
