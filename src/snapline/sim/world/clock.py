"""Virtual time, as links, storage and processes ask for it."""

from collections.abc import Callable
from typing import Protocol

from snapline.ids import Micros


class SimClock(Protocol):
    """Tells the virtual time, and runs actions at later times."""

    now_us: Micros

    def at(self, at_us: Micros, action: Callable[[], None]) -> None:
        """Run an action at a virtual time."""
        ...
