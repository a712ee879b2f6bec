"""Two ends of a real connection on loopback, in one thread and one loop, and those who watch them."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from snapline.net.connection import Connection
from snapline.net.framing import CONTROL, Packet, packet
from snapline.net.handshake import Dialer
from snapline.net.listener import Listener, dial
from snapline.net.loop import EventLoop

SECRET = b"s" * 32
PATIENCE_S = 60.0


class Recorder:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.bodies: list[bytes] = []
        self.kinds: list[int] = []
        self.losses: list[str] = []

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)

    def received(self, connection: Connection, kind: int, body: bytes | memoryview) -> None:
        self.kinds.append(kind)
        self.bodies.append(bytes(body))

    def lost(self, connection: Connection, reason: str) -> None:
        self.losses.append(reason)


class Net:
    """A loop with a listener, and all that was opened on it."""

    def __init__(self, **listener_options) -> None:
        self.loop = EventLoop()
        self.accepted = Recorder()  #: the acceptor's side of all connections
        self.listener = Listener(self.loop, SECRET, self.accepted, **listener_options)
        self.dialled: list[Connection] = []
        self.sockets: list[socket.socket] = []

    def dial(self, receiver: Recorder, secret: bytes = SECRET, **options) -> Connection:
        connection = dial(self.loop, self.listener.address, secret, receiver, **options)
        self.dialled.append(connection)
        return connection

    def pair(self) -> tuple[Connection, Recorder, Connection, Recorder]:
        """Our end and the other end of a new connection, each with its recorder."""
        ours, before = Recorder(), len(self.accepted.connections)
        connection = self.dial(ours)
        self.until(lambda: ours.connections and len(self.accepted.connections) > before)
        other = self.accepted.connections[-1]
        theirs = Recorder()
        other.receiver = theirs
        return connection, ours, other, theirs

    def stranger(self) -> socket.socket:
        """A plain socket that is connected to the listener; it blocks."""
        sock = socket.create_connection(self.listener.address, timeout=PATIENCE_S)
        self.sockets.append(sock)
        return sock

    def insider(self) -> socket.socket:
        """A plain socket that has gone through the handshake, to do something wrong afterwards."""
        sock = self.stranger()
        side = Dialer(SECRET)
        while side.wants:
            sock.sendall(side.take(self.hear(sock, side.wants)))
        return sock

    def hear(self, sock: socket.socket, size: int) -> bytes:
        """So many bytes from a plain socket, while the loop runs; fewer if it was closed."""
        heard = b""
        sock.setblocking(False)
        deadline = time.monotonic() + PATIENCE_S
        while len(heard) < size and time.monotonic() < deadline:
            self.loop.poll(0.001)
            try:
                more = sock.recv(size - len(heard))
            except BlockingIOError:
                continue
            except ConnectionError:
                break
            if not more:
                break
            heard += more
        sock.settimeout(PATIENCE_S)
        return heard

    def dropped(self, sock: socket.socket) -> bool:
        """Whether the listener's side has hung up on a plain socket."""
        self.hear(sock, 1 << 16)
        try:
            return sock.send(b"x") == 1 and sock.recv(1) == b""
        except ConnectionError:
            return True

    def until(self, happened: Callable[[], object], limit_s: float = PATIENCE_S) -> None:
        """Poll until something has happened."""
        deadline = time.monotonic() + limit_s
        while not happened():
            assert time.monotonic() < deadline, "it did not happen"
            self.loop.poll(0.01)

    def close(self) -> None:
        for connection in (*self.dialled, *self.accepted.connections):
            connection.close()
        for sock in self.sockets:
            sock.close()
        self.listener.close()
        self.loop.close()


@contextmanager
def net(**listener_options) -> Iterator[Net]:
    made = Net(**listener_options)
    try:
        yield made
    finally:
        made.close()


def numbered(number: int, size: int = 8) -> Packet:
    """A frame that is recognised by its number."""
    return packet(CONTROL, number.to_bytes(8, "little") * (size // 8))


def number_of(body: bytes) -> int:
    assert body == body[:8] * (len(body) // 8), "a body was mixed up"
    return int.from_bytes(body[:8], "little")
