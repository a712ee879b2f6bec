"""Whether a run has kept pace with its input: what makes a rate *sustainable*.

After a warm-up, which does not count, all of this must hold for a while:

C1  At least 99 % of the records that became due were read.
C2  The backlog does not grow: the upper end of the 95 % interval of its slope is at most 1 % of the rate.
C3  Latency does not grow: the p99 of the last third is at most twice that of the first third, or small.
C4  Lines keep coming: the time between two of them is at most 1.2 times the interval of checkpoints, on
    average, and no round was given up. So the line does not fall behind, and neither do logs that wait
    to be pruned by it.
C5  The output was judged, and is right.

A run whose backlog holds more than three seconds of input is given up at once: it will not catch up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snapline.experiments.slopes import slope_of
from snapline.ids import Millis
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Second

READ_MIN = 0.99
GROWTH_MAX = 0.01  # of the rate, per second
LATENCY_MAX = 2.0
LATENCY_FLOOR_MS = 10.0  # of a p99: below it, twice as much is noise
INTERVAL_MAX = 1.2
HOPELESS_S = 3.0  # of input


@dataclass(frozen=True, slots=True)
class Window:
    """When a run is measured, in seconds from its first record on."""

    warm_up_s: int
    length_s: int

    @property
    def end_s(self) -> int:
        """When the measurement is over."""
        return self.warm_up_s + self.length_s


def window_of(interval_ms: Millis, least_s: int = 15) -> Window:
    """The window for a run with this interval of checkpoints: at least five of them, and `least_s`."""
    interval_s = interval_ms / 1000
    return Window(round(max(5, 2 * interval_s)), round(max(least_s, 5 * interval_s)))


def is_hopeless(second: Second, rate: int) -> bool:
    """Whether a run is so far behind that it will not catch up."""
    return second.backlog is not None and second.backlog > HOPELESS_S * rate


def objections(
    seconds: Sequence[Second], rate: int, interval_ms: Millis | None, window: Window
) -> Iterator[str]:
    """Why a run has not kept pace (C1 to C4), in words; none if it has.

    `interval_ms` is None for a protocol that takes no checkpoints.
    """
    measured = [s for s in seconds if window.warm_up_s <= s.at_s < window.end_s]
    if len(measured) < window.length_s:
        yield f"it was measured for {len(measured)} of {window.length_s} s"
        return
    read = sum(second.read for second in measured) / (rate * len(measured))
    if read < READ_MIN:
        yield f"only {read:.1%} of what was due was read"
    known = [(float(s.at_s), float(s.backlog)) for s in measured if s.backlog is not None]
    if len(known) < 4:
        yield "the backlog is not known"
    else:
        slope = slope_of([at for at, _ in known], [backlog for _, backlog in known])
        if slope.value + slope.error > GROWTH_MAX * rate:
            yield f"the backlog may grow by {slope.value + slope.error:,.0f} records a second"
    third = len(measured) // 3
    first, last = _p99(measured[:third]), _p99(measured[-third:])
    if first is None or last is None:
        yield "nothing was put out"
    elif last > max(LATENCY_MAX * first, LATENCY_FLOOR_MS):
        yield f"p99 rose from {first:.1f} to {last:.1f} ms"
    if interval_ms is not None:
        lines = measured[-1].lines - measured[0].lines
        between_ms = 1000 * (len(measured) - 1) / lines if lines else float("inf")
        if between_ms > INTERVAL_MAX * interval_ms:
            yield f"a line was committed every {between_ms / 1000:.2f} s only"


def _p99(seconds: Sequence[Second]) -> float | None:
    latency = Histogram()
    for second in seconds:
        latency.merge(second.latency)
    return latency.percentile_ms(99)
