"""A hash table from int64 keys to rows: keys are numbered in the order in which they first appear.

Cells of key and row + 1 lie beside each other (open addressing, linear probing); a row of 0 means that the
cell is free, so new memory is an empty table. At most half of the cells is taken.

A table that grows is not moved at once. The cells of the old one are passed bit by bit, from START on and
round, and those passed are in the new one. Which of both has a key follows from its first cell in the old
one: that has been passed or not. Cells are passed up to a free one, so no probe leads from one side to the
other, and the last cell of the round, the *fence*, stays free, for the same reason: a key whose probe ends
there is in the new table, and only there is it looked for in both. As cells keep their order when a table
doubles, the new one is filled in order, and its memory is touched page by page.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels import grouping
from snapline.kernels.forms import helper, loop_of

Int64s: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

# What the numbers of `state` are.
COUNT: Final = 0  # keys in the table
ROOM: Final = 1  # keys for which there is room
SHIFT: Final = 2  # how far the hash is shifted to get a key's first cell
OLD_SHIFT: Final = 3  # the same in the old table
START: Final = 4  # the cell of the old table that was passed first
PASSED: Final = 5  # how many of its cells were passed: ALL if there is no old table
WANTED: Final = 6  # for how many keys there was no room
STATE_SIZE: Final = 7

ALL: Final = 1 << 62
PER_KEY: Final = 4
"""How many cells are passed for each key of a batch: enough to be done before the new table is full."""

ODD: Final = 0xC2B2AE3D27D4EB4F
_ODD: Final = np.uint64(ODD)
_ONE: Final = np.uint64(1)
_ONES: Final = (1 << 64) - 1
_FEW: Final = 12
_PIECE: Final = 1 << 14
_MOVED_MIN: Final = 1 << 8  # cells: in numpy fewer would cost as much


def locate(
    keys: Int64s,
    begin: int,
    rows: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
) -> int:
    """Write the row of every key from `begin` on; keys that are new get one, and a place in `known`.

    Returns how far it came: to the end, or to where there was no room for a new key (WANTED is not 0), or
    as far as it liked.
    """
    stop = min(len(keys), begin + _PIECE)
    if state[PASSED] != ALL:
        move(max(PER_KEY * (stop - begin), _MOVED_MIN), cells, old, state)
    if stop - begin <= _FEW and state[PASSED] == ALL:
        return _locate_few(keys[begin:], begin, rows, cells, known, state)
    asked, found = keys[begin:stop], rows[begin:stop]
    find(asked, found, cells, old, state)
    missed = (found < 0).nonzero()[0]
    if len(missed):
        numbers, new = _numbered(asked[missed])
        count = int(state[COUNT])
        if count + len(new) > state[ROOM]:
            state[WANTED] = len(new)
            return begin
        found[missed] = count + numbers
        known[count : count + len(new)] = new
        _insert(new, count, cells, old, state)
        state[COUNT] += len(new)
    return stop


def _numbered(keys: Int64s) -> tuple[Int64s, Int64s]:
    """Number keys in the order of first appearance; and the distinct keys in that order.

    Values packed of the upper bits of a hash and the position are sorted: half of what `np.unique` takes.
    """
    bits = np.uint64(len(keys).bit_length())
    ramp = np.arange(len(keys), dtype=np.uint64)
    packed = np.sort((((keys.view(np.uint64) * _ODD) >> bits) << bits) | ramp)
    order = (packed & ((_ONE << bits) - _ONE)).view(np.int64)
    packed >>= bits
    begins = np.ones(len(keys), np.bool_)
    np.not_equal(keys[order[1:]], keys[order[:-1]], out=begins[1:])
    if (begins[1:] & (packed[1:] == packed[:-1])).any():  # keys that share these bits may be mixed
        order = keys.argsort(kind="stable")
        np.not_equal(keys[order[1:]], keys[order[:-1]], out=begins[1:])
    first = np.zeros(len(keys), np.bool_)
    first[order[begins]] = True
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = (first.cumsum() - 1)[order[begins]][begins.cumsum() - 1]
    return numbers, keys[first]


def _locate_few(
    keys: Int64s, begin: int, rows: Int64s, cells: Int64s, known: Int64s, state: Int64s
) -> int:
    """As `locate`, for a few keys and without an old table: a step costs a tenth of a numpy call."""
    count, room, shift = state[:OLD_SHIFT].tolist()
    view, mask = cells.data, (len(cells) >> 1) - 1
    for i, key in enumerate(keys.tolist(), begin):
        at = (key * ODD & _ONES) >> shift
        while (row := view[2 * at + 1]) and view[2 * at] != key:
            at = (at + 1) & mask
        if not row:
            if count == room:
                state[WANTED] = 1
                break
            known[count] = view[2 * at] = key
            state[COUNT] = view[2 * at + 1] = row = count = count + 1
        rows[i] = row - 1
    else:
        return begin + len(keys)
    return i


def _insert(keys: Int64s, first: int, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Give keys, which are new and distinct, the rows from `first` on."""
    rows = np.arange(first, first + len(keys))
    if state[PASSED] != ALL:
        late = (~_is_passed(keys, old, state)).nonzero()[0]
        fence = _fence(old, state)
        spilled = late[_settle(keys[late], rows[late], old, int(state[OLD_SHIFT]), fence)]
        in_new = np.ones(len(keys), np.bool_)
        in_new[late] = False
        in_new[spilled] = True
        keys, rows = keys[in_new], rows[in_new]
    _settle(keys, rows, cells, int(state[SHIFT]), -1)


def _settle(keys: Int64s, rows: Int64s, cells: Int64s, shift: int, fence: int) -> Int64s:
    """Put new keys into free cells; return the positions of those that came to the cell `fence`."""
    key_at, row_at = cells[::2], cells[1::2]
    mask = len(key_at) - 1
    at = _first_cells(keys, shift)
    left = np.arange(len(keys))
    fenced = [left[:0]]
    while len(left):
        if fence >= 0 and (there := at == fence).any():
            fenced.append(left[there])
            left, at = left[~there], at[~there]
        wanted = rows[left] + 1
        free = (row_at[at] == 0).nonzero()[0]
        row_at[at[free]] = wanted[free]  # of several keys that want one cell, one is written last
        won = row_at[at] == wanted
        key_at[at[won]] = keys[left[won]]
        left, at = left[~won], (at[~won] + 1) & mask
    return np.concatenate(fenced)


def _first_cells(keys: Int64s, shift: int) -> Int64s:
    """Where the probes of these keys begin."""
    at: Int64s = ((keys.view(np.uint64) * _ODD) >> np.uint64(shift)).view(np.int64)
    return at


def _is_passed(keys: Int64s, old: Int64s, state: Int64s) -> Bools:
    """Which of these keys are not looked for in the old table any more."""
    at = _first_cells(keys, int(state[OLD_SHIFT]))
    passed: Bools = ((at - state[START]) & ((len(old) >> 1) - 1)) < state[PASSED]
    return passed


def _fence(old: Int64s, state: Int64s) -> int:
    """The last cell of the round through the old table."""
    return (int(state[START]) - 1) & ((len(old) >> 1) - 1)


def _end_at_fence(keys: Int64s, old: Int64s, state: Int64s) -> Bools:
    """Of keys that the old table should have and has not: whose probes end at its last cell."""
    fence, rows, mask = _fence(old, state), old[1::2], (len(old) >> 1) - 1
    before = 0  # cells in a row that are taken, up to the fence
    while rows[(fence - before - 1) & mask]:
        before += 1
    ending: Bools = ((fence - _first_cells(keys, int(state[OLD_SHIFT]))) & mask) <= before
    return ending


# A loop hands arrays to a helper once for a batch, not for a key: to count who holds them takes longer than
# to look a key up. Numbers are uint64 where they are shifted, and where they are an index, never below 0.


@helper
def _pass(slots: int, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Pass so many cells of the old table, and on to the next free one; what they hold is moved."""
    size, start, passed = len(old) >> 1, state[START], state[PASSED]
    mask, shift = np.uint64((len(cells) >> 1) - 1), np.uint64(state[SHIFT])
    end = passed + slots
    while passed < size:
        cell = (start + passed) & (size - 1)
        passed += 1
        row = old[2 * cell + 1]
        if row != 0:
            at = (np.uint64(old[2 * cell]) * _ODD) >> shift
            while cells[(at << _ONE) | _ONE] != 0:
                at = (at + _ONE) & mask
            cells[at << _ONE] = old[2 * cell]
            cells[(at << _ONE) | _ONE] = row
        elif passed >= end:
            break
    state[PASSED] = ALL if passed == size else passed


@helper
def _locate_all(
    keys: Int64s,
    begin: int,
    rows: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
) -> int:
    if state[PASSED] != ALL:
        _pass(PER_KEY * (len(keys) - begin), cells, old, state)
    mask, shift = np.uint64((len(cells) >> 1) - 1), np.uint64(state[SHIFT])
    old_mask, old_shift = np.uint64((len(old) >> 1) - 1), np.uint64(state[OLD_SHIFT])
    start, passed = np.uint64(state[START]), np.uint64(state[PASSED])
    fence = (start - _ONE) & old_mask
    for i in range(begin, len(keys)):
        key = keys[i]
        hashed = np.uint64(key) * _ODD
        at = hashed >> old_shift
        in_old = ((at - start) & old_mask) >= passed
        row = 0
        if in_old:
            while old[at << _ONE] != key and old[(at << _ONE) | _ONE] != 0:
                at = (at + _ONE) & old_mask
            row = old[(at << _ONE) | _ONE]
            in_old = at != fence
            if row == 0 and in_old and state[COUNT] < state[ROOM]:
                row = state[COUNT] + 1
                known[row - 1] = old[at << _ONE] = key
                state[COUNT] = old[(at << _ONE) | _ONE] = row
        if not in_old:
            at = hashed >> shift
            while cells[at << _ONE] != key and cells[(at << _ONE) | _ONE] != 0:
                at = (at + _ONE) & mask
            row = cells[(at << _ONE) | _ONE]
            if row == 0 and state[COUNT] < state[ROOM]:
                row = state[COUNT] + 1
                known[row - 1] = cells[at << _ONE] = key
                state[COUNT] = cells[(at << _ONE) | _ONE] = row
        if row == 0:
            state[WANTED] = 1
            return i
        rows[i] = row - 1
    return len(keys)


@loop_of(locate, "const int64[:]", "int64", *["int64[:]"] * 5)
def _locate(
    keys: Int64s,
    begin: int,
    rows: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
) -> int:
    return _locate_all(keys, begin, rows, cells, old, known, state)


def count(
    keys: Int64s,
    begin: int,
    counts: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
    live: Int64s,
    dirty: Bools,
) -> int:
    """As `locate`, and count each key at its row, in `live`; `counts` gets what each one makes of it."""
    rows = np.empty(len(keys), np.int64)
    done = locate(keys, begin, rows, cells, old, known, state)
    grouping.tally(rows[begin:done], counts[begin:done], live, dirty)
    return done


@loop_of(count, "const int64[:]", "int64", *["int64[:]"] * 6, "boolean[:]")
def _count(
    keys: Int64s,
    begin: int,
    counts: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
    live: Int64s,
    dirty: Bools,
) -> int:
    done = _locate_all(keys, begin, counts, cells, old, known, state)
    for i in range(begin, done):
        row = counts[i]  # which it is for a moment
        live[row] += 1
        counts[i] = live[row]
        dirty[row] = True
    return done


def find(keys: Int64s, rows: Int64s, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Write the row of every key; -1 for those that are not there."""
    if state[PASSED] == ALL:
        _find_in(keys, rows, cells, int(state[SHIFT]))
        return
    in_new = _is_passed(keys, old, state)
    late = (~in_new).nonzero()[0]
    found = np.empty(len(late), np.int64)
    _find_in(keys[late], found, old, int(state[OLD_SHIFT]))
    rows[late] = found
    missed = late[found < 0]
    in_new[missed] = _end_at_fence(keys[missed], old, state)
    asked = in_new.nonzero()[0]
    found = np.empty(len(asked), np.int64)
    _find_in(keys[asked], found, cells, int(state[SHIFT]))
    rows[asked] = found


def _find_in(keys: Int64s, rows: Int64s, cells: Int64s, shift: int) -> None:
    """Find keys in one table: all probe at once, those that meet another key step on."""
    key_at, row_at = cells[::2], cells[1::2]
    mask = len(key_at) - 1
    at = _first_cells(keys, shift)
    np.subtract(row_at[at], 1, out=rows)
    missed = ((key_at[at] != keys) & (rows >= 0)).nonzero()[0]
    at = at[missed]
    while len(missed) > _FEW:
        at = (at + 1) & mask
        there = row_at[at] - 1
        rows[missed] = there
        more = (key_at[at] != keys[missed]) & (there >= 0)
        missed, at = missed[more], at[more]
    view = cells.data
    for i, key, cell in zip(missed.tolist(), keys[missed].tolist(), at.tolist(), strict=True):
        cell = (cell + 1) & mask
        while view[2 * cell + 1] and view[2 * cell] != key:
            cell = (cell + 1) & mask
        rows[i] = view[2 * cell + 1] - 1


@loop_of(find, "const int64[:]", *["int64[:]"] * 4)
def _find(keys: Int64s, rows: Int64s, cells: Int64s, old: Int64s, state: Int64s) -> None:
    mask, shift = np.uint64((len(cells) >> 1) - 1), np.uint64(state[SHIFT])
    old_mask, old_shift = np.uint64((len(old) >> 1) - 1), np.uint64(state[OLD_SHIFT])
    start, passed = np.uint64(state[START]), np.uint64(state[PASSED])
    fence = (start - _ONE) & old_mask
    for i in range(len(keys)):
        key = keys[i]
        hashed = np.uint64(key) * _ODD
        at = hashed >> old_shift
        in_old = ((at - start) & old_mask) >= passed
        row = 0
        if in_old:
            while old[at << _ONE] != key and old[(at << _ONE) | _ONE] != 0:
                at = (at + _ONE) & old_mask
            row = old[(at << _ONE) | _ONE]
            in_old = at != fence
        if not in_old:
            at = hashed >> shift
            while cells[at << _ONE] != key and cells[(at << _ONE) | _ONE] != 0:
                at = (at + _ONE) & mask
            row = cells[(at << _ONE) | _ONE]
        rows[i] = row - 1


def move(slots: int, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Pass so many cells of the old table, and on to the next free one; what they hold is moved."""
    size, passed, start = len(old) >> 1, int(state[PASSED]), int(state[START])
    end = min(passed + slots, size)
    rows, mask = old[1::2], size - 1
    while end < size and rows[(start + end - 1) & mask]:
        end += 1
    at = np.arange(start + passed, start + end) & mask
    taken = at[rows[at] != 0]
    _settle(old[::2][taken], rows[taken] - 1, cells, int(state[SHIFT]), -1)
    state[PASSED] = ALL if end == size else end


@loop_of(move, "int64", "int64[:]", "int64[:]", "int64[:]")
def _move(slots: int, cells: Int64s, old: Int64s, state: Int64s) -> None:
    _pass(slots, cells, old, state)
