"""A connection to one other process: it carries frames both ways, and reports once when it is lost.

What is sent waits in a queue until the loop polls, or until there is much of it; then as many frames as
possible leave with one call of the kernel. A frame of which not a byte has left can still be overtaken.
After a loss, and after a `close`, sending does nothing: frames arrive in order, or not at all.

`lost` is called once, from inside the loop's poll and never from inside `send`, and only for what the
other side or the network did. Frames that came before the loss are delivered before it.

A connection can be made worse on purpose: `slow` lets all that passes take longer, both ways, and `stall`
lets nothing pass. Neither loses anything, and the other side is not told.
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Protocol

from snapline.batch import Buffer, bytes_of
from snapline.net.delay_queue import DelayQueue
from snapline.net.frame_buffer import BUFFER_BYTES, FrameBuffer
from snapline.net.framing import BODY_BYTES_MAX, Body, Packet, WireError
from snapline.net.loop import READ, WRITE, Action, EventLoop

_BUFFERS_MAX: Final = min(os.sysconf("SC_IOV_MAX"), 1024)
_SEND_BYTES: Final = 1 << 20  # how much is offered to the kernel in one call
_LAST_WORDS_S: Final = 1.0  # how long to read what the other side sent before the connection broke
_FLUSH_BYTES: Final = 1 << 18  # when so much is queued it is sent at once, not at the next poll


class Receiver(Protocol):
    """The owner of a connection: it is told when the connection opens, brings a frame, or is lost."""

    def opened(self, connection: "Connection") -> None:
        """The connection is open: each side has proved to the other that it knows the secret."""
        ...

    def received(self, connection: "Connection", kind: int, body: Body) -> None:
        """A frame came. A WireError raised here ends the connection."""
        ...

    def lost(self, connection: "Connection", reason: str) -> None:
        """The connection is gone, or it never came about. Called once."""
        ...


class Connection:
    """One end. It may be used from the beginning; what is queued leaves once it is open."""

    def __init__(
        self,
        loop: EventLoop,
        receiver: Receiver,
        *,
        buffer_bytes: int = BUFFER_BYTES,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self.receiver = receiver  #: may be replaced once it is known who is at the other end
        self.closed = False
        self._loop = loop
        self._sock: socket.socket | None = None  #: None: not yet open, or closed
        self._give_up: Action | None = None  #: stops the opening, while that is under way
        self._frames = FrameBuffer(buffer_bytes, body_bytes_max)
        self._queue: deque[tuple[Packet, Any]] = deque()  #: frames of which not a byte has left
        self._leaving: list[Buffer] = []  #: the rest of a frame that has begun to leave
        self._leaving_bytes = 0
        self._waiting_bytes = 0
        self._unflushed = False  #: the loop was asked to flush
        self._blocked = False  #: the kernel's buffer is full, so wait until it can be written to
        self._deaf = False  #: the other side has stopped reading for good
        self._finishing = False
        self._watched = 0  #: the events for which the loop watches
        self._stalled = False  #: nothing passes, because a fault asked for it
        self._ended = False  #: nothing more comes, and what came has not all been delivered
        self._sending = threading.RLock()  #: held by whoever writes to the socket, or closes it
        self._interjected = b""  #: the rest of a frame that another thread began to send
        self._late_out: DelayQueue | None = None  #: delays outgoing frames, once it is needed
        self._late_in: DelayQueue | None = None  #: delays incoming frames, once it is needed

    # Opening and closing.

    def opening(self, give_up: Action) -> None:
        """The connection is being opened; `give_up` stops that if it is closed before."""
        self._give_up = give_up

    def open(self, sock: socket.socket) -> None:
        """Use this socket, whose other side has passed the handshake."""
        self._give_up = None
        self._sock = sock
        self._watch()
        self.receiver.opened(self)
        self.flush()

    @property
    def local_host(self) -> str:
        """The address of this end of an open connection, at which the other side's machine reaches us."""
        assert self._sock is not None, "it is not open"
        host: str = self._sock.getsockname()[0]
        return host

    def close(self) -> None:
        """Close at once: what is queued is dropped, and `lost` is not called."""
        if self.closed:
            return
        self.closed = True
        give_up, self._give_up = self._give_up, None
        if give_up is not None:
            give_up()
        with self._sending:
            if self._sock is not None:
                self._watch()
                self._sock.close()
                self._sock = None
            self._drop_queue()
        for late in (self._late_out, self._late_in):
            if late is not None:
                late.drop()

    def _watch(self) -> None:
        """Tell the loop which events of the socket are of interest in the present state."""
        assert self._sock is not None
        events = READ | WRITE if self._blocked else READ
        if self.closed or self._stalled or self._ended:
            events = 0
        if events and self._watched:
            self._loop.rewatch(self._sock, events, self._ready)
        elif events:
            self._loop.watch(self._sock, events, self._ready)
        elif self._watched:
            self._loop.unwatch(self._sock)
        self._watched = events

    def finish(self, limit_s: float) -> None:
        """Send what is queued, take nothing more, and close when the other side has, or at the limit.

        Closing at once could destroy what was sent last: the kernel resets a connection that is closed
        with unread input.
        """
        if self._sock is None:
            self.close()
        elif not self._finishing:
            self._finishing = True
            if self._late_out is not None:
                self._late_out.release()
            self._loop.after(limit_s, self.close)
            self.flush()

    def fail(self, reason: str) -> None:
        """Close a connection that is lost, and tell the receiver why, unless it was finishing anyway."""
        if self.closed:
            return
        silent = self._finishing
        self.close()
        if not silent:
            self.receiver.lost(self, reason)

    # Faults.

    def slow(self, delay_s: float) -> None:
        """Delay every frame from now on by so much, both ways and in order; 0 ends the delay."""
        if self._late_out is None or self._late_in is None:
            self._late_out, self._late_in = DelayQueue(self._loop), DelayQueue(self._loop)
        self._late_out.delay_s = self._late_in.delay_s = delay_s

    def stall(self, stalled: bool) -> None:
        """Let nothing pass (True), or everything again (False); what either side sends meanwhile waits."""
        self._stalled = stalled
        if self._sock is not None:
            self._watch()
            self.flush()

    # Sending.

    def send(self, packet: Packet, item: Any = None) -> None:
        """Queue a frame. `item` is what `queued` and `overtake` call it."""
        if self.closed or self._deaf or self._finishing:
            return
        if self._late_out is not None and self._late_out.slow:
            # It has left as far as the sender is concerned: it is not queued, and cannot be overtaken.
            self._late_out.hold(partial(self._enqueue, packet, item))
        else:
            self._enqueue(packet, item)

    def _enqueue(self, packet: Packet, item: Any) -> None:
        self._queue.append((packet, item))
        self._enqueued(packet.size)

    def _enqueued(self, size: int) -> None:
        self._waiting_bytes += size
        if self._blocked or self._stalled or self._sock is None:
            return
        if self._waiting_bytes >= _FLUSH_BYTES:
            self.flush()
        elif not self._unflushed:
            self._unflushed = True
            self._loop.flush_soon(self)

    def queued(self) -> Iterator[Any]:
        """The items of the frames of which not a byte has left, in order."""
        return (item for _, item in self._queue)

    def overtake(
        self, passes: Callable[[Any], bool], packet: Packet, item: Any = None
    ) -> list[Any]:
        """Queue a frame ahead of the queued ones that it passes; return their items, in order.

        It takes the place of the first of them, and stays behind all that stood before that one.
        """
        if self.closed or self._deaf or self._finishing:
            return []
        if self._late_out is not None and self._late_out.slow:
            self.send(packet, item)
            return []
        places = [k for k, (_, other) in enumerate(self._queue) if passes(other)]
        overtaken = [self._queue[k][1] for k in places]
        self._queue.insert(places[0] if places else len(self._queue), (packet, item))
        self._enqueued(packet.size)
        return overtaken

    @property
    def waiting_bytes(self) -> int:
        """How many bytes were queued and have not been taken by the kernel yet."""
        return self._waiting_bytes

    def interject(self, packet: Packet) -> None:
        """Send a small frame at once, ahead of what is queued. Any thread may do so at any time.

        It is for whoever has to be heard while the thread of the loop computes. Where it would have to
        wait, because the kernel takes no more or a fault holds frames up, it is not sent at all.
        """
        with self._sending:
            if self._held_up or self._leaving or self._interjected:
                return
            data = b"".join(map(bytes_of, packet.buffers))
            try:
                self._interjected = data[self._sock.send(data) :]  # type: ignore[union-attr]
            except OSError:
                return  # the loop notices by itself

    @property
    def _held_up(self) -> bool:
        """Whether a frame that is sent now would not leave now."""
        slow = self._late_out is not None and self._late_out.slow
        unable = self._sock is None or self._deaf or self._finishing
        return unable or self._blocked or self._stalled or slow

    def flush(self) -> None:
        """Hand queued frames to the kernel, as many as it takes."""
        self._unflushed = False
        with self._sending:
            self._flush()

    def _flush(self) -> None:
        if self._sock is None or self._blocked or self._stalled:
            return
        if self._interjected:  # it is ahead of all that has not begun to leave
            self._leaving, self._leaving_bytes = [self._interjected], len(self._interjected)
            self._waiting_bytes += self._leaving_bytes
            self._interjected = b""
        while self._waiting_bytes:
            try:
                count = self._sock.sendmsg(self._offer())  # type: ignore[arg-type]  # arrays too
            except (BlockingIOError, InterruptedError):
                self._block(True)
                return
            except OSError as error:
                self._go_deaf(f"the connection broke: {error.strerror}")
                return
            self._left(count)
        if self._finishing:
            self._say_end()

    def _offer(self) -> list[Buffer]:
        buffers = self._leaving.copy()
        size = 0
        for packet, _ in self._queue:
            if size >= _SEND_BYTES or len(buffers) + len(packet.buffers) > _BUFFERS_MAX:
                break
            buffers += packet.buffers
            size += packet.size
        if not buffers:
            buffers = self._queue[0][0].buffers
        return buffers[:_BUFFERS_MAX]

    def _left(self, count: int) -> None:
        """Take note that the kernel took so many bytes: drop whole frames, keep the rest of a cut one."""
        self._waiting_bytes -= count
        if self._leaving:
            if count < self._leaving_bytes:
                self._keep_rest(self._leaving, self._leaving_bytes, count)
                return
            count -= self._leaving_bytes
            self._leaving = []
        while count:
            packet, _ = self._queue.popleft()
            if count < packet.size:
                self._keep_rest(packet.buffers, packet.size, count)
                return
            count -= packet.size

    def _keep_rest(self, buffers: list[Buffer], size: int, count: int) -> None:
        self._leaving_bytes = size - count
        for place, buffer in enumerate(buffers):
            view = bytes_of(buffer)
            if count < len(view):
                self._leaving = [view[count:], *buffers[place + 1 :]]
                return
            count -= len(view)

    def _block(self, blocked: bool) -> None:
        self._blocked = blocked
        self._watch()

    def _drop_queue(self) -> None:
        self._queue.clear()
        self._leaving = []
        self._interjected = b""
        self._waiting_bytes = 0

    def _go_deaf(self, reason: str) -> None:
        """Stop sending, because the other side is gone; first read, for a moment, what it sent before."""
        self._deaf = True
        self._drop_queue()
        self._loop.after(_LAST_WORDS_S, lambda: self.fail(reason))

    def _say_end(self) -> None:
        assert self._sock is not None
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()  # the other side has closed it already

    # Receiving.

    def _ready(self, events: int) -> None:
        if not self._watched:
            return  # it was stalled or closed after the loop had seen the event
        if events & READ:
            self._read()
        if events & WRITE and self._blocked and not self.closed:
            self._block(False)
            self.flush()

    def _read(self) -> None:
        assert self._sock is not None
        try:
            count = self._sock.recv_into(self._frames.space())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(f"the connection broke: {error.strerror}")
            return
        if not count:
            midway = " in the middle of a frame" if self._frames.midway else ""
            self._end(f"the other side closed the connection{midway}")
        elif not self._finishing:
            self._frames.filled(count)
            self._deliver()

    def _end(self, reason: str) -> None:
        """Report the end of the connection; on a slow one only after the frames that came before it."""
        if self._late_in is not None and self._late_in.slow:
            self._ended = True
            self._watch()
            self._late_in.hold(partial(self.fail, reason))
        else:
            self.fail(reason)

    def _deliver(self) -> None:
        try:
            while frame := self._frames.next():
                if self._late_in is not None and self._late_in.slow:
                    self._late_in.hold(partial(self._receive, *frame))
                    continue
                self.receiver.received(self, *frame)
                if self.closed or self._finishing:
                    return
        except WireError as error:
            self.fail(str(error))

    def _receive(self, kind: int, body: Body) -> None:
        """Give a frame that was delayed to the receiver."""
        if self.closed or self._finishing:
            return
        try:
            self.receiver.received(self, kind, body)
        except WireError as error:
            self.fail(str(error))
