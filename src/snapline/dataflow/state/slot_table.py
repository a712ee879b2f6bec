"""The slot table: a hash table in numpy that maps int64 keys to slots (open addressing, linear probing).

A slot is here a position in the table, not a process. The values of a key lie at its slot, in columns
as long as the table. At most a third of the slots is taken, so probes are short. A batch is looked up
as a whole: all keys probe their slot at once, those that met another key step on, until a handful is
left; these, and tiny batches, are finished one by one through a memoryview, where a step costs a tenth
of a numpy call. Nothing is ever deleted: windows are dropped as whole tables. A key keeps its slot
until the table grows, so slots are not to be kept across `locate`.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Array
from snapline.dataflow.state.hashing import Hashes

Int64s: TypeAlias = npt.NDArray[np.int64]

EMPTY: Final = -(1 << 63)
"""What a free slot holds. The key that equals it has a reserved slot, behind all the others."""

_FEW: Final = 12
_SIZE_MIN: Final = 32
_ODD: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class SlotTable:
    """Keys, and columns of values at their slots; `fills` gives each column's dtype and first value."""

    def __init__(self, fills: Mapping[str, Any]) -> None:
        self._fills: Final = {name: np.asarray(fill) for name, fill in fills.items()}
        self._count = 0  # keys in the table, without the key that equals EMPTY
        self._has_reserved = False
        self.columns: dict[str, Array] = {}
        self._allocate(_SIZE_MIN)

    def _allocate(self, size: int) -> None:
        self._size = size
        self._shift = np.uint64(64 - size.bit_length() + 1)
        self.keys: Int64s = np.full(size + 1, EMPTY, np.int64)
        self._view = self.keys.data
        self.columns = {n: np.full(size + 1, fill, fill.dtype) for n, fill in self._fills.items()}

    def add_column(self, name: str, fill: Any) -> None:
        """Add a column: one more value per key."""
        self._fills[name] = np.asarray(fill)
        self.columns[name] = np.full(self._size + 1, fill, self._fills[name].dtype)

    def __len__(self) -> int:
        return self._count + self._has_reserved

    def slots(self) -> Int64s:
        """The slots that are taken."""
        taken = np.flatnonzero(self.keys != EMPTY)
        return np.append(taken, self._size) if self._has_reserved else taken

    def locate(self, keys: Int64s) -> Int64s:
        """The slot of every key; keys that are new get one."""
        if 3 * (self._count + len(keys)) > self._size:
            return self._grow(keys)
        return self._find_or_insert(keys)

    def find(self, keys: Int64s) -> Int64s:
        """The slot of every key; for a key that is not there, the number of a free slot, which stays free.

        The columns hold their first values at a free slot, as they would for a new key.
        """
        slots = self._wanted(keys)
        slots[keys == EMPTY] = self._size
        there = self.keys[slots]
        missed = np.flatnonzero((there != keys) & (there != EMPTY))
        while len(missed) > _FEW:
            slots[missed] = at = (slots[missed] + 1) & (self._size - 1)
            there = self.keys[at]
            missed = missed[(there != keys[missed]) & (there != EMPTY)]
        if len(missed):
            slots[missed] = self._look_on(keys[missed].tolist(), slots[missed].tolist())
        return slots

    def _look_on(self, keys: list[int], slots: list[int]) -> list[int]:
        """Go on probing from these slots, key by key, until each finds itself or a free slot."""
        view, mask = self._view, self._size - 1
        for i, key in enumerate(keys):
            slot = slots[i]
            while (found := view[slot]) != key and found != EMPTY:
                slot = (slot + 1) & mask
            slots[i] = slot
        return slots

    def _wanted(self, keys: Int64s) -> Int64s:
        """Where the probes of these keys begin."""
        slots: Int64s = ((keys.view(np.uint64) * _ODD) >> self._shift).view(np.int64)
        return slots

    def _find_or_insert(self, keys: Int64s) -> Int64s:
        slots = self._wanted(keys)
        reserved = keys == EMPTY
        if reserved.any():
            slots[reserved] = self._size
            self._has_reserved = True
        if len(keys) <= _FEW:
            return np.array(self._finish(keys.tolist(), slots.tolist()), np.int64)
        missed = np.flatnonzero(self.keys[slots] != keys)
        while len(missed) > _FEW:
            missed = self._probe(keys, slots, missed)
        if len(missed):
            slots[missed] = self._finish(keys[missed].tolist(), slots[missed].tolist())
        return slots

    def _probe(self, keys: Int64s, slots: Int64s, missed: Int64s) -> Int64s:
        """One round for keys that have not found their slot: take the slot if it is free, or step on."""
        at, wanted = slots[missed], keys[missed]
        free = self.keys[at] == EMPTY
        if free.any():
            self._count += self._settle(at[free], wanted[free])
        lost = self.keys[at] != wanted
        missed, wanted, at = missed[lost], wanted[lost], (at[lost] + 1) & (self._size - 1)
        slots[missed] = at
        left: Int64s = missed[self.keys[at] != wanted]
        return left

    def _settle(self, slots: Int64s, keys: Int64s) -> int:
        """Put keys into free slots; if several want the same, one gets it. Return how many got one."""
        ramp = np.arange(len(slots))
        # For a moment slots hold positions: where several keys want one, the last stays and wins.
        self.keys[slots] = ramp
        winners = self.keys[slots]
        self.keys[slots] = keys[winners]
        return int(np.count_nonzero(winners == ramp))

    def _finish(self, keys: list[int], slots: list[int]) -> list[int]:
        """Find or insert keys, probing from these slots, one key after the other."""
        view, mask = self._view, self._size - 1
        for i, key in enumerate(keys):
            slot = slots[i]
            while (found := view[slot]) != key:
                if found == EMPTY:
                    view[slot] = key
                    self._count += 1
                    break
                slot = (slot + 1) & mask
            slots[i] = slot
        return slots

    def _grow(self, keys: Int64s) -> Int64s:
        """Make the table larger, insert these keys with all that were there, and return their slots."""
        before, known, columns = self.slots(), self.keys, self.columns
        slots = self._fill(np.concatenate([known[before], keys]) if len(before) else keys)
        after = slots[: len(before)]
        for name, column in columns.items():
            self.columns[name][after] = column[before]
        return slots[len(before) :]

    def _fill(self, keys: Int64s) -> Int64s:
        """Begin anew with a larger table that has these keys alone, and return their slots.

        Keys are inserted in the order of their hashes. So none has to search for a free slot: it gets its
        first choice, or the slot behind its predecessor. Keys from a table or a capture are nearly in that
        order already, and are sorted fast.
        """
        reserved = keys == EMPTY
        if reserved.any():
            self._has_reserved = True
            slots = np.empty(len(keys), np.int64)
            slots[~reserved] = self._fill(keys[~reserved])
            slots[reserved] = self._size
            return slots
        hashes = keys.view(np.uint64) * _ODD  # _ODD is odd, so no two keys share a hash
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        first = np.ones(len(keys), np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
        places = self._place(hashes[first], keys[order[first]])
        slots = np.empty(len(keys), np.int64)
        slots[order] = np.repeat(places, np.diff(np.flatnonzero(first), append=len(keys)))
        return slots

    def _place(self, hashes: Hashes, keys: Int64s) -> Int64s:
        """Begin anew with these keys, which are distinct and in the order of their hashes."""
        self._allocate(max(2 * self._size, 1 << (3 * len(keys) - 1).bit_length()))
        places: Int64s = (hashes >> self._shift).view(np.int64)
        ramp = np.arange(len(places))
        places -= ramp  # in place, as below: new arrays would cost more than the arithmetic
        np.maximum.accumulate(places, out=places)
        places += ramp
        inside = int(np.searchsorted(places, self._size))
        self.keys[places[:inside]] = keys[:inside]
        self._count = inside
        behind = (hashes[inside:] >> self._shift).tolist()  # a few beyond the end: they wrap
        places[inside:] = self._finish(keys[inside:].tolist(), behind)
        return places


class Groups:
    """The records of a batch grouped by slot, in the order of their arrival within each group."""

    __slots__ = ("ends", "order", "slots", "starts")

    def __init__(self, slots: Int64s) -> None:
        """Group by sorting packed values of slot and position: twice as fast as a stable argsort."""
        count = len(slots)
        bits = count.bit_length()
        packed = np.sort((slots << bits) | np.arange(count))
        ids = packed >> bits
        begins = np.empty(count, np.bool_)
        begins[:1] = True
        np.not_equal(ids[1:], ids[:-1], out=begins[1:])
        self.order: Int64s = packed & ((1 << bits) - 1)  # positions in the batch, group after group
        self.starts: Int64s = begins.nonzero()[0]  # where each group begins in `order`
        self.ends: Int64s = np.empty_like(self.starts)  # where each group ends
        self.ends[:-1] = self.starts[1:]
        self.ends[-1:] = count
        self.slots: Int64s = ids[self.starts]  # the slot of each group

    def ranks(self) -> Int64s:
        """The number of each record within its group, from 0, by position in the batch."""
        count = len(self.order)
        ranks = np.empty(count, np.int64)
        ranks[self.order] = np.arange(count) - np.repeat(self.starts, self.ends - self.starts)
        return ranks


def occurrences(slots: Int64s) -> Int64s:
    """For each record the number of earlier ones in the batch with the same slot."""
    if len(slots) > _FEW:
        return Groups(slots).ranks()
    seen: dict[int, int] = {}
    ranks = []
    for slot in slots.tolist():
        rank = seen.get(slot, 0)
        seen[slot] = rank + 1
        ranks.append(rank)
    return np.array(ranks, np.int64)
