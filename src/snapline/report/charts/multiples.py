"""Small multiples: one little chart for each slot, all on the same axes, so that a straggler stands out."""

from collections.abc import Sequence
from dataclasses import dataclass

from snapline.report.charts.canvas import Canvas, tipped
from snapline.report.charts.over_time import TimeFrame, Values
from snapline.report.charts.scales import Linear, Scale, linear, logarithmic
from snapline.report.spacetime.svg import box, points, segment, text

CELL_HEIGHT = 92.0
POINTS_MAX = 120
CELLS_MAX = 60


@dataclass(frozen=True, slots=True)
class SmallChart:
    """One of the little charts."""

    name: str
    values: Values
    told: str  # what is said of it, as its greatest value


def small_multiples(
    canvas: Canvas,
    frame: TimeFrame,
    cells: Sequence[SmallChart],
    *,
    title: str,
    log: bool = False,
) -> str:
    """All little charts in rows, at most as many as can be told apart."""
    shown = cells[:CELLS_MAX]
    known = [value for cell in shown for value in cell.values if value is not None]
    y: Scale = logarithmic(known) if log else linear(known)
    columns = 2 if canvas.narrow else min(5, max(2, len(shown)))
    gap = 12.0
    width = (canvas.width - gap * (columns - 1)) / columns
    parts = [
        text(
            0,
            12,
            "unit",
            f"each from 0 to {frame.end_s:.0f} s, on the same scale; faults are shaded",
        )
    ]
    for place, cell in enumerate(shown):
        left = (place % columns) * (width + gap)
        top = 24 + (place // columns) * (CELL_HEIGHT + 26)
        parts.append(_cell(frame, cell, y, (left, top, width)))
    rows = -(-len(shown) // columns)
    return canvas.svg(title, 24 + rows * (CELL_HEIGHT + 26), parts)


def _cell(
    frame: TimeFrame,
    cell: SmallChart,
    y: Scale,
    place: tuple[float, float, float],
) -> str:
    left, top, width = place
    span = Linear(frame.begin_s, max(frame.end_s, frame.begin_s + 1))
    drawn = [box("cell", left, top, width, CELL_HEIGHT)]
    for start, end, _ in frame.faults:
        x, right = (left + span.share(at) * width for at in (start, end))
        drawn.append(box("fault-span", x, top, max(right - x, 2), CELL_HEIGHT))
    size = -(-len(cell.values) // POINTS_MAX) or 1
    piece: list[tuple[float, float]] = []
    for at in range(0, len(cell.values), size):
        some = [value for value in cell.values[at : at + size] if value is not None]
        if some:
            x = left + 3 + span.share(frame.seconds[at]) * (width - 6)
            piece.append((x, top + CELL_HEIGHT - 4 - y.share(max(some)) * (CELL_HEIGHT - 26)))
        elif len(piece) > 1:
            drawn.append(points("line s0", "polyline", piece))
            piece = []
    if len(piece) > 1:
        drawn.append(points("line s0", "polyline", piece))
    drawn.append(segment("axis", left, top + CELL_HEIGHT, left + width, top + CELL_HEIGHT))
    drawn.append(text(left + 7, top + 15, "name", cell.name))
    drawn.append(text(left + width - 7, top + 15, "value end", cell.told))
    return tipped(f"{cell.name}: {cell.told}", "".join(drawn))
