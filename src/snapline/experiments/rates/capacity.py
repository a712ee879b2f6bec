"""Finds the highest rate that a run sustains, by trying rates.

It begins at a rate that is likely to be near, doubles or halves it until one rate is sustained and another
is not, and then tries the rate in the middle, by ratio, until the two are at most 5 % apart. Machines are
noisy, and one lucky or unlucky try must not decide: so both ends are then tried until each has three tries,
and an end that most of its tries contradict moves. On a machine that is faster at one time than at another
the two ends are closer to each other than anybody can know: `Capacity.span` says where tries have
contradicted each other. A brief form of the search (`BRIEF`) asks for less: it tries a rate once, and a
second time only if that was a near miss.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

TRIALS_MAX = 60
"""After so many runs the search ends with what is known: the machine does not settle."""

LOWEST, HIGHEST = 1, 1_000_000_000


@dataclass(frozen=True, slots=True)
class SearchForm:
    """How thorough a search is."""

    step: float = 1.05  # how far apart the two ends are at most, as a ratio
    tries: int = 3  # how often each end is tried
    window_s: int = 15  # for how long a rate is held at least, after the warm-up


USUAL = SearchForm()
BRIEF = SearchForm(1.10, 1, 8)
"""For experiments that only need to know about how much a machine can do."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run at a rate."""

    rate: int
    because: tuple[str, ...] = ()  # why the rate is not sustainable; empty: it is
    by_far: bool = False  # whether it was far too high, and not only a little
    took_s: float = 0.0  # from its start until it was judged
    generator: float | None = None  # share of the CPU time that making its input took, if known

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

    @property
    def span(self) -> tuple[int, int]:
        """Where it may lie by all tries: each that failed lies above it, and each that kept pace below.

        If no try contradicts the ends, these are the two ends.
        """
        if not self.low:
            return 0, self.high
        step = self.high / self.low
        failed = min((t.rate for t in self.trials if not t.sustained), default=self.high)
        kept = max((t.rate for t in self.trials if t.sustained), default=self.low)
        return min(self.low, round(failed / step)), max(self.high, round(kept * step))


Try: TypeAlias = Callable[[int], Trial]


@dataclass(slots=True)
class CapacitySearch:
    """The search, with all that was tried so far."""

    attempt: Try
    form: SearchForm = USUAL
    lowest: int = LOWEST
    highest: int = HIGHEST
    trials: list[Trial] = field(default_factory=list)
    ends: tuple[int, int] | None = None  # between which it lies by all tries; None: not known yet

    def run(self, start: int) -> Capacity:
        """Search from a rate on until the ends are close enough, and each was tried often enough."""
        low, high = self._bracket(max(self.lowest, min(start, self.highest)))
        while True:
            low, high = self.ends = self._narrow(low, high)
            moved = self._confirm(low, high)
            if moved == (low, high) or len(self.trials) >= TRIALS_MAX:
                return Capacity(low, high, tuple(self.trials))
            low, high = moved

    def left(self) -> int:
        """About how many tries are still to come, the next one included, if no try is contradicted."""
        if self.ends is None:  # two more for the ends, which are a factor of two apart then
            return max(1, 2 - len(self.trials)) + tries_between(2.0, self.form)
        low, high = self.ends
        if low and high > low * self.form.step:
            return tries_between(high / low, self.form)
        return max(1, sum(max(0, self.form.tries - self._count(rate)) for rate in (low, high)))

    def _try(self, rate: int) -> bool:
        """Try a rate. Where one try decides, a near miss has a second chance."""
        self.trials.append(self.attempt(rate))
        last = self.trials[-1]
        if self.form.tries == 1 and not last.sustained and not last.by_far:
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

    def _narrow(self, low: int, high: int) -> tuple[int, int]:
        while low and self.form.step * low < high <= self.highest:
            self.ends = (low, high)
            middle = round(math.sqrt(low * high))
            if middle in (low, high):
                break
            if self._holds(middle):
                low = middle
            else:
                high = middle
        return low, high

    def _holds(self, rate: int) -> bool:
        """Whether a rate is sustained: at least half of its tries were; it is tried if it never was."""
        known = [trial.sustained for trial in self.trials if trial.rate == rate]
        if not known:
            return self._try(rate)
        return 2 * sum(known) >= len(known)

    def _confirm(self, low: int, high: int) -> tuple[int, int]:
        """Try both ends until each has its tries; the ends between which the rate lies by them."""
        for rate in (low, high):
            while rate and self.highest >= rate and self._count(rate) < self.form.tries:
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


def tries_between(ratio: float, form: SearchForm) -> int:
    """How many tries it takes from two ends that are this far apart, if no try is contradicted."""
    halves = max(0, math.ceil(math.log2(math.log(ratio) / math.log(form.step))))
    return halves + 2 * (form.tries - 1)


def expected_tries(form: SearchForm) -> int:
    """How many tries a whole search takes, about: two for the ends, if it begins near the capacity."""
    return 2 + tries_between(2.0, form)
