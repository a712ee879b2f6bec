"""Recovery: how long after a failure backlog, p50 and p99 are as they were before it, each for itself.

*Bounds* are twice the median of the ten seconds before the failure; twice nothing would be nothing, so they
have a floor: records of a tenth of a second, and ten milliseconds. A second is *within* the bound of one of
the three if the value is known and not above it, and as many slots run as did before; without output there
is no latency, so such a second is not within that of p50 or p99.

*The moment* at which one of them is back is the first of five whole seconds in a row that are within its
bound. It is moved to the end of the last part of that second that is not; or, if there is none, back over
the parts before these seconds that are within it, too. It is neither before the loss nor before all tasks
ran again. So it is known to a quarter of a second.

Times count from *detection*, and, where a fault struck on purpose, from *the fault* as well. What was not
back when the run ended, or after eight minutes, is *censored*: it took longer than the time that is given,
which is a lower bound. *Recovery* is the later of backlog and p50, from detection. Where nothing was put
out before the failure there are no bounds, and none of these times. Had the job not recovered from an
earlier failure, the bounds are those of the earlier one: what was out of bounds is not what is usual.

*Hit* are the slots that were lost in a failure. Of these and of the others: the median of the p50 of their
seconds, and the greatest p99 of a second, from the second of the detection until p99 is back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType

from snapline.ids import Micros, SlotId
from snapline.metrics.failures import Failure
from snapline.metrics.second import PART_US, PARTS, SECOND_US, Part, Second

BEFORE_S = 10
HOLD_S = 5
FACTOR = 2.0
FLOOR_BACKLOG_S = 0.1
FLOOR_MS = 10.0
PATIENCE_S = 480
"""For so long a job is watched until it is as it was before a failure."""


@dataclass(frozen=True, slots=True)
class Until:
    """How long it took until something was reached; censored: it took longer than this."""

    s: float  # in seconds
    censored: bool  # whether it was not reached: it took longer than that


@dataclass(frozen=True, slots=True)
class Back:
    """How long it took until each of the three was as before a failure."""

    backlog: Until  # until the backlog was as before
    p50: Until  # until the median latency of a second was as before
    p99: Until  # until the 99th percentile of a second was as before

    @property
    def recovery_s(self) -> float | None:
        """The later of backlog and p50; None if it was not reached."""
        reached = not self.backlog.censored and not self.p50.censored
        return max(self.backlog.s, self.p50.s) if reached else None

    @property
    def is_whole(self) -> bool:
        """Whether all three were reached."""
        return not (self.backlog.censored or self.p50.censored or self.p99.censored)

    def counted_from(self, earlier_s: float) -> "Back":
        """The same times, counted from a moment that is so much earlier."""
        each = (self.backlog, self.p50, self.p99)
        return Back(*(Until(round(u.s + earlier_s, 3), u.censored) for u in each))


@dataclass(frozen=True, slots=True)
class SlotsLatency:
    """The latency of some slots in the seconds after a failure; None where they put out nothing."""

    slots: int  # how many they are
    written: int  # records that they wrote in that time
    p50_ms: float | None  # the median of the p50 of their seconds
    p99_ms: float | None  # the greatest p99 of a second
    silent_s: int  # whole seconds from the loss until all ran again in which they wrote nothing


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What came after a failure; times are from its detection."""

    back: Back | None  # None: nothing is known of the time before
    hit: SlotsLatency  # the slots that were lost
    others: SlotsLatency

    @property
    def recovery_s(self) -> float | None:
        """How long recovery took; None if the job did not recover, or nobody can say."""
        return None if self.back is None else self.back.recovery_s

    @property
    def is_settled(self) -> bool:
        """Whether it is what it will always be."""
        return self.back is not None and self.back.is_whole


@dataclass(frozen=True, slots=True)
class FailureFigures:
    """All times of one failure, in seconds."""

    lost_at_s: float  # when it was detected, in the time of the run
    slots: tuple[SlotId, ...]  # those that were lost
    detection_s: float | None  # from the first fault behind it; None: nobody made it fail
    restart: Until  # from detection until all tasks were ready
    from_detection: Back | None  # when all was as before; None: nothing is known of the time before
    from_fault: Back | None  # the same, counted from the fault; also None where detection is
    hit: SlotsLatency  # the slots that were lost
    others: SlotsLatency  # the slots that were not


def failure_figures(
    seconds: Sequence[Second], found: Sequence[Failure], after: Sequence[Aftermath]
) -> tuple[FailureFigures, ...]:
    """The figures of all failures of a run, of which `after` says how they went on."""
    end_us = _end_us(seconds)
    return tuple(
        _figures(failure, each, end_us) for failure, each in zip(found, after, strict=True)
    )


def _figures(failure: Failure, after: Aftermath, end_us: Micros) -> FailureFigures:
    lost_us, struck_us, back = failure.lost_us, failure.struck_us, after.back
    detection_s = None if struck_us is None else _s(lost_us - struck_us)
    from_fault = None
    if back is not None and detection_s is not None:
        from_fault = back.counted_from(detection_s)
    return FailureFigures(
        lost_at_s=_s(lost_us),
        slots=failure.slots,
        detection_s=detection_s,
        restart=_until(failure.running_us, lost_us, end_us),
        from_detection=back,
        from_fault=from_fault,
        hit=after.hit,
        others=after.others,
    )


def aftermaths(
    seconds: Sequence[Second],
    found: Iterable[Failure],
    settled: Mapping[Micros, Aftermath] = MappingProxyType({}),
) -> list[Aftermath]:
    """What came after each failure, in order; `settled` has what is known already, by `lost_us`."""
    known: list[Aftermath] = []
    calm_us: Micros = 0  # what was measured before it is what is usual
    over_us: Micros = 0  # when the job had recovered from the failure before
    for failure in found:
        if failure.lost_us >= over_us:
            calm_us = failure.lost_us
        after = settled.get(failure.lost_us) or aftermath(seconds, failure, calm_us)
        known.append(after)
        took_s = PATIENCE_S if after.recovery_s is None else after.recovery_s
        over_us = failure.lost_us + round(took_s * SECOND_US)
    return known


def aftermath(seconds: Sequence[Second], failure: Failure, calm_us: Micros) -> Aftermath:
    """What came after a failure, held against the seconds before `calm_us`."""
    lost_us = failure.lost_us
    end_us = min(_end_us(seconds), lost_us + PATIENCE_S * SECOND_US)
    before = [s for s in seconds if (s.at_s + 1) * SECOND_US <= calm_us][-BEFORE_S:]
    since = [s for s in seconds if lost_us < (s.at_s + 1) * SECOND_US < end_us + SECOND_US]
    back, p99_us = None, end_us
    if any(second.p50_ms is not None for second in before):
        bounds = _Bounds(before)
        moments = [bounds.back_us(name, since, failure) for name in _Bounds.NAMES]
        back = Back(*(_until(us, lost_us, end_us) for us in moments))
        p99_us = end_us if moments[-1] is None else moments[-1]
    disturbed = [second for second in since if second.at_s * SECOND_US < p99_us]
    running_us = end_us if failure.running_us is None else failure.running_us
    away = [s for s in since if lost_us <= s.at_s * SECOND_US <= running_us - SECOND_US]
    return Aftermath(
        back,
        _latency(disturbed, away, failure.slots, hit=True),
        _latency(disturbed, away, failure.slots, hit=False),
    )


class _Bounds:
    """The bounds of backlog and latency and the number of slots, from the seconds before a failure."""

    NAMES = ("backlog", "p50_ms", "p99_ms")

    def __init__(self, before: Sequence[Second]) -> None:
        floors = (FLOOR_BACKLOG_S * median(second.read for second in before), FLOOR_MS, FLOOR_MS)
        self._most: dict[str, float] = {}
        for name, floor in zip(self.NAMES, floors, strict=True):
            values = [v for second in before if (v := getattr(second, name)) is not None]
            self._most[name] = max(FACTOR * median(values or [0]), floor)
        self._running = max(second.running for second in before)

    def hold(self, name: str, measured: Second | Part) -> bool:
        """Whether a second, or a part of one, is within the bound of this name."""
        value: float | None = getattr(measured, name)
        return value is not None and value <= self._most[name] and measured.running >= self._running

    def back_us(self, name: str, since: Sequence[Second], failure: Failure) -> Micros | None:
        """The moment from which on this is as before; None if that did not come."""
        if failure.running_us is None:
            return None
        held = 0
        for number, second in enumerate(since):
            if second.at_s * SECOND_US < failure.lost_us:
                continue
            held = held + 1 if self.hold(name, second) else 0
            if held == HOLD_S:
                first = number - HOLD_S + 1
                calm_us = since[first].at_s * SECOND_US
                still_us = self._still_us(name, since[first])
                if first and not still_us:
                    calm_us -= self._already_us(name, since[first - 1], failure.lost_us)
                return max(calm_us + still_us, failure.running_us)
        return None

    def _still_us(self, name: str, second: Second) -> Micros:
        """For how long at the beginning of a second parts of it were out of the bound.

        A part without output is not, since the second has some.
        """
        out = [
            number
            for number, part in enumerate(second.parts, 1)
            if not self.hold(name, part)
            and (name == "backlog" or part.p50_ms is not None or part.running < self._running)
        ]
        return max(out, default=0) * PART_US

    def _already_us(self, name: str, second: Second, lost_us: Micros) -> Micros:
        """For how long at the end of a second, and after the loss, its parts were within the bound."""
        already = 0
        while already < len(second.parts) == PARTS:
            part = PARTS - already - 1
            begin_us = second.at_s * SECOND_US + part * PART_US
            if begin_us < lost_us or not self.hold(name, second.parts[part]):
                break
            already += 1
        return already * PART_US


def _latency(
    seconds: Iterable[Second], away: Iterable[Second], slots: Sequence[SlotId], *, hit: bool
) -> SlotsLatency:
    """The latency of the slots that were hit, or of the others; `away` are the seconds without slots."""
    rows = [row for second in seconds for row in second.slots if (row.slot in slots) == hit]
    silent = (
        not any(row.written for row in second.slots if (row.slot in slots) == hit)
        for second in away
    )
    p50s = [row.p50_ms for row in rows if row.p50_ms is not None]
    p99s = [row.p99_ms for row in rows if row.p99_ms is not None]
    return SlotsLatency(
        len({row.slot for row in rows}),
        sum(row.written for row in rows),
        round(median(p50s), 3) if p50s else None,
        max(p99s, default=None),
        sum(silent),
    )


def _end_us(seconds: Sequence[Second]) -> Micros:
    return seconds[-1].at_s * SECOND_US + seconds[-1].length_us if seconds else 0


def _until(reached_us: Micros | None, from_us: Micros, end_us: Micros) -> Until:
    """The time until something was reached, or until nobody looked any more."""
    if reached_us is None:
        return Until(_s(max(0, end_us - from_us)), censored=True)
    return Until(_s(reached_us - from_us), censored=False)


def _s(us: Micros) -> float:
    return round(us / SECOND_US, 3)
