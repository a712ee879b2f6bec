"""Whether a figure stays where it is: its slope over time, with a confidence interval.

A straight line is laid through the series by least squares. What is left over is rarely independent (a
checkpoint every eighth second is larger, a log grows until it is cut), so the error of the slope is
computed from fewer, effective points: n (1 - r) / (1 + r), where r is how much one point's rest tells about
the next one's. A figure is flat if zero lies within the 95 % interval of its slope.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NORMAL_975 = 1.959964
ROUNDING = 1e-9  # a figure that never changes has a slope like this, and no error


@dataclass(frozen=True)
class Slope:
    """The slope of a series, per unit of its times."""

    mean: float  # of the values
    value: float
    error: float  # half the width of its 95 % interval

    @property
    def flat(self) -> bool:
        """Whether the series may as well have no slope at all."""
        return abs(self.value) <= max(self.error, ROUNDING * abs(self.mean))

    def relative(self, value: float) -> float:
        """A slope in percent of the mean."""
        return 100 * value / self.mean if self.mean else 0.0


def slope_of(times: Sequence[float], values: Sequence[float]) -> Slope:
    """The slope of values over times; needs at least four points."""
    t, y = np.asarray(times, float), np.asarray(values, float)
    if len(t) < 4:
        raise ValueError(f"{len(t)} points have no slope that means anything: measure for longer")
    centred = t - t.mean()
    spread = float(centred @ centred)
    value = float(centred @ y) / spread
    rest = y - y.mean() - value * centred
    count = max(effective(rest), 4.0)
    error = float(np.sqrt(rest @ rest / (count - 2) / spread))
    return Slope(float(y.mean()), value, quantile(count - 2) * error)


def effective(rest: np.ndarray) -> float:
    """How many independent points say as much as these."""
    squares = float(rest @ rest)
    if not squares:
        return float(len(rest))
    again = max(float(rest[1:] @ rest[:-1]) / squares, 0.0)
    return len(rest) * (1 - again) / (1 + again)


def quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's distribution, within a percent from two degrees of freedom on."""
    z = NORMAL_975
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))
