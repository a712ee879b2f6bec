"""A hash table from int64 keys to rows: keys are numbered in the order in which they first appear.

Cells of key and row + 1 lie beside each other (open addressing, linear probing); a row of 0 means that the
cell is free, so new memory is an empty table. At most half of the cells is taken.

A table that grows is not moved at once. The cells of the old one are passed bit by bit, from START on and
round, and those passed are in the new one. Which of both has a key follows from its first cell in the old
one: that has been passed or not. Cells are passed up to a free one, so no probe leads from one side to the
other, and the last cell of the round stays free, for the same reason: a key that would take it goes into
the new table (SPILLED). As cells keep their order when a table doubles, the new one is filled in order,
and its memory is touched page by page.
"""

from typing import Any, Final, TypeAlias

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
SPILLED: Final = 6  # whether a key is in the new table that ought to be in the old one
WANTED: Final = 7  # for how many keys there was no room
STATE_SIZE: Final = 8

ALL: Final = 1 << 62
PER_KEY: Final = 4
"""How many cells are passed for each new key: an old table is done with long before the next one is."""

ODD: Final = 0xC2B2AE3D27D4EB4F
_ODD: Final = np.uint64(ODD)
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
    if stop - begin <= _FEW and state[PASSED] == ALL:
        return _locate_few(keys[begin:], begin, rows, cells, known, state)
    asked, found = keys[begin:stop], rows[begin:stop]
    find(asked, found, cells, old, state)
    missed = (found < 0).nonzero()[0]
    if len(missed):
        new, first, which = np.unique(asked[missed], return_index=True, return_inverse=True)
        count = int(state[COUNT])
        if count + len(new) > state[ROOM]:
            state[WANTED] = len(new)
            return begin
        order = first.argsort()
        numbers = np.empty(len(new), np.int64)
        numbers[order] = np.arange(count, count + len(new))
        found[missed] = numbers[which]
        known[count : count + len(new)] = new[order]
        _insert(new[order], count, cells, old, state)
        state[COUNT] += len(new)
    return stop


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
        move(max(PER_KEY * len(keys), _MOVED_MIN), cells, old, state)
    if state[PASSED] != ALL:
        late = (~_is_passed(keys, old, state)).nonzero()[0]
        fence = (int(state[START]) - 1) & ((len(old) >> 1) - 1)
        spilled = late[_settle(keys[late], rows[late], old, int(state[OLD_SHIFT]), fence)]
        if len(spilled):
            state[SPILLED] = 1
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


@helper
def _first_cell(key: int, shift: int) -> Any:
    return np.int64((np.uint64(key) * _ODD) >> np.uint64(shift))


@helper
def _cell_of(key: int, shift: int, cells: Int64s) -> int:
    """The cell that holds a key, or the free one where the search for it ends."""
    mask = (len(cells) >> 1) - 1
    at: int = _first_cell(key, shift)
    while cells[2 * at + 1] != 0 and cells[2 * at] != key:
        at = (at + 1) & mask
    return at


@helper
def _in_old(key: int, old: Int64s, state: Int64s) -> bool:
    """Whether a key is looked for in the old table."""
    if state[PASSED] == ALL:
        return False
    at: int = _first_cell(key, state[OLD_SHIFT]) - state[START]
    later: bool = (at & ((len(old) >> 1) - 1)) >= state[PASSED]
    return later


@helper
def _row_of(key: int, cells: Int64s, old: Int64s, state: Int64s) -> int:
    """The row of a key, or -1."""
    if _in_old(key, old, state):
        row: int = old[2 * _cell_of(key, state[OLD_SHIFT], old) + 1]
        if row != 0 or state[SPILLED] == 0:
            return row - 1
    row = cells[2 * _cell_of(key, state[SHIFT], cells) + 1]
    return row - 1


@helper
def _pass(slots: int, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Pass so many cells of the old table, and on to the next free one; what they hold is moved."""
    size = len(old) >> 1
    passed = state[PASSED]
    end = passed + slots
    while passed < size:
        at = (state[START] + passed) & (size - 1)
        passed += 1
        if old[2 * at + 1] != 0:
            to = _cell_of(old[2 * at], state[SHIFT], cells)
            cells[2 * to] = old[2 * at]
            cells[2 * to + 1] = old[2 * at + 1]
        elif passed >= end:
            break
    state[PASSED] = ALL if passed == size else passed


@helper
def _add(key: int, cells: Int64s, old: Int64s, known: Int64s, state: Int64s) -> int:
    """Give a new key the next row."""
    if state[PASSED] != ALL:
        _pass(PER_KEY, cells, old, state)
    row: int = state[COUNT]
    known[row] = key
    state[COUNT] = row + 1
    if _in_old(key, old, state):
        at = _cell_of(key, state[OLD_SHIFT], old)
        if at != (state[START] - 1) & ((len(old) >> 1) - 1):
            old[2 * at] = key
            old[2 * at + 1] = row + 1
            return row
        state[SPILLED] = 1
    at = _cell_of(key, state[SHIFT], cells)
    cells[2 * at] = key
    cells[2 * at + 1] = row + 1
    return row


@loop_of(
    locate,
    "const int64[:]",
    "int64",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "int64[:]",
)
def _locate(
    keys: Int64s,
    begin: int,
    rows: Int64s,
    cells: Int64s,
    old: Int64s,
    known: Int64s,
    state: Int64s,
) -> int:
    for i in range(begin, len(keys)):
        row = _row_of(keys[i], cells, old, state)
        if row < 0:
            if state[COUNT] == state[ROOM]:
                state[WANTED] = 1
                return i
            row = _add(keys[i], cells, old, known, state)
        rows[i] = row
    return len(keys)


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


@loop_of(
    count,
    "const int64[:]",
    "int64",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "int64[:]",
    "boolean[:]",
)
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
    for i in range(begin, len(keys)):
        row = _row_of(keys[i], cells, old, state)
        if row < 0:
            if state[COUNT] == state[ROOM]:
                state[WANTED] = 1
                return i
            row = _add(keys[i], cells, old, known, state)
        live[row] += 1
        counts[i] = live[row]
        dirty[row] = True
    return len(keys)


def find(keys: Int64s, rows: Int64s, cells: Int64s, old: Int64s, state: Int64s) -> None:
    """Write the row of every key; -1 for those that are not there."""
    if state[PASSED] == ALL:
        _find_in(keys, rows, cells, int(state[SHIFT]))
        return
    passed = _is_passed(keys, old, state)
    rows[:] = -1
    for cells_there, shift, asked in (
        (old, OLD_SHIFT, (~passed).nonzero()[0]),
        (cells, SHIFT, passed.nonzero()[0]),
    ):
        found = np.empty(len(asked), np.int64)
        _find_in(keys[asked], found, cells_there, int(state[shift]))
        rows[asked] = found
    if state[SPILLED]:
        asked = (rows < 0).nonzero()[0]
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


@loop_of(find, "const int64[:]", "int64[:]", "int64[:]", "int64[:]", "int64[:]")
def _find(keys: Int64s, rows: Int64s, cells: Int64s, old: Int64s, state: Int64s) -> None:
    for i in range(len(keys)):
        rows[i] = _row_of(keys[i], cells, old, state)


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
