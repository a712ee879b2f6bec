"""Whether a run has kept pace with its input: what makes a rate *sustainable*.

After a warm-up, which does not count, all of this must hold for a while:

C1  At least 99 % of the records that became due were read: the rest is what the backlog has grown by. (How
    many were read in a second is known only to the last heartbeat of each slot, which may be off by more.)
C2  The backlog does not grow: the upper end of the 95 % interval of its slope is at most 1 % of the rate.
    In less than eight seconds that interval says more of the noise than of the backlog: there the median
    of the slopes between any two seconds counts, of which one stall decides few.
C3  Latency does not grow: the p99 of the last third is at most twice that of the first third, or small.
    The p99 of a third is the median of its seconds, so that one second in which the machine stood still
    decides nothing. Where latency grows, it does so in every second. A third of less than three seconds has
    no such median; there a p99 is small up to 100 ms: who takes in a tenth less than comes is half a second
    late after five.
C4  Lines keep coming: the time between two of them is at most 1.2 times the interval of checkpoints, on
    average, the last one is not older than two intervals at the end, and no round was given up. So the
    line does not fall behind.
C5  The output was judged, and is right.
C6  Logs do not grow: in the last third a sender's log has at most half as many segments more than in the
    first third, and two. A segment is a file that is pruned as a whole, so nothing smaller can be seen
    from outside. What C4 says bounds the rest: a log is pruned by every line, up to the messages that
    the line has received.

A run whose backlog holds more than three seconds of input is given up at once: it will not catch up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median, median_low
from types import MappingProxyType

from snapline.experiments.rates.slopes import slope_of
from snapline.ids import Millis
from snapline.metrics.second import Second

READ_MIN = 0.99
GROWTH_MAX = 0.01  # of the rate, per second
LATENCY_MAX = 2.0
LATENCY_FLOOR_MS, BRIEF_FLOOR_MS = 10.0, 100.0  # of a p99: below it, twice as much is noise
MEDIAN_LEAST_S = 3  # of a third: a median of less leaves no stall out
SLOPE_LEAST = 8  # backlogs: the interval of a slope through less is wider than what is looked for
INTERVAL_MAX = 1.2
LAG_MAX = 2.0  # intervals, and the second within which nobody knows when a line came
SEGMENTS_MAX, SEGMENTS_FLOOR = 1.5, 2.0
HOPELESS_S = 3.0  # of input
BY_FAR_S = 1.0  # of input: a run that ends with more before it was no near miss


@dataclass(frozen=True, slots=True)
class Window:
    """When a run is measured, in seconds from its first record on."""

    warm_up_s: int
    length_s: int

    @property
    def end_s(self) -> int:
        """When the measurement is over."""
        return self.warm_up_s + self.length_s

    def holds(self, second: Second) -> bool:
        """Whether a second is measured."""
        return self.warm_up_s <= second.at_s < self.end_s


def window_of(interval_ms: Millis, least_s: int = 15) -> Window:
    """The window for a run with this interval of checkpoints: at least five of them, and `least_s`."""
    interval_s = interval_ms / 1000
    return Window(round(max(5, 2 * interval_s)), round(max(least_s, 5 * interval_s)))


def is_hopeless(second: Second, rate: int) -> bool:
    """Whether a run is so far behind that it will not catch up."""
    return is_behind(second, rate, HOPELESS_S)


def is_behind(second: Second, rate: int, by_s: float) -> bool:
    """Whether a run had more than so many seconds of input before it at the end of a second."""
    return second.backlog is not None and second.backlog > by_s * rate


def objections(
    seconds: Sequence[Second],
    rate: int,
    interval_ms: Millis | None,
    window: Window,
    segments: Mapping[int, float] = MappingProxyType({}),
) -> Iterator[str]:
    """Why a run has not kept pace (C1 to C4, and C6), in words; none if it has.

    `interval_ms` is None for a protocol that takes no checkpoints. `segments` says how many a log had in
    each second, on average; a run that has no logs has none.
    """
    measured = [second for second in seconds if window.holds(second)]
    if len(measured) < window.length_s:
        yield f"it was measured for {len(measured)} of {window.length_s} s"
        return
    yield from _reading(measured, rate)
    yield from _latency(measured)
    if interval_ms is not None:
        yield from _lines(measured, interval_ms)
    yield from _logs([segments[each.at_s] for each in measured if each.at_s in segments])


def _reading(measured: Sequence[Second], rate: int) -> Iterator[str]:
    known = [(float(s.at_s), float(s.backlog)) for s in measured if s.backlog is not None]
    return backlog_objections(known, rate)


def backlog_objections(known: Sequence[tuple[float, float]], rate: int) -> Iterator[str]:
    """Why a run has not kept pace by its backlog (C1, C2): times in seconds, each with a backlog."""
    if len(known) < 4:
        yield "the backlog is not known"
        return
    (first_s, first), (last_s, last) = known[0], known[-1]
    read = 1 - (last - first) / (rate * (last_s - first_s))
    if read < READ_MIN:
        yield f"only {read:.1%} of what was due was read"
    if (growth := _growth(known)) > GROWTH_MAX * rate:
        yield f"the backlog may grow by {growth:,.0f} records a second"


def _growth(known: Sequence[tuple[float, float]]) -> float:
    """By how much a backlog may grow in a second (C2)."""
    if len(known) < SLOPE_LEAST:
        return median((b - a) / (then - at) for (at, a), (then, b) in combinations(known, 2))
    slope = slope_of([at for at, _ in known], [backlog for _, backlog in known])
    return slope.value + slope.error


def _latency(measured: Sequence[Second]) -> Iterator[str]:
    third = len(measured) // 3
    small_ms = LATENCY_FLOOR_MS if third >= MEDIAN_LEAST_S else BRIEF_FLOOR_MS
    first, last = _p99(measured[:third]), _p99(measured[-third:])
    if first is None or last is None:
        yield "nothing was put out"
    elif last > max(LATENCY_MAX * first, small_ms):
        yield f"p99 rose from {first:.1f} to {last:.1f} ms"


def _p99(seconds: Sequence[Second]) -> float | None:
    """The median of the p99 of each second, the lower one of two."""
    each = (second.latency.percentile_ms(99) for second in seconds)
    known = [p99 for p99 in each if p99 is not None]
    return median_low(known) if known else None


def _lines(measured: Sequence[Second], interval_ms: Millis) -> Iterator[str]:
    end = measured[-1]
    lines = end.lines - measured[0].lines
    if not lines:
        yield f"no line was committed for {len(measured)} s"
        return
    between_ms = 1000 * (len(measured) - 1) / lines
    if between_ms > INTERVAL_MAX * interval_ms:
        yield f"a line was committed every {between_ms / 1000:.2f} s only"
    last_s = next(second.at_s for second in measured if second.lines == end.lines)
    if end.at_s - last_s > LAG_MAX * interval_ms / 1000 + 1:
        yield f"no line was committed in the last {end.at_s - last_s} s"


def _logs(segments: Sequence[float]) -> Iterator[str]:
    if third := len(segments) // 3:
        first, last = fmean(segments[:third]), fmean(segments[-third:])
        if last > SEGMENTS_MAX * first + SEGMENTS_FLOOR:
            yield f"logs grew from {first:.1f} to {last:.1f} segments of a task, and were not pruned"
