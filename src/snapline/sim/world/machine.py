"""The machine on which simulated slots run: cores that they share, in turn.

Work is done in the order in which it was asked for, each piece without a break on one core. What takes long
is cut into slices, and goes to the end of the queue after each: so nobody waits for long, and who asks for
much gets a fair share. Nothing is drawn at random.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from snapline.ids import Micros
from snapline.sim.world.clock import SimClock

SLICE_US: Final[Micros] = 5_000
"""The longest that a piece of work that can be cut holds a core, about as an operating system has it."""


class Machine:
    """So many cores; None: as many as anybody asks for."""

    def __init__(self, clock: SimClock, cores: int | None) -> None:
        self._clock = clock
        self._free = cores
        self._waiting: deque[Callable[[], Micros]] = deque()

    def run(self, work: Callable[[], Micros]) -> None:
        """Do work as soon as a core is free; it holds the core for as long as it says."""
        if self._free is None:
            work()
        elif self._free:
            self._free -= 1
            self._start(work)
        else:
            self._waiting.append(work)

    def _start(self, work: Callable[[], Micros]) -> None:
        self._clock.at(self._clock.now_us + work(), self._release)

    def _release(self) -> None:
        assert self._free is not None
        if self._waiting:
            self._start(self._waiting.popleft())
        else:
            self._free += 1

    def occupy(self, cpu_us: Micros, then: Callable[[], None]) -> None:
        """Compute for so long, slice by slice, and do something after that; at once if it takes no time."""
        if cpu_us <= 0:
            then()
        elif self._free is None:
            self._clock.at(self._clock.now_us + cpu_us, then)
        else:
            self.run(lambda: self._slice(cpu_us, then))

    def _slice(self, cpu_us: Micros, then: Callable[[], None]) -> Micros:
        held_us = min(cpu_us, SLICE_US)
        self._clock.at(self._clock.now_us + held_us, lambda: self.occupy(cpu_us - held_us, then))
        return held_us
