"""A histogram of durations in microseconds, from one microsecond to weeks, with a bounded relative error.

Every power of two is cut into 32 buckets of equal width, and below 64 every number has a bucket of its own
(log-linear, as in HdrHistogram). So a bucket is at most 1/32 as wide as the values in it are large, and its
middle is at most 1.6 % away from any of them. Histograms of several processes are merged by adding.
"""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.ids import Micros
from snapline.kernels import ages
from snapline.kernels.ages import BITS, BUCKETS

Counts: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""(bucket, count) of the buckets that are not empty: the form on the wire and in the journal."""


def middle_of(bucket: int) -> float:
    """The middle of the values of a bucket."""
    shift = max((bucket >> BITS) - 1, 0)
    lowest = (bucket - (shift << BITS)) << shift
    return lowest + ((1 << shift) - 1) / 2


class Histogram:
    """How many durations fell into each bucket."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counts = np.zeros(BUCKETS, np.int64)

    @staticmethod
    def of_pairs(pairs: Iterable[tuple[int, int]]) -> "Histogram":
        """Read a histogram from its sparse form. Raises ValueError if the form is wrong."""
        histogram = Histogram()
        for bucket, count in pairs:
            if not 0 <= bucket < BUCKETS or count < 1:
                raise ValueError(f"no histogram has {count} values in bucket {bucket}")
            histogram.counts[bucket] += count
        return histogram

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and bool((self.counts == other.counts).all())

    def __repr__(self) -> str:
        return f"Histogram({len(self)} values)"

    def add_ages(self, times_ms: npt.NDArray[Any], now_us: Micros) -> None:
        """Count how long ago these times are."""
        ages.count_ages(np.ascontiguousarray(times_ms, np.int64), now_us, self.counts)

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts

    def pairs(self) -> Pairs:
        """The sparse form: the buckets that are not empty, with their counts."""
        used = np.flatnonzero(self.counts)
        return tuple(zip(used.tolist(), self.counts[used].tolist(), strict=True))

    def percentile(self, q: float) -> float | None:
        """The value in microseconds that `q` percent of all do not exceed; None if there are no values."""
        total = len(self)
        if not total:
            return None
        rank = max(1, math.ceil(q / 100 * total))
        return middle_of(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def percentile_ms(self, q: float) -> float | None:
        """The percentile in milliseconds, rounded for people."""
        found = self.percentile(q)
        return None if found is None else round(found / 1000, 3)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of several histograms."""
    total = Histogram()
    for histogram in histograms:
        total.merge(histogram)
    return total
