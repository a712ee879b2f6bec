"""Carries out a run whose faults kill its driver: a process outside of the driver resumes the run.

`kill driver` kills the process that runs the coordinator, for good. So the run is made in a child process,
and when that has died of such a fault, as its journal says, another child resumes the run, with the faults
that were still to come. A driver that dies of anything else is not replaced: that was not asked for.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from snapline.chaos.faults import Fault, KillCoordinator, KillDriver, describe, parse, start_ms
from snapline.ids import Millis
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import CoordinatorKilled
from snapline.judge.history import history_of, journal_entries
from snapline.rundir.directory import RunDirectory

ENDING = (signal.SIGINT, signal.SIGTERM)
LOOK_EVERY_S = 0.05
AGAIN_S = 0.2
"""How long to wait before a run is resumed, so that its slots notice that the driver is gone."""


@dataclass(frozen=True, slots=True)
class Death:
    """The death of a driver by a fault of the run: when it was, and the fault."""

    at_ms: Millis
    fault: str

    @property
    def away_s(self) -> float:
        """How long to wait before the run is resumed: as long as the fault says, or `AGAIN_S`."""
        (fault,) = parse(self.fault)
        return fault.for_ms / 1000 if isinstance(fault, KillCoordinator) else AGAIN_S


def kills_driver(faults: str) -> bool:
    """Whether these faults kill the driver, so that another process must resume the run."""
    return any(isinstance(fault, KillDriver | KillCoordinator) for fault in parse(faults))


def later_faults(
    planned: tuple[Fault, ...], directory: RunDirectory, after_ms: Millis | None
) -> tuple[Fault, ...]:
    """The faults of a run that are still to come when its driver has died at `after_ms`.

    A fault that waits for a recovery or a round, not for a time, is still to come unless a journal says
    that it has struck. `after_ms` -1 is for all faults, None for none.
    """
    if after_ms is None or after_ms < 0:
        return planned if after_ms is not None else ()
    strikes = history_of(directory, describe(planned)).strikes
    return tuple(
        fault
        for fault, strike in zip(planned, strikes, strict=True)
        if not strike.struck and ((at_ms := start_ms(fault)) is None or at_ms > after_ms)
    )


def deaths(directory: RunDirectory) -> list[Death]:
    """The deaths of a run's drivers that its faults asked for, in order."""
    found: list[Death] = []
    for path in (directory.path / "journal").glob("driver-*.jsonl"):
        entries = journal_entries(directory, path)
        happened = [entry for entry in entries if isinstance(entry, Happened)]
        found += [
            Death(entry.at_us // 1000, entry.what.fault)
            for entry in happened
            if isinstance(entry.what, CoordinatorKilled) and entry.what.fault is not None
        ]
    return sorted(found, key=lambda death: death.at_ms)


def in_children(
    directory: RunDirectory,
    attempt: Callable[[Millis], int],
    tell: Callable[[Death], None],
) -> int:
    """Make a run in child processes until one is not killed by a fault; return the exit code of that one.

    `attempt` makes the run, in a child, with the faults that come after a given time. In the child this
    function returns what `attempt` returns, so the child goes on as this process would have.
    """
    after_ms: Millis = -1
    while True:
        known = len(deaths(directory))
        sys.stdout.flush()
        sys.stderr.flush()
        # Signals wait until there is a child to pass them on to.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        child = os.fork()
        if not child:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            return attempt(after_ms)
        code = _wait(child)
        found = deaths(directory)
        if code != -signal.SIGKILL or len(found) == known:
            return code if code >= 0 else 128 - code
        after_ms = found[-1].at_ms
        tell(found[-1])
        time.sleep(found[-1].away_s)


def _wait(child: int) -> int:
    """Wait for a child, and pass signals on to it; its exit code, negative if a signal ended it.

    The child is looked at now and then. In a call that waits until the child ends, a signal that came just
    before the call would be passed on only afterwards, so never.
    """

    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    before = {number: signal.signal(number, pass_on) for number in ENDING}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    try:
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(LOOK_EVERY_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return os.waitstatus_to_exitcode(ended[1])
