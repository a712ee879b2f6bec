"""The verdict on a run: whether the output is what was promised, and why.

A run promises one guarantee, and that one decides. The other guarantees are answered, too: output that was
promised exactly once and came twice was still delivered at least once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from snapline.core.guarantee import Guarantee
from snapline.storage.row_account import RowAccount
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


# Of output of which the oldest rows were deleted on purpose.


@dataclass(frozen=True, slots=True)
class RetainedRows:
    """What is left of an output, what was deleted, and what is known of what should have come out."""

    left: int
    deleted: int
    since: str  # from when on rows are left, as people write it
    expected: int | None = None  # how many rows there should be in all
    account: RowAccount | None = None  # of the deleted rows
    missing: RowAccount | None = None  # of the rows that are expected and not left


def judge_retained(
    problems_at: Callable[[Guarantee], Sequence[Problem]], promised: Guarantee, rows: RetainedRows
) -> Verdict:
    """Judge what is left of an output; `problems_at` are the problems of that at each guarantee level.

    It is compared as ever, but for what is missing: that may be among the deleted rows. So a row that is
    left and should not be there, or is there too often, is a *no*; and so is a wrong number of rows in all,
    if it is known how many there should be. Where an account of the deleted rows was kept, and all expected
    rows are known, it must be that of the rows that are expected and not left: then all is proved, or
    disproved. Otherwise the answer is *unknown*.
    """
    excess = tuple(problems_at(Guarantee.AT_MOST_ONCE))
    said = first_said(excess, promised) if excess else _miscounted(rows)
    broken = _broken(rows, excess=bool(excess))
    older = f"{plural(rows.deleted, 'older one')} {_were(rows.deleted)} deleted by retain"
    right = f"the {plural(rows.left, 'row')} published since {rows.since} {are(rows.left)} right"
    if broken:
        answers: Answers = {**UNKNOWN, **{level.value: "no" for level in broken}}
        decides = Guarantee.EXACTLY_ONCE if promised is Guarantee.NOTHING else promised
        kept: Answer = "no" if decides in broken else "unknown"
        because = said or f"{older}, and by their account they were not those that are expected"
        return Verdict(kept, because, excess, answers)
    if rows.account is not None and rows.account == rows.missing:
        answers = {level.value: "yes" for level in PROMISES}
        return Verdict(
            "yes", f"{right}; {older}, and by their account were right, too", (), answers
        )
    return Verdict("unknown", f"{right}; {older} and not compared, only counted")


def _broken(rows: RetainedRows, *, excess: bool) -> set[Guarantee]:
    """The guarantees that are broken for sure."""
    broken = {Guarantee.AT_MOST_ONCE} if excess else set[Guarantee]()
    if rows.expected is not None and rows.left + rows.deleted != rows.expected:
        many = rows.left + rows.deleted > rows.expected
        broken.add(Guarantee.AT_MOST_ONCE if many else Guarantee.AT_LEAST_ONCE)
    if rows.account is not None and rows.missing is not None and rows.account != rows.missing:
        broken.add(Guarantee.EXACTLY_ONCE)
    return broken | {Guarantee.EXACTLY_ONCE} if broken else broken


def _miscounted(rows: RetainedRows) -> str:
    if rows.expected is None or rows.left + rows.deleted == rows.expected:
        return ""
    both = f"{rows.left:,} that are left and {rows.deleted:,} that were deleted"
    return f"{plural(rows.expected, 'row')} should have come out, and there were {both}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
