"""Compares two multisets of rows, as Spark gives them to Python: which are missing, which are too many?

Rows are first made plain: tuples of values that can be compared and hashed. Equal ones are set against each
other; what is left may still differ only in the last digits of its floats, because a sum depends on the
order of its terms. Such rows are paired as well.
"""

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Plain: TypeAlias = tuple[Any, ...]
"""A row as nested tuples of values."""

FLOAT_ERROR = 1e-9
"""By how much two floats may differ, as a part of the larger one."""

_NAN = "NaN"
_FLOAT = object()


def plain_rows(rows: Iterable[Iterable[Any]], *, ordered: bool = True) -> "Counter[Plain]":
    """Rows as a multiset of plain ones; with `ordered=False` the order inside arrays is left out."""
    return Counter(tuple(_plain(value, ordered) for value in row) for row in rows)


def _plain(value: Any, ordered: bool) -> Hashable:
    match value:
        case float():
            return _NAN if math.isnan(value) else value
        case tuple():  # a struct
            return tuple(_plain(each, ordered) for each in value)
        case list():
            items = [_plain(each, ordered) for each in value]
            return tuple(items if ordered else sorted(items, key=repr))
        case dict():
            return frozenset((_plain(k, ordered), _plain(v, ordered)) for k, v in value.items())
        case bytearray():
            return bytes(value)
        case Hashable():
            return value
        case _:
            return repr(value)


@dataclass(frozen=True, slots=True)
class Differences:
    """What the one multiset has more often than the other, and the other way round."""

    missing: "Counter[Plain]"  # expected, and not there
    excess: "Counter[Plain]"  # there, and not expected

    def __bool__(self) -> bool:
        return bool(self.missing or self.excess)


def compare(expected: "Counter[Plain]", found: "Counter[Plain]") -> Differences:
    """How what was found differs from what was expected; floats may differ in their last digits."""
    missing, excess = expected - found, found - expected
    candidates = _by_shape(excess)
    for row in list(missing.elements()):
        shape, floats = _taken_apart(row)
        there = candidates.get(shape, [])
        close = next(
            (place for place in _near(there, floats) if _close(there[place], floats)), None
        )
        if floats and close is not None:
            missing[row] -= 1
            excess[_put_together(shape, there.pop(close))] -= 1
    return Differences(+missing, +excess)


def _by_shape(rows: "Counter[Plain]") -> dict[Plain, list[tuple[float, ...]]]:
    """The floats of rows that are equal otherwise, sorted."""
    found: dict[Plain, list[tuple[float, ...]]] = {}
    for row in rows.elements():
        shape, floats = _taken_apart(row)
        insort(found.setdefault(shape, []), floats)
    return found


def _taken_apart(row: Plain) -> tuple[Plain, tuple[float, ...]]:
    """A row with marks in the place of its floats, and the floats."""
    floats: list[float] = []

    def marked(value: Any) -> Any:
        if isinstance(value, float):
            floats.append(value)
            return _FLOAT
        return tuple(map(marked, value)) if isinstance(value, tuple) else value

    return marked(row), tuple(floats)


def _put_together(shape: Plain, floats: tuple[float, ...]) -> Plain:
    """The row that `_taken_apart` took apart."""
    left = iter(floats)

    def filled(value: Any) -> Any:
        if value is _FLOAT:
            return next(left)
        return tuple(map(filled, value)) if isinstance(value, tuple) else value

    row: Plain = filled(shape)
    return row


def _near(there: list[tuple[float, ...]], floats: tuple[float, ...]) -> Iterator[int]:
    """The places in a sorted list at which the first float is about that of `floats`."""
    if not floats:
        return
    first = floats[0]
    reach = 2 * FLOAT_ERROR * abs(first) if math.isfinite(first) else 0.0
    place = bisect_left(there, (first - reach,))
    while place < len(there) and there[place][0] <= first + reach:
        yield place
        place += 1


def _close(some: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return all(
        math.isclose(one, other, rel_tol=FLOAT_ERROR)
        for one, other in zip(some, others, strict=True)
    )
