"""Whether a run lost only what it declared, and declared only what it may lose.

One judge for both worlds: it takes what was declared, which faults struck, and a function that compares the
output with what it should be, given what is excused.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from snapline.chaos.strikes import Strike
from snapline.engine.job import Job
from snapline.ids import Millis
from snapline.journal.loss_happenings import Declared
from snapline.loss.bound import Allowances, Bound, struck_by
from snapline.loss.declared import Lost, outage_ms, settle
from snapline.loss.excuses import DeclaredExcuses, input_ends_ms, places_of
from snapline.workload.common.base import Problem
from snapline.workload.common.losses import Excuses


@dataclass(frozen=True, slots=True)
class LossAccount:
    """What was lost, and what may have been."""

    problems: tuple[Problem, ...]  # what no declared loss excuses; none: the guarantee was kept
    settled: tuple[Lost, ...]  # the losses that were declared rightly
    lost: int  # expected rows (or records, where rows stand for records) that are missing ...
    rows: int  # ... of so many; 0: nothing was lost, so nobody counted
    free: int  # rows whose numbers need not be right, because they depend on lost state
    again: int  # rows that came again, because two lives of a task put them out
    bound: int  # how many records may be lost at most
    outage_ms: Millis  # the longest time that a lost slot was away
    allowed: Allowances

    @property
    def figures(self) -> dict[str, int]:
        """What a result keeps of it."""
        names = ("losses", "lost", "rows", "free", "again", "bound", "outage_ms")
        return {name: getattr(self, name) for name in names}

    @property
    def losses(self) -> int:
        """How many losses of tasks were declared rightly."""
        return len(self.settled)


def judge_losses(
    job: Job,
    declared: Iterable[Declared],
    strikes: Sequence[Strike],
    allowed: Allowances,
    problems_with: Callable[[Excuses], Sequence[Problem]],
) -> LossAccount:
    """Judge what a run lost; `problems_with` has an oracle compare its output, given what is excused."""
    bound = Bound(job, struck_by(strikes, job), allowed)
    settled = settle(declared, bound)
    places = places_of(job.deployment)
    excuses = DeclaredExcuses(settled.losses, places, bound.lag_ms, input_ends_ms(job.deployment))
    problems = settled.problems or tuple(problems_with(excuses))
    return LossAccount(
        problems,
        settled.losses,
        excuses.lost,
        excuses.rows,
        excuses.free,
        excuses.again,
        bound.records(),
        outage_ms(settled.losses),
        allowed,
    )
