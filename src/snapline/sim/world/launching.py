"""Plays the driver's part in starting slots: a life gets processes until one of them registers.

The engine asks for a life of a slot once, and hears of it again when a process has registered. What lies
between is the contract of whoever adapts the engine to a world. A process that dies before it registers
has no connection that could break: its end shows it, or else a time-out of that process alone. Another one
is started after a pause that grows. A process that registers late takes the life if nobody has it yet; else
it is sent away. A job whose processes keep failing, while it commits nothing, is ended.
"""

import random
from functools import partial
from typing import Protocol

from snapline.ids import Incarnation, Micros, SlotId
from snapline.journal.happenings import (
    Happening,
    LaunchFailed,
    RegisteredLate,
    SentAway,
    SlotLaunched,
)
from snapline.sim.world.process import Boss, SimSlotProcess, SlotPlace
from snapline.sim.world.weather import FaultsUnderWay, SlotLife

FAILURES_MAX = 10
"""The job is given up when so many processes failed to start without a new line."""


class LaunchPlace(SlotPlace, Protocol):
    """What whoever starts slots asks of the world."""

    @property
    def processes(self) -> dict[SlotLife, SimSlotProcess]:
        """The newest process that was started for each life of a slot."""
        ...

    @property
    def weather(self) -> FaultsUnderWay:
        """What faults do at present."""
        ...

    @property
    def network_rng(self) -> random.Random:
        """Random numbers for all that has to do with connections."""
        ...

    def note(self, actor: str, what: Happening) -> None:
        """Write down what happened to an actor."""
        ...

    def new_process(self, slot: SlotId, incarnation: Incarnation, boss: Boss) -> SimSlotProcess:
        """A process for a life of a slot, which has not registered yet."""
        ...

    def launch_us(self, incarnation: Incarnation) -> Micros:
        """How long it takes until a process that is started now registers."""
        ...


class SimLaunches:
    """The processes that one coordinator starts."""

    def __init__(self, world: LaunchPlace, boss: Boss) -> None:
        self.world = world
        self.boss = boss
        self.failures = 0  #: how many processes failed to start since the last line was committed
        self.commits = 0  #: how many lines were committed when they were last counted

    def start(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Start a process for a life, unless one has registered for it by now."""
        world = self.world
        if self._taken((slot, incarnation)):
            return
        if (until := world.weather.away.get(slot, 0)) > world.now_us:
            again = partial(self.start, slot, incarnation)
            world.at(until, lambda: self.boss.call(again))
            return
        process = world.new_process(slot, incarnation, self.boss)
        world.processes[process.life] = process
        world.note(f"slot/{slot}", SlotLaunched(incarnation))
        delay = world.launch_us(incarnation)
        trouble = world.weather.starting(slot, world.now_us)
        if trouble is not None and trouble.delay_us is None:
            world.at(world.now_us + delay, lambda: self._die(process))
        else:
            extra = 0 if trouble is None or trouble.delay_us is None else trouble.delay_us
            world.at(world.now_us + delay + extra, lambda: self._arrive(process))
        world.at(
            world.now_us + world.costs.register_us,
            lambda: self.boss.call(lambda: self.failed(process, "it did not register in time")),
        )

    def _taken(self, life: SlotLife) -> bool:
        known = self.world.processes.get(life)
        return known is not None and known.registered

    def _die(self, process: SimSlotProcess) -> None:
        """End a process before it registers. The coordinator sees that it ended in half of the cases."""
        if not process.alive:
            return
        process.alive = False
        self.world.note(f"slot/{process.slot}", LaunchFailed(process.incarnation))
        if self.world.network_rng.random() < 0.5:
            self.world.at(
                self.world.now_us + self.world.costs.detect_us,
                lambda: self.boss.call(lambda: self.failed(process, "it ended")),
            )

    def _arrive(self, process: SimSlotProcess) -> None:
        """Let a process that is up register: at once, or when it goes on if it is paused."""
        process.call(lambda: self.boss.call(lambda: self._register(process)))

    def _register(self, process: SimSlotProcess) -> None:
        if not process.alive:
            return
        if self._taken(process.life):  # another one was quicker
            self.world.note(f"slot/{process.slot}", SentAway(process.incarnation))
            process.alive = False  # it has no connection and no file that could be lost
            return
        if process.failed:
            self.world.note(f"slot/{process.slot}", RegisteredLate(process.incarnation))
        process.registered = True
        self.world.processes[process.life] = process
        self.boss.engine.registered_slot(*process.life)

    def failed(self, process: SimSlotProcess, why: str) -> None:
        """Start another process, a little later, for one that does not register in time."""
        if process.failed or self._taken(process.life):
            return
        process.failed = True
        commits = self.world.observer.commits
        self.failures = 1 if commits > self.commits else self.failures + 1
        self.commits = commits
        if self.failures >= FAILURES_MAX:
            self.boss.give_up(
                f"slot {process.slot} does not start: {self.failures} processes failed, the last "
                f"because {why}"
            )
            return
        self.world.at(
            self.world.now_us + self._pause_us(),
            lambda: self.boss.call(lambda: self.start(*process.life)),
        )

    def _pause_us(self) -> Micros:
        costs = self.world.costs
        return min(costs.again_us << (self.failures - 1), costs.again_max_us)
