"""A queue that delays things on purpose, and keeps their order: it makes a network slow.

The order is kept also when the delay becomes shorter: nothing overtakes what was held before it.
"""

import time
from collections import deque

from snapline.net.loop import Action, EventLoop


class DelayQueue:
    """Delays what passes in one direction of a connection."""

    def __init__(self, loop: EventLoop) -> None:
        self.delay_s = 0.0  #: how much longer everything takes from now on
        self._loop = loop
        self._queue: deque[tuple[float, Action]] = deque()  #: (not before, what), in order
        self._waiting = False  #: whether an alarm is set for the first of the queue

    @property
    def slow(self) -> bool:
        """Whether what comes now has to wait: for its delay, or for what is held before it."""
        return self.delay_s > 0 or bool(self._queue)

    def hold(self, action: Action) -> None:
        """Do an action after the delay, and after all actions that are held already."""
        self._queue.append((time.monotonic() + self.delay_s, action))
        self._wait()

    def _wait(self) -> None:
        if self._queue and not self._waiting:
            self._waiting = True
            self._loop.after(max(0.0, self._queue[0][0] - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._waiting = False
        now_s = time.monotonic()
        while self._queue and self._queue[0][0] <= now_s:
            self._queue.popleft()[1]()
        self._wait()

    def release(self) -> None:
        """Do all that is held, now."""
        while self._queue:
            self._queue.popleft()[1]()

    def drop(self) -> None:
        """Forget all that is held."""
        self._queue.clear()
