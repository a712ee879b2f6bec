"""Finds the highest rate that a run sustains, by trying rates.

It begins at a rate that is likely to be near, doubles or halves it until one rate is sustained and another
is not, and then tries the rate in the middle, by ratio, until the two are at most 5 % apart. Machines are
noisy, and one lucky or unlucky try must not decide: so both ends are then tried until each has three tries,
and an end that most of its tries contradict moves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

STEP = 1.05
"""How far apart the two ends are at most, as a ratio."""

TRIES = 3
"""How often each end is tried."""

TRIALS_MAX = 60
"""After so many runs the search ends with what is known: the machine does not settle."""

LOWEST, HIGHEST = 1, 1_000_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One run at a rate."""

    rate: int
    because: tuple[str, ...] = ()  # why the rate is not sustainable; empty: it is

    @property
    def sustained(self) -> bool:
        """Whether the run kept pace."""
        return not self.because


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest rate that is sustained lies between these two."""

    low: int  # most tries at this rate kept pace; 0: not even the lowest rate that was tried
    high: int  # most tries at this rate did not
    trials: tuple[Trial, ...]

    @property
    def estimate(self) -> int:
        """The rate in the middle, by ratio."""
        return round(math.sqrt(self.low * self.high))


Try: TypeAlias = Callable[[int], Trial]


@dataclass(slots=True)
class CapacitySearch:
    """The search, with all that was tried so far."""

    attempt: Try
    lowest: int = LOWEST
    highest: int = HIGHEST
    trials: list[Trial] = field(default_factory=list)

    def run(self, start: int, step: float = STEP, tries: int = TRIES) -> Capacity:
        """Search from a rate on until the ends are close enough, and each was tried often enough."""
        low, high = self._bracket(max(self.lowest, min(start, self.highest)))
        while True:
            low, high = self._narrow(low, high, step)
            moved = self._confirm(low, high, tries)
            if moved == (low, high) or len(self.trials) >= TRIALS_MAX:
                return Capacity(low, high, tuple(self.trials))
            low, high = moved

    def _try(self, rate: int) -> bool:
        self.trials.append(self.attempt(rate))
        return self.trials[-1].sustained

    def _bracket(self, start: int) -> tuple[int, int]:
        """A rate that is sustained, and a higher one that is not."""
        rate = start
        if self._try(rate):
            while rate < self.highest:
                rate, last = min(2 * rate, self.highest), rate
                if not self._try(rate):
                    return last, rate
            return rate, 2 * rate
        while rate > self.lowest:
            rate, last = max(rate // 2, self.lowest), rate
            if self._try(rate):
                return rate, last
        return 0, rate

    def _narrow(self, low: int, high: int, step: float) -> tuple[int, int]:
        while low and step * low < high <= self.highest:
            middle = round(math.sqrt(low * high))
            if middle in (low, high):
                break
            if self._holds(middle):
                low = middle
            else:
                high = middle
        return low, high

    def _holds(self, rate: int) -> bool:
        """Whether a rate is sustained, by what most tries say; it is tried if it never was."""
        known = [trial.sustained for trial in self.trials if trial.rate == rate]
        if not known:
            return self._try(rate)
        return 2 * sum(known) > len(known)

    def _confirm(self, low: int, high: int, tries: int) -> tuple[int, int]:
        """Try both ends until each has so many tries; the ends between which the rate lies by them."""
        for rate in (low, high):
            while rate and self.highest >= rate and self._count(rate) < tries:
                self._try(rate)
        if low and not self._holds(low):
            below = [rate for rate in self._rates() if rate < low and self._holds(rate)]
            return (max(below) if below else self._fall(low)), low
        if high <= self.highest and self._count(high) and self._holds(high):
            above = [rate for rate in self._rates() if rate > high and not self._holds(rate)]
            return high, (min(above) if above else 2 * high)
        return low, high

    def _fall(self, rate: int) -> int:
        """A rate below this one that is sustained; 0 if there is none."""
        while rate > self.lowest:
            rate = max(rate // 2, self.lowest)
            if self._try(rate):
                return rate
        return 0

    def _rates(self) -> set[int]:
        return {trial.rate for trial in self.trials}

    def _count(self, rate: int) -> int:
        return sum(trial.rate == rate for trial in self.trials)
