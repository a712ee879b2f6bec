"""Real connections between processes: what the parts are, and in which order they are used.

A process has one `Loop`. It listens with a `Listener`, or dials; both run the handshake of handshake.py
first, so a `Connection` only ever leads to somebody who knows the secret of the run. A connection carries
frames (framing.py) and gives each to its `Receiver`, which unpacks it with `wire.Wire`. Nothing here
starts a thread, and nothing here knows what a slot is.
"""

from snapline.net.connection import Connection, Receiver
from snapline.net.handshake import new_secret
from snapline.net.listener import LOOPBACK, Listener, dial
from snapline.net.loop import Loop

__all__ = ["LOOPBACK", "Connection", "Listener", "Loop", "Receiver", "dial", "new_secret"]
