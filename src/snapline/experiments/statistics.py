"""Compares two columns of measurements that were taken in pairs, and says how sure the answer is.

The unit is a run. Runs of one turn follow each other closely on one machine, so they share what the machine
did meanwhile: their *ratio* is compared, never the runs of one column among themselves. Half and twice are
equally far from 1, so all arithmetic is done on logarithms.

The test flips signs: if two settings do not differ, every log ratio might as well have had the other sign.
Of n pairs there are 2^n ways to flip, and the share of them whose mean is at least as far from 0 as the
measured one is the exact p. It assumes nothing but that symmetry, in particular no normal distribution.

The interval belongs to that test: it holds the ratios that the test does not reject. Flipping the signs of
a set of pairs raises the mean above the measured one exactly if the mean of that set is negative. So the
test can be read off the means of all non-empty sets of pairs, 2^n - 1 of them, in order: between the k-th
from below and the k-th from above lies the true ratio with the probability 1 - 2k / 2^n (J. A. Hartigan,
"Using Subsample Values as Typical Values", 1969).

Few pairs cannot be sure: 5 reach p = 0.0625 at best, and an interval of 93.75 %. It takes 6 to claim
anything at 95 %. With fewer, the answer is at most *indicated*.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

ALPHA = 0.05
"""The probability with which a difference is claimed where there is none."""

EXACT_MAX = 16
"""Up to so many pairs all sets of them are looked at; of more pairs, as many sets as that, at random."""

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as large the second column is as the first."""

    pairs: int
    estimate: float  # the geometric mean of the ratios of all pairs
    low: float  # the interval of the true ratio ...
    high: float
    level: float  # ... and the probability with which it holds it
    p: float  # of a mean as far from 1 as this one, if the columns do not differ

    @property
    def is_sure(self) -> bool:
        """Whether there are pairs enough to claim anything at 1 - ALPHA."""
        return self.level >= 1 - ALPHA

    @property
    def spread(self) -> float:
        """How far from 1 the true ratio may be: the farther end of the interval, as a ratio above 1."""
        return max(self.high, 1 / self.low)

    @property
    def excludes_one(self) -> bool:
        """Whether 1, no difference, lies outside of the interval."""
        return not self.low <= 1 <= self.high


def paired(first: Sequence[float], second: Sequence[float], alpha: float = ALPHA) -> Ratio:
    """Compare two columns; what stands at the same place is a pair. All values are above 0.

    Raises ValueError if there is no pair, or a value whose logarithm means nothing.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} measurements are no pairs")
    if not all(math.isfinite(value) and value > 0 for value in (*first, *second)):
        raise ValueError("only numbers above 0 have a ratio")
    logs = np.log(np.asarray(second, dtype=float)) - np.log(np.asarray(first, dtype=float))
    means, sets = _means(logs)
    low, high, level = between(means, alpha)
    return Ratio(
        pairs=len(logs),
        estimate=math.exp(float(logs.mean())),
        low=math.exp(low),
        high=math.exp(high),
        level=level,
        p=min(1.0, 2 * min(_share(means <= 0, sets), _share(means >= 0, sets))),
    )


def between(means: Floats, alpha: float) -> tuple[float, float, float]:
    """The ends between which the true mean lies, and how probably, from the means of sets of values.

    The sets are those of `sets_of`, without the empty one.
    """
    k = max(1, math.floor(alpha / 2 * (len(means) + 1)))
    ordered = np.sort(means)
    least, most = min(len(means), k) - 1, max(len(means) - k, 0)
    return float(ordered[least]), float(ordered[most]), 1 - 2 * k / (len(means) + 1)


def _share(beyond: npt.NDArray[np.bool_], sets: int) -> float:
    """The share of the sets that lie beyond a ratio; the empty one, which flips nothing, always does."""
    return (1 + int(np.count_nonzero(beyond))) / sets


def _means(logs: Floats) -> tuple[Floats, int]:
    """The means of the non-empty sets of these values, and how many sets there are with the empty one."""
    chosen = sets_of(len(logs))
    # Sums that differ only in the order of rounding are equal: a p must not depend on it.
    means = np.round((chosen @ logs) / chosen.sum(axis=1), 12)
    return means, len(means) + 1


def sets_of(n: int, exact_max: int = EXACT_MAX) -> npt.NDArray[np.int64]:
    """The non-empty sets of n values: a row for each, with a 1 for each value that is in it.

    Of more than `exact_max` values there are as many sets as of so many, at random, but always the same.
    """
    if n <= exact_max:
        sets = np.arange(1, 1 << n)
        return (sets[:, np.newaxis] >> np.arange(n)) & 1
    chosen = np.random.default_rng(n).integers(0, 2, ((1 << exact_max) - 1, n))
    return chosen[chosen.any(axis=1)]


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p of several tests for their number; each may then be held against ALPHA as it is.

    The smallest of m is multiplied by m, the next by m - 1, and so on, and none becomes smaller than one
    before it (S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979). Then all of them
    together claim anything wrongly with the probability ALPHA at most, however they depend on each other.
    """
    corrected, least = [1.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = least
    return corrected


def signs_p(agreeing: int, turns: int) -> float:
    """The probability that at least so many of all turns agree with a claim, if a coin decided in each.

    It needs no ratios, only an order: for values that may be 0, or a time that was never reached.
    """
    return sum(math.comb(turns, k) for k in range(agreeing, turns + 1)) / (1 << turns)


class Difference(StrEnum):
    """What a comparison may answer."""

    MORE = "more"
    LESS = "less"
    ALIKE = "alike"  # the interval lies within the margin that was stated
    NOT_DISTINGUISHABLE = "not distinguishable"  # nothing was found; that does not make them equal
    CANNOT_TELL = "cannot tell"  # neither a difference nor likeness within the margin was shown


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and whether there were pairs enough to claim it."""

    difference: Difference
    is_sure: bool


def answer(
    first: Sequence[float],
    second: Sequence[float],
    margin: float | None = None,
    floor: float = 1.0,
) -> tuple[Ratio, Answer]:
    """Compare two columns of pairs, and say what may be claimed.

    `margin` is the ratio up to which two columns count as alike, as 1.05 does for 5 %. They are alike only
    if two one-sided tests say so: then the interval at 1 - 2 ALPHA lies within the margin. `floor` is the
    ratio that identical settings reach by chance: a difference within it is none.
    """
    ratio = paired(first, second)
    if ratio.excludes_one and not 1 / floor <= ratio.estimate <= floor:
        more = Difference.MORE if ratio.estimate > 1 else Difference.LESS
        return ratio, Answer(more, ratio.is_sure)
    if margin is None:
        return ratio, Answer(Difference.NOT_DISTINGUISHABLE, ratio.is_sure)
    narrow = paired(first, second, alpha=2 * ALPHA)
    if 1 / margin <= narrow.low and narrow.high <= margin and narrow.level >= 1 - 2 * ALPHA:
        return ratio, Answer(Difference.ALIKE, True)
    return ratio, Answer(Difference.CANNOT_TELL, ratio.is_sure)
