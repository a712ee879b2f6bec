"""The verdict on a run: whether the public output is what was promised, and who says so.

A run promises one guarantee, and that decides. The other guarantees are answered, too: output that was
promised exactly once and came twice was at least delivered at least once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job
from snapline.engine.reference import reference_output
from snapline.runtime.flows import Program
from snapline.validate.judged import PROMISES, Answer
from snapline.workload.base import Problem
from snapline.workload.reference import compare

NO_ORACLE = (
    "nobody knows what this dataflow should put out: reference=True (--reference) compares it with runs "
    "without failures"
)

Answers: TypeAlias = Mapping[str, Answer]
"""Whether each guarantee was kept, by its name."""

UNKNOWN: Answers = {level.value: "unknown" for level in PROMISES}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the output is what was promised."""

    kept: Answer
    because: str
    problems: tuple[Problem, ...] = ()
    guarantees: Answers = field(default_factory=lambda: UNKNOWN)


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
    oracle = program.judge
    rows = sum(len(batch) for batch in outputs.values())
    right = f"{rows:,} rows of output are what the oracle expects"
    return verdict_of(lambda level: oracle(outputs, level), job.guarantee, right)


def _by_reference(program: Program, job: Job, found: Mapping[str, Batch]) -> Verdict:
    deployment = deploy(program.flow, job.deployment.slots)
    right = cache(lambda order: reference_output(deployment, order))
    comparison = compare(found, right, Guarantee.EXACTLY_ONCE)
    if comparison.undecided is not None:
        return Verdict("unknown", comparison.undecided)
    rows = sum(len(batch) for batch in found.values())
    by = f"{rows:,} rows of output are what comes out without failures"
    if comparison.left_out:
        columns = " and ".join(comparison.left_out)
        by += f" (each time without one of {columns}, which depend on the order of input)"
    return verdict_of(lambda level: compare(found, right, level).problems, job.guarantee, by)


def verdict_of(
    judged: Callable[[Guarantee], Sequence[Problem]], promised: Guarantee, right: str
) -> Verdict:
    """The verdict, from whoever knows what is wrong at a level; `right` is said if nothing is."""
    at = cache(lambda level: tuple(judged(level)))
    answers = _answers(at)
    problems = at(Guarantee.EXACTLY_ONCE if promised is Guarantee.NOTHING else promised)
    if not problems:
        return Verdict("yes", right, (), answers)
    first = problems[0]
    because = f"{first.kind} {first.record}: {first.because}"
    if promised is Guarantee.NOTHING:
        because = f"nothing was promised, and the output is wrong: {because}"
    return Verdict("no", because, problems, answers)


def _answers(at: Callable[[Guarantee], tuple[Problem, ...]]) -> Answers:
    """Exactly once forbids all that the others forbid: only if it is broken they have to be asked."""
    clean = not at(Guarantee.EXACTLY_ONCE)
    return {level.value: "yes" if clean or not at(level) else "no" for level in PROMISES}
