"""Detection, restart, recovery: the three times of a failure.

*Detection* is the time from a fault that struck a slot (killed, paused, slowed, cut off) until it was given
up; a fault that costs no slot is never detected. *Restart* is the time from there until all tasks
were ready: state loaded, replay readable. *Recovery* is the time from detection to the first second from
which on backlog and median latency stay within bounds for five seconds; the bounds are twice the median of
the ten seconds before. A second without output, or with fewer slots than before, is not recovered. Twice
nothing would be nothing, so the bounds have a floor: records of a tenth of a second, and ten milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import TypeAlias

from snapline.ids import Micros
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import JobRunning, SlotLost, SlotRunning
from snapline.metrics.second import SECOND_US, Second

BEFORE_S = 10
HOLD_S = 5
FACTOR = 2.0
FLOOR_BACKLOG_S = 0.1
FLOOR_P50_MS = 10.0
Struck: TypeAlias = ProcessKilled | ProcessPaused | Slowed | ConnectionCut
"""The faults that may cost a slot."""
Again: TypeAlias = JobRunning | SlotRunning
"""The happenings with which all that was lost runs again."""
Over: TypeAlias = ProcessContinued | FaultEnded
LATEST_S = 5
"""A slot that is lost later than this after the end of a fault was lost for another reason."""
_NEVER: Micros = 1 << 62


@dataclass(slots=True)
class Failure:
    """One failure: from the loss of a slot until all slots run again."""

    lost_us: Micros  # when the first slot was lost
    running_us: Micros | None = None  # when all ran again; None: never


def detections(entries: Iterable[Happened]) -> list[float]:
    """Seconds from each fault to the loss of its slot; a fault that nobody noticed has none."""
    struck: dict[str, tuple[Micros, Struck]] = {}
    over: dict[str | None, Micros] = {}
    found = []
    for entry in entries:
        what = entry.what
        if isinstance(what, Struck):
            struck[entry.actor] = entry.at_us, what
        elif isinstance(what, Over):
            over[what.fault] = entry.at_us
        elif isinstance(what, SlotLost) and (cause := struck.pop(f"slot/{what.slot}", None)):
            struck_us, fault = cause
            over_us = over.get(fault.fault, entry.at_us)
            if entry.at_us - over_us <= LATEST_S * SECOND_US:
                found.append((entry.at_us - struck_us) / SECOND_US)
    return found


def failures(entries: Iterable[Happened]) -> list[Failure]:
    """The failures of a run. A slot that is lost before all run again belongs to the same failure."""
    found: list[Failure] = []
    for entry in entries:
        if isinstance(entry.what, SlotLost) and (not found or found[-1].running_us is not None):
            found.append(Failure(entry.at_us))
        elif isinstance(entry.what, Again) and found and found[-1].running_us is None:
            found[-1].running_us = entry.at_us
    return found


def restarts(found: Iterable[Failure]) -> list[float]:
    """Seconds from the detection of each failure until all tasks were ready."""
    return [
        (failure.running_us - failure.lost_us) / SECOND_US
        for failure in found
        if failure.running_us is not None
    ]


def recovery(seconds: Sequence[Second], failure: Failure, calm_us: Micros) -> float | None:
    """Seconds from detection to recovery; None if the job did not recover within the run.

    `calm_us` is the time before which nothing had failed: the loss itself, or an earlier one from which the
    job had not recovered.
    """
    before = [s for s in seconds if (s.at_s + 1) * SECOND_US <= calm_us][-BEFORE_S:]
    bounds = _Bounds(before) if any(s.p50_ms is not None for s in before) else None
    if bounds is None or failure.running_us is None:
        return None
    held = 0
    for second in seconds:
        if second.at_s * SECOND_US < failure.lost_us:
            continue
        held = held + 1 if bounds.hold(second) else 0
        if held == HOLD_S:
            recovered_us = (second.at_s - HOLD_S + 1) * SECOND_US
            return (recovered_us - failure.lost_us) / SECOND_US
    return None


class _Bounds:
    """The bounds of backlog, latency and running slots, taken from the seconds before a failure."""

    def __init__(self, before: Sequence[Second]) -> None:
        latencies = [second.p50_ms for second in before if second.p50_ms is not None]
        rate = median(second.read for second in before)
        self.p50_ms = max(FACTOR * median(latencies), FLOOR_P50_MS)
        backlogs = [second.backlog for second in before if second.backlog is not None]
        self.backlog = max(FACTOR * median(backlogs or [0]), FLOOR_BACKLOG_S * rate)
        self.running = max(second.running for second in before)

    def hold(self, second: Second) -> bool:
        p50_ms = second.p50_ms
        return (
            p50_ms is not None
            and p50_ms <= self.p50_ms
            and second.backlog is not None
            and second.backlog <= self.backlog
            and second.running >= self.running
        )


def recoveries(
    seconds: Sequence[Second],
    found: Iterable[Failure],
    known: Mapping[Micros, float] = MappingProxyType({}),
) -> list[float | None]:
    """The recovery time of each failure, in order; `known` has those of failures long ago, by `lost_us`."""
    times: list[float | None] = []
    calm_us: Micros | None = None  # of a failure from which the job has not recovered yet
    over_us: Micros = 0
    for failure in found:
        if calm_us is None or failure.lost_us >= over_us:
            calm_us = failure.lost_us
        time_s = known.get(failure.lost_us)
        if time_s is None:
            time_s = recovery(seconds, failure, calm_us)
        times.append(time_s)
        over_us = _NEVER if time_s is None else failure.lost_us + int(time_s * SECOND_US)
    return times
