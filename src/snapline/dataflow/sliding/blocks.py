"""Partial results of the last rows of each key, for a price that does not depend on how many they are.

The rows of a key are numbered from 1, and cut into blocks of as many rows as a window has. A window then is
the end of one block and the beginning of the next. Of the present block the *running* result is kept, from
its beginning on. Of the block before, a *page* has for each row the result from there to the end of the
block. So a result combines two numbers. The page is made when a block is full, from its last row to its
first: once per row, whatever the size of the window. Nothing is ever taken back by arithmetic, so sums of
fractions are as good as if each window were added up anew, and do not drift.

A place of a page is read for the last time just before the next block has a row for it. So the page also
takes the rows of the present block, each in its place, and has all of them when that block is full. The
first block of a key has no page yet: its rows are asked for once, when it is full.

All of this follows from the last rows of each key, to the last bit, and is not captured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from snapline.batch import Array
from snapline.dataflow.sliding.plan import Partial
from snapline.dataflow.state.columns import Fixed, Int64s
from snapline.dataflow.state.sums import check_sums

SCANNED: Final[Mapping[str, np.ufunc | None]] = {
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "first": None,
}
"""What blocks compute, and how two rows combine; the first of several rows needs no computing."""

_AT_ONCE: Final = (
    1 << 20
)  # rows of full blocks that are looked at together, if there are several blocks


class Turn:
    """The rows of a batch, ordered by key and then as they came, with their places in blocks."""

    def __init__(self, keys: Int64s, before: Int64s, size: int) -> None:
        """Ordered keys, and how many rows the key of each had before this batch."""
        self.keys: Final = keys
        self.size: Final = size
        begins = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=begins[1:])
        self.starts: Final = np.flatnonzero(begins)  #: of the rows of each key
        self.lengths: Final = np.diff(self.starts, append=len(keys))
        within = np.arange(len(keys)) - np.repeat(self.starts, self.lengths)
        self.ordinals: Final = before + within + 1  #: the number of each row, from 1
        self.places: Final = (self.ordinals - 1) % size  #: in its block
        #: where the rows of a key, or a block of them, begin
        self.parts: Final = np.flatnonzero(begins | (self.places == 0))
        self.full: Final = np.flatnonzero(self.places == size - 1)  #: the last rows of blocks

    @property
    def ends(self) -> Int64s:
        """The last row of each key."""
        return self.starts + self.lengths - 1

    @cached_property
    def part_lengths(self) -> Int64s:
        """How many rows each part has."""
        return np.diff(self.parts, append=len(self.keys))

    @cached_property
    def here(self) -> Int64s:
        """Of how many rows each full block is in this batch; those before are its first ones."""
        part = np.searchsorted(self.parts, self.full, side="right") - 1
        return self.full - self.parts[part] + 1

    @cached_property
    def looks_back(self) -> Int64s:
        """The rows whose window begins in the block before."""
        return np.flatnonzero((self.ordinals > self.size) & (self.places != self.size - 1))

    @cached_property
    def block_before(self) -> Int64s:
        """For each that looks back the full block of this batch that it sees, by number; -1: a page."""
        rows = self.looks_back
        block = np.searchsorted(self.full, rows) - 1
        start = np.repeat(self.starts, self.lengths)[rows]
        return np.where(np.append(self.full, -1)[block] >= start, block, -1)

    @cached_property
    def last_full(self) -> Int64s:
        """The full blocks that are the last of their key, by number."""
        keys = self.keys[self.full]
        return np.flatnonzero(np.append(keys[1:] != keys[:-1], True)[: len(keys)])

    @cached_property
    def unfinished(self) -> Int64s:
        """The rows of blocks that are not full by the end of the batch."""
        behind = np.searchsorted(self.full, np.arange(len(self.keys)))  # the next full block
        end = np.repeat(self.ends, self.lengths)
        nearest = np.append(self.full, len(self.keys))[behind]
        return np.flatnonzero(nearest > end)


class Earlier(NamedTuple):
    """Rows that came before, of keys that had not filled a block yet."""

    keys: Int64s
    places: Int64s
    numbers: Mapping[str, Array]


Ask: TypeAlias = Callable[[Int64s], Earlier]


@dataclass(slots=True)
class _Column:
    """What is kept of one partial result."""

    running: Fixed  # by key
    pages: Fixed  # one page after the other


class Blocks:
    """Running results and pages of all keys."""

    def __init__(self, size: int, partials: Sequence[Partial]) -> None:
        self._size: Final = size
        self._partials: Final = [partial for partial in partials if partial[0] in SCANNED]
        self._columns: dict[Partial, _Column] = {}
        self.counts: Final = Fixed(np.int64)  #: rows of each key so far
        self._page: Final = Fixed(np.int64)  # the page of each key, and 1: 0 means none
        self._pages = 0

    def reach(self, keys: int, numbers: Mapping[str, Array]) -> None:
        """Make room for so many keys; `numbers` show the types of columns."""
        if not self._columns:
            types = [numbers[column].dtype for _, column in self._partials]
            made = [_Column(Fixed(dtype), Fixed(dtype)) for dtype in types]
            self._columns = dict(zip(self._partials, made, strict=True))
        for column in (self.counts, self._page, *(c.running for c in self._columns.values())):
            column.reach(keys)
            column.length = keys

    def add(
        self, turn: Turn, numbers: Mapping[str, Array], ask: Ask, *, results: bool = True
    ) -> dict[Partial, Array]:
        """Take the rows of a batch; return the partial results of the window of each."""
        self._hand_out_pages(turn, ask)
        found = {}
        for partial in self._partials:
            raw = numbers[partial[1]]
            running = self._run(partial, turn, raw)
            back = self._turn_pages(partial, turn, raw, results)
            if results:
                found[partial] = _joined(partial, turn, running, back)
        self.counts.data[turn.keys[turn.ends]] = turn.ordinals[turn.ends]
        return found

    def _run(self, partial: Partial, turn: Turn, raw: Array) -> Array:
        """The running result at each row, from the beginning of its block on."""
        ufunc, live = SCANNED[partial[0]], self._columns[partial].running.data
        goes_on = turn.parts[turn.places[turn.parts] > 0]
        values, before = raw.copy(), live[turn.keys[goes_on]]
        if ufunc is None:
            values[goes_on] = before
            values = np.repeat(values[turn.parts], turn.part_lengths)
        else:
            values[goes_on] = ufunc(before, values[goes_on])
            accumulate(ufunc, values, turn.parts, turn.part_lengths)
            _check(partial, values)
        live[turn.keys[turn.ends]] = values[turn.ends]
        return values

    def _turn_pages(self, partial: Partial, turn: Turn, raw: Array, results: bool) -> Array:
        """Make the pages of blocks that are full; return for each row that looks back what it sees."""
        pages, size = self._columns[partial].pages.data, self._size
        rows, block = turn.looks_back, turn.block_before
        seen = np.empty(len(rows), raw.dtype)
        if results:
            stored = np.flatnonzero(block < 0)
            old = rows[stored]
            seen[stored] = pages[self._at(turn.keys[old], turn.places[old] + 1)]
        step = max(1, _AT_ONCE // size)
        for first in range(0, len(turn.full), step):
            made = self._made(partial, turn, raw, slice(first, first + step))
            mine = (
                np.flatnonzero((block >= first) & (block < first + step)) if results else rows[:0]
            )
            seen[mine] = made[block[mine] - first, turn.places[rows[mine]] + 1]
            last = turn.last_full[(turn.last_full >= first) & (turn.last_full < first + step)]
            page = self._page.data[turn.keys[turn.full[last]]] - 1
            pages[: self._pages * size].reshape(-1, size)[page] = made[last - first]
        rest = turn.unfinished
        rest = rest[self._page.data[turn.keys[rest]] > 0]
        pages[self._at(turn.keys[rest], turn.places[rest])] = raw[rest]
        return seen

    def _made(self, partial: Partial, turn: Turn, raw: Array, which: slice) -> Array:
        """Some full blocks, one per row, with the result from each place to the end."""
        size, full = self._size, turn.full[which]
        places = np.arange(size)
        here = places >= size - turn.here[which][:, None]
        from_batch = np.where(here, full[:, None] - (size - 1) + places, 0)
        page = self._page.data[turn.keys[full]] - 1
        kept = self._columns[partial].pages.data[: self._pages * size].reshape(-1, size)[page]
        block = np.where(here, raw[from_batch], kept)
        ufunc = SCANNED[partial[0]]
        if ufunc is None:
            return block
        made: Array = ufunc.accumulate(block[:, ::-1], axis=1)[:, ::-1]
        _check(partial, made.reshape(-1))
        return made

    def _hand_out_pages(self, turn: Turn, ask: Ask) -> None:
        """Give each key a page whose first block is full, and write the rows there that came before."""
        keys = turn.keys[turn.full]
        new = keys[self._page.data[keys] == 0]
        if not len(new):
            return
        new = np.unique(new)
        self._page.data[new] = np.arange(self._pages + 1, self._pages + len(new) + 1)
        self._pages += len(new)
        earlier = ask(new)
        at = self._at(earlier.keys, earlier.places)
        for (_, name), column in self._columns.items():
            column.pages.reach(self._pages * self._size)
            column.pages.data[at] = earlier.numbers[name]

    def _at(self, keys: Int64s, places: Int64s) -> Int64s:
        """Where these places are among the pages."""
        at: Int64s = (self._page.data[keys] - 1) * self._size + places
        return at


def _check(partial: Partial, values: Array) -> None:
    if partial[0] == "sum":
        check_sums(values, partial[1])


def _joined(partial: Partial, turn: Turn, running: Array, back: Array) -> Array:
    """The results of windows: what was seen looking back, and the running result."""
    ufunc, rows = SCANNED[partial[0]], turn.looks_back
    running[rows] = back if ufunc is None else ufunc(back, running[rows])
    return running


def accumulate(ufunc: np.ufunc, values: Array, starts: Int64s, lengths: Int64s) -> None:
    """Replace each value by the result of all since the start of its part, one after the other.

    A loop goes over the parts, or over their places, whatever there are fewer of: at most so many as the
    root of the number of values.
    """
    longest = int(lengths.max(initial=0))
    if len(starts) <= longest:
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            part: Any = values[start : start + length]
            ufunc.accumulate(part, out=part)
        return
    rows = starts
    for place in range(1, longest):
        rows = starts[lengths > place] + place
        values[rows] = ufunc(values[rows - 1], values[rows])
