"""Judges output that does not name its inputs: by the workload's oracle, or by runs without failures."""

from collections.abc import Mapping
from functools import cache

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.engine.job import Job
from snapline.judge.by_reference import held_against
from snapline.judge.verdict import Answers, Verdict, first_said, rows_as, verdict_of
from snapline.rundir.program import Program
from snapline.validate.judged import PROMISES

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
    right = rows_as(rows, "the oracle expects")
    return verdict_of(lambda level: oracle(outputs, level), job.guarantee, right)


def _by_reference(program: Program, job: Job, found: Mapping[str, Batch]) -> Verdict:
    slots, checkpoints = job.deployment.slots, job.protocol.checkpoints
    at = cache(held_against(program.flow, slots, found, checkpoints=checkpoints))
    clean = at(Guarantee.EXACTLY_ONCE).kept == "yes"
    answers: Answers = {level.value: "yes" if clean else at(level).kept for level in PROMISES}
    nothing = job.guarantee is Guarantee.NOTHING
    decides = at(Guarantee.EXACTLY_ONCE if nothing or clean else job.guarantee)
    if decides.undecided is not None:
        return Verdict("unknown", decides.undecided, (), answers)
    if problems := decides.problems:
        return Verdict("no", first_said(problems, job.guarantee), problems, answers)
    rows = sum(len(batch) for batch in found.values())
    right = rows_as(rows, "comes out without failures")
    if decides.views:
        right += f", in all that does not depend on the order of input: {'; '.join(decides.views)}"
    return Verdict("yes", right, (), answers)
