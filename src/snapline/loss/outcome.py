"""What a real run lost, in words: how much of how much, the bound, and who was away for how long.

Slots that are back say so themselves. How long the others put out nothing meanwhile is told by when their
rows were written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.chaos.strikes import Strike
from snapline.durations import write_duration
from snapline.engine.job import Job
from snapline.ids import Millis
from snapline.journal.loss_happenings import Declared
from snapline.loss.bound import REAL
from snapline.loss.declared import Lost
from snapline.loss.judge import LossAccount, judge_losses
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
class LossOutcome:
    """What a run lost, and how that is said if all is as it was promised."""

    account: LossAccount
    because: str


def judge_run_losses(
    job: Job,
    declared: Sequence[Declared],
    strikes: Sequence[Strike],
    stamps: Sequence[tuple[Ints, Ints]],
    problems_with: Callable[[Excuses], Sequence[Problem]],
) -> LossOutcome:
    """Judge what a real run lost; `stamps` says which slot wrote the rows of each sink, and when."""
    account = judge_losses(job, declared, strikes, REAL, problems_with)
    return LossOutcome(account, sentence_of(account, _others_ms(account, stamps)))


def sentence_of(account: LossAccount, others_ms: Millis | None) -> str:
    """What was lost, what may have been, and who was away for how long."""
    if not account.losses:
        return "nothing was lost, and nothing was declared as lost"
    lost = f"lost {account.lost:,} of {plural(account.rows, 'row')} that were due"
    if account.free:
        share = f"{100 * account.free / max(account.rows, 1):.3g} %"
        lost += f"; {plural(account.free, 'row')} ({share}) may be wrong: they depend on lost state"
    if account.again:
        lost += f"; {plural(account.again, 'row')} came again, put out by two lives of a task"
    bound = f"at most {plural(account.bound, 'record')} may be lost ({account.allowed})"
    away = f"a lost slot was away for {write_duration(account.outage_ms)} at most"
    if others_ms is not None:
        away += (
            f", and the others put out nothing for {write_duration(others_ms)} at most meanwhile"
        )
    return f"{lost}; {bound}; {away}; all else is right"


def _others_ms(account: LossAccount, stamps: Sequence[tuple[Ints, Ints]]) -> Millis | None:
    """The longest time in which slots that were not lost wrote nothing while one was away."""
    if not stamps:
        return None
    slots, times = (np.concatenate(columns) for columns in zip(*stamps, strict=True))
    return max((_gap(loss, slots, times) for loss in account.settled), default=None)


def _gap(loss: Lost, slots: Ints, times: Ints) -> Millis:
    inside = (slots != loss.slot) & (times >= loss.death_ms) & (times <= loss.to_ms)
    moments = np.sort(np.concatenate([[loss.death_ms], times[inside], [loss.to_ms]]))
    return int(np.diff(moments).max())
