"""Keyed state: values per key, for keys of any kind, with captures of what changed.

A single integer key is looked up as it is. Any other key, a string or several columns, is looked up by
its 64-bit hash, and the key itself is kept and compared: keys that share a hash are told apart, the
later one goes on with the hash of the hash. A key in a `words` column is the same as in a `str` column,
and is kept as `str`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from snapline.batch import Array, Batch, Column, Kind, Varlen, Words, concat, kind_of
from snapline.dataflow.state.columns import Rows
from snapline.dataflow.state.hashing import Hashes, hash_columns
from snapline.dataflow.state.slot_table import Int64s, SlotTable

_ROW: Final = "(row)"
_DIRTY: Final = "(dirty)"
_PIECE: Final = 4_096
_STEP: Final = np.uint64(0x5851F42D4C957F2D)


class KeyedState:
    """Values per key. `fills` gives each value's dtype and what a new key begins with."""

    def __init__(self, names: Sequence[str], fills: Mapping[str, Any]) -> None:
        self._names: Final = tuple(names)
        self._values: Final = tuple(fills)
        self._kinds: tuple[Kind, ...] = ()  # the kinds of the key columns; known with the first key
        self._direct = False  # whether the key itself is looked up in the table, not its hash
        self._table = SlotTable({**fills, _DIRTY: False})
        self._keys = Rows()  # the keys that are looked up by hash, to be compared

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, value: str) -> Array:
        """The column of a value, by slot, to read and write; another array once the table has grown."""
        return self._table.columns[value]

    def locate(self, columns: Sequence[Column]) -> Int64s:
        """The slot of every key; new keys get one. Slots hold until the next call."""
        if not self._kinds:
            self._kinds = tuple(_kept(kind_of(column)) for column in columns)
            self._direct = len(columns) == 1 and self._kinds[0] not in _OF_ANY_LENGTH
            if not self._direct:
                self._table.add_column(_ROW, -1)
        if len(columns) == 1 and isinstance(columns[0], Words):
            return self._locate_words(columns[0])
        canonical = [_canonical(column) for column in columns]
        if self._direct and isinstance(canonical[0], np.ndarray):
            return self._table.locate(canonical[0])
        return self._locate_hashed(canonical)

    def _locate_words(self, column: Words) -> Int64s:
        """As `locate`, but each different word is looked up only once."""
        used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.values)))
        slots = np.empty(len(column.values), np.int64)
        slots[used] = self._locate_hashed([_spelled(column.values).take(used)])
        return slots[column.codes]

    def _locate_hashed(self, columns: Sequence[Column]) -> Int64s:
        hashes = hash_columns(columns)
        slots, same = self._settle(hashes, columns)
        if same.all():
            return slots
        while not same.all():
            rest = np.flatnonzero(~same)
            hashes[rest] = _rehash(hashes[rest])
            _, same[rest] = self._settle(hashes[rest], [_take(column, rest) for column in columns])
        return self._table.locate(hashes.view(np.int64))  # once more: `_settle` may have moved keys

    def _settle(self, hashes: Hashes, columns: Sequence[Column]) -> tuple[Int64s, Array]:
        """Slots by hash alone, and whether each holds the key asked for; new keys take free slots."""
        slots = self._table.locate(hashes.view(np.int64))
        rows = self._table.columns[_ROW]
        fresh = np.flatnonzero(rows[slots] < 0)
        if len(fresh):
            taken, first = np.unique(slots[fresh], return_index=True)
            new = [_take(column, fresh[first]) for column in columns]
            base = self._keys.append(dict(zip(self._names, new, strict=True)), len(first))
            rows[taken] = np.arange(base, base + len(first))
        there = self._keys.take(rows[slots])
        same = np.ones(len(slots), np.bool_)
        for name, column in zip(self._names, columns, strict=True):
            same &= _equal(there[name], column)
        return slots, same

    def find(self, columns: Sequence[Column]) -> Int64s:
        """The slots of keys that are all in the table.

        `locate` would make room for each of them as if it were new; this does not grow the table.
        """
        canonical = _canonical(columns[0])
        if self._direct and isinstance(canonical, np.ndarray):
            return self._table.find(canonical)
        return self.locate(columns)

    def add(self, columns: Sequence[Column]) -> None:
        """Add many keys, of which few may be new: in pieces, so that the table grows only as it must."""
        for start in range(0, len(columns[0]), _PIECE):
            self.locate([_slice(column, start, start + _PIECE) for column in columns])

    def touch(self, slots: Int64s) -> None:
        """Note that the keys at these slots have changed: the next capture has them."""
        self._table.columns[_DIRTY][slots] = True

    def slots(self) -> Int64s:
        """The slots of all keys."""
        return self._table.slots()

    def keys_at(self, slots: Int64s) -> dict[str, Column]:
        """The key columns of the keys at these slots."""
        if self._direct:
            kept: Mapping[str, Column] = {self._names[0]: self._table.keys[slots]}
        else:
            kept = self._keys.take(self._table.columns[_ROW][slots]).columns
        return {n: _as_kind(kept[n], k) for n, k in zip(self._names, self._kinds, strict=True)}

    def capture(self, *, full: bool) -> Batch:
        """Copy the keys and values: all, or those that changed since the capture before."""
        dirty = self._table.columns[_DIRTY]
        slots = self.slots() if full else np.flatnonzero(dirty)
        dirty[:] = False
        if not self._kinds:
            return Batch({})
        values = {name: self._table.columns[name][slots] for name in self._values}
        return Batch({**self.keys_at(slots), **values}, len(slots))

    def restore(self, batches: Sequence[Batch]) -> None:
        """Restore several captures at once: later values replace earlier ones."""
        known = [batch for batch in batches if batch.length]
        if not known:
            return
        keys = concat([batch.select(*self._names) for batch in known])
        slots = self.locate([keys[name] for name in self._names])
        ends = np.cumsum([batch.length for batch in known])
        for batch, of_batch in zip(known, np.split(slots, ends[:-1]), strict=True):
            for name in self._values:
                self._table.columns[name][of_batch] = batch[name]


def _rehash(hashes: Hashes) -> Hashes:
    """The next hash to try. Repeated, it goes through all 64-bit numbers, so a free one is always found."""
    return hashes * _STEP + np.uint64(1)


@lru_cache(maxsize=256)
def _spelled(values: tuple[str, ...]) -> Varlen:
    return Varlen.of("str", values)


_OF_ANY_LENGTH: Final = ("str", "bytes", "list")  # kinds whose keys are looked up by hash


def _kept(kind: Kind) -> Kind:
    if kind.startswith("|S"):
        return "bytes"
    return "str" if kind == "words" or kind[1:2] == "U" else kind


def _canonical(column: Column) -> Int64s | Varlen:
    """The form in which keys are compared: int64, or strings as offsets and bytes."""
    if isinstance(column, Words):
        return _spelled(column.values).take(column.codes)
    if isinstance(column, Varlen):
        return column
    if column.dtype.kind in "SU":  # numbers made of them would be equal for "1" and "01"
        return Varlen.of("str" if column.dtype.kind == "U" else "bytes", column.tolist())
    if column.dtype.kind == "f":
        return (column.astype(np.float64) + 0.0).view(np.int64)  # NaN equals itself, -0.0 is 0.0
    return column.astype(np.int64, copy=False)


def _as_kind(column: Column, kind: Kind) -> Column:
    if isinstance(column, np.ndarray):
        if np.dtype(kind).kind == "f":
            column = column.view(np.float64)
        return column.astype(kind, copy=False)
    return column


def _slice(column: Column, start: int, stop: int) -> Column:
    if isinstance(column, np.ndarray):
        return column[start:stop]
    return column.slice(start, min(stop, len(column)))


def _take(column: Column, rows: Array) -> Column:
    return column[rows] if isinstance(column, np.ndarray) else column.take(rows)


def _equal(left: Column, right: Column) -> Array:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        same: Array = left == right
        return same
    assert isinstance(left, Varlen), "a key column never changes its kind"
    assert isinstance(right, Varlen), "a key column never changes its kind"
    return _equal_varlen(left.compact(), right.compact())


def _equal_varlen(left: Varlen, right: Varlen) -> Array:
    left_sizes = left.offsets[1:] - left.offsets[:-1]
    same: Array = left_sizes == right.offsets[1:] - right.offsets[:-1]
    if not same.all():
        rows = np.flatnonzero(same)
        same[rows] = _equal_varlen(left.take(rows), right.take(rows))
        return same
    running = np.zeros(len(left.values) + 1, np.int64)
    np.cumsum(left.values != right.values, out=running[1:])
    same = running[left.offsets[1:]] == running[left.offsets[:-1]]
    return same
