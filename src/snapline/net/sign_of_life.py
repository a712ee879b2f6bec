"""Says that a process is alive while its loop cannot, because one operator computes for long.

Heartbeats leave when the loop looks at its sockets. Between two looks it runs code of the user, and how
long that takes for a batch is none of our business: a model may need seconds. So a thread watches when the
loop last looked, and speaks for it if that is too long ago. It cannot know whether the operator will ever
return. After a while it is silent, and the driver gives the slot up.
"""

import threading
import time

from snapline.net.connection import Connection
from snapline.net.framing import Packet
from snapline.net.loop import EventLoop


class SignOfLife:
    """Speaks for the loop of a process, every `beat_s` while it does not look, for `patience_s` at most."""

    def __init__(
        self, loop: EventLoop, boss: Connection, word: Packet, beat_s: float, patience_s: float
    ) -> None:
        self._loop = loop
        self._boss = boss
        self._word = word
        self._beat_s = beat_s
        self._patience_s = patience_s
        self._over = threading.Event()
        # A process that ends waits for nobody.
        self._thread = threading.Thread(target=self._watch, name="sign of life", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Speak no more."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(self._beat_s):
            if self._beat_s < time.monotonic() - self._loop.looked_s < self._patience_s:
                self._boss.interject(self._word)
