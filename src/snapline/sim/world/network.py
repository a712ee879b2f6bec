"""Simulated links: FIFO, with latency, limited bandwidth, and cuts that delay but never lose or reorder.

A link is a connection between two processes. It loses what is under way only when one of them dies, or when
it breaks; it is then never used again.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from snapline.ids import Micros
from snapline.sim.world.clock import SimClock

T = TypeVar("T")


class Link(Generic[T]):
    """One direction of a connection."""

    def __init__(
        self,
        clock: SimClock,
        rng: random.Random,
        latency_us: Micros,
        deliver: Callable[[T], None],
        extra_us: Callable[[], Micros],
        cut_until_us: Callable[[], Micros],
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.latency_us = latency_us
        self.deliver = deliver
        self.extra_us = extra_us  #: added to the latency at present, by a fault
        self.cut_until_us = cut_until_us  #: the time before which nothing arrives
        self.queue: deque[tuple[Micros, T]] = deque()  #: (when it leaves, what), in order
        self.free_us: Micros = 0  #: when the link has sent what it was given
        self.last_us: Micros = 0  #: when the last arrival is due
        self.broken = False  #: what is sent goes nowhere

    def send(self, item: T, busy_us: Micros, after_us: Micros = 0) -> None:
        """Send behind everything that was sent before; the sender gets to it so long from now."""
        if not self.broken:
            self.queue.append((self._schedule(busy_us, after_us), item))

    def _schedule(self, busy_us: Micros, after_us: Micros) -> Micros:
        start = max(self.clock.now_us + after_us, self.free_us)
        self.free_us = start + busy_us
        latency = int(self.latency_us * (0.5 + self.rng.expovariate(2.0))) + self.extra_us()
        self.last_us = max(self.last_us, self.free_us + latency)
        self.clock.at(self.last_us, self._arrive)
        return start

    def _arrive(self) -> None:
        healed = self.cut_until_us()
        if healed > self.clock.now_us:
            self.clock.at(healed, self._arrive)
        elif self.queue:  # else it was lost with its sender
            self.deliver(self.queue.popleft()[1])

    def sever(self) -> None:
        """Lose a random end of what is under way, because the sender died; the rest arrives."""
        for _ in range(self.rng.randint(0, len(self.queue))):
            self.queue.pop()

    def disconnect(self) -> None:
        """Break the connection of two living ends: a random end of what is under way is lost."""
        self.sever()
        self.broken = True

    def overtake(
        self, item: T, busy_us: Micros, passes: Callable[[T], bool], after_us: Micros = 0
    ) -> list[T]:
        """Send ahead of the items that have not left and that it may pass; return those."""
        if self.broken:
            return []
        start = self._schedule(busy_us, after_us)
        waiting = [k for k, (at, other) in enumerate(self.queue) if at > self.clock.now_us]
        passed = [k for k in waiting if passes(self.queue[k][1])]
        if not passed:
            self.queue.append((start, item))
            return []
        overtaken = [self.queue[k][1] for k in passed]
        self.queue.insert(passed[0], (self.queue[passed[0]][0], item))
        return overtaken


@dataclass(slots=True)
class Control:
    """The connection between a slot and its coordinator."""

    up: Link[Callable[[], None]]
    down: Link[Callable[[], None]]
