"""The histogram against numpy, which keeps every value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.kernels.ages import LARGEST_US, buckets_of
from snapline.metrics.histogram import Histogram, merged, middle_of

MICROS = st.lists(st.integers(0, LARGEST_US), min_size=1, max_size=200)


def histogram(values: list[int]) -> Histogram:
    counted = Histogram()
    np.add.at(counted.counts, buckets_of(np.array(values, np.int64)), 1)
    return counted


@given(MICROS, st.floats(0.1, 100))
def test_a_percentile_is_within_two_percent_of_the_exact_one(values, q):
    exact = float(np.percentile(values, q, method="inverted_cdf"))
    found = histogram(values).percentile(q)
    assert found == pytest.approx(exact, rel=1 / 60, abs=0.5)


@given(st.integers(0, LARGEST_US - 1))
def test_buckets_follow_each_other_without_a_gap(value):
    bucket, following = buckets_of(np.array([value, value + 1])).tolist()
    assert following in (bucket, bucket + 1)
    assert middle_of(bucket) == pytest.approx(value, rel=1 / 60, abs=0.5)


@given(MICROS, MICROS)
def test_merging_is_as_if_one_had_counted_everything(first, second):
    assert merged([histogram(first), histogram(second)]) == histogram(first + second)


@given(MICROS)
def test_the_sparse_form_comes_back_equal_and_has_only_what_is_there(values):
    pairs = histogram(values).pairs()
    assert Histogram.of_pairs(pairs) == histogram(values)
    assert len(pairs) <= len(set(values))
    assert sum(count for _, count in pairs) == len(values)


def test_what_is_too_small_or_too_large_counts_at_the_ends():
    assert buckets_of(np.array([-5, LARGEST_US * 4])).tolist() == [
        0,
        int(buckets_of(np.array([LARGEST_US]))[0]),
    ]


def test_without_values_there_is_no_percentile():
    assert Histogram().percentile(50) is None
    assert Histogram().percentile_ms(50) is None
    assert len(Histogram()) == 0


@pytest.mark.parametrize("pair", [(-1, 1), (1 << 20, 1), (3, 0)])
def test_a_sparse_form_that_no_histogram_has_is_refused(pair):
    with pytest.raises(ValueError, match="no histogram"):
        Histogram.of_pairs([pair])
