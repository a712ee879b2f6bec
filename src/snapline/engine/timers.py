"""Timers by value: setting one replaces an equal one, and what was replaced or cancelled never fires."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """The timers that are set. Alarms are never cancelled, so a generation tells old ones apart."""

    def __init__(self) -> None:
        self._generation = 0
        self._set: dict[K, int] = {}

    def set(self, timer: K) -> int:
        """Set a timer; the alarm for it must bring this number back."""
        self._generation += 1
        self._set[timer] = self._generation
        return self._generation

    def cancel(self, timer: K) -> None:
        """Keep a timer from firing."""
        self._set.pop(timer, None)

    def is_set(self, timer: K, generation: int) -> bool:
        """Whether the timer is set, and neither cancelled nor replaced since."""
        return self._set.get(timer) == generation

    def fires(self, timer: K, generation: int) -> bool:
        """Whether a timer whose alarm went off is still set; if so, it fires and is unset."""
        if not self.is_set(timer, generation):
            return False
        del self._set[timer]
        return True

    def clear(self) -> None:
        """Drop all timers."""
        self._set.clear()
