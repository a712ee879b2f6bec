"""Does faults to a system under test, at their time or while a round is under way.

The grammar is that of all runs. Which faults make sense for a system is decided by the system, which
refuses the others; this module only decides when they strike. It does not restart a killed driver: the
system's supervisor does.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.systems.harness.base import System, Target

Note: TypeAlias = Callable[[str, dict[str, Any]], None]
"""(what happened, its details)"""


def check(system: System, faults: Sequence[Fault]) -> None:
    """Raise UsageError if one of the faults cannot be done to the system."""
    for fault in faults:
        if why := system.refusal(fault):
            raise UsageError(f"{system.name} cannot take '{fault}': {why}")


class SystemInjector:
    """Holds the faults of a run, and does each when it is due."""

    def __init__(self, system: System, faults: Sequence[Fault], note: Note) -> None:
        self._system = system
        self._note = note
        self._timed: list[tuple[Millis, Fault]] = []  #: still to come, in order of time
        self._waiting: list[KillDriver] = []  #: the faults that wait for a round
        self._resume_ms: Millis | None = None
        for fault in faults:
            match fault:
                case KillDriver(At(ms)):
                    self._timed.append((ms, fault))
                case KillDriver(During("round")):
                    self._waiting.append(fault)
                case PauseDriver() | KillExecutor() | Delay() | Cut() | Partition():
                    self._timed.append((fault.at_ms, fault))
                case _:
                    raise UsageError(f"'{fault}' cannot be done to {system.name}")
        self._timed.sort(key=lambda planned: planned[0])

    @property
    def planned(self) -> bool:
        """Whether a fault with a time is still to come."""
        return bool(self._timed) or self._resume_ms is not None

    @property
    def watchful(self) -> bool:
        """Whether a fault waits for a round, which is short, so that `strike` must be called often."""
        return bool(self._waiting)

    def strike(self, now_ms: Millis) -> None:
        """Do the faults that are due."""
        if self._resume_ms is not None and now_ms >= self._resume_ms:
            self._resume_ms = None
            self._system.resume()
            self._note("continued", {})
        while self._timed and self._timed[0][0] <= now_ms:
            self._do(self._timed.pop(0)[1], now_ms)
        if self._waiting and self._system.in_round():
            self._do(self._waiting.pop(0), now_ms)

    def _do(self, fault: Fault, now_ms: Millis) -> None:
        said = {"fault": str(fault)}
        match fault:
            case Delay() | Cut() | Partition():
                met = self._system.disturb(fault)
                self._note("disturbed", {**said, "connections": met, "for_ms": fault.for_ms})
            case PauseDriver():
                hit = self._system.pause()
                self._resume_ms = now_ms + fault.for_ms
                self._note("paused" if hit else "missed", {**said, "pids": hit})
            case _:
                number = fault.slot if isinstance(fault, KillExecutor) else 0
                target: Target = "executor" if isinstance(fault, KillExecutor) else "driver"
                hit = self._system.kill(target, number)
                self._note("killed" if hit else "missed", {**said, "pids": hit})
