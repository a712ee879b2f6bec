"""Ctrl-C and `kill`: a run that is told to end does so in good order, and can be resumed.

A signal strikes between any two steps of Python. Raised there, it could leave half a line in a journal and
half a frame on a socket, so while the driver's loop runs it is only passed on to it: the loop ends, slots
are sent away, what is being decided is written, Spark is stopped. Only before there is a loop it is raised
at once. All of this takes a second or two and has limits, so further signals change nothing.

Interruptions nest: the shell has one around every command, which only raises, and a run has one of its own.
Before and after them, while modules are imported or the process exits, `leave_at_once` says so and is gone.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A signal has ended a run. `run` is what can be resumed; None if nothing had begun."""

    def __init__(self, number: int, run: str | None) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number
        self.run = run


class Interruption:
    """Takes the signals that ask for an end while a run goes on.

    Only the main thread can; in any other they stay as they are. So does what the program ignores, and a
    SIGTERM that it handles itself. After the first signal, further ones change nothing if it is `patient`;
    otherwise each is raised.
    """

    def __init__(self, *, patient: bool = True) -> None:
        self._patient = patient
        self._process = os.getpid()
        self.number: int | None = None  #: of the signal that came first
        self.run: str | None = None  #: set as soon as there is something to resume
        self._pass_on: Callable[[], None] | None = None
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
            self.number = signal.SIGINT  # Spark's own handler was faster
        if self.number is not None:
            # What else was raised is a consequence: a Spark that got the signal, too, fails in many ways.
            raise Interrupted(self.number, self.run) from None

    def pass_on(self, end: Callable[[], None]) -> None:
        """From now on a signal calls `end`, in the middle of anything: it must only leave a word."""
        self._pass_on = end

    def hold(self) -> None:
        """From now on a signal is only noted, and told at the end."""
        self._pass_on = lambda: None

    def _take_over(self, number: int) -> None:
        self._before[number] = signal.signal(number, self._came)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # forked since: whoever ends it does not ask us
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if self.number is not None and self._patient:
            return
        self.number = self.number or number
        if self._pass_on is None:
            raise Interrupted(self.number, self.run)
        self._pass_on()


def leave_at_once(number: int, frame: FrameType | None) -> None:
    """End this process where it stands: nothing that has to be put in order has begun, or is left."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def leave_on_signals() -> None:
    """Let a signal end this process with a word, until an `Interruption` takes it, and afterwards."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, leave_at_once)


def _is_ours(handler: Any) -> bool:
    """Whether a handler is the default or one of ours, so that it may be replaced."""
    return handler in (signal.SIG_DFL, leave_at_once) or isinstance(
        getattr(handler, "__self__", None), Interruption
    )
