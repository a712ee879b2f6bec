"""Every form of the kernels of generators gives what the definition says, in Python's numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forms import assert_same, forms_of, frozen, results
from snapline.kernels import generating

WORD = (1 << 64) - 1
LARGEST = (1 << 63) - 1

words = st.integers(0, WORD) | st.sampled_from([0, 1, WORD, 1 << 63])
few_offsets = st.lists(st.integers(-LARGEST - 1, LARGEST), max_size=12)
following_offsets = st.builds(
    lambda first, count: list(range(first, first + count)),
    st.integers(0, 1 << 41) | st.sampled_from([-3, LARGEST - 60, (1 << 40) - 7]),
    st.integers(0, 60),
)
all_offsets = few_offsets | following_offsets
wholes = st.integers(0, 1 << 24) | words
totals = st.integers(1, 1 << 24) | st.integers(1, WORD)
some_bits = st.lists(words, max_size=12)
places = st.tuples(st.integers(0, 63), st.integers(1, 63))

bits_at = forms_of(generating, "bits_at")
drawn = forms_of(generating, "drawn")
parts = forms_of(generating, "parts")
entries = forms_of(generating, "entries")
shares = forms_of(generating, "shares")
latest = forms_of(generating, "latest")


def ints(values):
    return frozen(np.array(values, np.int64))


def bits(values):
    return frozen(np.array(values, np.uint64))


def signed(values):
    """Words as int64 has them."""
    return np.array([value & WORD for value in values], np.uint64).view(np.int64).tolist()


def mixed(offset, start):
    """Number `offset` of splitmix64, after its authors."""
    word = (offset * 0x9E3779B97F4A7C15 + start + 0x9E3779B97F4A7C15) & WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def part_of(word, place, below):
    first, width = place
    return ((word >> first & ((1 << width) - 1)) * below & WORD) >> width


@given(all_offsets, words)
def test_bits_are_those_of_splitmix64(offsets, start):
    assert_same(
        results(bits_at, ints(offsets), start), [mixed(offset, start) for offset in offsets]
    )


@given(all_offsets, words, st.integers(2, WORD) | st.integers(2, 1000) | st.just(1 << 63))
def test_a_draw_is_the_exact_remainder_whatever_the_divisor(offsets, start, below):
    found = results(drawn, ints(offsets), start, below, *generating.divisor_of(below))
    assert_same(found, signed(mixed(offset, start) % below for offset in offsets))


@given(some_bits, places, words)
def test_a_part_takes_its_own_bits(values, place, below):
    expected = signed(part_of(value, place, below) for value in values)
    assert_same(results(parts, bits(values), *place, below), expected)


@given(some_bits, st.integers(0, 63), st.integers(1, 40), st.integers(1, 2000))
def test_an_entry_is_at_the_place_that_a_part_tells(values, first, width, size):
    table = frozen(np.arange(size) * 7 - 3)
    expected = [7 * part_of(value, (first, width), size) - 3 for value in values]
    assert_same(results(entries, bits(values), first, width, table), expected)


def share(offset, whole, records):
    return ((offset & WORD) * whole & WORD) // records


@given(all_offsets, wholes, totals)
def test_a_share_is_the_exact_quotient_of_a_product_of_64_bits(offsets, whole, records):
    expected = signed(share(offset, whole, records) for offset in offsets)
    assert_same(results(shares, ints(offsets), whole, records), expected)


@pytest.mark.parametrize(("whole", "records"), [(60_000, 6_000_000), (999, 8_000), (7, 97), (3, 1)])
def test_shares_change_where_they_should_in_long_rows_of_offsets(whole, records):
    offsets = range(12_345, 13_345)
    expected = [offset * whole // records for offset in offsets]
    assert_same(results(shares, ints(list(offsets)), whole, records), expected)


def test_shares_are_those_of_64_bits_where_a_product_has_more():
    whole, records = 1 << 24, (1 << 28) + 12_345
    offsets = range((1 << 40) - 50, (1 << 40) + 50)
    expected = [share(offset, whole, records) for offset in offsets]
    assert max(expected) > 1 << 32 > min(expected)
    assert_same(results(shares, ints(list(offsets)), whole, records), expected)


@given(
    all_offsets,
    words,
    places,
    wholes,
    totals,
    st.integers(1, 9),
    st.integers(0, 1000) | words,
    st.booleans(),
)
def test_the_latest_is_drawn_from_those_that_are_there(
    offsets, start, place, whole, records, partitions, most, ahead
):
    drawn_bits = [mixed(offset, start) for offset in offsets]
    expected = []
    for offset, word in zip(offsets, drawn_bits, strict=True):
        there = (share(offset, whole, records) + 1) * partitions & WORD
        below = (min(there, most) + ahead) & WORD
        expected.append(there + ahead - 1 - part_of(word, place, below))
    found = results(
        latest,
        ints(offsets),
        bits(drawn_bits),
        *place,
        whole,
        records,
        partitions,
        most,
        int(ahead),
    )
    assert_same(found, signed(expected))
