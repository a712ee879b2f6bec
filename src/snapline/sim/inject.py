"""Faults, done to the simulated world. One case per kind of fault, and nothing else knows faults."""

import random
from collections.abc import Callable
from typing import TypeAlias, assert_never

from snapline.chaos.faults import (
    At,
    Cut,
    Damage,
    Delay,
    During,
    Fault,
    Kill,
    KillCoordinator,
    Pause,
    PauseCoordinator,
    Step,
    StoreOutage,
    StoreSlow,
)
from snapline.engine.checkpoints import key_of
from snapline.ids import Micros, Millis, SlotId
from snapline.sim.world import World

Action: TypeAlias = Callable[[], None]


class Injector:
    """Plans faults in a world."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(f"{seed}:inject")
        self.waiting: list[Kill] = []  #: kills that wait for a recovery or a round
        world.on_trigger = self.trigger

    def plan(self, fault: Fault) -> None:
        """Arrange that a fault happens."""
        match fault:
            case Kill(slots, At(ms)):
                self._at(ms, lambda: self._kill(slots, str(fault)))
            case Kill(slots, Step(n)):
                self._at(0, lambda: self._arm(slots[0], n))
            case Kill(_, During()):
                self.waiting.append(fault)
            case Pause(slot, at_ms, for_ms):
                self._at(at_ms, lambda: self._pause(slot, for_ms))
            case Cut(slot, other, at_ms, for_ms):
                self._at(at_ms, lambda: self._cut(slot, other, for_ms))
            case Delay(slot, delay_ms, at_ms, for_ms):
                self._at(at_ms, lambda: self._delay(slot, delay_ms, for_ms))
            case KillCoordinator(at_ms, for_ms):
                self._at(at_ms, self.world.kill_coordinator)
                self._at(at_ms + for_ms, self.world.resume_coordinator)
            case PauseCoordinator(at_ms, for_ms):
                self._at(at_ms, lambda: self._pause_coordinator(for_ms))
            case StoreOutage(at_ms, for_ms):
                self._at(at_ms, lambda: self._outage(for_ms))
            case StoreSlow(delay_ms, at_ms, for_ms):
                self._at(at_ms, lambda: self._slow(delay_ms, for_ms))
            case Damage(slot, at_ms):
                self._at(at_ms, lambda: self._damage(slot))
            case Kill():
                raise AssertionError(f"{fault} says neither when nor during what")
            case _:
                assert_never(fault)

    def _at(self, ms: Millis, action: Action) -> None:
        self.world.at(ms * 1000, action)

    def _until(self, for_ms: Millis) -> Micros:
        return self.world.now_us + for_ms * 1000

    def _kill(self, slots: tuple[SlotId, ...], how: str) -> None:
        for slot in slots:
            if process := self.world.current(slot):
                self.world.kill(process, how)

    def _arm(self, slot: SlotId, step: int) -> None:
        if process := self.world.current(slot):
            process.kill_before = step
        else:  # not launched yet
            self.world.at(self.world.now_us + 1_000, lambda: self._arm(slot, step))

    def trigger(self, what: str) -> None:
        """A recovery or a round has begun: kill whoever was to die in it, at some moment of it."""
        due = [fault for fault in self.waiting if fault.when == During(what)]  # type: ignore[arg-type]
        for fault in due[:1]:
            self.waiting.remove(fault)
            moment = self.world.now_us + self.rng.randrange(1_000, 40_000)
            self.world.at(moment, lambda fault=fault: self._kill(fault.slots, str(fault)))  # type: ignore[misc]

    def _pause(self, slot: SlotId, for_ms: Millis) -> None:
        process = self.world.current(slot)
        if process is None or not process.alive or process.paused:
            return
        process.paused = True
        self.world.note(f"slot/{slot}", "paused", incarnation=process.incarnation)
        self.world.suspect(process, lambda: process.paused)

        def go_on() -> None:
            if process.alive:
                self.world.note(f"slot/{slot}", "continued", incarnation=process.incarnation)
                process.resume()

        self.world.at(self._until(for_ms), go_on)

    def _cut(self, slot: SlotId, other: SlotId | None, for_ms: Millis) -> None:
        until = self._until(for_ms)
        weather = self.world.weather
        self.world.note(f"slot/{slot}", "cut", other="coordinator" if other is None else other)
        if other is None:
            weather.alone[slot] = until
        else:
            weather.cut[min(slot, other), max(slot, other)] = until
        # Whoever cannot reach a peer complains, and the slot that was cut off is given up.
        if process := self.world.current(slot):
            self.world.suspect(process, lambda: self.world.now_us < until)

    def _delay(self, slot: SlotId, delay_ms: Millis, for_ms: Millis) -> None:
        self.world.weather.delay_us[slot] = (delay_ms * 1000, self._until(for_ms))
        self.world.note(f"slot/{slot}", "slowed", delay_ms=delay_ms)

    def _pause_coordinator(self, for_ms: Millis) -> None:
        if not self.world.coordinator.alive:
            return
        zombie = self.world.pause_coordinator()
        self.world.at(self.world.now_us + for_ms * 500, self.world.resume_coordinator)
        self.world.at(self._until(for_ms), zombie.resume)

    def _outage(self, for_ms: Millis) -> None:
        self.world.storage.outage_until_us = self._until(for_ms)
        self.world.note("store", "outage", for_ms=for_ms)

    def _slow(self, delay_ms: Millis, for_ms: Millis) -> None:
        self.world.storage.slow_us = delay_ms * 1000
        self.world.storage.slow_until_us = self._until(for_ms)
        self.world.note("store", "slowed", delay_ms=delay_ms)

    def _damage(self, slot: SlotId) -> None:
        world = self.world
        known = world.coordinator.engine.registry.metas
        newest = [max(known[task].items())[1] for task in world.job.hosted[slot] if known[task]]
        if newest:
            meta = self.rng.choice(newest)
            world.storage.store.damage(key_of(meta))
            world.note(meta.task, "damaged", checkpoint=meta.checkpoint)
