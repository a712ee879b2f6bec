"""Counting durations in the buckets of a histogram (`metrics/histogram.py` says what these are).

The records of a batch often have the same time as their neighbours, so a bucket is found once for all of
these, or once per time.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import helper, loop_of

Counts: TypeAlias = npt.NDArray[np.int64]

BITS: Final = 5
_EXPONENT_MAX: Final = 40
LARGEST_US: Final = (1 << _EXPONENT_MAX + 1) - 1
"""The largest duration that has a bucket, about 25 days; longer ones are counted as this."""

BUCKETS: Final = (_EXPONENT_MAX - BITS + 2) << BITS

_MS_US: Final = 1000
_LARGEST_MS: Final = LARGEST_US // _MS_US + 1
_FEW: Final = 16  # as many numbers take Python as long as they take numpy, which takes long for one


def buckets_of(values_us: npt.NDArray[Any]) -> Counts:
    """The number of the bucket of each value; a negative value is counted as zero."""
    values = np.clip(values_us, 0, LARGEST_US).astype(np.int64)
    shift = np.maximum(np.frexp(values.astype(np.float64))[1] - BITS - 1, 0).astype(np.int64)
    buckets: Counts = (shift << BITS) + (values >> shift)
    return buckets


@helper
def _bucket_of(age_us: int) -> int:
    value = min(max(age_us, 0), LARGEST_US)
    above, shift = value >> BITS + 1, 0
    for step in (32, 16, 8, 4, 2, 1):
        if above >> step:
            above >>= step
            shift += step
    shift += above
    return (shift << BITS) + (value >> shift)


def count_ages(times_ms: Counts, now_us: int, counts: Counts) -> None:
    """Add the ages of records with these times to the counts of the buckets.

    A time that is further away than the largest duration, before or after now, counts like that one.
    """
    now_ms = now_us // _MS_US
    if len(times_ms) < _FEW:
        for time_ms in times_ms.tolist():
            value = min(max(now_us - time_ms * _MS_US, 0), LARGEST_US)
            shift = max(value.bit_length() - BITS - 1, 0)
            counts[(shift << BITS) + (value >> shift)] += 1
        return
    times = np.clip(times_ms, now_ms - _LARGEST_MS, now_ms + _LARGEST_MS)
    first = int(times.min())
    span = int(times.max()) - first + 1
    if span > len(times):
        counts += np.bincount(buckets_of(now_us - times * _MS_US), minlength=BUCKETS)
        return
    ages = now_us - np.arange(first, first + span) * _MS_US
    np.add.at(counts, buckets_of(ages), np.bincount(times - first))


@loop_of(count_ages, "const int64[:]", "int64", "int64[:]")
def _count_ages(times_ms: Counts, now_us: int, counts: Counts) -> None:
    now_ms = now_us // _MS_US
    time_ms, bucket, records = np.int64(0), -1, 0
    for i in range(len(times_ms)):
        if bucket < 0 or times_ms[i] != time_ms:
            if records:
                counts[bucket] += records
            time_ms, records = times_ms[i], 0
            within = min(max(time_ms, now_ms - _LARGEST_MS), now_ms + _LARGEST_MS)
            bucket = _bucket_of(now_us - within * _MS_US)
        records += 1
    if records:
        counts[bucket] += records
