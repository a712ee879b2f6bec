"""The verdict on a run: whether the output is what was promised, and why.

A run promises one guarantee, and that one decides. The other guarantees are answered, too: output that was
promised exactly once and came twice was still delivered at least once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from snapline.core.guarantee import Guarantee
from snapline.judge.report_files import held_to
from snapline.validate.judged import PROMISES, Answer
from snapline.wording import are, plural
from snapline.workload.common.base import Problem

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

    def doubted(self, why: str) -> "Verdict":
        """The verdict of a run that proved nothing: each *yes* becomes *unknown*, each *no* stays."""
        answers: Answers = {
            level: "unknown" if answer == "yes" else answer
            for level, answer in self.guarantees.items()
        }
        if self.kept != "yes":
            return Verdict(self.kept, self.because, self.problems, answers)
        because = f"{why}; otherwise {self.because}"
        return Verdict("unknown", because, self.problems, answers)


def rows_as(rows: int, what: str) -> str:
    """What is said of output in which nothing is wrong: it is `what`, such as what "the oracle expects"."""
    return f"{plural(rows, 'row')} of output {are(rows)} what {what}"


def first_said(problems: Sequence[Problem], promised: Guarantee) -> str:
    """The sentence of a verdict: the first of its problems."""
    first = problems[0]
    because = f"{first.kind} {first.record}: {first.because}"
    if promised is Guarantee.NOTHING:
        because = f"nothing was promised, and the output is wrong: {because}"
    return because


def verdict_of(
    problems_at: Callable[[Guarantee], Sequence[Problem]],
    promised: Guarantee,
    right: str,
    doubts: Callable[[Guarantee], str | None] | None = None,
) -> Verdict:
    """Make a verdict of the problems at each guarantee level; `right` is its sentence if there are none.

    If exactly once is kept, so are the other guarantees, and they are not asked. Otherwise `doubts` says
    why a level without problems may not have been kept all the same.
    """
    at = cache(lambda level: tuple(problems_at(level)))
    clean = not at(Guarantee.EXACTLY_ONCE)

    def doubt(level: Guarantee) -> str | None:
        return None if clean or doubts is None else doubts(level)

    answers: Answers = {
        level.value: "no" if not clean and at(level) else "unknown" if doubt(level) else "yes"
        for level in PROMISES
    }
    problems = at(held_to(promised))
    if not problems:
        why = doubt(held_to(promised))
        return Verdict("unknown" if why else "yes", why or right, (), answers)
    return Verdict("no", first_said(problems, promised), problems, answers)


def all_broken(verdict: Verdict, wrong: tuple[Problem, ...]) -> Verdict:
    """Answer no to every guarantee if rows are there that no promise allows."""
    if not wrong:
        return verdict
    because = f"{wrong[0].kind} {wrong[0].record}: {wrong[0].because}"
    answers: Answers = dict.fromkeys(verdict.guarantees, "no")
    return Verdict("no", because, wrong, answers)


def judge_retained(
    problems_at: Callable[[Guarantee], Sequence[Problem]],
    promised: Guarantee,
    left: int,
    deleted: int,
    until: str,
) -> Verdict:
    """Judge what is left of an output whose oldest rows were deleted on purpose, those before `until`.

    It is compared as ever, but for what is missing: that may be among the deleted rows. So a row that is
    left and should not be there, or is there too often, is a *no*. Otherwise the answer is *unknown*:
    nobody can compare the deleted rows any more.
    """
    excess = tuple(problems_at(Guarantee.AT_MOST_ONCE))
    if excess:
        broken = (Guarantee.AT_MOST_ONCE, Guarantee.EXACTLY_ONCE)
        answers: Answers = {**UNKNOWN, **{level.value: "no" for level in broken}}
        kept: Answer = "unknown" if promised is Guarantee.AT_LEAST_ONCE else "no"
        return Verdict(kept, first_said(excess, promised), excess, answers)
    older = f"{plural(deleted, 'older one')} {'was' if deleted == 1 else 'were'} deleted by retain"
    right = f"the {plural(left, 'row')} published since {until} {are(left)} right"
    return Verdict("unknown", f"{right}; {older} and could not be compared")
