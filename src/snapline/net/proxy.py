"""A small TCP proxy that makes the network slow or broken for a system that is not Snapline's own.

It listens on this machine and passes everything on to a target, in one thread. It can be slow, let nothing
pass for a while, or break all connections: by calls, or by faults of the grammar. `delay` makes it slow;
`cut` with a duration lets nothing pass until it is over, and without one breaks all connections. Which slot
a fault names does not matter: whoever places the proxy decides whose network it is.

Nothing is lost or reordered on a connection, unless it breaks. While nothing passes, new clients are not
accepted either: they wait. What is read and not yet passed on is bounded, as it is with any socket.
"""

import errno
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from snapline.chaos.faults import Cut, Delay, Fault, Partition
from snapline.errors import UsageError
from snapline.net.delay_queue import DelayQueue
from snapline.net.listener import LOOPBACK
from snapline.net.loop import READ, WRITE, EventLoop

_CHUNK_BYTES: Final = 1 << 16
_HELD_BYTES_MAX: Final = 1 << 22  # read and not passed on, per direction of a connection
_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 10.0
#: a setting by which a socket is closed with a reset: the other side sees a broken connection
_RESET: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Stands between clients and a target; clients connect to `address`."""

    def __init__(self, target: tuple[str, int], *, host: str = LOOPBACK, port: int = 0) -> None:
        self.target = target
        self._loop = EventLoop()
        try:
            self._listening = socket.create_server((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}") from error
        self._listening.setblocking(False)
        name = self._listening.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])  #: where it really listens
        self._pairs: list[_Pair] = []
        self._delay_s = 0.0
        self._stalled = False
        self._closed = False
        self._loop.watch(self._listening, READ, self._accept)
        self._thread = threading.Thread(target=self._run, name="snapline-proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # From any thread.

    @property
    def connections(self) -> int:
        """How many clients are connected through it."""
        return len(self._pairs)

    def slow(self, delay_s: float) -> None:
        """Delay everything from now on by so much, both ways; 0 ends the delay."""
        self._ask(partial(self._slow, delay_s))

    def stall(self, stalled: bool) -> None:
        """Let nothing pass and accept nobody (True), or go on (False)."""
        self._ask(partial(self._stall, stalled))

    def break_all(self) -> None:
        """Break all connections; new ones can be made at once."""
        self._ask(self._break)

    def plan(self, faults: Iterable[Fault]) -> None:
        """Do faults at their times, counted from now; UsageError for others than delays and cuts."""
        planned = tuple(faults)
        for fault in planned:
            if not isinstance(fault, Delay | Cut | Partition):
                raise UsageError(f"a proxy can only delay and cut, not this: '{fault}'")
        self._ask(partial(self._plan_all, planned))

    def close(self) -> None:
        """Break all connections and listen no more."""
        if not self._closed:
            self._ask(self._end)
            self._thread.join(_ANSWER_S)

    def _ask(self, action: Callable[[], object]) -> None:
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.post(act)
        if not done.wait(_ANSWER_S):
            raise UsageError("the proxy does not answer: it is closed")

    # In the loop.

    def _run(self) -> None:
        while not self._closed:
            self._loop.poll(None)
        self._loop.close()

    def _plan_all(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._plan(fault)

    def _plan(self, fault: Fault) -> None:
        match fault:
            case Delay():
                begin = partial(self._slow, fault.delay_ms / 1000)
                self._during(fault, begin, partial(self._slow, 0.0))
            case Cut() | Partition() if fault.for_ms:
                self._during(fault, partial(self._stall, True), partial(self._stall, False))
            case Cut() | Partition():
                self._loop.after(fault.at_ms / 1000, self._break)
            case _:
                raise AssertionError(f"{fault} was not refused")

    def _during(
        self, fault: Delay | Cut | Partition, begin: Callable[[], None], end: Callable[[], None]
    ) -> None:
        self._loop.after(fault.at_ms / 1000, begin)
        self._loop.after((fault.at_ms + fault.for_ms) / 1000, end)

    def _slow(self, delay_s: float) -> None:
        self._delay_s = delay_s
        for pair in self._pairs:
            pair.slow(delay_s)

    def _stall(self, stalled: bool) -> None:
        if stalled != self._stalled:
            self._stalled = stalled
            if stalled:
                self._loop.unwatch(self._listening)
            else:
                self._loop.watch(self._listening, READ, self._accept)
        for pair in tuple(self._pairs):
            pair.stall(stalled)

    def _break(self) -> None:
        for pair in tuple(self._pairs):
            pair.close()

    def _end(self) -> None:
        self._closed = True
        self._break()
        self._stall(True)
        self._listening.close()

    def _accept(self, _events: int) -> None:
        try:
            client, _address = self._listening.accept()
        except OSError:
            return
        try:
            server = socket.create_connection(self.target, timeout=_CONNECT_S)
        except OSError:
            _reset(client)  # as the target itself would have done
            return
        pair = _Pair(self._loop, client, server, self._pairs.remove)
        self._pairs.append(pair)
        pair.slow(self._delay_s)


class _Pair:
    """A client, the target, and what passes between them."""

    def __init__(
        self,
        loop: EventLoop,
        client: socket.socket,
        server: socket.socket,
        gone: Callable[["_Pair"], None],
    ) -> None:
        self.ends = (_End(loop, client, self), _End(loop, server, self))
        for end, other in (self.ends, self.ends[::-1]):
            end.other = other
        self.closed = False
        self.stalled = False
        self._gone = gone
        for end in self.ends:
            end.watch()

    def slow(self, delay_s: float) -> None:
        for end in self.ends:
            end.late.delay_s = delay_s

    def stall(self, stalled: bool) -> None:
        self.stalled = stalled
        for end in self.ends:
            end.write()

    def close(self, *, broken: bool = True) -> None:
        if not self.closed:
            self.closed = True
            self._gone(self)
            for end in self.ends:
                end.close(broken)

    def finished(self) -> None:
        """Close the pair if both directions have ended."""
        if all(end.said_end for end in self.ends):
            self.close(broken=False)


class _End:
    """One of the two sockets of a pair: what is read from it is written to the other."""

    def __init__(self, loop: EventLoop, sock: socket.socket, pair: _Pair) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.other: _End
        self.late = DelayQueue(loop)  #: delays what was read from this socket
        self.said_end = False  #: whether the end was passed on to this socket
        self._loop = loop
        self._sock = sock
        self._pair = pair
        self._leaving: deque[bytes | None] = deque()  #: to be written here; None: the end
        self._waiting = 0  #: bytes that are to be written to this socket
        self._ended = False  #: whether this socket has come to its end
        self._watched = 0

    def watch(self) -> None:
        """Let the loop watch for what can be used now."""
        pair = self._pair
        events = 0
        if not pair.closed and not pair.stalled:
            if not self._ended and self.other._waiting < _HELD_BYTES_MAX:
                events |= READ
            if self._leaving:
                events |= WRITE
        if events and self._watched:
            self._loop.rewatch(self._sock, events, self._ready)
        elif events:
            self._loop.watch(self._sock, events, self._ready)
        elif self._watched:
            self._loop.unwatch(self._sock)
        self._watched = events

    def _ready(self, events: int) -> None:
        if events & self._watched & WRITE:
            self.write()
        if events & self._watched & READ:
            self._read()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._pair.close()
            return
        self._ended = not data
        self.other._waiting += len(data)
        action = partial(self.other._put, data or None)
        if self.late.slow:
            self.late.hold(action)
        else:
            action()
        self.watch()

    def _put(self, data: bytes | None) -> None:
        if not self._pair.closed:
            self._leaving.append(data)
            self.write()

    def write(self) -> None:
        """Write what the kernel takes."""
        while self._leaving and not self._pair.stalled and not self._pair.closed:
            data = self._leaving[0]
            try:
                if data is None:
                    self._sock.shutdown(socket.SHUT_WR)
                    sent = 0
                else:
                    sent = self._sock.send(data)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EINTR):
                    self._pair.close()
                break
            self._waiting -= sent
            if data is None or sent == len(data):
                self._leaving.popleft()
            else:
                self._leaving[0] = data[sent:]
            if data is None:
                self.said_end = True
                self._pair.finished()
        self.watch()
        self.other.watch()

    def close(self, broken: bool) -> None:
        """Close the socket: by a reset if `broken`, otherwise after the kernel has sent the rest."""
        self.late.drop()
        self.watch()
        if broken:
            _reset(self._sock)
        else:
            self._sock.close()


def _reset(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()
