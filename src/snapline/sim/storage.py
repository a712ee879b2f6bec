"""Simulated storage: slow, failing, forgetful. It stands in front of the in-memory forms of the ports."""

import random
from collections.abc import Callable
from typing import Protocol

from snapline.ids import Micros
from snapline.sim.costs import Costs
from snapline.storage.memory import MemoryLogs, MemoryOutlet, MemoryStore


class Clock(Protocol):
    """What the storage asks of the world."""

    now_us: Micros

    def at(self, at_us: Micros, action: Callable[[], None]) -> None:
        """Do something at a time."""
        ...


class SimStorage:
    """All that survives a process."""

    def __init__(self, clock: Clock, costs: Costs, rng: random.Random) -> None:
        self.clock = clock
        self.costs = costs
        self.rng = rng
        self.store = MemoryStore()
        self.logs = MemoryLogs()
        self.outlet = MemoryOutlet()
        self.outage_until_us: Micros = 0
        self.slow_us: Micros = 0
        self.slow_until_us: Micros = 0
        self.failing = 0.0  #: the chance of a call for an object to fail ...
        self.failing_until_us: Micros = 0  #: ... until then

    def call(
        self,
        cost_us: Micros,
        alive: Callable[[], bool],
        act: Callable[[], None],
        done: Callable[[], None],
        failed: Callable[[], None],
        *,
        an_object: bool = True,
    ) -> None:
        """Make a call in the background, for an object or for a file (a log, an egress).

        In an outage the caller is told that it failed, and it may have happened all the same. If the caller
        dies meanwhile, it happens or not, and nobody is told.
        """
        slow = self.slow_us if self.clock.now_us < self.slow_until_us else 0
        delay = int(cost_us * (0.5 + self.rng.expovariate(2.0))) + slow

        def finish() -> None:
            lucky = self.rng.random() < 0.5
            if not alive():
                if lucky:
                    act()
            elif self.clock.now_us < self.outage_until_us or (an_object and self._fails()):
                if lucky:
                    act()
                failed()
            else:
                act()
                done()

        self.clock.at(self.clock.now_us + delay, finish)

    def _fails(self) -> bool:
        return self.clock.now_us < self.failing_until_us and self.rng.random() < self.failing
