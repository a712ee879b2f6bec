"""The search: all runs that leave the usual order never, then once, then twice, and so on.

Level k is the set of all runs with k deviations (a lane held, a timer that fires early, a slot that crashes;
at most two crashes). A run is executed from the beginning, along the deviations that it is made of, and then
in the usual order until it ends, or comes to a state that was met before with no more deviations: what
follows from there is known. In every new state on its way each possible deviation is a run of the next
level. So the first counterexample has as few deviations as any, and when a level adds no new state, every
interleaving has been seen.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from snapline.core.protocol import CheckpointProtocol
from snapline.sim.exhaustive.course import STEPS_MAX, Course
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.order import Deviation
from snapline.sim.exhaustive.small import Small
from snapline.sim.run import Violation

@dataclass(frozen=True, slots=True)
class Counterexample:
    """A run that broke something: its steps, by the lanes from which they were taken."""

    violation: Violation
    steps: tuple[Lane, ...]
    deviations: int


@dataclass(slots=True)
class Level:
    """What was seen of one level."""

    deviations: int
    planned: int  #: runs that there are
    runs: int = 0  #: runs that were executed

    @property
    def complete(self) -> bool:
        """Whether all of them were."""
        return self.runs == self.planned


@dataclass(slots=True)
class Coverage:
    """What a search has seen."""

    protocol: str
    small: Small
    levels: list[Level] = field(default_factory=list)
    states: int = 0
    steps: int = 0
    ends: int = 0  #: runs that were followed to their end, and judged there
    seconds: float = 0.0
    exhausted: bool = False  #: there is nothing that was not seen
    counterexample: Counterexample | None = None

    @property
    def runs(self) -> int:
        """Runs that were executed."""
        return sum(level.runs for level in self.levels)

    @property
    def complete(self) -> int:
        """The deviations up to which every run was seen; -1 if not even the usual one was."""
        return max((level.deviations for level in self.levels if level.complete), default=-1)


class _Fork(NamedTuple):
    """A state in which a run was, and from which others can be begun."""

    steps: int  # that the run had taken until then
    held: tuple[Lane, ...]
    others: tuple[Deviation, ...]


@dataclass(slots=True)
class _Run:
    """A run that was executed, as far as the next level needs it."""

    taken: list[Lane]
    forks: list[_Fork] = field(default_factory=list)

    def deviating(self) -> Iterator["_Plan"]:
        """The runs of the next level that leave this one."""
        for fork in self.forks:
            for deviation in fork.others:
                yield _Plan(self.taken[: fork.steps], fork.held, deviation)

    def __len__(self) -> int:
        return sum(len(fork.others) for fork in self.forks)


class _Plan(NamedTuple):
    """A run that is to be executed: the steps it begins with, and how it leaves the usual order then."""

    steps: list[Lane]
    held: tuple[Lane, ...] = ()
    deviation: Deviation | None = None


class Search:
    """One space, searched level by level for as long as it may."""

    def __init__(
        self,
        small: Small,
        protocol: CheckpointProtocol,
        go_on: Callable[[Coverage], bool],
        deviations_max: int | None = None,
    ) -> None:
        self.small = small
        self.job = small.job(protocol)
        self.go_on = go_on  #: asked before every run but the first
        self.deviations_max = deviations_max
        self.known: set[int] = set()
        self._same: dict[tuple[Deviation, ...], tuple[Deviation, ...]] = {}  #: saves memory
        self.coverage = Coverage(protocol.name, small)

    def run(self) -> Coverage:
        """Search until something breaks, until nothing is left, or until it may not go on."""
        began = time.monotonic()
        plans: Iterator[_Plan] = iter([_Plan([])])
        planned = 1
        while planned:
            runs = self._level(Level(len(self.coverage.levels), planned), plans)
            if runs is None:
                break
            plans = (plan for run in runs for plan in run.deviating())
            planned = sum(map(len, runs))
        self.coverage.exhausted = not planned
        self.coverage.seconds = time.monotonic() - began
        return self.coverage

    def _level(self, level: Level, plans: Iterator[_Plan]) -> list[_Run] | None:
        """Execute a level; None if the search ends with it."""
        coverage = self.coverage
        if self.deviations_max is not None and level.deviations > self.deviations_max:
            return None
        coverage.levels.append(level)
        runs = []
        for plan in plans:
            if coverage.runs and not self.go_on(coverage):
                return None
            runs.append(self._execute(plan, level.deviations))
            level.runs += 1
        return runs if coverage.counterexample is None else None

    def _execute(self, plan: _Plan, deviations: int) -> _Run:
        course = Course.begin(self.small, self.job)
        for lane in plan.steps:
            course.take(lane)
        course.held = plan.held
        if plan.deviation is not None:
            course.leave(plan.deviation)
        run = _Run(course.taken)
        if self._go(course, run) and course.violation is None:
            self.coverage.ends += 1
            course.finish()
        self.coverage.steps += len(course.taken)
        self.coverage.states = len(self.known)
        if course.violation is not None:
            self._note(course, deviations)
        return run

    def _go(self, course: Course, run: _Run) -> bool:
        """Go on in the usual order; False if what follows is known."""
        while not course.over and len(course.taken) < STEPS_MAX:
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
        return True

    def _note(self, course: Course, deviations: int) -> None:
        """Of the counterexamples of a level the one with the fewest steps counts."""
        assert course.violation is not None
        known = self.coverage.counterexample
        if known is None or len(course.taken) < len(known.steps):
            self.coverage.counterexample = Counterexample(
                course.violation, tuple(course.taken), deviations
            )


def shortened(small: Small, protocol: CheckpointProtocol, found: Counterexample) -> Counterexample:
    """Leave out every step without which the same invariant breaks all the same."""
    job = small.job(protocol)

    def broken(steps: tuple[Lane, ...]) -> Course | None:
        course = Course.begin(small, job)
        if not course.follow(steps):
            return None
        if course.violation is None and course.choices().usual is None:
            course.finish()
        same = course.violation is not None and course.violation.name == found.violation.name
        return course if same else None

    steps, k = found.steps, len(found.steps) - 1
    violation = found.violation
    while k >= 0:
        fewer = steps[:k] + steps[k + 1 :]
        if (course := broken(fewer)) is not None and course.violation is not None:
            steps, violation = tuple(course.taken), course.violation
            k = len(steps)
        k -= 1
    return Counterexample(violation, steps, found.deviations)
