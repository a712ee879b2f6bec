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

from snapline.batch import Array, Batch, Column, Kind, Varlen, Words, kind_of, name_of
from snapline.dataflow.state.columns import Fixed, Int64s, Rows
from snapline.dataflow.state.hashing import Hashes, hash_columns
from snapline.dataflow.state.key_index import KeyIndex
from snapline.errors import UsageError
from snapline.kernels import grouping, table

_STEP: Final = np.uint64(0x5851F42D4C957F2D)
_INT64: Final = np.dtype(np.int64)


class KeyedState:
    """Values per key. `fills` gives each value's dtype and what a new key begins with."""

    def __init__(self, names: Sequence[str], fills: Mapping[str, Any]) -> None:
        self._names: Final = tuple(names)
        self._kinds: tuple[Kind, ...] = ()  # the kinds of the key columns; known with the first key
        self._direct = False  # whether the key itself is looked up in the index, not its hash
        self._plain = False  # whether these are int64, which need no look at their kind
        self._index: Final = KeyIndex()
        self._fills: Final = {name: np.asarray(fill) for name, fill in fills.items()}
        self._values: Final = {name: Fixed(fill.dtype) for name, fill in self._fills.items()}
        self._dirty: Final = Fixed(np.bool_)
        self._keys: Final = Rows()  # the keys that are looked up by hash, by row, to be compared

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, value: str) -> Array:
        """The column of a value, by row, to read and write; another array once there are more keys."""
        return self._values[value].view()

    def locate(self, columns: Sequence[Column]) -> Int64s:
        """The row of every key; new keys get the next ones. A key keeps its row for ever."""
        direct = self._looked_up_directly(columns)
        rows = self._locate_hashed(columns) if direct is None else self._index.locate(direct)
        self._hand_out()
        return rows

    def count_up(self, value: str, columns: Sequence[Column]) -> Int64s:
        """Add 1 to an integer value for each of these keys; return what each one has made of it."""
        direct = self._looked_up_directly(columns)
        counts = np.empty(len(columns[0]), np.int64)
        if direct is None:
            rows = self.locate(columns)
            grouping.tally(rows, counts, self._values[value].data, self._dirty.data)
            return counts
        index, live, dirty, done = self._index, self._values[value], self._dirty, 0
        while True:
            if len(live.data) < index.room or len(dirty.data) < index.room:
                live.reach(index.room)
                dirty.reach(index.room)
            done = table.count(direct, done, counts, *index.parts, live.data, dirty.data)
            if done == len(direct):
                break
            index.make_room()
        index.tidy()
        self._hand_out()
        return counts

    def _looked_up_directly(self, columns: Sequence[Column]) -> Int64s | None:
        """The keys as numbers, if they are looked up as such."""
        first = columns[0]
        plain = self._plain and isinstance(first, np.ndarray) and first.dtype is _INT64
        if not plain:
            self._learn_kinds(columns)
            if not self._direct:
                return None
            canonical = _canonical(first)
            assert isinstance(canonical, np.ndarray), "keys that are looked up directly are numbers"
            first = canonical
        assert isinstance(first, np.ndarray), "it was just looked at"
        return first if first.flags.c_contiguous else np.ascontiguousarray(first)

    def _learn_kinds(self, columns: Sequence[Column]) -> None:
        """Take the kinds of key columns from the first keys, and hold later ones against them."""
        kinds = tuple(_kept(kind_of(column)) for column in columns)
        if kinds == self._kinds:
            return
        if self._kinds:
            pairs = zip(self._names, self._kinds, kinds, strict=True)
            kinds = tuple(_in_common(name, known, kind) for name, known, kind in pairs)
        self._kinds = kinds
        self._direct = len(columns) == 1 and kinds[0] not in _OF_ANY_LENGTH
        self._plain = self._direct and kinds[0] == _INT64.name

    def _hand_out(self) -> None:
        """Give new keys their first values."""
        before, count = self._dirty.length, len(self._index)
        if count == before:
            return
        self._dirty.reach(count)
        self._dirty.length = count
        for name, column in self._values.items():
            column.reach(count)
            column.length = count
            fill = self._fills[name]
            if fill.dtype.hasobject or any(fill.tobytes()):  # else it is there: new rows are zeros
                column.data[before:count] = fill

    def _locate_hashed(self, columns: Sequence[Column]) -> Int64s:
        if len(columns) == 1 and isinstance(columns[0], Words):
            return self._locate_words(columns[0])
        canonical = [_canonical(column) for column in columns]
        hashes = hash_columns(canonical)
        rows, same = self._settle(hashes, canonical)
        while not same.all():
            rest = np.flatnonzero(~same)
            hashes[rest] = _rehash(hashes[rest])
            asked = [_take(column, rest) for column in canonical]
            rows[rest], same[rest] = self._settle(hashes[rest], asked)
        return rows

    def _locate_words(self, column: Words) -> Int64s:
        """As `locate`, but each different word is looked up only once."""
        used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.values)))
        rows = np.empty(len(column.values), np.int64)
        rows[used] = self._locate_hashed([_spelled(column.values).take(used)])
        return rows[column.codes]

    def _settle(self, hashes: Hashes, columns: Sequence[Column]) -> tuple[Int64s, Array]:
        """Rows by hash alone, and whether each has the key asked for; a new hash gets one of its keys."""
        rows = self._index.locate(hashes.view(np.int64))
        known = self._keys.length
        if len(self._index) > known:
            chosen: Int64s = np.empty(len(self._index) - known, np.int64)
            fresh = np.flatnonzero(rows >= known)
            chosen[rows[fresh] - known] = fresh  # of several any will do
            new = [_take(column, chosen) for column in columns]
            self._keys.append(dict(zip(self._names, new, strict=True)), len(chosen))
        there = self._keys.take(rows)
        same = np.ones(len(rows), np.bool_)
        for name, column in zip(self._names, columns, strict=True):
            same &= _equal(there[name], column)
        return rows, same

    def touch(self, rows: Int64s) -> None:
        """Note that the keys at these rows have changed: the next capture has them."""
        self._dirty.data[rows] = True

    def keys_at(self, rows: Int64s | slice) -> dict[str, Column]:
        """The key columns of the keys at these rows; those of a slice are views."""
        kept: Mapping[str, Column]
        if self._direct:
            kept = {self._names[0]: self._index.keys()[rows]}
        elif isinstance(rows, slice):
            kept = self._keys.view().columns
        else:
            kept = self._keys.take(rows).columns
        return {n: _as_kind(kept[n], k) for n, k in zip(self._names, self._kinds, strict=True)}

    def keys(self) -> dict[str, Column]:
        """The key columns of all keys, by row, as views that later keys do not change."""
        return self.keys_at(slice(None))

    def capture(self, *, full: bool) -> Batch:
        """Copy the values of all keys, or of those that changed since the capture before."""
        dirty = self._dirty.view()
        changed = np.flatnonzero(dirty) if not full else None
        dirty[:] = False
        if not self._kinds:
            return Batch({})
        if changed is None:
            values = {name: column.view().copy() for name, column in self._values.items()}
            return Batch({**self.keys(), **values}, len(self))
        values = {name: column.take(changed) for name, column in self._values.items()}
        return Batch({**self.keys_at(changed), **values}, len(changed))

    def restore(self, batches: Sequence[Batch]) -> None:
        """Restore several captures at once: later values replace earlier ones."""
        known = [batch for batch in batches if batch.length]
        if not known:
            return
        self._index.reserve(max(batch.length for batch in known))
        for batch in known:
            rows = self.locate([batch[name] for name in self._names])
            for name, column in self._values.items():
                column.data[rows] = batch[name]


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


def _in_common(name: str, known: Kind, kind: Kind) -> Kind:
    """The kind of a key column with keys of both kinds. Raises UsageError."""
    if known == kind:
        return kind
    if known not in _OF_ANY_LENGTH and kind not in _OF_ANY_LENGTH:
        both = np.promote_types(known, kind)
        if (both.kind == "f") == (np.dtype(known).kind == "f") == (np.dtype(kind).kind == "f"):
            return name_of(both)
    raise UsageError(
        f"keys of the kind {kind} are not compared with the keys before, which are {known} ('{name}'): "
        "make both the same kind"
    )


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
