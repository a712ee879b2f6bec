"""Every form of the kernels of routes gives what the definition says, worked out in Python's numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_forms import assert_same, forms_of, frozen, results
from snapline.kernels import routing

WORD = (1 << 64) - 1
LARGEST = (1 << 63) - 1

extremes = st.sampled_from([0, -1, 1, LARGEST, -LARGEST - 1])
keys = st.lists(st.integers(-5, 30) | st.integers(-LARGEST - 1, LARGEST) | extremes, max_size=60)
tasks = st.integers(1, 9) | st.sampled_from([2, 256, 257, 1000])

mixed = forms_of(routing, "mixed")
target_of = forms_of(routing, "target_of")
split_order = forms_of(routing, "split_order")


def hash_of(key):
    raw = (key & WORD) * 0x9E3779B97F4A7C15 & WORD
    raw = (raw ^ raw >> 32) * 0xD6E8FEB86659FD93 & WORD
    return raw ^ raw >> 31


def owner_of(hashed, tasks):
    return (hashed >> 32) * tasks >> 32


@given(keys)
def test_a_hash_is_two_rounds_of_multiply_and_fold(values):
    raw = frozen(np.array(values, np.int64)).view(np.uint64)
    assert_same(results(mixed, raw), [hash_of(value) for value in values])


@given(st.integers(-LARGEST - 1, LARGEST) | extremes, tasks)
def test_one_key_has_its_owner_by_the_upper_half_of_its_hash(key, tasks):
    assert results(target_of, key, tasks) == [owner_of(hash_of(key), tasks)] * 3


@given(keys, tasks, st.booleans())
def test_the_records_of_a_task_stand_together_in_their_order(values, tasks, are_hashes):
    column = frozen(np.array(values, np.int64))
    hashes = [value & WORD if are_hashes else hash_of(value) for value in values]
    owners = [owner_of(hashed, tasks) for hashed in hashes]
    counted = [np.full(tasks, 77) for _ in split_order]
    orders = [
        order(column, are_hashes, counts)
        for order, counts in zip(split_order, counted, strict=True)
    ]
    assert_same(orders, sorted(range(len(values)), key=lambda place: owners[place]))
    assert_same(counted, [owners.count(task) for task in range(tasks)])
