"""Who takes what comes over the connections of a slot's process: from the driver, and from other slots."""

import os
from typing import Protocol

from snapline.engine import control
from snapline.engine.slot.slot import Slot
from snapline.ids import Incarnation, SlotId
from snapline.net.connection import Connection
from snapline.net.framing import Body, WireError
from snapline.net.listener import Listener
from snapline.net.loop import EventLoop
from snapline.rundir.directory import RunDirectory
from snapline.runtime.slot.network_faults import NetworkFaults
from snapline.runtime.wire import control_messages
from snapline.runtime.wire.codec import Wire


class Receiving(Protocol):
    """What is asked of the process: who it is, and whom to tell."""

    loop: EventLoop
    wire: Wire
    secret: bytes
    tag: str
    directory: RunDirectory
    listener: Listener | None
    visitors: "FromPeers"
    engine: Slot | None
    weather: NetworkFaults
    leaving: bool
    patience_s: float

    def obey(self, message: control_messages.ControlMessage) -> None:
        """Do what the driver says."""
        ...

    def lost_link(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Report a broken link to a peer."""
        ...


class FromDriver:
    """Takes what the driver says."""

    def __init__(self, process: Receiving) -> None:
        self.process = process

    def opened(self, connection: Connection) -> None:
        """Begin to listen, and introduce this process to the driver."""
        process = self.process
        # Listen at the address from which we reached the driver: no host name is looked up.
        here = connection.local_host
        # Who connects may have to wait for us, and we for it, until an operator comes back.
        process.listener = Listener(
            process.loop, process.secret, process.visitors, host=here, limit_s=process.patience_s
        )
        host, port = process.listener.address
        hello = control_messages.Hello(process.tag, process.directory.name, os.getpid(), host, port)
        connection.send(process.wire.pack(hello))

    def received(self, connection: Connection, kind: int, body: Body) -> None:
        """Take a control message of the driver."""
        message = self.process.wire.unpack(kind, body)
        if isinstance(message, control.Frame):
            raise WireError("the driver sends no data")
        self.process.obey(message)

    def lost(self, connection: Connection, reason: str) -> None:
        """Leave: without a driver there is nothing to do."""
        self.process.leaving = True


class FromPeers:
    """Takes what another slot says; whoever connected to us says first who it is."""

    def __init__(self, process: Receiving) -> None:
        self.process = process
        self.lives: dict[Connection, tuple[SlotId, Incarnation]] = {}

    def opened(self, connection: Connection) -> None:
        """Do nothing: the other slot will introduce itself."""

    def received(self, connection: Connection, kind: int, body: Body) -> None:
        """Take the introduction of another slot, or a frame of data."""
        item = self.process.wire.unpack(kind, body)
        if isinstance(item, control_messages.PeerHello):
            self.lives[connection] = (item.slot, item.incarnation)
            self.process.weather.met(connection, self.lives[connection])
        elif isinstance(item, control.Frame) and connection in self.lives:
            if self.process.engine is not None:
                self.process.engine.receive(self.lives[connection][0], item)
        else:
            raise WireError(f"a peer does not say {type(item).__name__}")

    def lost(self, connection: Connection, reason: str) -> None:
        """Tell the driver that a link broke, unless the life at its other end was over."""
        if life := self.lives.pop(connection, None):
            self.process.lost_link(*life)
