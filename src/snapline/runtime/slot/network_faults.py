"""What faults do to the connections of this process: all of them slow, or some of them cut.

The driver says what is to happen and for how long; it ends by the process's own clock, because a process
that is cut off cannot be told. A slow process is slow with all, the driver included. A cut holds
everything up and loses nothing, so a short one is only a delay. One between two slots that lasts longer
than a slot may be silent breaks their connections then: what they had to say to each other is lost, the
other slot complains, and this one is given up. A cut without a duration breaks them at once.
"""

import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

from snapline.ids import Incarnation, SlotId
from snapline.net.connection import Connection
from snapline.net.loop import EventLoop

Who: TypeAlias = tuple[SlotId, Incarnation] | None
"""Who is at the other end: a life of a slot, or None, the driver."""


class NetworkFaults:
    """Breaks the network of one process. `connections` gives them all, each with its other end."""

    def __init__(
        self, loop: EventLoop, connections: Callable[[], Iterable[tuple[Connection, Who]]]
    ) -> None:
        self._loop = loop
        self._connections = connections
        self._delay_s = 0.0
        self._slow_until_s = 0.0
        self._cut_until_s: dict[Who, float] = {}

    def met(self, connection: Connection, who: Who) -> None:
        """Apply the faults under way to a new connection."""
        if self._delay_s:
            connection.slow(self._delay_s)
        if who in self._cut_until_s:
            connection.stall(True)

    def delay(self, delay_s: float, for_s: float) -> None:
        """Slow all connections for so long; a later call replaces this one."""
        self._slow_until_s = time.monotonic() + for_s
        self._slow(delay_s)
        self._loop.after(for_s, self._hasten)

    def _hasten(self) -> None:
        if time.monotonic() >= self._slow_until_s:
            self._slow(0.0)

    def _slow(self, delay_s: float) -> None:
        self._delay_s = delay_s
        for connection, _ in self._connections():
            connection.slow(delay_s)

    def cut(self, others: Iterable[Who], for_s: float, patience_s: float) -> None:
        """Let nothing pass between this process and others, for so long; 0: break the connections."""
        cut = tuple(others)
        if not for_s:
            self._break(cut)
            return
        for who in cut:
            self._cut_until_s[who] = time.monotonic() + for_s
        for connection in self._with(cut):
            connection.stall(True)
        self._loop.after(for_s, self._heal)
        if for_s > patience_s:
            slots = tuple(who for who in cut if who is not None)
            self._loop.after(patience_s, lambda: self._break(slots))

    def _heal(self) -> None:
        over = [who for who, until_s in self._cut_until_s.items() if time.monotonic() >= until_s]
        for who in over:
            del self._cut_until_s[who]
        for connection in self._with(over):
            connection.stall(False)

    def _break(self, others: Iterable[Who]) -> None:
        for connection, who in tuple(self._connections()):
            if who in others and who is None:
                connection.fail("the connection was broken on purpose")
            elif who in others:
                connection.close()  # tell nobody here: the other slot reports the broken link

    def _with(self, others: Iterable[Who]) -> list[Connection]:
        return [connection for connection, who in self._connections() if who in others]
