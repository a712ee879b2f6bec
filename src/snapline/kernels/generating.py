"""What generated records are computed from: random bits, parts of them, and shares of a whole.

All numbers are taken modulo 2**64, as numpy does. A loop divides seldom, because that takes a processor ten
times as long as all else: a remainder is found by a multiplication (`divisor_of`), and offsets that follow
each other have the same share of a whole for a while, so it is found once for all of these.
"""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import helper, loop_of

Ints: TypeAlias = npt.NDArray[np.int64]
Bits: TypeAlias = npt.NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_ZERO, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)
_LARGEST = np.uint64((1 << 64) - 1)
_SHORT = np.uint64(8)  # so many records with the same share are too few for a search of their end


def mix(words: Bits) -> None:
    """The finaliser of splitmix64, in place: every input bit moves every output bit."""
    words += STEP
    shifted = words >> _SHIFT_1
    words ^= shifted
    words *= _FACTOR_1
    np.right_shift(words, _SHIFT_2, out=shifted)
    words ^= shifted
    words *= _FACTOR_2
    np.right_shift(words, _SHIFT_3, out=shifted)
    words ^= shifted


@helper
def _mixed(word: np.uint64) -> np.uint64:
    word = word + STEP
    word = (word ^ (word >> _SHIFT_1)) * _FACTOR_1
    word = (word ^ (word >> _SHIFT_2)) * _FACTOR_2
    return word ^ (word >> _SHIFT_3)


@helper
def _high(one: int, other: np.uint64) -> np.uint64:
    """The upper 64 bits of a product, made of products of halves, which vectors have."""
    low_1, high_1, low_2, high_2 = one & _LOW, one >> _HALF, other & _LOW, other >> _HALF
    middle = high_1 * low_2 + ((low_1 * low_2) >> _HALF)
    carried = low_1 * high_2 + (middle & _LOW)
    return high_1 * high_2 + (middle >> _HALF) + (carried >> _HALF)


@helper
def _has_runs(offsets: Ints, whole: int, records: int) -> bool:
    """Whether many neighbours have the same share: they follow each other, and no product overflows."""
    count = len(offsets)
    if count == 0 or offsets[0] < 0 or whole == _ZERO or records // whole < _SHORT:
        return False
    if np.uint64(offsets[0]) + np.uint64(count) > _LARGEST // whole:
        return False
    first, gaps = offsets[0], 0
    for i in range(count):
        gaps |= offsets[i] - first - i
    return gaps == 0


@helper
def _run(offset: np.int64, whole: int, records: int, left: int) -> tuple[np.uint64, int]:
    """The share at an offset, and how many of those that are left, from there on, have the same."""
    product = np.uint64(offset) * whole
    share = product // records
    others = (records - (product - share * records) - _ONE) // whole
    return share, left if others >= np.uint64(left) else int(others) + 1


# Random bits.


def bits_at(offsets: Ints, start: int) -> Bits:
    """64 random bits per offset, of the numbers that begin at `start`."""
    bits = offsets.astype(np.uint64)
    bits *= STEP
    bits += start
    mix(bits)
    return bits


@loop_of(bits_at, "const int64[:]", "uint64")
def _bits_at(offsets: Ints, start: int) -> Bits:
    bits = np.empty(len(offsets), np.uint64)
    for i in range(len(offsets)):
        bits[i] = _mixed(np.uint64(offsets[i]) * STEP + start)
    return bits


def drawn(offsets: Ints, start: int, below: int, magic: int, shift: int) -> Ints:
    """The same bits modulo `below`, with the two numbers that `divisor_of` gives for it."""
    # The remainder is computed from the quotient, because numpy divides fast and takes remainders slowly.
    bits = bits_at(offsets, start)
    quotient = bits // below
    quotient *= below
    bits -= quotient
    return bits.view(np.int64)


@loop_of(drawn, "const int64[:]", "uint64", "uint64", "uint64", "uint64")
def _drawn(offsets: Ints, start: int, below: int, magic: int, shift: int) -> Ints:
    found = np.empty(len(offsets), np.int64)
    for i in range(len(offsets)):
        bits = _mixed(np.uint64(offsets[i]) * STEP + start)
        high = _high(magic, bits)
        quotient = (((bits - high) >> _ONE) + high) >> shift
        found[i] = np.int64(bits - quotient * below)
    return found


@lru_cache(maxsize=1024)
def divisor_of(below: int) -> tuple[int, int]:
    """A factor and a shift that divide any 64 bits by this number, 2 or more, exactly.

    With 2**(s-1) < below <= 2**s, the factor is 2**(64+s) / below, rounded up, less 2**64 (Granlund and
    Montgomery, "Division by invariant integers using multiplication", 1994, figure 4.1).
    """
    exponent = (below - 1).bit_length()
    factor = -((1 << 64 + exponent) // -below) - (1 << 64)
    return factor, exponent - 1


# Parts of random bits.


def parts(bits: Bits, first: int, width: int, below: int) -> Ints:
    """Numbers below this one, from `width` of the bits, the lowest of which is the `first`."""
    part = bits >> first
    part &= (_ONE << width) - _ONE
    part *= below
    part >>= width
    return part.view(np.int64)


@loop_of(parts, "const uint64[:]", "uint64", "uint64", "uint64")
def _parts(bits: Bits, first: int, width: int, below: int) -> Ints:
    found = np.empty(len(bits), np.int64)
    mask = (_ONE << width) - _ONE
    for i in range(len(bits)):
        found[i] = np.int64((((bits[i] >> first) & mask) * below) >> width)
    return found


def entries(bits: Bits, first: int, width: int, table: Ints) -> Ints:
    """The entries of a table at the places that are such numbers."""
    return table.take(parts(bits, first, width, len(table)))


@loop_of(entries, "const uint64[:]", "uint64", "uint64", "const int64[:]")
def _entries(bits: Bits, first: int, width: int, table: Ints) -> Ints:
    found = np.empty(len(bits), np.int64)
    mask, size = (_ONE << width) - _ONE, np.uint64(len(table))
    for i in range(len(bits)):
        found[i] = table[(((bits[i] >> first) & mask) * size) >> width]
    return found


# Shares of a whole.


def shares(offsets: Ints, whole: int, records: int) -> Ints:
    """How much of `whole` has passed at each offset, if all of it passes evenly in `records` records."""
    share = offsets.view(np.uint64) * whole  # unsigned: numpy divides faster
    share //= records
    return share.view(np.int64)


@loop_of(shares, "const int64[:]", "uint64", "uint64")
def _shares(offsets: Ints, whole: int, records: int) -> Ints:
    count, at = len(offsets), 0
    found = np.empty(count, np.int64)
    if not _has_runs(offsets, whole, records):
        for i in range(count):
            found[i] = np.int64(np.uint64(offsets[i]) * whole // records)
        return found
    while at < count:
        share, run = _run(offsets[at], whole, records, count - at)
        found[at : at + run] = np.int64(share)
        at += run
    return found


def latest(
    offsets: Ints,
    bits: Bits,
    first: int,
    width: int,
    whole: int,
    records: int,
    partitions: int,
    most: int,
    ahead: int,
) -> Ints:
    """One of the `most` latest of what is numbered densely over all partitions, from parts of the bits.

    There is one of these in each partition at first, and `whole` when all `records` have passed. With
    `ahead` as 1 it may also be the one that comes next.
    """
    there = shares(offsets, whole, records).view(np.uint64)
    there += _ONE
    there *= partitions
    part = bits >> first
    part &= (_ONE << width) - _ONE
    part *= np.minimum(there, most) + ahead
    part >>= width
    there += ahead
    there -= _ONE
    there -= part
    return there.view(np.int64)


@loop_of(latest, "const int64[:]", "const uint64[:]", *["uint64"] * 7)
def _latest(
    offsets: Ints,
    bits: Bits,
    first: int,
    width: int,
    whole: int,
    records: int,
    partitions: int,
    most: int,
    ahead: int,
) -> Ints:
    count, at = len(offsets), 0
    found = np.empty(count, np.int64)
    mask = (_ONE << width) - _ONE
    if not _has_runs(offsets, whole, records):
        for i in range(count):
            there = (np.uint64(offsets[i]) * whole // records + _ONE) * partitions
            below = (there if there < most else most) + ahead
            part = (((bits[i] >> first) & mask) * below) >> width
            found[i] = np.int64(there + ahead - _ONE - part)
        return found
    while at < count:
        share, run = _run(offsets[at], whole, records, count - at)
        there = (share + _ONE) * partitions
        below, last = (there if there < most else most) + ahead, there + ahead - _ONE
        some, among = found[at : at + run], bits[at : at + run]
        for i in range(len(some)):
            some[i] = np.int64(last - ((((among[i] >> first) & mask) * below) >> width))
        at += run
    return found
