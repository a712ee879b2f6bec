"""The verdict on a run: whether the public output is what was promised, and who says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job
from snapline.engine.reference import reference_output
from snapline.runtime.flows import Program
from snapline.workload.base import Problem
from snapline.workload.reference import compare

NO_ORACLE = (
    "nobody knows what this dataflow should put out: reference=True (--reference) compares it with runs "
    "without failures"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the output is what was promised."""

    kept: Literal["yes", "no", "unknown"]
    because: str
    problems: tuple[Problem, ...] = ()


def judge(
    program: Program,
    job: Job,
    outputs: Mapping[str, Batch],
    *,
    reference: bool,
    problem: str | None,
) -> Verdict:
    """Judge what a run has published; `problem` says why it did not come to its end."""
    if problem is not None:
        return Verdict("unknown", problem)
    if reference:
        return _by_reference(program, job, outputs)
    if program.judge is None:
        return Verdict("unknown", NO_ORACLE)
    problems = tuple(program.judge(outputs, job.guarantee))
    return _verdict(job, outputs, problems, "the oracle expects")


def _by_reference(program: Program, job: Job, found: Mapping[str, Batch]) -> Verdict:
    deployment = deploy(program.flow, job.deployment.slots)
    level = Guarantee.EXACTLY_ONCE if job.guarantee is Guarantee.NOTHING else job.guarantee
    comparison = compare(found, lambda order: reference_output(deployment, order), level)
    if comparison.undecided is not None:
        return Verdict("unknown", comparison.undecided)
    by = "comes out without failures"
    if comparison.left_out:
        columns = " and ".join(comparison.left_out)
        by += f" (each time without one of {columns}, which depend on the order of input)"
    return _verdict(job, found, comparison.problems, by)


def _verdict(
    job: Job, found: Mapping[str, Batch], problems: tuple[Problem, ...], by: str
) -> Verdict:
    if not problems:
        rows = sum(len(batch) for batch in found.values())
        return Verdict("yes", f"{rows:,} rows of output are what {by}")
    first = problems[0]
    because = f"{first.kind} {first.record}: {first.because}"
    if job.guarantee is Guarantee.NOTHING:
        because = f"nothing was promised, and the output is wrong: {because}"
    return Verdict("no", because, problems)
