"""Compares two columns of runs, figure by figure.

Runs at the same place of the two columns are a pair. A figure that a run does not have, because nothing
failed or nothing was measured, is left out with its pair.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any

from snapline.experiments.statistics import ALPHA, Answer, Difference, Ratio, answer

SURE_PAIRS = 6
"""From so many pairs on a difference can be claimed: 2 / 2^6 is below ALPHA, and 2 / 2^5 is not."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run that is compared, and the words for a second run that has more or less of it."""

    name: str
    unit: str
    path: tuple[str, ...]  # where `result.json` has it, below `metrics`
    more: str
    less: str
    higher_is_worse: bool = True


FIGURES = (
    Figure("records read", "/s", ("rate", "read"), "faster", "slower", higher_is_worse=False),
    Figure("latency p50", "ms", ("latency_ms", "p50"), "longer", "shorter"),
    Figure("latency p99", "ms", ("latency_ms", "p99"), "longer", "shorter"),
    Figure("published p50", "ms", ("committed_latency_ms", "p50"), "longer", "shorter"),
    Figure("published p99", "ms", ("committed_latency_ms", "p99"), "longer", "shorter"),
    Figure("checkpoint time", "ms", ("checkpoints", "time_ms", "median"), "longer", "shorter"),
    Figure("detection", "s", ("detection_s",), "longer", "shorter"),
    Figure("restart", "s", ("restart_s",), "longer", "shorter"),
    Figure("recovery", "s", ("recovery_s",), "longer", "shorter"),
    Figure("bytes per record", "B", ("bytes", "per_record"), "more", "less"),
    Figure("bytes on top", "x", ("bytes", "overhead"), "more", "less"),
    Figure("bytes of payload", "B", ("bytes", "payload"), "more", "less"),
    Figure("bytes of headers", "B", ("bytes", "headers"), "more", "less"),
    Figure("bytes on the wire", "B", ("bytes", "wire"), "more", "less"),
    Figure("bytes logged", "B", ("bytes", "log"), "more", "less"),
    Figure("bytes of snapshots", "B", ("bytes", "snapshots"), "more", "less"),
)
"""What is compared, in the order in which it is shown; docs/measurement.md has the definitions."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure in both columns, and what the pairs say about it."""

    figure: Figure
    first: float  # the median of the first column ...
    second: float  # ... and of the second
    ratio: Ratio
    answer: Answer

    @property
    def words(self) -> str:
        """The answer in words, as `12.0 % slower`: the second column against the first."""
        found, ratio = self.answer.difference, self.ratio
        if found not in (Difference.MORE, Difference.LESS):
            return str(found)
        word = self.figure.more if found is Difference.MORE else self.figure.less
        doubt = "" if self.answer.is_sure else "indicated: "
        return f"{doubt}{share(ratio.estimate)} {word}"

    def is_worse_by(self, threshold: float) -> bool:
        """Whether the second column is worse by more than a ratio, with the whole interval beyond it."""
        worse = self.ratio.low if self.figure.higher_is_worse else 1 / self.ratio.high
        return self.ratio.is_sure and worse > threshold


def share(ratio: float) -> str:
    """How far a ratio is from 1: `12 %`, or `3.1 times` where it is more than twice."""
    if ratio > 2:
        return f"{ratio:.1f} times"
    return f"{abs(ratio - 1):.1%}".replace("%", " %")


def compare(
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    margin: float | None = None,
    floors: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[Compared]:
    """Compare the metrics of two columns of runs, figure by figure, where both have it.

    `floors` are the noise floors that are known, by the names of figures.
    """
    for figure in FIGURES:
        values = [
            (value_of(a, figure), value_of(b, figure)) for a, b in zip(first, second, strict=True)
        ]
        pairs = [(a, b) for a, b in values if a and b]  # nothing has no ratio, and nor has 0
        if pairs:
            left, right = [a for a, _ in pairs], [b for _, b in pairs]
            found = answer(left, right, margin, floors.get(figure.name, 1.0))
            yield Compared(figure, median(left), median(right), *found)


def value_of(metrics: Mapping[str, Any], figure: Figure) -> float | None:
    """The figure of one run; the median where there are several of it, as after several failures."""
    found: Any = metrics
    for name in figure.path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if isinstance(found, list):
        known = [each for each in found if isinstance(each, int | float)]
        # A time that was never reached is longer than all that were: no median stands for both.
        return median(known) if known and len(known) == len(found) else None
    return float(found) if isinstance(found, int | float) else None


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ, each with both values."""
    names = dict.fromkeys((*first, *second))
    both = {name: (first.get(name), second.get(name)) for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def expected_by_chance(compared: Iterable[Compared]) -> float:
    """How many differences are claimed on average although there is none, in so many comparisons."""
    return ALPHA * sum(each.ratio.is_sure for each in compared)
