"""Views of an output that do not depend on the order of input: runs without failures agree in them.

A view makes a table of the rows of a sink, and tables are compared as multisets of rows. The best view is
all columns. Where runs without failures differ in that, others are tried: the rows without some of their
columns; which keys there are; and for each key, of a column that depends on the order, the last value, the
first, the least, the greatest, the sum, the steps from one value to the next, and that it never falls.
Of a running sum the last value and the steps are the same in every order; of a running maximum, the last.

Rows have an order within one task of a sink, and the tasks follow each other: `last` means something where
the rows of a key are in one task. Where they are not, runs differ, and the view is not kept.

Numbers with a fraction are compared up to rounding, since the order of input decides how a sum is rounded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Batch, Column
from snapline.dataflow.state.hashing import Hashes, hash_columns

LEFT_OUT_MAX = 2
"""Rows are compared without any choice of up to this many of the columns that agree by themselves."""

KEYS_MAX = 4
"""How many choices of columns are tried as the key of a sink."""

ROUNDING = {2: 1e-2, 4: 1e-4, 8: 1e-8}
"""By the size of a float in bytes: two that differ by less than this share of the largest are the same."""

Names: TypeAlias = tuple[str, ...]
_Ints: TypeAlias = npt.NDArray[np.int64]


def is_fraction(column: Column) -> bool:
    """Whether a column holds numbers that are rounded."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"


def is_number(column: Column) -> bool:
    """Whether a column can be added and subtracted."""
    return isinstance(column, np.ndarray) and column.dtype.kind in "biuf"


def hashes_of(batch: Batch, columns: Sequence[str]) -> Hashes:
    """One hash per row, over these columns."""
    if not batch.length or not columns:
        return np.zeros(batch.length, np.uint64)
    return hash_columns([batch.columns[name] for name in columns])


class RowMultiset:
    """A table whose rows are compared as a multiset, fractions up to rounding.

    It keeps only what a comparison needs, and makes the rows again when they are asked for, to save memory.
    """

    def __init__(self, make: Callable[[], Batch], scale: float = 0.0) -> None:
        self._make = make
        self._scale = scale  # the largest number behind its fractions, which bounds their rounding
        batch = make()
        self.length = batch.length
        self.exact: Names = tuple(n for n, c in batch.columns.items() if not is_fraction(c))
        self.fractions: Names = tuple(n for n, c in batch.columns.items() if is_fraction(c))
        hashes = hashes_of(batch, self.exact)
        mixed = hash_columns([hashes.view(np.int64)]) if len(hashes) else hashes
        #: a checksum: equal multisets have the same one, and different ones practically never
        self._print = (int(hashes.sum()), int(mixed.sum()))
        self._sorted = {n: batch[n][np.lexsort((batch[n], hashes))] for n in self.fractions}

    @property
    def batch(self) -> Batch:
        """The rows."""
        return self._make()

    def hashes(self) -> Hashes:
        """One hash per row, over all but the fractions."""
        return hashes_of(self.batch, self.exact)

    def same(self, other: "RowMultiset") -> bool:
        """Whether these are the same rows as those."""
        if not self.length and not other.length:
            return True
        return self.same_exact(other) and all(self.same_fraction(other, n) for n in self.fractions)

    def same_exact(self, other: "RowMultiset") -> bool:
        """Whether the rows are the same in all but the fractions."""
        names = self.exact == other.exact and self.fractions == other.fractions
        return names and self.length == other.length and self._print == other._print

    def same_fraction(self, other: "RowMultiset", name: str) -> bool:
        """Whether this column of fractions is the same up to rounding; the exact columns are the same.

        The values of rows that are otherwise equal are sorted first: rounding moves them only a little.
        """
        these, those = self._sorted[name], other._sorted[name]
        finite = np.abs(these[np.isfinite(these)])
        rounding = ROUNDING.get(these.dtype.itemsize, min(ROUNDING.values()))
        most = max(self._scale, float(finite.max(initial=0.0))) * rounding
        return bool(np.isclose(these, those, rtol=0, atol=most, equal_nan=True).all())


class SinkTable:
    """The rows of one sink in one run, and the views of them that were made so far."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._rows: dict[View, RowMultiset] = {}
        self._grouped: tuple[Names, _Ints, _Ints] | None = None  # by the key asked for last

    def seen(self, view: "View") -> RowMultiset:
        """What a view shows of the rows."""
        if view not in self._rows:
            known = set(view.key + view.columns) <= set(self.batch.columns)
            if known and self.batch.length:
                self._rows[view] = RowMultiset(lambda: view.show(self), view.scale(self.batch))
            else:
                self._rows[view] = RowMultiset(lambda: Batch({}, 0))
        return self._rows[view]

    def grouped(self, key: Names) -> tuple[_Ints, _Ints]:
        """The rows in an order in which equal keys stand together, and where each key begins."""
        if self._grouped is None or self._grouped[0] != key:
            hashes = hashes_of(self.batch, key)
            order = np.argsort(hashes, kind="stable")
            ordered = hashes[order]
            first = np.ones(len(order), bool)
            first[1:] = ordered[1:] != ordered[:-1]
            self._grouped = key, order, np.flatnonzero(first)
        return self._grouped[1:]

    def let_go(self) -> None:
        """Forget what can be made again."""
        self._grouped = None


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at the rows of a sink."""

    kind: str  # "rows", "keys", or which value of each key it takes, such as "last"
    key: Names
    columns: Names  # without those of the key

    @property
    def for_every_level(self) -> bool:
        """Whether it shows rows themselves, so that it also serves at least once and at most once.

        Other views show numbers computed from many rows, which a single repeated or lost row changes in
        any way; without exactly once such a row is allowed.
        """
        return self.kind in {"rows", "keys"}

    @property
    def words(self) -> str:
        """What the view shows, in words for people."""
        if self.kind == "rows":
            columns = ", ".join(self.columns)
            return f"the rows of ({columns})" if columns else "the number of rows"
        each = self.key[0] if len(self.key) == 1 else f"({', '.join(self.key)})"
        if self.kind == "keys":
            return f"which values of {each} there are"
        of = f"of each {each}" if self.key else "of all rows"
        return f"the {self.label} {of}"

    @property
    def label(self) -> str:
        """The name of what it shows beside the key."""
        return f"{self.kind} {self.columns[0]}"

    def scale(self, batch: Batch) -> float:
        """The largest number from which the view computes others: it bounds their rounding."""
        if self.kind == "rows":
            return 0.0
        values = [batch[name] for name in self.columns if is_fraction(batch[name])]
        return max((float(np.abs(v[np.isfinite(v)]).max(initial=0.0)) for v in values), default=0.0)

    def show(self, table: SinkTable) -> Batch:
        """Make the table that the view shows."""
        if self.kind == "rows":
            return table.batch.select(*self.columns)
        order, starts = table.grouped(self.key)
        keys = table.batch.select(*self.key).take(order[starts])
        if self.kind == "keys":
            return keys
        (name,) = self.columns
        column = table.batch.columns[name]
        label = self.label
        if self.kind in {"first", "last"}:
            rows = order[starts] if self.kind == "first" else order[_ends(starts, len(order))]
            return keys.with_columns(**{label: table.batch.select(name).take(rows)[name]})
        assert isinstance(column, np.ndarray)
        if self.kind == "steps of":
            steps = _steps(column[order], starts)
            return table.batch.select(*self.key).take(order).with_columns(**{label: steps})
        return keys.with_columns(**{label: _REDUCED[self.kind](column[order], starts)})


def _ends(starts: _Ints, length: int) -> _Ints:
    return np.append(starts[1:], length) - 1


def _wide(values: Array) -> Array:
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _steps(values: Array, starts: _Ints) -> Array:
    """The differences between consecutive values of each key; the first is that from zero."""
    wide = _wide(values)
    steps = wide.copy()
    steps[1:] -= wide[:-1]
    steps[starts] = wide[starts]
    return steps


def _ever(compare: Callable[[Array, Array], Array]) -> Callable[[Array, _Ints], Array]:
    """For each key whether `compare` is ever true of a value and the one before it."""

    def reduced(values: Array, starts: _Ints) -> Array:
        true = np.zeros(len(values), bool)
        true[1:] = compare(values[1:], values[:-1])
        true[starts] = False
        return np.logical_or.reduceat(true, starts)

    return reduced


_NEVER = ("falls of", "repetitions of")
"""Views that only mean something if they are false for every key: a column never falls, never repeats."""

_REDUCED: Mapping[str, Callable[[Array, _Ints], Array]] = {
    "falls of": _ever(np.less),
    "repetitions of": _ever(np.equal),
    "least": lambda values, starts: np.minimum.reduceat(values, starts),
    "greatest": lambda values, starts: np.maximum.reduceat(values, starts),
    "sum of": lambda values, starts: np.add.reduceat(_wide(values), starts),
}
_OF_NUMBERS = ("last", "steps of", "first", *_REDUCED)


def whole(columns: Sequence[str]) -> View:
    """The view of all columns."""
    return View("rows", (), tuple(columns))


def steady_views(references: Sequence[SinkTable], keys: Sequence[Names]) -> list[View]:
    """The views in which runs without failures agree, the best ones first.

    `keys` are the columns by which the dataflow brings records together: the likely keys of its output.
    """
    columns = next((table.batch.columns for table in references if table.batch.length), {})
    exact = [name for name, column in columns.items() if not is_fraction(column)]
    choices = _row_choices(references, exact)
    rows = [View("rows", (), _with_fractions(references, columns, choice)) for choice in choices]
    free = [name for name in columns if not rows or any(name not in v.columns for v in rows)]
    derived: list[View] = []
    for key in _keys(references, keys, exact) if free else []:
        if key and not any(set(key) <= set(view.columns) for view in rows):
            derived.append(View("keys", key, ()))
        derived += _of_values(references, key, [name for name in free if name not in key], columns)
    for table in references:
        table.let_go()
    return rows + derived


def _agree(references: Sequence[SinkTable], view: View) -> bool:
    first, *others = (table.seen(view) for table in references)
    if view.kind in _NEVER and first.batch[view.label].any():
        return False
    return all(first.same(other) for other in others)


def _row_choices(references: Sequence[SinkTable], exact: Sequence[str]) -> list[Names]:
    """The largest choices of exact columns in which the references agree."""
    if len({table.batch.length for table in references}) > 1:
        return []
    by_itself = [name for name in exact if _agree(references, whole((name,)))]
    for count in range(min(LEFT_OUT_MAX, len(by_itself)) + 1):
        agreed = [
            choice
            for choice in combinations(by_itself, len(by_itself) - count)
            if _agree(references, whole(choice))
        ]
        if agreed:
            return agreed
    return [(name,) for name in by_itself]


def _with_fractions(
    references: Sequence[SinkTable], columns: Mapping[str, Column], choice: Names
) -> Names:
    """A choice of exact columns, and the fractions that agree beside it."""
    fractions = [n for n, c in columns.items() if is_fraction(c)]
    steady = {n for n in fractions if _agree(references, whole((*choice, n)))}
    return tuple(name for name in columns if name in choice or name in steady)


def _keys(
    references: Sequence[SinkTable], likely: Sequence[Names], exact: Sequence[str]
) -> Sequence[Names]:
    """The columns that may be the key of a sink, because their values agree in all references.

    If none of the likely keys does, any column that does may be one; if none does, all rows have one key.
    """
    for choices in ([key for key in likely if set(key) <= set(exact)], [(name,) for name in exact]):
        agreed = [key for key in choices if _agree(references, View("keys", key, ()))]
        if agreed:
            return agreed[:KEYS_MAX]
    return [()]


def _of_values(
    references: Sequence[SinkTable], key: Names, free: Sequence[str], columns: Mapping[str, Column]
) -> list[View]:
    """The views of the values of each key in which the references agree.

    A column may happen never to fall or repeat by chance, so such a view is only used beside others.
    """
    found: list[View] = []
    for name in free:
        kinds = _OF_NUMBERS if is_number(columns[name]) else ("last", "first")
        views = [View(kind, key, (name,)) for kind in kinds]
        agreed = [view for view in views if _agree(references, view)]
        found += agreed if any(view.kind not in _NEVER for view in agreed) else []
    return found
