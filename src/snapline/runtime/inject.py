"""Faults, done to real processes: signals, sent at their time or while something is under way."""

import random
import signal
from collections.abc import Callable
from functools import partial

from snapline.chaos.faults import At, During, Fault, Kill, Pause
from snapline.core import effects, events
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId
from snapline.journal.entry import Entry, Handled, Happened
from snapline.runtime.driver import Driver


def check_possible(faults: tuple[Fault, ...]) -> None:
    """Refuse what only the simulator can do."""
    for fault in faults:
        if not isinstance(fault, Pause) and not (
            isinstance(fault, Kill) and isinstance(fault.when, At | During)
        ):
            raise UsageError(
                f"real slots can be killed (at=, on=recovery, on=round) and paused, but not this: "
                f"'{fault}'; 'snapline simulate' can do it"
            )


class Injector:
    """Plans faults in a driver's loop."""

    def __init__(self, driver: Driver, faults: tuple[Fault, ...], seed: int) -> None:
        self.driver = driver
        self.rng = random.Random(f"{seed}:inject")
        self.waiting: list[Kill] = []  #: kills that wait for a recovery or a round
        self.faults = faults
        driver.watch = self.watch

    def begin(self) -> None:
        """Input is due from now on: so are the faults."""
        for fault in self.faults:
            match fault:
                case Kill(slots, At(ms)):
                    self._later(ms, partial(self._signal, slots, signal.SIGKILL))
                case Kill():
                    self.waiting.append(fault)
                case Pause():
                    self._later(fault.at_ms, partial(self._pause, fault))
                case _:
                    raise UsageError(f"'{fault}' cannot be done to real processes")

    def _later(self, at_ms: Millis, action: Callable[[], None]) -> None:
        self.driver.loop.after(max(0.0, (at_ms - self.driver.now_ms()) / 1000), action)

    def _signal(self, slots: tuple[SlotId, ...], how: signal.Signals) -> None:
        for slot in slots:
            self.driver.kill(slot, how)

    def _pause(self, fault: Pause) -> None:
        pid = self.driver.pid(fault.slot)
        self.driver.kill(fault.slot, signal.SIGSTOP)
        if pid is not None:
            self.driver.loop.after(fault.for_ms / 1000, lambda: self.driver.wake(pid))

    def watch(self, entry: Entry) -> None:
        """See whether a recovery or a round begins, and kill whoever was to die in it."""
        if isinstance(entry, Happened) and entry.what == "lost":
            self._trigger("recovery")
        elif isinstance(entry, Handled):
            for effect in entry.effects:
                match effect:
                    case effects.Order(_, events.TriggerRound() | events.Pause()):
                        self._trigger("round")
                    case _:
                        pass

    def _trigger(self, what: str) -> None:
        due = [fault for fault in self.waiting if str(fault.when) == f"on={what}"]
        for fault in due[:1]:
            self.waiting.remove(fault)
            longest_s = 0.5 if what == "recovery" else 0.02
            action = partial(self._signal, fault.slots, signal.SIGKILL)
            self.driver.loop.after(self.rng.uniform(0, longest_s), action)
