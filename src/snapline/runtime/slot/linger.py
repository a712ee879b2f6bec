"""How long due records gather before a source is read again: longer while the slot has little rest.

A pass costs the same for one record and for a hundred. A slot that rests most of the time can afford many
passes, and its records leave at once. One that does not, because it has much to do or because others use
its cores, makes fewer and larger ones. It computes less then, and the operating system prefers sleepers.
"""

from typing import Final

from snapline.ids import Millis

BUSY: Final = 0.6
"""A slot that works for more of the time than this lets records gather for longer ..."""

IDLE: Final = 0.3
"""... and one that works for less lets them gather for less."""

MOST_MS: Final = 8


class Linger:
    """The linger of one slot, which begins with what the settings say, and never falls below it."""

    def __init__(self, usual_ms: Millis) -> None:
        self._usual_ms: Final = usual_ms
        self.ms = usual_ms
        #: when it last looked, and how long the slot had rested until then
        self._last: tuple[float, float] | None = None

    def look(self, now_s: float, rested_s: float) -> Millis:
        """Take how long the slot has rested in all by now; return how long to linger from now on."""
        before, self._last = self._last, (now_s, rested_s)
        if before is not None and now_s > before[0]:
            self.follow(1 - (rested_s - before[1]) / (now_s - before[0]))
        return self.ms

    def follow(self, working: float) -> Millis:
        """Take the share of the last heartbeat in which the slot worked; return how long to linger now."""
        if working > BUSY:
            self.ms = max(self._usual_ms, min(2 * self.ms, MOST_MS))
        elif working < IDLE:
            self.ms = max(self._usual_ms, self.ms // 2)
        return self.ms
