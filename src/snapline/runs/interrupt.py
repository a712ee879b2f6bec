"""Ctrl-C and `kill`: a run that is told to end does so in good order, and can be resumed.

A signal may come between any two steps of Python. An exception raised there could leave half a line in
a journal or half a frame on a socket. So while the driver's loop runs, a signal is only passed on to
it: the loop ends, slots are sent away, what is being decided is written, Spark is stopped. Before there
is a loop, a signal is raised at once. All of this takes a second or two and has limits, so further
signals change nothing. Only a run without an end first waits for a last line: a second signal ends that.

Interruptions nest: the command line has one around every command, which only raises, and a run has its own.
Before and after them, while modules are imported or the process exits, `leave_at_once` ends the process.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A signal has ended a run. `run` is what can be resumed; None if nothing had begun.

    `whole`: it stopped with a last line, which holds all that was taken in.
    """

    def __init__(self, number: int, run: str | None, *, whole: bool = False) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number
        self.run = run
        self.whole = whole


class Interruption:
    """Takes the signals that ask for an end while a run goes on.

    Only the main thread can take them; in any other thread nothing changes. A SIGINT that the program
    ignores, and a SIGTERM that it ignores or handles itself, are left to it. After the first signal,
    further ones change nothing if this is `patient`; otherwise each of them is raised.
    """

    def __init__(self, *, patient: bool = True) -> None:
        self._patient = patient
        self._process = os.getpid()
        self.number: int | None = None  #: the number of the signal that came first
        self.run: str | None = None  #: the name of the run, as soon as it can be resumed
        self.whole = False  #: whether it stopped with a last line
        self._pass_on: Callable[[], None] | None = None
        self._again: Callable[[], None] = lambda: None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
                self._take_over(signal.SIGINT)
            if _is_ours(signal.getsignal(signal.SIGTERM)):
                self._take_over(signal.SIGTERM)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if isinstance(error, KeyboardInterrupt) and self.number is None:
            self.number = signal.SIGINT  # Spark's own handler took the signal before ours
        if self.number is not None:
            # Other exceptions are consequences: Spark gets the signal as well, and fails in many ways.
            raise Interrupted(self.number, self.run, whole=self.whole) from None

    def pass_on(self, end: Callable[[], None], again: Callable[[], None] = lambda: None) -> None:
        """Let a signal call `end` from now on, and further ones `again`.

        A signal comes at any moment, so both may only post a message.
        """
        self._pass_on, self._again = end, again

    def hold(self) -> None:
        """Let a signal be only noted from now on; `Interrupted` is raised when the `with` block ends."""
        self._pass_on = self._again = lambda: None

    def _take_over(self, number: int) -> None:
        self._before[number] = signal.signal(number, self._came)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked child: here signals act by default
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if self.number is not None and self._patient:
            self._again()
            return
        self.number = self.number or number
        if self._pass_on is None:
            raise Interrupted(self.number, self.run)
        self._pass_on()


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C be the way in which the block ends: no `Interruption` around it hears of it.

    A SIGINT that the program ignores is left to it, as there, and SIGTERM interrupts as everywhere.
    """
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGINT, before)


def leave_at_once(number: int, frame: FrameType | None) -> None:
    """Handle a signal by ending the process at once: no run has begun, or it has been put in order."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def leave_on_signals() -> None:
    """Let signals end this process at once while no `Interruption` takes them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, leave_at_once)


def _is_ours(handler: Any) -> bool:
    """Whether a handler is the default or one of ours, so that it may be replaced."""
    return handler in (signal.SIG_DFL, leave_at_once) or isinstance(
        getattr(handler, "__self__", None), Interruption
    )
