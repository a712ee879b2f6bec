"""Does faults to a system under test, at their time or while a round is under way.

The grammar is that of all runs. Which faults make sense for a system is decided by the system, which
refuses the others; the schedule decides when they strike. It does not restart a killed driver: the
system's supervisor does.
"""

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from snapline.chaos.faults import (
    At,
    Cut,
    Delay,
    During,
    Fault,
    KillDriver,
    KillExecutor,
    Partition,
    PauseDriver,
)
from snapline.chaos.schedule import Schedule, Spans
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.journal.fault_happenings import (
    ConnectionsDisturbed,
    FaultMissed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
)
from snapline.journal.happenings import Happening
from snapline.systems.harness.base import Subject, Target

Note: TypeAlias = Callable[[Happening], None]
"""Is told what happened to the system."""

AT_ONCE: Spans = {"round": 1, "recovery": 1}
"""Who only looks now and then is late enough: what waits for a phase strikes as soon as that is seen."""


def check(system: Subject, faults: Sequence[Fault]) -> None:
    """Raise UsageError if one of the faults cannot be done to the system."""
    for fault in faults:
        if why := system.refusal(fault):
            raise UsageError(f"{system.name} cannot take '{fault}': {why}")


class SystemInjector:
    """Holds the faults of a run, and does each when it is due."""

    def __init__(self, system: Subject, faults: Sequence[Fault], note: Note) -> None:
        for fault in faults:
            match fault:
                case KillDriver(At() | During("round")):
                    pass
                case PauseDriver() | KillExecutor() | Delay() | Cut() | Partition():
                    pass
                case _:
                    raise UsageError(f"'{fault}' cannot be done to {system.name}")
        self._system = system
        self._note = note
        self._schedule = Schedule(faults, random.Random(0), AT_ONCE)
        # Nobody outside sees what the system commits, so every round counts.
        self._schedule.happened("line")
        self._paused: tuple[Millis, PauseDriver] | None = None  #: until when, and by which fault

    @property
    def planned(self) -> bool:
        """Whether a fault with a time is still to come."""
        return self._schedule.timed or self._paused is not None

    @property
    def watchful(self) -> bool:
        """Whether a fault waits for a round, which is short, so that `strike` must be called often."""
        return self._schedule.waits

    def strike(self, now_ms: Millis) -> None:
        """Do the faults that are due."""
        if self._paused is not None and now_ms >= self._paused[0]:
            fault, self._paused = self._paused[1], None
            self._system.resume()
            self._note(ProcessContinued(str(fault)))
        for due in self._schedule.due(now_ms):
            self._do(due, now_ms)
        if self.watchful and self._system.in_round() and (met := self._schedule.happened("round")):
            self._do(met.fault, now_ms)

    def _do(self, fault: Fault, now_ms: Millis) -> None:
        said = str(fault)
        match fault:
            case Delay() | Cut() | Partition():
                met = self._system.disturb(fault)
                self._note(ConnectionsDisturbed(said, met, fault.for_ms))
            case PauseDriver():
                hit = self._system.pause()
                self._paused = now_ms + fault.for_ms, fault
                self._note(ProcessPaused(said, pids=tuple(hit)) if hit else FaultMissed(said))
            case _:
                number = fault.slot if isinstance(fault, KillExecutor) else 0
                target: Target = "executor" if isinstance(fault, KillExecutor) else "driver"
                hit = self._system.kill(target, number)
                self._note(ProcessKilled(said, pids=tuple(hit)) if hit else FaultMissed(said))
