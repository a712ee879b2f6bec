"""Runs a system under test: input as it becomes due, faults at their time, until it has finished or failed.

One loop does everything, so that nothing is hidden in threads: give the records that are due, strike,
look how the system stands. The end of input is declared when all records are given and all faults with a
time have struck: a fault at 20 s strikes a run of 20 s, too. The clock begins when the system takes input
for the first time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from snapline.chaos.faults import Fault
from snapline.ids import Micros, Millis
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    Happening,
    InputEnded,
    JobFinished,
    JobRunning,
    JobStopped,
    SystemDown,
    SystemProgressed,
)
from snapline.metrics.reliability import LineageFigures
from snapline.storage.api import Ingress
from snapline.systems.harness.base import State, Subject
from snapline.systems.harness.feeder import Feeder
from snapline.systems.harness.inject import SystemInjector

POLL_S = 0.05
WATCHFUL_POLL_S = 0.004
TELL_S = 5.0
"""How often figures are told, if nobody asks for more."""

GRACE_S = 300.0
"""How long a system that has all its input may show no progress before it is given up."""

Tell: TypeAlias = Callable[[Happened], None]
"""Called with everything that happens."""


@dataclass(frozen=True, slots=True)
class SystemFigures:
    """The figures of a run of a system under test, as it is seen from outside."""

    records_read: int  # that it was given
    duration_s: float
    lost: int  # how often it was killed
    restart_s: tuple[float, ...]  # how long it was down each time
    system: Mapping[str, int]  # what it says of itself
    lineage: LineageFigures | None  # None: outputs do not name the inputs behind them


class Course:
    """One run of a system, from its first input to its end."""

    def __init__(
        self,
        name: str,
        system: Subject,
        faults: Sequence[Fault],
        sources: Mapping[str, Ingress],
        tell: Tell,
        tell_every_s: float = TELL_S,
    ) -> None:
        self._system = system
        self._name = name
        self._feeder = Feeder(sources, system.input)
        self._injector = SystemInjector(system, faults, self._note)
        self._tell = tell
        self._tell_every_s = tell_every_s
        self._began = 0.0
        self._state = State.RUNNING
        self._told = 0.0
        self._figures: Mapping[str, int] = {}  #: as they were told last
        self._moved = 0.0  #: when something happened last, or a figure was seen to differ
        self.origin_s = 0.0  #: when input began to be due, since the epoch
        self.events: list[Happened] = []  #: all that happened so far

    def begin(self) -> None:
        """Start the clock of the run: input and faults are due from now on."""
        self._began = time.monotonic()
        self.origin_s = time.time()
        self._note(JobRunning())

    def go(self) -> str | None:
        """Go on until the system has finished. Returns why it has not, or None."""
        ended = False
        while True:
            now_ms = self.now_ms()
            self._injector.strike(now_ms)
            self._feeder.feed(now_ms)
            if not ended and self._feeder.done and not self._injector.planned:
                ended = True
                self._note(InputEnded(self._feeder.records))
                self._system.end_input()
            match self._look():
                case State.FINISHED:
                    self._note(JobFinished())
                    return None
                case State.FAILED:
                    problem = self._system.problem or "it has failed"
                    self._note(JobStopped(problem))
                    return problem
            if ended and time.monotonic() - self._moved > GRACE_S:
                return f"it has all its input, and made no progress for {GRACE_S:.0f} s"
            time.sleep(WATCHFUL_POLL_S if self._injector.watchful else POLL_S)

    def _look(self) -> State:
        """Return the state of the system, and report changes and, now and then, figures."""
        state = self._system.look()
        if state is not self._state and state in (State.RUNNING, State.DOWN):
            self._note(JobRunning() if state is State.RUNNING else SystemDown())
        self._state = state
        if time.monotonic() - self._told >= self._tell_every_s:
            self._told = time.monotonic()
            fed = {"due": self._feeder.due(self.now_ms()), "records": self._feeder.records}
            figures = {**fed, **self._system.figures()}
            if figures != self._figures:
                self._figures, self._moved = figures, time.monotonic()
            self._tell(self._happened(SystemProgressed(figures)))
        return state

    def now_ms(self) -> Millis:
        """Milliseconds since input began to be due."""
        return int((time.monotonic() - self._began) * 1000)

    def _note(self, what: Happening) -> None:
        self._moved = time.monotonic()
        happened = self._happened(what)
        self.events.append(happened)
        self._tell(happened)

    def _happened(self, what: Happening) -> Happened:
        """An entry as a journal has it; of other systems no epoch is known."""
        return Happened(self.now_ms() * 1000, self._name, 0, what)

    def figures(self, lineage: LineageFigures | None) -> SystemFigures:
        """The figures of the run: its duration, losses, and how long the system was away each time."""
        kills = (happened.what for happened in self.events)
        return SystemFigures(
            self._feeder.records,
            round(self.now_ms() / 1000, 3),
            sum(isinstance(what, ProcessKilled) for what in kills),
            tuple(self._restarts_s()),
            dict(self._system.figures()),
            lineage,
        )

    def _restarts_s(self) -> Iterator[float]:
        """How long the system was down each time."""
        down_us: Micros | None = None
        for happened in self.events:
            if isinstance(happened.what, SystemDown):
                down_us = happened.at_us
            elif isinstance(happened.what, JobRunning) and down_us is not None:
                yield round((happened.at_us - down_us) / 1e6, 3)
                down_us = None
