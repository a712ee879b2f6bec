"""Distributions: the share of all records that were within a time, on a logarithmic axis of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from snapline.metrics.histogram import Histogram
from snapline.report.charts.canvas import Canvas, Key, Plot, legend, tipped
from snapline.report.charts.over_time import shape
from snapline.report.charts.scales import Linear, logarithmic
from snapline.report.spacetime.svg import points, segment
from snapline.wording import latency

SHARES = (*range(1, 100), 99.5, 99.9, 100)
"""The percentiles that are drawn."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A named distribution of times: the time of each of SHARES, in milliseconds."""

    name: str
    times_ms: tuple[float, ...]


def distribution_of(name: str, histogram: Histogram) -> Distribution | None:
    """The percentiles of a histogram; None if it is empty."""
    found = [histogram.percentile_ms(share) for share in SHARES]
    known = tuple(time for time in found if time is not None)
    return Distribution(name, known) if len(known) == len(SHARES) else None


def distribution_chart(canvas: Canvas, all_of: Sequence[Distribution], *, title: str) -> str:
    """A rising line for each distribution."""
    keys = [Key(partial(_sample, place), each.name) for place, each in enumerate(all_of)]
    parts, top = legend(canvas, keys, 12)
    times = logarithmic(time for each in all_of for time in each.times_ms)
    plot = Plot(canvas, times, Linear(0, 100, " %"), top=top + 22, height=190)
    parts += plot.axes("since the record was due, logarithmic", "records written by then")
    for place, each in enumerate(all_of):
        corners = [(plot.x(t), plot.y(s)) for t, s in zip(each.times_ms, SHARES, strict=True)]
        parts.append(points(f"line s{place}", "polyline", corners))
        for share in (50, 99):
            at = SHARES.index(share)
            tip = f"{each.name}: {share} % within {latency(each.times_ms[at])}"
            parts.append(tipped(tip, shape(*corners[at], place, 4.4)))
    return canvas.svg(title, plot.bottom + 40, parts)


def _sample(place: int, x: float, y: float) -> str:
    return segment(f"line s{place}", x, y, x + 20, y) + shape(x + 10, y, place)
