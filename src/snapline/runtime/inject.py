"""Faults, done to a real run by real means, at their time or while something is under way.

Processes get signals. The store is away while its directory is renamed: no process is told, every call
fails by itself. Damage changes the bytes of a stored file. A cut breaks the connections between two slots,
both of which live on; connections do not heal, so one of the two is given up, however short the cut.
"""

import random
import signal
from collections.abc import Callable
from functools import partial

from snapline.chaos.faults import At, Cut, Damage, During, Fault, Kill, Pause, StoreOutage
from snapline.core import effects, events
from snapline.engine.checkpoints import key_of
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId
from snapline.journal.entry import Entry, Handled, Happened
from snapline.runtime.driver import Driver


def check_possible(faults: tuple[Fault, ...]) -> None:
    """Refuse what only the simulator can do."""
    for fault in faults:
        match fault:
            case Pause() | StoreOutage() | Damage() | Kill(_, At() | During()):
                pass
            case Cut(_, other) if other is not None:
                pass
            case _:
                raise UsageError(
                    "in a real run slots can be killed (at=, on=recovery, on=round), paused and cut from "
                    f"each other, the store can be away, and a snapshot damaged, but not this: '{fault}'; "
                    "'snapline simulate' can do it"
                )


class Injector:
    """Plans faults in a driver's loop."""

    def __init__(self, driver: Driver, faults: tuple[Fault, ...], seed: int) -> None:
        self.driver = driver
        self.rng = random.Random(f"{seed}:inject")
        self.waiting: list[Kill] = []  #: kills that wait for a recovery or a round
        self.away_until_ms: Millis = 0  #: when the store is to come back
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
                case StoreOutage(at_ms, for_ms):
                    self._later(at_ms, partial(self._take_store_away, for_ms))
                case Damage(slot, at_ms):
                    self._later(at_ms, partial(self._damage, slot))
                case Cut(slot, other, at_ms) if other is not None:
                    self._later(at_ms, partial(self.driver.sever, slot, other))
                case _:
                    raise UsageError(f"'{fault}' cannot be done to a real run")

    def _later(self, at_ms: Millis, action: Callable[[], None]) -> None:
        self.driver.loop.after(max(0.0, (at_ms - self.driver.now_ms()) / 1000), action)

    def _note(self, actor: str, what: str, **detail: object) -> None:
        self.driver.note(actor, self.driver.engine.epoch, what, detail)

    # Slots.

    def _signal(self, slots: tuple[SlotId, ...], how: signal.Signals) -> None:
        for slot in slots:
            self.driver.kill(slot, how)

    def _pause(self, fault: Pause) -> None:
        pid = self.driver.pid(fault.slot)
        self.driver.kill(fault.slot, signal.SIGSTOP)
        if pid is not None:
            self.driver.loop.after(fault.for_ms / 1000, lambda: self.driver.wake(pid))

    # The store.

    def _take_store_away(self, for_ms: Millis) -> None:
        now_ms = self.driver.now_ms()
        if now_ms >= self.away_until_ms:
            self.driver.directory.take_store_away()
        self.away_until_ms = max(self.away_until_ms, now_ms + for_ms)
        self._note("store", "outage", for_ms=for_ms)
        self._later(self.away_until_ms, self._bring_store_back)

    def _bring_store_back(self) -> None:
        if self.driver.now_ms() >= self.away_until_ms and self.driver.directory.bring_store_back():
            self._note("store", "back")

    def _damage(self, slot: SlotId) -> None:
        """Of the snapshots that count, damage the newest of one task."""
        known, hosted = self.driver.engine.registry.metas, self.driver.job.hosted[slot]
        newest = [known[task][max(known[task])] for task in hosted if known[task]]
        if newest:
            meta = self.rng.choice(newest)
            self.driver.files.damage(key_of(meta))
            self._note(meta.task, "damaged", checkpoint=meta.checkpoint)

    # While something is under way.

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
