"""A forest plot: one row for each comparison, a mark for its ratio, a whisker for its interval.

The axis is one of ratios, so that half and twice are equally far from 1. What identical settings reach by
chance is a grey band in each row. What was measured is filled, what was simulated is hollow, and a single
pair, of which no interval is known, is an upright cross. A claimed bound, as of a paper, is a bracket
towards the side on which the ratio is claimed to lie.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from snapline.report.charts.canvas import CHARACTER, Canvas, Key, Plot, legend, shortened, tipped
from snapline.report.charts.scales import Linear, Logarithmic, Scale
from snapline.report.spacetime.svg import box, number, points, segment, text

FOREST_ROW = 40.0


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A comparison: how many times as large one is as the other, and what may be said of it."""

    name: str
    estimate: float | None  # None: it was not measured
    low: float | None  # the interval; None: nothing is known of chance
    high: float | None
    words: str
    kind: str  # `more`, `less` or `same`: which of them is sure decides the colour
    floor: float | None = None  # what identical settings reach by chance, as a ratio above 1
    bound: float | None = None  # what is claimed ...
    upwards: bool = False  # ... and whether the ratio is claimed to lie above it
    simulated: bool = False  # whether it comes from simulated runs


def forest(canvas: Canvas, rows: Sequence[ForestRow], *, title: str, axis: str) -> str:
    """All rows from top to bottom on one axis; wide paper has the words beside them, narrow below."""
    known = [value for row in rows for value in _values(row)]
    scale = _scale(known, "ratio" in axis)
    left, room = (8.0, 0.0) if canvas.narrow else _margins(rows)
    parts, top = legend(canvas, list(_keys(rows)), 12)
    height = FOREST_ROW * len(rows) * (1.35 if canvas.narrow else 1)
    plot = Plot(canvas, scale, Linear(0, 1), top=top + 4, height=height, left=left)
    plot.right -= room
    parts += plot.bottom_axis(axis)
    for value, _ in scale.ticks(5 if canvas.narrow else 10):
        parts.append(segment("grid", plot.x(value), plot.top, plot.x(value), plot.bottom))
    if "ratio" in axis:
        parts.append(segment("one", plot.x(1), plot.top, plot.x(1), plot.bottom))
    step = height / max(1, len(rows))
    for place, row in enumerate(rows):
        middle = plot.top + (place + (0.74 if canvas.narrow else 0.5)) * step
        drawn = "".join(_row(plot, row, middle, step))
        parts.append(tipped(f"{row.name}: {row.words}", drawn + _named(canvas, plot, row, middle)))
    return canvas.svg(title, plot.bottom + 40, parts)


def _margins(rows: Sequence[ForestRow]) -> tuple[float, float]:
    """The room for names on the left of wide paper, and for words on its right."""
    names, words = max(len(row.name) for row in rows), max(len(row.words) for row in rows)
    return min(310.0, 20 + names * CHARACTER), min(250.0, 20 + words * CHARACTER)


def _values(row: ForestRow) -> Iterator[float]:
    for value in (row.estimate, row.low, row.high, row.bound, row.floor):
        if value is not None and math.isfinite(value):
            yield value
    if row.floor is not None:
        yield 1 / row.floor


def _scale(known: Sequence[float], ratios: bool) -> Scale:
    """An axis around 1 for ratios; for other values from 0 on."""
    if not ratios:
        return Linear(0, max([*known, 0.0]) * 1.1 or 1)
    above = [value for value in known if value > 0]
    low, high = min([*above, 0.8]) / 1.1, max([*above, 1.25]) * 1.1
    return Logarithmic(low, high, times=False)


def _keys(rows: Sequence[ForestRow]) -> Iterator[Key]:
    known = [row for row in rows if row.estimate is not None]
    if any(row.low is not None and not row.simulated for row in known):
        yield Key(partial(_whiskered, simulated=False), "measured, with its interval")
    if any(row.low is not None and row.simulated for row in known):
        yield Key(partial(_whiskered, simulated=True), "simulated, with its interval")
    if any(row.low is None and not row.simulated for row in known):
        yield Key(partial(_single, simulated=False), "one pair: nothing is known of chance")
    if any(row.low is None and row.simulated for row in known):
        yield Key(partial(_single, simulated=True), "simulated: one pair")
    if any(row.floor is not None for row in rows):
        yield Key(lambda x, y: box("noise", x, y - 6, 20, 12), "noise: equal settings")
    if any(row.bound is not None for row in rows):
        yield Key(
            lambda x, y: _bound(x + 10, y, 7, upwards=True), "claimed: on this side of the bracket"
        )


def _row(plot: Plot, row: ForestRow, y: float, step: float) -> Iterator[str]:
    if row.floor is not None:
        x, right = plot.x(1 / row.floor), plot.x(row.floor)
        yield box("noise", x, y - step * 0.22, max(right - x, 1), step * 0.44)
    if row.bound is not None:
        yield _bound(plot.x(row.bound), y, 9, upwards=row.upwards)
    if row.estimate is None:
        return
    if row.low is not None and row.high is not None:
        yield segment(f"whisker {row.kind}", plot.x(row.low), y, plot.x(row.high), y)
    kind = row.kind if row.low is not None else "single"
    yield _dot(plot.x(row.estimate), y, kind, simulated=row.simulated)


def _dot(x: float, y: float, kind: str, *, simulated: bool) -> str:
    """A mark whose shape says what its colour says: up for more, down for less, round for neither."""
    form = f"{'hollow' if simulated else 'blob'} {kind}"
    match kind:
        case "more":
            return points(form, "polygon", [(x, y - 6), (x + 6, y + 5), (x - 6, y + 5)])
        case "less":
            return points(form, "polygon", [(x, y + 6), (x + 6, y - 5), (x - 6, y - 5)])
        case "single":
            return points(form, "polygon", _plus(x, y))
        case _:
            return f'<circle class="{form}" cx="{number(x)}" cy="{number(y)}" r="5"/>'


def _plus(x: float, y: float) -> list[tuple[float, float]]:
    """The outline of an upright cross."""
    arm, half = 6.0, 1.8
    quarter = [(half, -arm), (half, -half), (arm, -half)]
    corners: list[tuple[float, float]] = []
    for _ in range(4):
        corners += quarter
        quarter = [(-down, right) for right, down in quarter]
    return [(x + right, y + down) for right, down in corners]


def _whiskered(x: float, y: float, *, simulated: bool) -> str:
    line = segment("whisker same", x, y, x + 20, y)
    return line + _dot(x + 10, y, "same", simulated=simulated)


def _single(x: float, y: float, *, simulated: bool) -> str:
    return _dot(x + 10, y, "single", simulated=simulated)


def _bound(x: float, y: float, half: float, *, upwards: bool) -> str:
    tip = x + (6 if upwards else -6)
    return points(
        "bound", "polyline", [(tip, y - half), (x, y - half), (x, y + half), (tip, y + half)]
    )


def _named(canvas: Canvas, plot: Plot, row: ForestRow, y: float) -> str:
    if canvas.narrow:
        room = canvas.width - 16
        name = text(plot.left, y - 16, "name", shortened(row.name, room))
        return name + text(
            canvas.width - 4, y - 16, "value end", _brief(row, room - len(row.name) * 6.6)
        )
    name = text(plot.left - 10, y + 4, "name end", shortened(row.name, plot.left - 12))
    return name + text(plot.right + 12, y + 4, "value", shortened(row.words, 240))


def _brief(row: ForestRow, room: float) -> str:
    return shortened(row.words, room) if room > 70 else ""
