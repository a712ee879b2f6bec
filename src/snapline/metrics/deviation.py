"""How far the output of a run is off: its answer against the right one, from the first fault on.

The right answer is known from the input, or from a run without failures. Rows are paired by their identity.
What had been written before the first fault struck is left out: it cannot be wrong because of it. Of all
other rows that should come this says how many never came, how many came more than once, and, of each column
that is part of the answer, how far its numbers are from the right ones. A row that came twice counts twice
there, because nobody who reads it can know which one to believe.

Where rows replace each other, as running counts do, the last one is the answer. It was given before the
fault if it was right by then, and due. Any other was still to come: a slot that dies leaves the last row
that it had written, and if nobody replaces that, it is wrong, from the time at which the right one was due.

*Right again* is the output after the last row that was wrong, missing or repeated. A missing row was never
written: the time at which it was due stands for that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.ids import Millis

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

UNEXPECTED: Final = -1
"""The number of a row that nobody expects."""

TOLERANCE: Final = 1e-9
"""How far a number may be from the right one, relative to it, and still count as right: sums of fractions
depend on the order in which they are added."""


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The rows of an answer: the right one, or the one that came."""

    number: (
        Ints  # rows with the same number answer the same question; the right ones are 0, 1, 2, ...
    )
    at_ms: Ints  # when each was due, or was written
    values: Mapping[str, Floats]  # by column


@dataclass(frozen=True, slots=True)
class ColumnDeviation:
    """How far the numbers of a column are from the right ones, over all rows that came.

    A number that is infinite, or none at all, is wrong, and is left out of all else.
    """

    rmse: float  # root of the mean squared error
    largest: float  # the largest error
    p50: float  # half of the errors are at most this; an error is a distance, never below 0
    p90: float  # nine in ten errors are at most this
    p99: float  # 99 of 100 errors are at most this
    wrong: float  # share of the rows whose number is not right, from 0 to 1
    typical: float  # the mean size of the right numbers, to compare errors with


@dataclass(frozen=True, slots=True)
class DeviationFigures:
    """How far the answer is from the right one, from the first fault that struck on."""

    from_ms: Millis  # when the first fault struck; 0: none did, so all rows count
    rows: int  # that were still to come then
    #: that were written from then on, each time they were; where rows replace each other, the last of each
    #: identity, unless it was right and due before
    came: int
    missing: float  # share of the rows that never came, from 0 to 1
    repeated: float  # how many rows came again, as a share of those that should come
    unexpected: int  # rows that nobody expects
    #: seconds from the fault until the last row that is wrong, missing, repeated or unexpected; 0: all is
    #: right; None: the last of all rows is among them, so nobody knows when it would have been right again
    right_again_s: float | None
    columns: Mapping[str, ColumnDeviation]  # by name; without those of which no row came

    @property
    def is_zero(self) -> bool:
        """Whether nothing is wrong, missing, repeated or unexpected."""
        counted = self.missing or self.repeated or self.unexpected
        return not counted and not any(column.wrong for column in self.columns.values())

    @property
    def overall(self) -> float:
        """One number for all: the RMSE relative to the typical value, of the column that is worst.

        A row that is missing, repeated or unexpected counts as if it were off by a typical value.
        """
        rows = max(self.rows, 1)
        others = self.missing + self.repeated + self.unexpected / rows
        came = (self.came - self.unexpected) / rows
        squares = (came * (c.rmse / (c.typical or 1.0)) ** 2 for c in self.columns.values())
        return math.sqrt(max(squares, default=0.0) + others)


def deviation(right: AnswerRows, came: AnswerRows, from_ms: Millis = 0) -> DeviationFigures:
    """Hold an answer against the right one, from a moment on."""
    known = came.number != UNEXPECTED
    early = came.at_ms < from_ms
    open_ = np.ones(len(right.number), np.bool_)  # rows that were still to come
    open_[came.number[known & early]] = False
    later = known & ~early
    copies = np.bincount(came.number[later], minlength=len(right.number))
    missing = open_ & (copies == 0)
    again = _again(came, later, open_)
    unexpected = ~known & ~early
    bad = again | unexpected
    columns = {}
    for name, values in came.values.items():
        error = _errors(values[later], right.values[name][came.number[later]])
        bad[np.flatnonzero(later)[error > 0]] = True
        if len(error):
            columns[name] = _column(error, right.values[name][came.number[later]])
    rows = int(open_.sum())
    return DeviationFigures(
        from_ms,
        rows,
        int(later.sum() + unexpected.sum()),
        _share(int(missing.sum()), rows),
        _share(int(again.sum()), rows),
        int(unexpected.sum()),
        _right_again_s(right.at_ms[missing], came.at_ms[bad], came.at_ms[later & ~bad], from_ms),
        columns,
    )


def as_they_stand(right: AnswerRows, came: AnswerRows, from_ms: Millis) -> AnswerRows:
    """Rows that replace each other, the last of each number, at the times for which they are judged.

    One that was written before the right one was due is the answer when that is due. One that is wrong
    counts in any case: what was due just before the fault may have been on its way to it.
    """
    known = came.number != UNEXPECTED
    number, at_ms = came.number[known], came.at_ms.copy()
    at_ms[known] = np.maximum(at_ms[known], right.at_ms[number])
    wrong = np.zeros(len(at_ms), np.bool_)
    for name, values in came.values.items():
        wrong[known] |= _errors(values[known], right.values[name][number]) > 0
    at_ms[wrong] = np.maximum(at_ms[wrong], from_ms)
    return replace(came, at_ms=at_ms)


def _again(came: AnswerRows, later: Flags, open_: Flags) -> Flags:
    """Which rows came again: all but the first of their number, or all if that had come before."""
    order = np.lexsort((came.at_ms, came.number))
    order = order[later[order]]
    numbers = came.number[order]
    first = np.ones(len(order), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    again = np.zeros(len(came.number), np.bool_)
    again[order[~(first & open_[numbers])]] = True
    return again


def _errors(found: Floats, right: Floats) -> Floats:
    """How far each number is from the right one; 0 if as near as fractions can be, or if neither is one."""
    with np.errstate(invalid="ignore"):
        errors = np.abs(found - right)
        near = errors <= TOLERANCE * np.abs(right)
    same = near | (found == right) | (np.isnan(found) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isnan(errors), np.inf, errors))


def _column(error: Floats, right: Floats) -> ColumnDeviation:
    finite = error[np.isfinite(error)]
    sizes = np.abs(right[np.isfinite(right)])
    p50, p90, p99, largest = (_quantile(finite, share) for share in (0.5, 0.9, 0.99, 1.0))
    return ColumnDeviation(
        rmse=float(np.sqrt(np.mean(np.square(finite)))) if len(finite) else 0.0,
        largest=largest,
        p50=p50,
        p90=p90,
        p99=p99,
        wrong=float(np.count_nonzero(error) / len(error)),
        typical=float(np.mean(sizes)) if len(sizes) else 0.0,
    )


def _quantile(errors: Floats, share: float) -> float:
    """The smallest error that is at least as large as this share of all."""
    return float(np.quantile(errors, share, method="inverted_cdf")) if len(errors) else 0.0


def _share(count: int, rows: int) -> float:
    """A share of the rows that were still to come; what came again without any such row is a whole one."""
    if not rows:
        return 1.0 if count else 0.0
    return count / rows


def _right_again_s(missing_ms: Ints, bad_ms: Ints, good_ms: Ints, from_ms: Millis) -> float | None:
    wrong_ms = np.concatenate([missing_ms, bad_ms])
    if not len(wrong_ms):
        return 0.0
    last_ms = int(wrong_ms.max())
    if not (good_ms > last_ms).any():
        return None
    return max(0, last_ms - from_ms) / 1000
