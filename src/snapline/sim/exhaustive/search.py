"""The search: all runs that leave the usual order never, then once, then twice, and so on.

Level k is the set of all runs with k deviations (a lane held, a timer that fires early, a slot that
crashes; at most two crashes). A run is executed from the beginning, along the deviations that it is
made of, and then in the usual order until it ends, or comes to a state that was met before with no more
deviations: what follows from there is known. In every new state on its way each possible deviation is a
run of the next level. So the first counterexample has as few deviations as any, and when a level adds
no new state, every interleaving has been seen.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import gcd
from typing import NamedTuple

from snapline.core.protocol import CheckpointProtocol
from snapline.sim.exhaustive.course import STEPS_MAX, SteppedRun
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.order import Deviation
from snapline.sim.exhaustive.small import Small
from snapline.sim.run import Violation


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A run that broke something: its steps, by the lanes from which they were taken."""

    violation: Violation
    steps: tuple[Lane, ...]
    deviations: tuple[Deviation, ...] = ()


@dataclass(slots=True)
class Level:
    """What was seen of one level."""

    deviations: int
    planned: int  #: runs that there are
    runs: int = 0  #: runs that were executed

    @property
    def complete(self) -> bool:
        """Whether all runs of the level were executed."""
        return self.runs == self.planned

    @property
    def share(self) -> str:
        """How many runs of the level were executed, in percent."""
        return f"{100 * self.runs / self.planned:.1f} %"


@dataclass(slots=True)
class Coverage:
    """What a search has seen."""

    protocol: str
    small: Small
    levels: list[Level] = field(default_factory=list)
    states: int = 0
    steps: int = 0
    ends: int = 0  #: runs that were followed to their end, and judged there
    seconds: float = 0.0  #: of CPU time
    exhausted: bool = False  #: whether every interleaving was seen
    counterexample: Counterexample | None = None

    def __str__(self) -> str:
        """What was covered, in words."""
        if self.exhausted:
            return "complete: every interleaving"
        begun = next((level for level in self.levels if not level.complete), None)
        more = "" if begun is None else f", and {begun.share} of those with {begun.deviations}"
        if self.complete < 0:
            return "not even the usual run"
        return f"all runs with up to {self.complete} deviation{'s' * (self.complete != 1)}{more}"

    @property
    def runs(self) -> int:
        """Runs that were executed."""
        return sum(level.runs for level in self.levels)

    @property
    def complete(self) -> int:
        """The deviations up to which every run was seen; -1 if not even the usual one was."""
        return max((level.deviations for level in self.levels if level.complete), default=-1)


class _Fork(NamedTuple):
    """A state through which a run went, and from which others can branch off."""

    steps: int  # that the run had taken until then
    held: tuple[Lane, ...]
    others: tuple[Deviation, ...]


@dataclass(slots=True)
class _Run:
    """A run that was executed, as far as the next level needs it."""

    taken: list[Lane]
    deviations: tuple[Deviation, ...]
    forks: list[_Fork] = field(default_factory=list)


class _Plan(NamedTuple):
    """A run to execute: its first steps, and its deviations; the last one comes behind these."""

    steps: list[Lane]
    held: tuple[Lane, ...] = ()
    deviations: tuple[Deviation, ...] = ()


class _Plans:
    """The runs of a level: each leaves a run of the level before, in one of its states, in one way."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.forks = [(run, fork) for run in runs for fork in run.forks if fork.others]
        self.ends = list(accumulate(len(fork.others) for _, fork in self.forks))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def __iter__(self) -> Iterator[_Plan]:
        """All plans in a scattered order, so that a search that is broken off is an even sample."""
        count = len(self)
        stride = max(1, int(count * 0.618))
        while gcd(stride, count) > 1:
            stride += 1
        for k in range(count):
            yield self._plan(k * stride % count)

    def _plan(self, number: int) -> _Plan:
        at = bisect_right(self.ends, number)
        run, fork = self.forks[at]
        deviation = fork.others[number - self.ends[at]]  # the index is negative: from the end
        return _Plan(run.taken[: fork.steps], fork.held, (*run.deviations, deviation))


class Search:
    """Searches one space, level by level, for as long as `go_on` allows."""

    def __init__(
        self,
        small: Small,
        protocol: CheckpointProtocol,
        go_on: Callable[[Coverage], bool],
        deviations_max: int | None = None,
    ) -> None:
        self.small = small
        self.job = small.job(protocol)
        self.go_on = go_on  #: asked before every run but the first: may the search go on?
        self.deviations_max = deviations_max
        self.known: set[int] = set()
        self._same: dict[tuple[Deviation, ...], tuple[Deviation, ...]] = {}  #: shares equal ones
        self.coverage = Coverage(protocol.name, small)

    def run(self) -> Coverage:
        """Search until something breaks, until nothing is left, or until it may not go on."""
        began = time.process_time()
        plans: _Plans | list[_Plan] = [_Plan([])]
        while plans:
            runs = self._level(Level(len(self.coverage.levels), len(plans)), plans)
            if runs is None:
                break
            plans = _Plans(runs)
        self.coverage.exhausted = not plans
        self.coverage.seconds = time.process_time() - began
        return self.coverage

    def _level(self, level: Level, plans: Iterable[_Plan]) -> list[_Run] | None:
        """Execute a level; None if the search ends with it."""
        coverage = self.coverage
        if self.deviations_max is not None and level.deviations > self.deviations_max:
            return None
        coverage.levels.append(level)
        runs = []
        for plan in plans:
            if coverage.runs and not self.go_on(coverage):
                return None
            runs.append(self._execute(plan))
            level.runs += 1
        return runs if coverage.counterexample is None else None

    def _execute(self, plan: _Plan) -> _Run:
        if len(plan.steps) > self._steps_max():
            return _Run(plan.steps, plan.deviations)
        course = SteppedRun.begin(self.small, self.job)
        for lane in plan.steps:
            course.take(lane)
        course.held = plan.held
        for deviation in plan.deviations[-1:]:
            course.leave(deviation)
        run = _Run(course.taken, plan.deviations)
        if self._go(course, run) and course.violation is None:
            self.coverage.ends += 1
            course.finish()
        self.coverage.steps += len(course.taken)
        self.coverage.states = len(self.known)
        if course.violation is not None:
            self._note(course, plan.deviations)
        return run

    def _go(self, course: SteppedRun, run: _Run) -> bool:
        """Go on in the usual order; False if what follows is known."""
        while not course.over and len(course.taken) <= self._steps_max():
            state = course.state
            if state in self.known:
                return False
            self.known.add(state)
            usual, others = course.choices()
            others = self._same.setdefault(others, others)
            run.forks.append(_Fork(len(course.taken), course.held, others))
            if usual is None:
                return True
            course.take(usual)
        return course.over or self.coverage.counterexample is None

    def _steps_max(self) -> int:
        """The steps that a run may take: after a counterexample, no more than that one has."""
        found = self.coverage.counterexample
        return STEPS_MAX if found is None else len(found.steps)

    def _note(self, course: SteppedRun, deviations: tuple[Deviation, ...]) -> None:
        """Keep a counterexample, if it has the fewest steps of its level."""
        assert course.violation is not None
        known, steps = self.coverage.counterexample, tuple(course.taken)
        if known is None or (len(steps), steps) < (len(known.steps), known.steps):
            self.coverage.counterexample = Counterexample(course.violation, steps, deviations)


def shortened(small: Small, protocol: CheckpointProtocol, found: Counterexample) -> Counterexample:
    """Leave out every step without which the same invariant breaks all the same.

    Where a run has come to a stop, only the steps until then are kept: what the store and the
    coordinator do behind that changes nothing.
    """
    job = small.job(protocol)
    best = found
    k = len(found.steps) if len(found.steps) < STEPS_MAX else 0  # an endless run is not shortened
    while k > 0:
        k -= 1
        fewer = best.steps[:k] + best.steps[k + 1 :]
        course = SteppedRun.begin(small, job)
        course.follow(fewer)
        steps = tuple(course.taken)
        course.conclude()
        if course.violation is not None and course.violation.name == found.violation.name:
            best = Counterexample(course.violation, steps, found.deviations)
            k = min(k, len(steps))
    return best
