"""When the faults of a plan strike, and which of them have struck: one rule for every world.

A fault strikes at a time, before a certain effect of a slot, or while a recovery or a round is under way.
There is no clock here. Whoever breaks something says what time it is, and what has happened; the schedule
says which fault is due, and only the deed itself is left. So a statement means the same in the simulator,
in a real run, and for another system.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapline.chaos.faults import (
    At,
    BeforeEffect,
    Damage,
    DamageRecord,
    During,
    Fault,
    Kill,
    KillDriver,
    LaunchFailing,
    LaunchSlow,
)
from snapline.chaos.strikes import Strike
from snapline.ids import Micros, Millis

Phase: TypeAlias = Literal["recovery", "round"]
Moment: TypeAlias = Literal["line", "recovery", "round"]
"""A line was committed; a recovery has begun; a round has begun."""

Spans: TypeAlias = Mapping[Phase, Micros]
"""How long after a phase has begun a fault that waits for it strikes at the latest."""


@dataclass(frozen=True, slots=True)
class DueFault:
    """A fault that strikes so much later from now."""

    fault: Fault
    delay_us: Micros


def when(fault: Fault) -> At | BeforeEffect | During:
    """For what a fault waits."""
    return fault.when if isinstance(fault, Kill | KillDriver) else At(fault.at_ms)


class Schedule:
    """The faults of one run.

    A fault that waits for a phase strikes at some moment of it: no sooner after its beginning than
    `soonest_us`, and before its span is over. Each beginning of a phase lets one fault strike. A round
    counts from the first committed line on: before, there is nothing to lose.
    """

    def __init__(
        self, faults: Sequence[Fault], rng: random.Random, spans: Spans, soonest_us: Micros = 0
    ) -> None:
        self.faults = faults
        self._rng = rng
        self._spans = spans
        self._soonest_us = soonest_us
        self._lines = False  #: whether a line was committed
        self._waiting = [fault for fault in faults if isinstance(when(fault), During)]
        times = [(at.ms, fault) for fault in faults if isinstance(at := when(fault), At)]
        self._timed = sorted(times, key=lambda planned: planned[0])
        self._struck: dict[int, Millis] = {}  #: by the identity of a fault: when

    # When.

    @property
    def waits(self) -> bool:
        """Whether a fault waits for a recovery or a round."""
        return bool(self._waiting)

    @property
    def timed(self) -> bool:
        """Whether a fault waits for its time, of those that are asked for with `due`."""
        return bool(self._timed)

    def due(self, now_ms: Millis) -> list[Fault]:
        """The faults whose time has come, each once; for those who look at a clock now and then."""
        due = [fault for at_ms, fault in self._timed if at_ms <= now_ms]
        del self._timed[: len(due)]
        return due

    def happened(self, moment: Moment) -> DueFault | None:
        """The fault that waited for this moment, if there is one."""
        if moment == "line":
            self._lines = True
            return None
        if moment == "round" and not self._lines:
            return None
        fault = next((f for f in self._waiting if when(f) == During(moment)), None)
        if fault is None:
            return None
        self._waiting.remove(fault)
        return DueFault(fault, self._rng.randrange(self._soonest_us, self._spans[moment]))

    # What became of them.

    def begins(self, fault: Fault, now_ms: Millis) -> None:
        """The moment of a fault has come: that is a strike, unless it must find something to strike."""
        if not isinstance(fault, Damage | DamageRecord | LaunchFailing | LaunchSlow):
            self.finds(fault, now_ms)

    def finds(self, fault: Fault, now_ms: Millis) -> None:
        """A fault has struck; only the first time counts."""
        self._struck.setdefault(id(fault), now_ms)

    def strikes(self) -> tuple[Strike, ...]:
        """What became of each fault so far."""
        times = [self._struck.get(id(fault)) for fault in self.faults]
        return tuple(
            Strike(str(fault), at_ms is not None, at_ms)
            for fault, at_ms in zip(self.faults, times, strict=True)
        )
