"""Bars: one for each name, and bars that are stacked from parts over a row of columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from snapline.report.charts.canvas import Canvas, Key, Plot, legend, shortened, tipped
from snapline.report.charts.scales import Linear, linear
from snapline.report.spacetime.svg import box, cross, points, segment, text

ROW = 26.0
COLUMNS_MAX = 150
"""So many columns are drawn at most; of more, neighbours are joined to their mean."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it stands for, how long it is, and how that is told."""

    name: str
    value: float
    told: str


def bar_chart(canvas: Canvas, bars: Sequence[Bar], *, title: str) -> str:
    """Bars from left to right, each with its name before it and its value behind it."""
    left = 84.0 if canvas.narrow else 110.0
    room = canvas.width - left - 84
    most = max((bar.value for bar in bars), default=0) or 1
    parts = []
    for row, bar in enumerate(bars):
        y = 8 + row * ROW
        width = max(bar.value / most * room, 1.5 if bar.value else 0)
        drawn = box("bar", left, y, width, ROW - 8)
        drawn += text(left - 8, y + 13, "name end", shortened(bar.name, left - 10))
        drawn += text(left + width + 7, y + 13, "value", bar.told)
        parts.append(tipped(f"{bar.name}: {bar.told}", drawn))
    return canvas.svg(title, 12 + len(bars) * ROW, parts)


@dataclass(frozen=True, slots=True)
class Stack:
    """One column of stacked parts, with marks below it and what is told of it."""

    parts: tuple[float, ...]
    size: float  # the height of its column in the strip below
    tip: str
    marks: tuple[str, ...] = ()  # of MARKS


MARKS = {"forced": "forced", "skipped": "skipped by a rollback", "useless": "useless"}
"""What a mark below a column means."""


def stacked_chart(
    canvas: Canvas,
    stacks: Sequence[Stack],
    names: Sequence[str],
    *,
    title: str,
    unit: str,
    strip: str,
    told: Callable[[float], str],
) -> str:
    """Columns of stacked parts, and below them a strip with a size for each."""
    found = {mark for stack in stacks for mark in stack.marks}
    keys = [Key(partial(_swatch, place), name) for place, name in enumerate(names)]
    keys += [Key(partial(_mark, mark), words) for mark, words in MARKS.items() if mark in found]
    parts, top = legend(canvas, keys, 12)
    shown = _joined(stacks)
    y = linear(sum(each.parts) for each in shown)
    height = 170 if names else 0  # where no part was measured, only the strip says anything
    plot = Plot(canvas, Linear(0, max(1, len(shown))), y, top=top + 22, height=height)
    for value, label in y.ticks(5) if names else ():
        parts.append(segment("grid", plot.left, plot.y(value), plot.right, plot.y(value)))
        parts.append(text(plot.left - 6, plot.y(value) + 4, "tick end", label))
    parts.append(text(4, plot.top - 10, "unit", unit))
    parts.append(segment("axis", plot.left, plot.bottom, plot.right, plot.bottom))
    for place, each in enumerate(shown):
        parts.append(tipped(each.tip, "".join(_stack(plot, place, each))))
    bottom = plot.bottom + (20 if found else 8)
    parts += _strip(plot, shown, bottom, strip, told)
    return canvas.svg(title, bottom + 62, parts)


def _joined(stacks: Sequence[Stack]) -> list[Stack]:
    """The columns that are drawn: neighbours are joined to their mean where there are too many."""
    size = -(-len(stacks) // COLUMNS_MAX) or 1
    if size == 1:
        return list(stacks)
    return [_mean(stacks[at : at + size]) for at in range(0, len(stacks), size)]


def _mean(some: Sequence[Stack]) -> Stack:
    parts = tuple(sum(each) / len(some) for each in zip(*(s.parts for s in some), strict=True))
    marks = tuple(mark for mark in MARKS if any(mark in each.marks for each in some))
    tip = f"the mean of {len(some)}, from {some[0].tip}"
    return Stack(parts, sum(each.size for each in some) / len(some), tip, marks)


def _stack(plot: Plot, place: int, stack: Stack) -> Iterator[str]:
    left, width = _column(plot, place)
    below = 0.0
    for part, value in enumerate(stack.parts):
        high, low = plot.y(below + value), plot.y(below)
        if low - high > 0.05:
            yield f'<rect class="part p{part}" x="{left:.1f}" y="{high:.1f}" width="{width:.1f}" '
            yield f'height="{low - high:.1f}"/>'
        below += value
    yield box("hit", left, plot.top, width, plot.bottom - plot.top)
    for row, mark in enumerate(stack.marks):
        yield _mark(mark, left + width / 2 - 10, plot.bottom + 9 + 4 * row)


def _column(plot: Plot, place: int) -> tuple[float, float]:
    left, right = plot.x(place), plot.x(place + 1)
    gap = min(3.0, (right - left) * 0.25)
    return left + gap / 2, right - left - gap


def _swatch(place: int, x: float, y: float) -> str:
    return f'<rect class="part p{place}" x="{x:.1f}" y="{y - 6:.1f}" width="20" height="12"/>'


def _mark(mark: str, x: float, y: float) -> str:
    """A mark whose middle is ten pixels to the right of x: a diamond, a slash or a cross."""
    match mark:
        case "forced":
            corners = [(x + 10, y - 4), (x + 14, y), (x + 10, y + 4), (x + 6, y)]
            return points("forced-mark", "polygon", corners)
        case "skipped":
            return segment("skip-mark", x + 6, y + 4, x + 14, y - 4)
        case _:
            return cross(x + 10, y, 3.5)


def _strip(
    plot: Plot, stacks: Sequence[Stack], top: float, title: str, told: Callable[[float], str]
) -> Iterator[str]:
    """The sizes of all columns, as bars from the top of the strip down."""
    most = max((each.size for each in stacks), default=0) or 1
    yield text(4, top + 14, "unit", title)
    yield text(plot.left - 6, top + 34, "tick end", told(most))
    yield segment("axis", plot.left, top + 54, plot.right, top + 54)
    for place, each in enumerate(stacks):
        left, width = _column(plot, place)
        high = each.size / most * 32
        yield tipped(each.tip, box("bar", left, top + 54 - high, width, max(high, 0.5)))
