"""The event loop of a process: it waits for sockets, alarms and calls from other threads.

It has no thread of its own: whoever owns the process calls `poll` again and again. One call sends what was
queued, waits for something to happen, and calls whoever is concerned. All but `post` and `looked_s` must be
called from the thread that polls.
"""

import contextlib
import heapq
import itertools
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

Action: TypeAlias = Callable[[], None]

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE

_SELECTABLE: Final = 1024  # select() only works with file descriptors below this number
_FEW: Final = 64  # so many sockets are looked at one by one


class Flushable(Protocol):
    """Something that has queued output."""

    def flush(self) -> None:
        """Send what can be sent now."""
        ...


class EventLoop:
    """Watches sockets and the clock."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._called: dict[int, Callable[[int], None]] = {}  #: who is called for a watched socket
        self._reading: list[int] = []  #: the sockets that are watched for input, by number ...
        self._writing: list[int] = []  #: ... and those that are watched for room to write
        self._few = True  #: whether select() can look at all of them, and is the fastest way
        self._alarms: list[tuple[float, int, Action]] = []  #: a heap; equal times keep their order
        self._numbers = itertools.count()
        self.unflushed: list[Flushable] = []  #: what is flushed when the next poll begins
        self._posted: deque[Action] = deque()
        self._now_s = time.monotonic()  #: when it last looked
        self.rested_s = 0.0  #: how long it has waited for something to happen, in all
        self.rests = 0  #: how often it has
        self._woken = False  #: whether the loop was woken and has not looked yet
        self._waker, self._bed = socket.socketpair()
        self._waker.setblocking(False)
        self._bed.setblocking(False)
        self.watch(self._bed, READ, self._wake_up)

    # Sockets.

    def watch(self, sock: socket.socket, events: int, ready: Callable[[int], None]) -> None:
        """Call `ready` with the events whenever some of them are there."""
        self._selector.register(sock, events, ready)
        self._list()

    def rewatch(self, sock: socket.socket, events: int, ready: Callable[[int], None]) -> None:
        """Change the events of a watched socket, or who is called for them."""
        self._selector.modify(sock, events, ready)
        self._list()

    def unwatch(self, sock: socket.socket) -> None:
        """Stop watching a socket. If an event of it was just found, `ready` may be called once more."""
        self._selector.unregister(sock)
        self._list()

    def _list(self) -> None:
        keys = [*self._selector.get_map().values()]
        self._called = {key.fd: key.data for key in keys}
        self._reading = [key.fd for key in keys if key.events & READ]
        self._writing = [key.fd for key in keys if key.events & WRITE]
        self._few = len(keys) <= _FEW and max(self._called, default=0) < _SELECTABLE

    def flush_soon(self, output: Flushable) -> None:
        """Flush `output` when the next poll begins: all that is queued until then leaves together."""
        self.unflushed.append(output)

    # Time.

    @property
    def looked_s(self) -> float:
        """When it last looked what had happened, by the monotonic clock. Any thread may ask."""
        return self._now_s

    def after(self, delay_s: float, action: Action) -> None:
        """Call `action` after a delay. It cannot be cancelled: the action checks if it still applies."""
        heapq.heappush(self._alarms, (time.monotonic() + delay_s, next(self._numbers), action))

    # Other threads.

    def post(self, action: Action) -> None:
        """Call `action` soon, in the thread that polls. Any thread may ask for this at any time."""
        self._posted.append(action)  # BEFORE waking the loop, which must find it
        if not self._woken:
            self._woken = True
            # A full socket wakes the loop anyway; a closed one means that the loop is over.
            with contextlib.suppress(OSError):
                self._waker.send(b"\0")

    def _wake_up(self, _events: int) -> None:
        self._bed.recv(64)
        self._woken = False  # BEFORE the actions are taken: a later post wakes the loop again

    # Running.

    def poll(self, timeout_s: float | None = None) -> None:
        """Send what is queued, wait at most so long (None: for ever), and call whoever is concerned."""
        if self.unflushed:
            self._flush()
        if self._posted or timeout_s == 0:
            found = self._select(0)
            self._now_s = time.monotonic()
        else:
            began_s = time.monotonic()
            patience_s = timeout_s
            if self._alarms:
                patience_s = max(0.0, self._alarms[0][0] - began_s)
                if timeout_s is not None and timeout_s < patience_s:
                    patience_s = timeout_s
            found = self._select(patience_s)
            self._now_s = time.monotonic()
            self.rested_s += self._now_s - began_s
            self.rests += 1
        for ready, events in found:
            ready(events)
        if self._alarms and self._alarms[0][0] <= self._now_s:
            self._ring()
        if self._posted:
            for _ in range(len(self._posted)):
                self._posted.popleft()()

    def _select(self, patience_s: float | None) -> Sequence[tuple[Callable[[int], None], int]]:
        """Wait, and return who is to be called for which events.

        select() waits with microsecond precision, and takes one call of the kernel. The selector alone
        rounds waits up to whole milliseconds, but copes with any number of sockets.
        """
        if not self._few:
            if patience_s and self._selector.fileno() < _SELECTABLE:
                select.select((self._selector.fileno(),), (), (), patience_s)
                patience_s = 0
            return [(key.data, events) for key, events in self._selector.select(patience_s)]
        reading, writing, _ = select.select(self._reading, self._writing, (), patience_s)
        if not writing:
            return [(self._called[fd], READ) for fd in reading] if reading else ()
        found = [(self._called[fd], READ) for fd in reading if fd not in writing]
        both = [(self._called[fd], READ | WRITE if fd in reading else WRITE) for fd in writing]
        return found + both

    def _flush(self) -> None:
        unflushed, self.unflushed = self.unflushed, []
        for output in unflushed:
            output.flush()

    def _ring(self) -> None:
        """Call the actions of all alarms that are due; new alarms that these set wait for the next poll."""
        now, last = self._now_s, next(self._numbers)
        alarms = self._alarms
        while alarms and alarms[0][0] <= now and alarms[0][1] < last:
            heapq.heappop(alarms)[2]()

    def close(self) -> None:
        """Stop watching, and close the loop's own sockets; all others belong to somebody else."""
        self._selector.close()
        self._waker.close()
        self._bed.close()
