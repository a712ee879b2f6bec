"""Callbacks of a user, told how a run goes: every second, when slots are lost or leave, and at the end.

A listener is any object that has some of the five methods of `RunListener`. They are called by the thread
that drives the run, so they should return soon. One that raises ends the run in good order, as a watcher
does: `sl.run` raises what it raised, `Query.exception()` returns it, and the run can be resumed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from snapline.journal.entry import Happened
from snapline.journal.happenings import JobRecovered, SlotLeaving, SlotLost
from snapline.metrics.second import SECOND_US, Second
from snapline.runtime.driver.driver import Driver
from snapline.runtime.driver.timeline import Unwatched, Watcher


@dataclass(frozen=True, slots=True)
class RunProgress:
    """One second of a run."""

    run: str  # its name
    at_s: int  # the second, counted from when input began to be due
    slots: int  # that run at its end
    read: int  # records that sources read
    written: int  # records that sinks wrote
    backlog: int | None  # records due and not read, at its end; None: some slot did not say
    lines: int  # committed so far
    checkpoints: int  # stored so far
    p50_ms: float | None  # the latency of what was written; None without output
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class SlotLoss:
    """A slot was lost, and is replaced."""

    run: str
    at_s: float
    slot: int


@dataclass(frozen=True, slots=True)
class SlotDeparture:
    """A slot is to leave, because its executor is decommissioned; it is replaced with nothing lost."""

    run: str
    at_s: float
    slot: int


@dataclass(frozen=True, slots=True)
class RunRecovered:
    """The run has caught up with its input after a loss."""

    run: str
    at_s: float
    recovery_s: float  # from the loss on


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The run has ended, or was stopped."""

    run: str
    problem: str | None  # why it did not come to its end; None: it did
    kept: str | None  # the verdict: yes, no or unknown; None if it can go on, so that there is none


class RunListener(Protocol):
    """What a listener may have; whatever it lacks is not called."""

    def on_progress(self, progress: RunProgress) -> None:
        """A second is over."""
        ...

    def on_loss(self, loss: SlotLoss) -> None:
        """A slot was lost."""
        ...

    def on_leaving(self, departure: SlotDeparture) -> None:
        """A slot is to leave. If it does not come to that in time, it is lost, and `on_loss` says so."""
        ...

    def on_recovered(self, recovered: RunRecovered) -> None:
        """The run has recovered from a loss."""
        ...

    def on_end(self, end: RunEnd) -> None:
        """The run has ended, or was stopped."""
        ...


METHODS = ("on_progress", "on_loss", "on_leaving", "on_recovered", "on_end")

_Told: TypeAlias = RunProgress | SlotLoss | SlotDeparture | RunRecovered | RunEnd


def progress_of(run: str, second: Second) -> RunProgress:
    """A second as listeners and queries show it."""
    return RunProgress(
        run,
        second.at_s,
        second.running,
        second.read,
        second.written,
        second.backlog,
        second.lines,
        second.checkpoints,
        second.p50_ms,
        second.p99_ms,
    )


class Listening:
    """A watcher that calls a listener, beside another watcher."""

    def __init__(self, listener: Any, watcher: Watcher | None = None) -> None:
        self.run = ""  #: the name of the run, once it has one
        self._over = False  #: whether the end was told
        self._listener = listener
        self._watcher = watcher or Unwatched()

    def event(self, happened: Happened) -> None:
        """Tell of losses, departures and recoveries."""
        self._watcher.event(happened)
        what, at_s = happened.what, happened.at_us / SECOND_US
        if isinstance(what, SlotLost):
            self._call("on_loss", SlotLoss(self.run, at_s, what.slot))
        elif isinstance(what, SlotLeaving):
            self._call("on_leaving", SlotDeparture(self.run, at_s, what.slot))
        elif isinstance(what, JobRecovered):
            self._call("on_recovered", RunRecovered(self.run, at_s, what.recovery_s))

    def second(self, second: Second) -> None:
        """Tell the figures of a second."""
        self._watcher.second(second)
        self._call("on_progress", progress_of(self.run, second))

    def begins(self, driver: Driver) -> None:
        """Learn the name of the run."""
        self.run = driver.directory.name
        if isinstance(self._watcher, Listening):
            self._watcher.begins(driver)

    def ended(self, problem: str | None, kept: str | None) -> None:
        """Tell that the run has ended, if it ever began; once, even if the listener raises."""
        if self.run and not self._over:
            self._over = True
            if isinstance(self._watcher, Listening):
                self._watcher.ended(problem, kept)
            self._call("on_end", RunEnd(self.run, problem, kept))

    def _call(self, method: str, told: _Told) -> None:
        call = getattr(self._listener, method, None)
        if call is not None:
            call(told)


class Beginning(Listening):
    """A watcher that tells when the run has a driver and a directory, beside another watcher."""

    def __init__(self, tell: Callable[[Driver], None], watcher: Watcher) -> None:
        super().__init__(None, watcher)
        self._tell = tell

    def begins(self, driver: Driver) -> None:
        """Tell who drives the run, whose directory is there now."""
        self._tell(driver)
        super().begins(driver)
