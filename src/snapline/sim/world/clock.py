"""Virtual time, as links, storage and processes ask for it."""

from collections.abc import Callable
from typing import Protocol

from snapline.ids import Micros


class SimClock(Protocol):
    """Says what time it is, and lets things happen later."""

    now_us: Micros

    def at(self, at_us: Micros, action: Callable[[], None]) -> None:
        """Do something at a time."""
        ...
