"""The processes that have registered with the driver, and how patient it is with them."""

from dataclasses import dataclass

from snapline.ids import Incarnation, SlotId
from snapline.runtime.connection import Connection
from snapline.runtime.words import Hello


@dataclass(slots=True)
class Timeouts:
    """How quickly silence is noticed, in seconds."""

    heartbeat_s: float = 0.2
    silence_s: float = 2.0
    lease_s: float = 5.0
    register_s: float = 60.0
    link_s: float = 0.5  # for a slot's own end to explain why another has lost it
    restore_s: float = 15.0  # while a slot loads its state it may be silent for longer


@dataclass(slots=True, eq=False)
class Member:
    """A process that has registered."""

    connection: Connection
    hello: Hello
    heard_s: float
    life: tuple[SlotId, Incarnation] | None = None  # None: a spare
    restoring: bool = False  # it was told to, and has not said that it is done

    def silent(self, now_s: float, timeouts: Timeouts) -> bool:
        """Whether nothing was heard of it for too long."""
        patience_s = timeouts.restore_s if self.restoring else timeouts.silence_s
        return now_s - self.heard_s > patience_s
