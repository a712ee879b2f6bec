"""Judges output that does not name its inputs: by the workload's oracle, or by runs without failures."""

from collections.abc import Mapping
from functools import cache

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job
from snapline.engine.reference import reference_output
from snapline.judge.verdict import Verdict, verdict_of
from snapline.runtime.flows import Program
from snapline.workload.reference import compare

NO_ORACLE = (
    "nobody knows what this dataflow should put out: reference=True (--reference) compares it with runs "
    "without failures"
)


def judge_output(
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
