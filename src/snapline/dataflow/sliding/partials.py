"""Tables of partial results per key: records are added to one, and tables are combined.

A partial result is one column of a table; `first` and `last` have a second one, the time of their record.
Which of two records is the first never depends on the order of arrival: it is the one with the earlier
time, and of two at the same time the one with the smaller value; the last is found the other way round.
So all partial results combine in any order, but for the last bits of sums of fractions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.sliding.plan import COUNT, Partial, SlidingPlan, neutral, wide, wide_type
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.sums import add_up, check_sums
from snapline.errors import UsageError

Columns: TypeAlias = Sequence[Array]
"""The columns of one partial result: its values and, of `first` and `last`, their times."""

_UFUNCS: Final[Mapping[str, np.ufunc]] = {
    "count": np.add,
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
}
_LIMITS: Final = np.iinfo(np.int64)
_NO_TIME: Final = {"first": _LIMITS.max, "last": _LIMITS.min}


class Layout:
    """The columns of the tables of one operator; the first records fix their types."""

    def __init__(self, plan: SlidingPlan) -> None:
        self.plan: Final = plan
        self.fills: dict[str, Array] = {}  #: what a new key begins with, by column
        self._types: dict[str, np.dtype[Any]] = {}  # of the records' columns

    def numbers(self, batch: Batch) -> dict[str, Array]:
        """The columns of records of which something is computed. Raises UsageError."""
        numbers = {name: wide(batch.columns[name], name) for name in self.plan.columns}
        if not self._types:
            self._fix({name: column.dtype for name, column in numbers.items()})
        for name, column in numbers.items():
            if column.dtype != self._types[name]:
                raise UsageError(
                    f"the column '{name}' is {column.dtype} and was {self._types[name]} in the records "
                    "before: what makes it must always make the same kind"
                )
        return numbers

    def learn(self, captured: Batch) -> None:
        """Take the types from a table that was captured."""
        if not self._types:
            partials = [partial for partial in self.plan.partials if partial != COUNT]
            self._fix({column: captured[name_of((how, column))].dtype for how, column in partials})

    def _fix(self, types: Mapping[str, np.dtype[Any]]) -> None:
        self._types = {name: wide_type(dtype) for name, dtype in types.items()}
        for how, column in self.plan.partials:
            dtype = self._types[column] if column else np.dtype(np.int64)
            self.fills[name_of((how, column))] = neutral(how, dtype)
            if how in _NO_TIME:
                self.fills[_time_of((how, column))] = np.array(_NO_TIME[how], np.int64)


def name_of(partial: Partial) -> str:
    """The column of a partial result: no column of the user's is called so."""
    how, column = partial
    return f"({how} {column})"


def _time_of(partial: Partial) -> str:
    return f"{name_of(partial)} at"


def columns_of(partial: Partial) -> tuple[str, ...]:
    """All columns of a partial result."""
    has_time = partial[0] in _NO_TIME
    return (name_of(partial), _time_of(partial)) if has_time else (name_of(partial),)


def combined(partial: Partial, these: Columns, those: Columns) -> Columns:
    """Two partial results as one, row by row."""
    how, _ = partial
    if how in _UFUNCS:
        made = _UFUNCS[how](these[0], those[0])
        if how == "sum":
            check_sums(made, partial[1])
        return [made]
    (values, times), (others, others_times) = these, those
    if how == "first":
        wins = (others_times < times) | ((others_times == times) & _smaller(others, values))
    else:
        wins = (others_times > times) | ((others_times == times) & _smaller(values, others))
    return [np.where(wins, others, values), np.where(wins, others_times, times)]


def _smaller(one: Array, other: Array) -> Array:
    """Where one value is the smaller one; what is no number is larger than all numbers, as in a sort."""
    smaller: Array = one < other
    if one.dtype.kind == "f":
        smaller |= np.isnan(other) & ~np.isnan(one)
    return smaller


def add_records(
    state: KeyedState, plan: SlidingPlan, rows: Int64s, numbers: Mapping[str, Array]
) -> None:
    """Add records to the partial results of their keys, which are given by row, one after the other."""
    for partial in plan.partials:
        how, column = partial
        if how == "count":
            np.add.at(state[name_of(partial)], rows, 1)
        elif how == "sum":
            add_up(state[name_of(partial)], rows, numbers[column], column)
        elif how in _UFUNCS:
            _UFUNCS[how].at(state[name_of(partial)], rows, numbers[column])
        else:
            values, times = numbers[column], numbers[plan.time]
            best, chosen = _ends(how, rows, times, values)
            live = [state[name] for name in columns_of(partial)]
            found = [values[chosen], times[chosen]]
            for mine, new in zip(
                live, combined(partial, [x[best] for x in live], found), strict=True
            ):
                mine[best] = new


def _ends(how: str, rows: Int64s, times: Array, values: Array) -> tuple[Int64s, Int64s]:
    """The distinct rows, and which record of each is the first or the last."""
    order = np.lexsort((values, times, rows))
    ordered = rows[order]
    differs = np.ones(len(order) + 1, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:-1])
    at = np.flatnonzero(differs[:-1] if how == "first" else differs[1:])
    return ordered[at], order[at]
