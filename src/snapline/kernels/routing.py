"""Hashes of keys, and which task owns each: by the upper half of its hash, in proportion.

Tables of keyed state use the lower half, so the keys of one task spread over its table.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import helper, loop_of

Ints: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]

ODD_1 = np.uint64(0x9E3779B97F4A7C15)
_ODD_2 = np.uint64(0xD6E8FEB86659FD93)
_HALF, _SHIFT = np.uint64(32), np.uint64(31)
_WORD = (1 << 64) - 1
_ODD = (int(ODD_1), int(_ODD_2))


@helper
def _mixed_one(raw: np.uint64) -> np.uint64:
    raw = raw * ODD_1
    raw = (raw ^ (raw >> _HALF)) * _ODD_2
    return raw ^ (raw >> _SHIFT)


@helper
def _order_of_two(owners: npt.NDArray[np.uint32], counts: Ints, order: Ints) -> None:
    """Put the places of two tasks in order, and count, without a jump that no processor foresees."""
    records, ones = len(owners), 0
    for i in range(records):
        ones += int(owners[i])
    counts[0], counts[1] = records - ones, ones
    left, right = 0, records - ones
    for i in range(records):
        is_right = int(owners[i])
        order[right if is_right else left] = i
        right += is_right
        left += 1 - is_right


def mixed(raw: Hashes) -> Hashes:
    """Two rounds of multiply and fold: every bit of the input reaches both halves of the result."""
    raw = raw * ODD_1
    raw ^= raw >> _HALF
    raw *= _ODD_2
    raw ^= raw >> _SHIFT
    return raw


@loop_of(mixed, "const uint64[:]")
def _mixed(raw: Hashes) -> Hashes:
    hashes = np.empty(len(raw), np.uint64)
    for i in range(len(raw)):
        hashes[i] = _mixed_one(raw[i])
    return hashes


def target_of(key: int, tasks: int) -> int:
    """The index of the task that owns this key, for a batch of one record."""
    raw = key * _ODD[0] & _WORD
    raw = (raw ^ raw >> 32) * _ODD[1] & _WORD
    return ((raw ^ raw >> 31) >> 32) * tasks >> 32


@loop_of(target_of, "int64", "int64")
def _target_of(key: int, tasks: int) -> int:
    return int(((_mixed_one(np.uint64(np.int64(key))) >> _HALF) * np.uint64(tasks)) >> _HALF)


def targets(hashes: Hashes, tasks: int) -> npt.NDArray[np.uint8] | Ints:
    """The index of the task that owns each key with these hashes."""
    found = hashes >> _HALF
    found *= np.uint64(tasks)
    found >>= _HALF
    # They are sorted: numpy sorts uint8 by radix, which is faster than comparing wider integers.
    return found.astype(np.uint8) if tasks <= 256 else found.view(np.int64)


def split_order(keys: Ints, are_hashes: bool, counts: Ints) -> Ints:
    """The places of all records, those of each task together and in their order.

    The keys are numbers, or hashes already. How many records each task gets is written to `counts`.
    """
    raw = keys.view(np.uint64)
    owners = targets(raw if are_hashes else mixed(raw), len(counts))
    counts[:] = np.bincount(owners, minlength=len(counts))
    if len(counts) == 2:
        return np.concatenate([np.flatnonzero(owners == 0), np.flatnonzero(owners)])
    return np.argsort(owners, kind="stable")


@loop_of(split_order, "const int64[:]", "boolean", "int64[:]")
def _split_order(keys: Ints, are_hashes: bool, counts: Ints) -> Ints:
    records, tasks = len(keys), np.uint64(len(counts))
    owners, order = np.empty(records, np.uint32), np.empty(records, np.int64)
    for i in range(records):
        raw = np.uint64(keys[i])
        owners[i] = (((raw if are_hashes else _mixed_one(raw)) >> _HALF) * tasks) >> _HALF
    if len(counts) == 2:
        _order_of_two(owners, counts, order)
        return order
    counts[:] = 0
    for i in range(records):
        counts[owners[i]] += 1
    places = np.cumsum(counts) - counts
    for i in range(records):
        place = places[owners[i]]
        places[owners[i]] = place + 1
        order[place] = i
    return order
