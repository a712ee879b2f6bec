"""Every form of the kernel that counts ages counts each record in the bucket of its age."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_forms import assert_same, forms_of, frozen
from snapline.kernels import ages

LARGEST = (1 << 63) - 1

count_ages = forms_of(ages, "count_ages")
moments = st.integers(0, 1 << 52) | st.sampled_from([0, 999, 1000, ages.LARGEST_US + 1])
times = (
    st.lists(st.integers(-LARGEST - 1, LARGEST), max_size=40)
    | st.lists(st.integers(0, 5), max_size=40)
    | st.lists(st.integers(0, 1 << 42), max_size=40)
)


def bucket_of(age_us):
    value = min(max(age_us, 0), ages.LARGEST_US)
    shift = max(value.bit_length() - 6, 0)
    return 32 * shift + (value >> shift)


@given(times, st.sampled_from([1, 20]), moments)
def test_each_record_is_counted_in_the_bucket_of_its_age(times_ms, times_over, now_us):
    times_ms *= times_over  # few are counted in another way than many
    counted = [np.full(ages.BUCKETS, 5) for _ in count_ages]
    for count, counts in zip(count_ages, counted, strict=True):
        count(frozen(np.array(times_ms, np.int64)), now_us, counts)
    expected = [5] * ages.BUCKETS
    for time_ms in times_ms:
        expected[bucket_of(now_us - 1000 * time_ms)] += 1
    assert_same(counted, expected)
