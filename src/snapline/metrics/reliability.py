"""What faults cost outputs with lineage (PGVal 2.3 and 3.4): right or not, how fast, how late, by phase.

*Reliability* is the percentage of events that were processed once and in the right place. *Correctness* is
the percentage of outputs whose values are right: counts that are those of all events of the resource and
window but the late ones, whichever ids the output names. An output that is correct need not be reliable: it
may lack one event and have another twice. *Reliable throughput* counts each event once, when its first
output (or the late output) was written: a system that repeats itself is not faster.

*Latency* of a window's output is the time at which it was written minus an arrival. Of which event, has
three definitions, over the events of all resources:

- *beyond* (PGVal's own, `latency_ms`): the first to arrive of the events beyond the window's end. Before
  that nobody could have closed the window, so filling it does not count. A window that no later event
  follows has none.
- *first* (`from_first_ms`): the first to arrive of the events in the window. It has the time in which the
  window was filled, so it depends on the size of windows and on the rate of the input.
- *last* (`from_last_ms`, after Karimov et al.): the last of the events in the window that had arrived when
  the output was written. It still has the time until the next event, without which no window is closed.

*Failure cost* is how much the greatest latency (beyond) from the fault on lies above the mean before it.

*Phases*: control, until the first fault begins; failure, while one is active; recovery, from the end of the
last one on. An event belongs to the phase in which it arrived, an output to that in which it was written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.ids import Millis

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a run: start_ms <= time < stop_ms."""

    name: str
    start_ms: Millis
    stop_ms: Millis


def phases(spans: Iterable[tuple[Millis, Millis]], end_ms: Millis) -> tuple[Phase, ...]:
    """The phases of a run that ended at `end_ms`, from the spans of its faults; without any, control."""
    known = sorted(spans)
    if not known:
        return (Phase("control", 0, end_ms),)
    first, last = known[0][0], min(max(stop for _, stop in known), end_ms)
    found = (
        Phase("control", 0, first),
        Phase("failure", first, last),
        Phase("recovery", last, end_ms),
    )
    return tuple(phase for phase in found if phase.start_ms < phase.stop_ms)


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a run."""

    time: Ints  # event time, ms
    arrival: Ints  # when each arrived, in ms since input began to be due
    reliable: Flags  # whether each was processed once and in the right place


@dataclass(frozen=True, slots=True)
class Results:
    """The outputs of a run, one row each, and the ids of the events behind them and the late output."""

    window: Ints  # the start of its window
    written: Ints  # when it was written, in ms since input began to be due
    claimed: Ints  # ids, of all outputs and of the late output
    claimed_at: Ints  # when each of these was written
    correct: Flags  # of each output: whether its counts are right, whichever ids it names


@dataclass(frozen=True, slots=True)
class OutputLatency:
    """The latency of the outputs of a run or of a phase, in milliseconds."""

    mean: float
    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class ReliabilityFigures:
    """What is measured of a whole run as well as of each phase."""

    events: int
    reliability: float | None  # in percent; None: there were no events
    reliable_throughput: float  # events per second
    #: from the arrival of the first event beyond the window; None: no output has a latency
    latency_ms: OutputLatency | None
    correctness: float | None  # in percent; None: there were no outputs
    from_first_ms: OutputLatency | None  # from the arrival of the first event in the window
    from_last_ms: OutputLatency | None  # from the arrival of the last event in the window


_Optional: TypeAlias = OutputLatency | None
_Values: TypeAlias = tuple[int, float | None, float, _Optional, float | None, _Optional, _Optional]
"""The fields of `ReliabilityFigures`, in their order."""


@dataclass(frozen=True, slots=True)
class PhaseFigures(ReliabilityFigures):
    """The figures of a phase, and when it was."""

    from_ms: Millis
    to_ms: Millis


@dataclass(frozen=True, slots=True)
class LineageFigures(ReliabilityFigures):
    """The figures of a whole run, and of each of its phases."""

    failure_cost_ms: float | None  # None: no fault struck, or no latency is known on one side of it
    phases: Mapping[str, PhaseFigures]


def figures(
    events: Events, results: Results, size_ms: Millis, parts: Sequence[Phase]
) -> LineageFigures:
    """The figures of the whole run and of each phase."""
    latency = latencies(events, results, size_ms)
    processed = _first_times(results)
    whole = Phase("run", 0, max((part.stop_ms for part in parts), default=0))

    def measured(part: Phase) -> PhaseFigures:
        found = _figures(events, results, latency, processed, part)
        return PhaseFigures(*found, part.start_ms, part.stop_ms)

    return LineageFigures(
        *_figures(events, results, latency, processed, whole, everything=True),
        failure_cost(results, latency.beyond, parts),
        {part.name: measured(part) for part in parts},
    )


class Latencies(NamedTuple):
    """The latency of each output in ms, by each definition; NaN where it has none."""

    beyond: Floats
    first: Floats
    last: Floats


def latencies(events: Events, results: Results, size_ms: Millis) -> Latencies:
    """The latency of each output, by each of the three definitions."""
    return Latencies(_beyond(events, results, size_ms), *_inside(events, results, size_ms))


def _beyond(events: Events, results: Results, size_ms: Millis) -> Floats:
    """From the first arrival beyond the end of the window."""
    found = np.full(len(results.window), np.nan)
    if not len(events.time):
        return found
    order = np.argsort(events.time, kind="stable")
    # The earliest arrival among all events of at least this time.
    earliest = np.minimum.accumulate(events.arrival[order][::-1])[::-1]
    beyond = np.searchsorted(events.time[order], results.window + size_ms, side="left")
    has = beyond < len(order)
    found[has] = results.written[has] - earliest[beyond[has]]
    return found


def _inside(events: Events, results: Results, size_ms: Millis) -> tuple[Floats, Floats]:
    """From the first arrival in the window, and from the last one before the output was written."""
    first, last = (np.full(len(results.window), np.nan) for _ in range(2))
    if not len(events.time):
        return first, last
    windows, window = np.unique(events.time - events.time % size_ms, return_inverse=True)
    order = np.lexsort((events.arrival, window))
    arrival, low = events.arrival[order], int(events.arrival.min())
    span = (
        int(events.arrival.max()) - low + 2
    )  # a number for (window, arrival), and one before each
    number = window[order] * span + (arrival - low)
    at = np.minimum(np.searchsorted(windows, results.window), len(windows) - 1)
    known = windows[at] == results.window
    start = np.searchsorted(number, at * span)
    first[known] = results.written[known] - arrival[start[known]]
    written = np.clip(results.written - low, -1, span - 2)
    stop = np.searchsorted(number, at * span + written, side="right") - 1
    known &= stop >= start
    last[known] = results.written[known] - arrival[stop[known]]
    return first, last


def failure_cost(results: Results, latency: Floats, parts: Sequence[Phase]) -> float | None:
    """How much the greatest latency from the fault on exceeds the mean before it, if it does at all.

    None where no output before, or none after, has a latency.
    """
    if len(parts) < 2 or parts[0].name != "control":
        return None
    known = ~np.isnan(latency)
    before = latency[known & (results.written < parts[0].stop_ms)]
    after = latency[known & (results.written >= parts[0].stop_ms)]
    if not len(before) or not len(after):
        return None
    return round(max(0.0, float(after.max() - before.mean())), 3)


def _first_times(results: Results) -> Ints:
    """When each event that was processed at all was processed first."""
    if not len(results.claimed):
        return np.zeros(0, np.int64)
    order = np.lexsort((results.claimed_at, results.claimed))
    ids = results.claimed[order]
    first = np.concatenate(([True], ids[1:] != ids[:-1]))
    times: Ints = results.claimed_at[order][first]
    return times


def _figures(
    events: Events,
    results: Results,
    latency: Latencies,
    processed: Ints,
    phase: Phase,
    *,
    everything: bool = False,
) -> _Values:
    """Compute the fields of `ReliabilityFigures` for one phase, or for everything."""

    def within(times: Ints) -> Flags:
        inside: Flags = (times >= phase.start_ms) & (times < phase.stop_ms)
        return inside | everything

    reliable = events.reliable[within(events.arrival)]
    put_out = within(results.written)
    beyond, first, last = (_latency(values[put_out]) for values in latency)
    correct = results.correct[put_out]
    seconds = max(phase.stop_ms - phase.start_ms, 1) / 1000
    return (
        len(reliable),
        percent(int(reliable.sum()), len(reliable)),
        round(int(within(processed).sum()) / seconds, 1),
        beyond,
        percent(int(correct.sum()), len(correct)),
        first,
        last,
    )


def percent(part: int, whole: int) -> float | None:
    """A share in percent, rounded down, so 100 means all of them; None if the whole is 0."""
    return part * 1_000_000 // whole / 10_000 if whole else None


def _latency(each: Floats) -> OutputLatency | None:
    values = each[~np.isnan(each)]
    if not len(values):
        return None
    p50, p99 = np.percentile(values, (50, 99))
    shown = (values.mean(), p50, p99, values.max())
    return OutputLatency(*(round(float(value), 1) for value in shown))
