"""The verdict on a system: by lineage where outputs name their inputs, else by the oracle of the workload.

Every guarantee is answered. What decides is the one that the system is held to: exactly once, unless the
run says otherwise; that a sink promises less is no excuse, but a reason that the verdict names. After what
is found comes how the system came to it, in its own words: without them a yes or no is hard to believe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeAlias

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.runtime.judge import Verdict, verdict_of
from snapline.runtime.lineage import LineageReport, judge_lineage
from snapline.runtime.spec import Spec
from snapline.systems.base import System
from snapline.systems.course import Course
from snapline.systems.tables import Tables
from snapline.validate.sentences import TimedFault
from snapline.workload import WORKLOADS
from snapline.workload.base import Lineage
from snapline.workload.lineage.oracle import SINK

Told: TypeAlias = Mapping[str, Any]
"""Something that happened, as `result.json` has it: `at_ms`, `what`, and details."""


def verdict_on(
    spec: Spec, system: System, tables: Tables, course: Course, problem: str | None
) -> tuple[Verdict, dict[str, Any]]:
    """The verdict, and figures of lineage; `problem` says why the system did not come to its end."""
    held_to = Guarantee(spec.guarantee or Guarantee.EXACTLY_ONCE)
    lineage = WORKLOADS[spec.flow].lineage
    figures: dict[str, Any] = {}
    if lineage is not None:
        verdict, figures = _by_lineage(lineage(spec.params), tables, course, problem, held_to)
    elif problem is not None:
        verdict = Verdict("unknown", problem)
    else:
        verdict = _by_oracle(spec, tables, held_to)
    because = "; ".join(
        [verdict.because.rstrip("."), *_story(system, course, verdict.kept == "yes")]
    )
    return replace(verdict, because=because), figures


def _by_oracle(spec: Spec, tables: Tables, held_to: Guarantee) -> Verdict:
    workload, rows = WORKLOADS[spec.flow], sum(tables.rows.values())
    return verdict_of(
        lambda level: workload.judge(spec.params, tables.outputs, {}, level),
        held_to,
        f"{rows:,} rows of output are what the oracle expects",
    )


def _by_lineage(
    lineage: Lineage, tables: Tables, course: Course, problem: str | None, held_to: Guarantee
) -> tuple[Verdict, dict[str, Any]]:
    report = report_on(lineage, tables, course.told(), course.now_ms())
    if problem is not None:  # what is missing may be on its way
        report = replace(report, judged=replace(report.judged, undecided=problem))
    return report.verdict(held_to), {"lineage": dict(report.figures)}


def report_on(
    lineage: Lineage, tables: Tables, events: Sequence[Told], end_ms: Millis
) -> LineageReport:
    """Judge the tables of a run by lineage; `events` is what happened until `end_ms`."""
    nothing = Batch({}, 0)
    counts = tables.outputs.get(SINK, nothing)
    late = nothing if tables.late is None else tables.late
    return judge_lineage(lineage, counts, late, list(faults_in(events)), end_ms)


def faults_in(events: Sequence[Told]) -> Iterator[TimedFault]:
    """The faults as they happened. A kill is over when the system runs again, if it ever was down."""
    for number, event in enumerate(events):
        later = events[number + 1 :]
        end_ms: Millis | None = None
        match event["what"]:
            case "killed":
                soon = list(takewhile(lambda other: other["what"] != "killed", later))
                down = _first(soon, "down") is not None
                end_ms = _first(later, "running") if down else None
            case "paused":
                end_ms = _first(later, "continued")
            case "disturbed":
                end_ms = event["at_ms"] + event["for_ms"]
            case _:
                continue
        yield TimedFault(event["fault"], event["at_ms"], end_ms)


def _first(events: Sequence[Told], what: str) -> Millis | None:
    return next((event["at_ms"] for event in events if event["what"] == what), None)


def _story(system: System, course: Course, kept: bool) -> Iterator[str]:
    """What led to it: the system's own account, and faults that never came."""
    yield from system.account()
    if not kept and system.promise is not Guarantee.EXACTLY_ONCE:
        yield f"it promises no more than {system.promise.value}"
    for happened in course.events:
        if happened.what == "missed":
            yield f"'{happened.detail['fault']}' found nobody: the system was down already"
    for fault in course.unstruck:
        yield f"'{fault}' never found its moment"
