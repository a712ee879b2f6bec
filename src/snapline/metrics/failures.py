"""Detection and restart: what a failure is, the fault behind it, and how long until all tasks run again.

*Detection* is the time from a fault that struck a slot (killed, paused, slowed, cut off) until it was given
up; a fault that costs no slot is never detected. *Restart* is the time from there until all tasks
were ready: state loaded, replay readable. *Decision* is its first part, until the line was found and the
decision on it durable. How long until the job is as it was before is in `recovery`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from snapline.ids import Micros, SlotId
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import JobRunning, LineDecided, SlotLost, SlotRunning
from snapline.metrics.second import SECOND_US

Struck: TypeAlias = ProcessKilled | ProcessPaused | Slowed | ConnectionCut
"""The faults that may cost a slot."""
Again: TypeAlias = JobRunning | SlotRunning
"""The happenings with which all that was lost runs again."""
Over: TypeAlias = ProcessContinued | FaultEnded
LATEST_S = 5
"""A slot that is lost later than this after the end of a fault was lost for another reason."""


@dataclass(slots=True)
class Failure:
    """One failure: from the loss of a slot until all slots run again."""

    lost_us: Micros  # when the first slot was lost: it was detected then
    running_us: Micros | None = None  # when all ran again; None: never
    slots: tuple[SlotId, ...] = ()  # those that were lost
    struck_us: Micros | None = None  # when the first fault behind it struck; None: there was none
    #: when the decision was durable with which the job goes back to a line; None: nobody goes back to one
    decided_us: Micros | None = None


class _Causes:
    """Finds the fault that cost a slot."""

    def __init__(self) -> None:
        self._struck: dict[str, tuple[Micros, Struck]] = {}  #: the last fault of each actor
        self._over: dict[str | None, Micros] = {}  #: when each fault was over

    def see(self, entry: Happened) -> Micros | None:
        """When the fault struck that cost the slot which is lost here; None if none is, or none did."""
        what = entry.what
        if isinstance(what, Struck):
            self._struck[entry.actor] = entry.at_us, what
        elif isinstance(what, Over):
            self._over[what.fault] = entry.at_us
        elif isinstance(what, SlotLost) and (cause := self._struck.pop(f"slot/{what.slot}", None)):
            struck_us, fault = cause
            if entry.at_us - self._over.get(fault.fault, entry.at_us) <= LATEST_S * SECOND_US:
                return struck_us
        return None


def detections(entries: Iterable[Happened]) -> list[float]:
    """Seconds from each fault to the loss of its slot; a fault that nobody noticed has none."""
    causes = _Causes()
    seen = ((entry.at_us, causes.see(entry)) for entry in entries)
    return [(lost_us - us) / SECOND_US for lost_us, us in seen if us is not None]


def failures(entries: Iterable[Happened]) -> list[Failure]:
    """The failures of a run. A slot that is lost before all run again belongs to the same failure."""
    causes = _Causes()
    found: list[Failure] = []
    for entry in entries:
        struck_us = causes.see(entry)
        if isinstance(entry.what, SlotLost):
            if not found or found[-1].running_us is not None:
                found.append(Failure(entry.at_us))
            _join(found[-1], entry.what.slot, struck_us)
        elif found and found[-1].running_us is None:
            _go_on(found[-1], entry)
    return found


def _go_on(failure: Failure, entry: Happened) -> None:
    """Note what happens after a loss, before all run again."""
    what = entry.what
    if isinstance(what, Again):
        failure.running_us = entry.at_us
    elif failure.decided_us is None and isinstance(what, LineDecided) and what.epoch > entry.epoch:
        failure.decided_us = entry.at_us  # a slot that is lost meanwhile asks for another one


def _join(failure: Failure, slot: SlotId, struck_us: Micros | None) -> None:
    """Add a slot that was lost to a failure; what struck it after the first loss did not cause that."""
    failure.slots = tuple(dict.fromkeys((*failure.slots, slot)))
    if struck_us is not None and struck_us <= failure.lost_us:
        known_us = failure.struck_us
        failure.struck_us = struck_us if known_us is None else min(known_us, struck_us)


def decisions(found: Iterable[Failure]) -> list[float]:
    """Seconds from the detection of each failure until the decision on the line was durable."""
    return [
        (failure.decided_us - failure.lost_us) / SECOND_US
        for failure in found
        if failure.decided_us is not None
    ]


def restarts(found: Iterable[Failure]) -> list[float]:
    """Seconds from the detection of each failure until all tasks were ready."""
    return [
        (failure.running_us - failure.lost_us) / SECOND_US
        for failure in found
        if failure.running_us is not None
    ]
