"""Before a connection: listening, dialling, and the handshake that comes first on both sides.

A *stranger* is a socket whose other side has not proved yet that it knows the secret. It costs a socket and
an alarm, nothing more. It is dropped as soon as it says something wrong, when it takes too long, or when
too many strangers wait: then the one that has waited longest goes, because whoever knows the secret is
quick. The receiver hears nothing of strangers that are dropped.
"""

import errno
import os
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from snapline.errors import UsageError
from snapline.net.connection import Connection, Receiver
from snapline.net.framing import WireError
from snapline.net.handshake import Acceptor, Dialer, Handshake
from snapline.net.loop import READ, WRITE, EventLoop

LOOPBACK: Final = "127.0.0.1"
_ACCEPT_MAX: Final = 16  # connections accepted per poll, so that a flood leaves time for the others
_EXHAUSTED_S: Final = 0.1  # how long to accept nobody when the process has no file descriptor left


class Stranger:
    """A socket whose other side is not known yet."""

    def __init__(
        self,
        loop: EventLoop,
        sock: socket.socket,
        handshake: Handshake,
        known: Callable[[socket.socket], None],
        refused: Callable[[str], None],
        limit_s: float,
        answer_s: float | None = None,
    ) -> None:
        """`limit_s` goes until it is connected, and until the handshake is over unless `answer_s` does."""
        self._loop = loop
        self._sock = sock
        self._handshake = handshake
        self._known = known
        self._refused = refused
        self._heard = b""
        self._over = False
        self._is_connected = False
        self._answer_s = limit_s if answer_s is None else answer_s
        loop.after(limit_s, lambda: None if self._is_connected else self._too_late(limit_s))
        # Wait until the socket can be written to: then it is connected.
        loop.watch(sock, WRITE, self._connected)

    def drop(self) -> None:
        """Close the socket and tell nobody."""
        if not self._over:
            self._over = True
            self._loop.unwatch(self._sock)
            self._sock.close()

    def refuse(self, reason: str) -> None:
        """Close the socket and report why."""
        if not self._over:
            self.drop()
            self._refused(reason)

    def _too_late(self, limit_s: float) -> None:
        self.refuse(f"no handshake within {limit_s:g} s")

    def _connected(self, _events: int) -> None:
        if self._over:
            return
        if problem := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.refuse(f"cannot connect: {os.strerror(problem)}")
            return
        self._is_connected = True
        self._loop.after(self._answer_s, lambda: self._too_late(self._answer_s))
        self._loop.rewatch(self._sock, READ, self._ready)
        self._say(self._handshake.begin())

    def _ready(self, _events: int) -> None:
        if self._over:
            return
        try:
            heard = self._sock.recv(self._handshake.wants - len(self._heard))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.refuse(f"the connection broke during the handshake: {error.strerror}")
            return
        if not heard:
            self.refuse("the other side closed the connection during the handshake")
            return
        self._heard += heard
        if len(self._heard) == self._handshake.wants:
            self._take()

    def _take(self) -> None:
        heard, self._heard = self._heard, b""
        try:
            answer = self._handshake.take(heard)
        except WireError as error:
            self.refuse(str(error))
            return
        self._say(answer)
        if not self._handshake.wants and not self._over:
            self._over = True
            self._loop.unwatch(self._sock)
            self._known(self._sock)

    def _say(self, words: bytes) -> None:
        """Send a part of the handshake. It is smaller than any send buffer: if it does not fit, refuse."""
        if not words:
            return
        try:
            whole = self._sock.send(words) == len(words)
        except OSError:
            whole = False
        if not whole:
            self.refuse("the other side does not listen to the handshake")


def dial(
    loop: EventLoop,
    address: tuple[str, int],
    secret: bytes,
    receiver: Receiver,
    *,
    limit_s: float = 10.0,
    answer_s: float | None = None,
) -> Connection:
    """Connect. The connection may be used at once; `opened` or `lost` says what became of it.

    `answer_s`: for how long the other side may compute before it answers, once the system has connected.
    """
    connection = Connection(loop, receiver)
    sock = socket.socket(_family(address[0]), socket.SOCK_STREAM)
    _prepare(sock)
    stranger = Stranger(
        loop, sock, Dialer(secret), connection.open, connection.fail, limit_s, answer_s
    )
    connection.opening(stranger.drop)
    try:
        problem = sock.connect_ex(address)
    except (OSError, OverflowError) as error:  # a host without an address, a port out of range
        reason = str(error)
    else:
        reason = "" if problem in (0, errno.EINPROGRESS) else os.strerror(problem)
    if reason:
        loop.after(0, lambda: stranger.refuse(f"cannot connect to {address}: {reason}"))
    return connection


class Listener:
    """Accepts connections, and gives the receiver those whose other side knows the secret."""

    def __init__(
        self,
        loop: EventLoop,
        secret: bytes,
        receiver: Receiver,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        strangers_max: int = 64,
        limit_s: float = 5.0,
    ) -> None:
        self._loop = loop
        self._secret = secret
        self._receiver = receiver
        self._strangers: dict[int, Stranger] = {}  #: by number, the oldest first
        self._strangers_max = strangers_max
        self._limit_s = limit_s
        self._accepted = 0
        self.closed = False
        self.refused: dict[str, int] = {}  #: how many strangers were dropped, by reason
        try:
            self._sock = socket.create_server((host, port), family=_family(host), backlog=128)
        except OSError as error:
            raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}") from error
        self._sock.setblocking(False)
        name = self._sock.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])  #: where it really listens
        if ip_address(name[0]).is_unspecified:
            self._sock.close()
            raise UsageError(
                f"cannot listen on {host or 'an empty name'}: that is no address to tell others; "
                "name the one at which executors reach this machine"
            )
        loop.watch(self._sock, READ, self._ready)

    def close(self) -> None:
        """Accept nobody any more, and drop the strangers. Connections stay."""
        if self.closed:
            return
        self.closed = True
        self._loop.unwatch(self._sock)
        self._sock.close()
        for stranger in self._strangers.values():
            stranger.drop()
        self._strangers.clear()

    def _ready(self, _events: int) -> None:
        for _ in range(_ACCEPT_MAX):
            if self.closed:
                return
            try:
                sock, _address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._rest()
                return
            self._meet(sock)

    def _meet(self, sock: socket.socket) -> None:
        _prepare(sock)
        if len(self._strangers) >= self._strangers_max:
            oldest = next(iter(self._strangers.values()))
            oldest.refuse("too many strangers at once")
        self._accepted += 1
        number = self._accepted
        self._strangers[number] = Stranger(
            self._loop,
            sock,
            Acceptor(self._secret),
            lambda known: self._know(number, known),
            lambda reason: self._refuse(number, reason),
            self._limit_s,
        )

    def _know(self, number: int, sock: socket.socket) -> None:
        del self._strangers[number]
        Connection(self._loop, self._receiver).open(sock)

    def _refuse(self, number: int, reason: str) -> None:
        del self._strangers[number]
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def _rest(self) -> None:
        """Stop accepting for a moment: without free file descriptors, those who wait keep waking us."""
        self._loop.unwatch(self._sock)

        def look_again() -> None:
            if not self.closed:
                self._loop.watch(self._sock, READ, self._ready)

        self._loop.after(_EXHAUSTED_S, look_again)


def is_here(host: str) -> bool:
    """Whether an address is one of this machine."""
    try:
        with socket.socket(_family(host), socket.SOCK_STREAM) as sock:
            sock.bind((host, 0))
    except OSError:
        return False
    return True


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
