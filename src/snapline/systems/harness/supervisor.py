"""Keeps a system's program running, as an init system would: what died is started again, after a moment.

A program that somebody kills is started as often as it is killed. One that ends by itself, again and
again and without getting anywhere, has failed. `look` does all of this when it is called; there is no
thread.
"""

import signal
import time
from collections.abc import Callable, Sequence

from snapline.systems.harness.base import State
from snapline.systems.harness.processes import Group

RESTART_S = 0.5
DEATHS_MAX = 3
"""After this many deaths in a row that nobody caused, without progress in between, it has failed."""


class Supervisor:
    """Keeps one program running, however often it dies."""

    def __init__(
        self,
        launch: Callable[[], Group],
        ready: Callable[[], Sequence[int] | None],
        done: Callable[[], int],
        last_words: Callable[[], str],
    ) -> None:
        """Prepare; nothing is started before the first `look`.

        `launch` starts the program; `ready` returns the other processes of its group once it works, and
        None before; `done` is a number that rises as long as it makes progress; `last_words` says why it
        ended.
        """
        self._launch = launch
        self._ready = ready
        self._done = done
        self._last_words = last_words
        self._group: Group | None = None
        self._others: Sequence[int] | None = None  #: None while it is starting
        self._down_since = float("-inf")
        self._deaths = 0  #: in a row
        self._done_at_death = -1
        self._launches = 0
        self.problem: str | None = None  #: why it has failed

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(self._launches - 1, 0)

    def look(self) -> State:
        """Return the state of the program, and start it again if it died."""
        if self.problem is not None:
            return State.FAILED
        if self._group is None:
            if time.monotonic() - self._down_since >= RESTART_S:
                self._launches += 1
                self._group, self._others = self._launch(), None
            return State.DOWN
        code = self._group.ended()
        if code == 0:
            return State.FINISHED
        if code is not None:
            self._died(code)
            return State.DOWN if self.problem is None else State.FAILED
        if self._others is None:
            self._others = self._ready()
        return State.DOWN if self._others is None else State.RUNNING

    def _died(self, code: int) -> None:
        done = self._done()
        self._deaths = self._deaths + 1 if done == self._done_at_death else 1
        self._done_at_death = done
        if self._deaths >= DEATHS_MAX:
            self.problem = f"it ended {self._deaths} times in a row ({code}): {self._last_words()}"
        self.stop()

    def pids(self) -> list[int]:
        """The ids of its processes, as far as they are known; none if it is dead."""
        if self._group is None or self._group.ended() is not None:
            return []
        return [self._group.pid, *(self._others or ())]

    def kill(self) -> list[int]:
        """Send SIGKILL to the program; return the processes it hit."""
        hit = self.pids()
        self.stop()
        return hit

    def pause(self) -> list[int]:
        """Send SIGSTOP to the program; return the processes it hit."""
        hit = self.pids()
        if hit and self._group is not None:
            self._group.signal(signal.SIGSTOP)
        return hit

    def resume(self) -> None:
        """Send SIGCONT to the program, if it is still the one that was paused."""
        if self._group is not None:
            self._group.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill what runs; returns when it is gone."""
        if self._group is not None:
            self._group.kill(self._others or ())
            self._group = None
            self._down_since = time.monotonic()
