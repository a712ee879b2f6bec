"""The verdict on a run that may lose something: whether it lost only what it declared, within its bound.

Which faults struck is taken from the record of the injector, what was declared from the journals of the
drivers, and the rest from the output. Slots say themselves when they are back; how long the others put out
nothing meanwhile is told by when their rows were written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.core.guarantee import Guarantee
from snapline.durations import write_duration
from snapline.engine.job import Job
from snapline.ids import Millis
from snapline.judge.evidence import RunEvidence
from snapline.judge.verdict import UNKNOWN, Verdict, first_said
from snapline.loss.bound import REAL
from snapline.loss.declared import Lost
from snapline.loss.judge import LossAccount, judge_losses
from snapline.rundir.output_rows import POSITION_BITS
from snapline.rundir.program import build_job
from snapline.rundir.spec import Spec
from snapline.validate.judged import Answer
from snapline.wording import plural
from snapline.workload.common.base import Problem
from snapline.workload.common.losses import Excuses, Ints

NO_EXCUSES: Final = (
    "nobody knows which rows of '{flow}' a loss touches: its oracle cannot judge bounded loss, and runs "
    "without failures say nothing about it"
)
NO_RATE: Final = (
    "all input was due at once, so nobody knows when a record was lost, and there is no rate that bounds "
    "the loss: give the run a rate"
)


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """The verdict on what a run lost."""

    verdict: Verdict  # with the answer for bounded loss alone; others know the other guarantees
    account: LossAccount | None = None  # None: nothing could be compared


def judge_bounded_loss(evidence: RunEvidence, spec: Spec, problem: str | None) -> LossVerdict:
    """Judge what a run lost; `problem` says why it did not come to its end."""
    program, history = evidence.program, evidence.history
    if evidence.failed is not None or program is None:
        assert evidence.failed is not None
        return LossVerdict(evidence.failed)
    if history.gap is not None:
        return _unknown(f"nobody knows what the run declared as lost, because {history.gap}")
    if problem is not None:  # the run was cut short, so what is missing might still have come
        return _unknown(problem)
    if program.judges_with is None or evidence.cut is not None or evidence.deleted is not None:
        return _unknown(NO_EXCUSES.format(flow=spec.flow))
    if history.declared and spec.params.at_once:
        return _unknown(NO_RATE)
    judges_with = program.judges_with
    outputs = {sink: output.rows for sink, output in evidence.outputs.items()}

    def problems_with(excuses: Excuses) -> Sequence[Problem]:
        judge, _ = judges_with(excuses)
        return judge(outputs, Guarantee.BOUNDED_LOSS)

    job = build_job(spec, program)
    account = judge_losses(job, history.declared, history.strikes, REAL, problems_with)
    if account.problems:
        because = first_said(account.problems, Guarantee.BOUNDED_LOSS)
        return LossVerdict(_verdict("no", because, account.problems), account)
    return LossVerdict(
        _verdict("yes", sentence_of(account, _others_ms(account, job, evidence))), account
    )


def _unknown(why: str) -> LossVerdict:
    return LossVerdict(Verdict("unknown", why))


def _verdict(kept: Answer, because: str, problems: tuple[Problem, ...] = ()) -> Verdict:
    return Verdict(kept, because, problems, {**UNKNOWN, Guarantee.BOUNDED_LOSS.value: kept})


def sentence_of(account: LossAccount, others_ms: Millis | None) -> str:
    """What was lost, what may have been, and who was away for how long."""
    if not account.losses:
        return "nothing was lost, and nothing was declared as lost"
    lost = f"lost {account.lost:,} of {plural(account.rows, 'row')} that were due"
    if account.free:
        share = f"{100 * account.free / max(account.rows, 1):.3g} %"
        lost += f"; {plural(account.free, 'row')} ({share}) may be wrong: they depend on lost state"
    bound = f"at most {plural(account.bound, 'record')} may be lost ({account.allowed})"
    away = f"a lost slot was away for {write_duration(account.outage_ms)} at most"
    if others_ms is not None:
        away += (
            f", and the others put out nothing for {write_duration(others_ms)} at most meanwhile"
        )
    return f"{lost}; {bound}; {away}; all else is right"


def _others_ms(account: LossAccount, job: Job, evidence: RunEvidence) -> Millis | None:
    """The longest time in which slots that were not lost wrote nothing while one was away."""
    slots: list[Ints] = []
    times: list[Ints] = []
    for sink, output in evidence.outputs.items():
        if len(output.stamps):
            tasks = job.deployment.sinks[sink]
            hosts = np.array([job.slot_by_task[task] for task in tasks], np.int64)
            slots.append(hosts[output.stamps["position"] >> POSITION_BITS])
            times.append(output.stamps["written"])
    if not times:
        return None
    return max(
        (_gap(loss, np.concatenate(slots), np.concatenate(times)) for loss in account.settled),
        default=None,
    )


def _gap(loss: Lost, slots: Ints, times: Ints) -> Millis:
    inside = (slots != loss.slot) & (times >= loss.death_ms) & (times <= loss.to_ms)
    moments = np.sort(np.concatenate([[loss.death_ms], times[inside], [loss.to_ms]]))
    return int(np.diff(moments).max())
