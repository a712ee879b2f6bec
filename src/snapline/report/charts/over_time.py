"""Charts over the time of a run: lines, with faults as shaded spans and epochs as dashed lines.

Series differ by colour, by dash and by the shape of their marks. A long run has more seconds than a chart
has pixels: seconds are then joined, and of each group the greatest value is drawn, so that no peak is lost.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from snapline.report.charts.canvas import Canvas, Key, Plot, legend, shortened, tipped
from snapline.report.charts.scales import Linear, linear, logarithmic
from snapline.report.spacetime.svg import box, cross, number, points, segment, text

Values: TypeAlias = tuple[float | None, ...]
COLUMNS_MAX = 300
"""So many points are drawn of each series at most."""
SHAPES = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time; None is a gap."""

    name: str
    values: Values
    told: Callable[[float], str]  # a value as people read it


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """The times that a chart covers, and what happened in them."""

    seconds: tuple[float, ...]  # where the values of all series stand
    end_s: float
    begin_s: float = 0.0
    #: faults: when each began and ended, and its words
    faults: tuple[tuple[float, float, str], ...] = ()
    epochs: tuple[tuple[float, int], ...] = ()  # when each epoch began
    title: str = field(default="seconds since input began to be due")


def time_chart(
    canvas: Canvas,
    frame: TimeFrame,
    series: Sequence[Series],
    *,
    title: str,
    unit: str,
    log: bool = False,
    height: float = 190,
) -> str:
    """Lines over time."""
    times, drawn = _thinned(frame.seconds, series)
    keys = [
        Key(partial(_sample, place), each.name)
        for place, each in enumerate(series)
        if _known(each.values)
    ]
    parts, top = legend(canvas, [*keys, *_other_keys(frame)], 12)
    values = [value for each in drawn for value in each if value is not None]
    y = logarithmic(values) if log else linear(values)
    span = Linear(frame.begin_s, max(frame.end_s, frame.begin_s + 1))
    plot = Plot(canvas, span, y, top=top + (38 if frame.faults else 22), height=height)
    plot.head = 24 if frame.faults else 10  # the names of faults stand below it
    parts += _spans(plot, frame)
    parts += plot.axes(frame.title, unit)
    for place, each in enumerate(drawn):
        parts += _line(plot, times, each, place)
    parts += _moments(plot, frame)
    parts += _columns(plot, times, series, drawn)
    return canvas.svg(title, plot.bottom + 40, parts)


def _known(values: Values) -> bool:
    return any(value is not None for value in values)


def _thinned(
    times: tuple[float, ...], series: Sequence[Series]
) -> tuple[tuple[float, ...], list[Values]]:
    """The times and values that are drawn: of each group of neighbours the greatest value."""
    size = -(-len(times) // COLUMNS_MAX) or 1
    starts = range(0, len(times), size)
    if size == 1:
        return times, [each.values for each in series]
    return times[::size], [tuple(_most(s.values[n : n + size]) for n in starts) for s in series]


def _most(values: Values) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _line(plot: Plot, times: Sequence[float], values: Values, place: int) -> Iterator[str]:
    """The line of a series, in as many pieces as gaps make, and a mark at some of its points."""
    piece: list[tuple[float, float]] = []
    every = max(1, len(times) // 12)
    for at, (time, value) in enumerate(zip(times, values, strict=True)):
        if value is None:
            yield from _piece(piece, place)
            piece = []
            continue
        piece.append((plot.x(time), plot.y(value)))
        if (at + place) % every == 0:
            yield shape(*piece[-1], place)
    yield from _piece(piece, place)


def _piece(piece: Sequence[tuple[float, float]], place: int) -> Iterator[str]:
    if len(piece) > 1:
        yield points(f"line s{place}", "polyline", piece)
    elif piece:
        yield shape(*piece[0], place)


def shape(x: float, y: float, place: int, size: float = 3.4) -> str:
    """The mark of a series: each has a shape of its own."""
    kind = f"dot s{place}"
    a, b, s = x, y, size
    match SHAPES[place % len(SHAPES)]:
        case "circle":
            return f'<circle class="{kind}" cx="{number(a)}" cy="{number(b)}" r="{number(s)}"/>'
        case "square":
            corners = [(a - s, b - s), (a + s, b - s), (a + s, b + s), (a - s, b + s)]
        case "triangle":
            corners = [(a, b - s - 1), (a + s + 1, b + s), (a - s - 1, b + s)]
        case _:
            corners = [(a, b - s - 1.2), (a + s + 1.2, b), (a, b + s + 1.2), (a - s - 1.2, b)]
    return points(kind, "polygon", corners)


def _sample(place: int, x: float, y: float) -> str:
    return segment(f"line s{place}", x, y, x + 20, y) + shape(x + 10, y, place)


def _other_keys(frame: TimeFrame) -> Iterator[Key]:
    if frame.faults:
        yield Key(lambda x, y: box("fault-span", x, y - 6, 20, 12), "a fault is active")
    if len(frame.epochs) > 1:
        yield Key(lambda x, y: segment("epoch", x + 10, y - 7, x + 10, y + 7), "an epoch begins")


def _spans(plot: Plot, frame: TimeFrame) -> Iterator[str]:
    for start, end, words in frame.faults:
        left, right = plot.x(start), plot.x(end)
        shade = box("fault-span", left, plot.top, max(right - left, 2), plot.bottom - plot.top)
        yield tipped(f"{words}: {start:.2f} s to {end:.2f} s", shade)


def _moments(plot: Plot, frame: TimeFrame) -> Iterator[str]:
    """What is written above the plot: the faults, and from the second on, the epochs."""
    free = plot.left
    for start, _, words in frame.faults:
        x = plot.x(start)
        if x < free:
            continue
        room = plot.right - x - 10
        label = shortened(words, room) if room > 60 else ""
        yield tipped(f"{words} at {start:.2f} s", cross(x, plot.top - 9, 4))
        yield text(x + 8, plot.top - 5, "fault-name", label)
        free = x + 20 + len(label) * 6.6
    for at, epoch in frame.epochs[1:]:
        x = plot.x(at)
        line = segment("epoch", x, plot.top, x, plot.bottom)
        yield tipped(f"epoch {epoch} begins at {at:.2f} s", line)


def _columns(
    plot: Plot, times: Sequence[float], series: Sequence[Series], drawn: Sequence[Values]
) -> Iterator[str]:
    """An invisible column for each point in time, which says all values when one points at it."""
    width = (plot.right - plot.left) / max(1, len(times))
    for at, time in enumerate(times):
        said = (
            f"{each.name} {each.told(value)}"
            for each, values in zip(series, drawn, strict=True)
            if (value := values[at]) is not None
        )
        tip = f"{time:g} s: {', '.join(said) or 'nothing measured'}"
        x = plot.x(time) - width / 2
        yield tipped(tip, box("hit", x, plot.top, width, plot.bottom - plot.top))
