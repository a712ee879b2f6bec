"""A waterfall: steps that follow each other, each with its own bar on one axis of time."""

from collections.abc import Sequence
from dataclasses import dataclass

from snapline.report.charts.canvas import Canvas, Plot, shortened, tipped
from snapline.report.charts.scales import Linear
from snapline.report.spacetime.svg import box, segment, text

STEP_ROW = 30.0


@dataclass(frozen=True, slots=True)
class FailureStep:
    """A step of a failure; times are in seconds since the fault, or since it was noticed."""

    name: str
    begin_s: float
    end_s: float
    told: str  # how long it took
    meaning: str
    open: bool = False  # whether it had not ended when the run did


def waterfall(canvas: Canvas, steps: Sequence[FailureStep], *, title: str, origin: str) -> str:
    """The steps from top to bottom, each where it began and as long as it took."""
    end = max((step.end_s for step in steps), default=1.0) or 1.0
    left = 82.0 if canvas.narrow else 110.0
    height = STEP_ROW * len(steps)
    plot = Plot(canvas, Linear(0, end * 1.02), Linear(0, 1), top=6, height=height, left=left)
    plot.right -= 70 if canvas.narrow else 90  # room for how long the last one took
    parts = list(plot.bottom_axis(origin))
    for row, step in enumerate(steps):
        y = plot.top + row * STEP_ROW + 5
        x, right = plot.x(step.begin_s), plot.x(step.end_s)
        kind = f"step step-{step.name.split()[0]}{' open' if step.open else ''}"
        drawn = box(kind, x, y, max(right - x, 2), STEP_ROW - 10)
        drawn += text(left - 8, y + 14, "name end", shortened(step.name, left - 10))
        drawn += text(max(right, x + 2) + 6, y + 14, "value", step.told)
        if row:
            parts.append(segment("thread", x, y - 10, x, y))
        parts.append(tipped(f"{step.name}, {step.told}: {step.meaning}", drawn))
    return canvas.svg(title, plot.bottom + 40, parts)
