"""Where things stand in a chart: two sizes of paper, and a frame with axes.

Every chart is drawn twice, for wide and for narrow screens, and the style sheet of the page shows one of
the two: shrunk to a phone, the letters of a wide chart could not be read. Colours and line styles are
classes of that style sheet, so that a chart follows the dark mode of the page.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from snapline.report.charts.scales import Scale
from snapline.report.spacetime.svg import number, segment, text

CHARACTER = 6.6
"""The estimated width of a character at 12 px; the viewer chooses the font."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The paper of a chart."""

    name: str  # the class with which the style sheet shows or hides it
    width: float

    @property
    def narrow(self) -> bool:
        """Whether there is room for little more than a phone has."""
        return self.width < 600

    def svg(self, title: str, height: float, parts: Iterable[str]) -> str:
        """A whole chart; its title is what a screen reader says of it."""
        w, h = number(self.width), number(height)
        return (
            f'<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{escape(title)}">'
            f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
        )


WIDE = Canvas("wide", 880)
NARROW = Canvas("narrow", 358)

Chart: TypeAlias = Callable[[Canvas], str]
"""Draws a chart on a paper."""


class Plot:
    """The coordinates of a chart with two axes."""

    def __init__(
        self, canvas: Canvas, x: Scale, y: Scale, *, top: float, height: float, left: float = 52
    ) -> None:
        self.canvas, self.xs, self.ys = canvas, x, y
        self.left, self.right = left, canvas.width - 12
        self.top, self.bottom = top, top + height
        self.head = 10.0  #: how far above it stands what the vertical axis shows

    def x(self, value: float) -> float:
        """The place of a value on the horizontal axis, at the border if it is beyond it."""
        return self.left + self.xs.share(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """The place of a value on the vertical axis, at the border if it is beyond it."""
        return self.bottom - self.ys.share(value) * (self.bottom - self.top)

    def axes(self, x_title: str, y_title: str) -> Iterator[str]:
        """Grid lines with their numbers, and what both axes show."""
        for value, label in self.ys.ticks(5):
            y = self.y(value)
            yield segment("grid", self.left, y, self.right, y)
            yield text(self.left - 6, y + 4, "tick end", label)
        yield from self.bottom_axis(x_title)
        yield text(4, self.top - self.head, "unit", y_title)

    def bottom_axis(self, title: str) -> Iterator[str]:
        """The horizontal axis alone."""
        yield segment("axis", self.left, self.bottom, self.right, self.bottom)
        for value, label in self.xs.ticks(5 if self.canvas.narrow else 10):
            x = self.x(value)
            yield segment("axis", x, self.bottom, x, self.bottom + 4)
            yield text(x, self.bottom + 17, "tick middle", label)
        yield text(self.right, self.bottom + 33, "unit end", title)


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: a sample, drawn at a place, and what it means."""

    draw: Callable[[float, float], str]
    words: str


def legend(canvas: Canvas, keys: Sequence[Key], top: float) -> tuple[list[str], float]:
    """The legend in rows, and where it ends."""
    drawn: list[str] = []
    x, y = 4.0, top
    for key in keys:
        width = 26 + len(key.words) * CHARACTER + 16
        if x > 4 and x + width > canvas.width:
            x, y = 4.0, y + 20
        drawn += [key.draw(x, y), text(x + 26, y + 4, "key", key.words)]
        x += width
    return drawn, y + 20 if keys else top


def tipped(tip: str, content: str, kind: str = "mark") -> str:
    """A mark with the text that is shown when one points at it."""
    return f'<g class="{kind}"><title>{escape(tip)}</title>{content}</g>'


def shortened(words: str, room: float) -> str:
    """A text that fits into so many pixels, with an ellipsis where it was cut."""
    most = max(4, int(room / CHARACTER))
    return words if len(words) <= most else f"{words[: most - 1]}…"
