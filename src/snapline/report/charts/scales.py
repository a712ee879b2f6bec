"""Scales of charts: from a value to its share of an axis, with round numbers as ticks."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Protocol

from snapline.wording import latency


class Scale(Protocol):
    """What a chart asks of an axis."""

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1; values beyond the axis lie at its ends."""
        ...

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round values on the axis with their labels, about as many as are asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """An axis on which equal distances are equal differences."""

    low: float
    high: float
    unit: str = ""

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        return _clamped((value - self.low) / (self.high - self.low))

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Multiples of 1, 2 or 5 times a power of ten."""
        step = round_step((self.high - self.low) / most)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [(n * step, f"{short(n * step)}{self.unit}") for n in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """An axis on which equal distances are equal ratios; its labels are times or ratios."""

    low: float
    high: float
    times: bool = True  # whether values are milliseconds; else they are ratios

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        if value <= self.low:
            return 0.0
        return _clamped(log10(value / self.low) / log10(self.high / self.low))

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Powers of ten; where there are few of them, twice and five times these, too, or finer ones."""
        first, last = floor(log10(self.low) + 1e-9), ceil(log10(self.high) - 1e-9)
        powers = [10.0**power for power in range(first, last + 1)]
        short_axis = last - first <= 2 and most > 3
        shown: list[float] = []
        for factors in _FACTORS[1 if short_axis else 0 :]:
            shown = self._within(power * factor for power in powers for factor in factors)
            if len(shown) >= 3:
                break
        return [(value, latency(value) if self.times else f"{value:g}") for value in shown]

    def _within(self, values: Iterable[float]) -> list[float]:
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


_FACTORS = ((1,), (1, 2, 5), (1, 1.1, 1.25, 1.5, 2, 3, 5, 7, 8, 9))
"""The ticks of a logarithmic axis between two powers of ten: the longer it is, the fewer."""


def linear(values: Iterable[float], unit: str = "") -> Linear:
    """An axis from 0 to a round number above all these values."""
    most = max(values, default=0.0)
    if most <= 0:
        return Linear(0, 1, unit)
    step = round_step(most / 4)
    return Linear(0, ceil(most / step - 1e-9) * step, unit)


def logarithmic(values: Iterable[float]) -> Logarithmic:
    """An axis from a power of ten below all these times to one above them."""
    known = [value for value in values if value > 0]
    if not known:
        return Logarithmic(0.1, 10)
    low, high = floor(log10(min(known))), ceil(log10(max(known)))
    return Logarithmic(10.0 ** max(low, -2), 10.0 ** max(high, max(low, -2) + 1))


def round_step(least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below this."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * 0.999999)


def short(value: float) -> str:
    """A number in few characters: `950`, `12k`, `1.5M`."""
    if not isfinite(value):
        return f"{value}"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scaled = value / (1e3 if unit == "k" else limit)
            return f"{scaled:.3g}{unit}"
    whole = value == round(value) or abs(value) >= 999.5  # three digits of that are 1e+03
    return f"{value:,.0f}" if whole else f"{value:.3g}"


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))
