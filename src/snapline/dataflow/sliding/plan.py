"""What is computed of a sliding window, and the partial results from which it is put together.

A window is never computed from all of its records: partial results of parts of it are kept and combined.
The partial results of a mean are a sum and a count; all others are their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from snapline.batch import Array, Batch, Column
from snapline.dataflow.state.sums import check_unsigned
from snapline.errors import GraphError, UsageError
from snapline.storage.column_types import Meaning, summed

Of: TypeAlias = Literal["sum", "mean", "min", "max", "first", "last"]
SlidingAggregate: TypeAlias = Literal["count"] | tuple[Of, str]
"""How a user writes one aggregate of a sliding window: `count`, or what is computed of a column."""

Partial: TypeAlias = tuple[str, str]
"""What is computed, and of which column; ("count", "") counts records."""

COUNT: Final[Partial] = ("count", "")
ALL: Final = "(all)"  # the key column where there is no key
KINDS: Final = ("sum", "mean", "min", "max", "first", "last")
_SAME_MEANING: Final = ("min", "max", "first", "last")


@dataclass(frozen=True)
class SlidingPlan:
    """The results of a window by name, in order, for each value of the key columns."""

    keys: tuple[str, ...]  # none: all records are in the same windows
    results: Mapping[str, Partial]
    time: str = ""  # the column with the event time, of windows by time

    @staticmethod
    def of(
        keys: Sequence[str],
        aggregates: Mapping[str, SlidingAggregate],
        taken: Sequence[str],
        time: str = "",
    ) -> "SlidingPlan":
        """Make a plan of what the user wrote; no result may be called as one of `taken`.

        Raises GraphError.
        """
        results: dict[str, Partial] = {}
        for name, aggregate in aggregates.items():
            if name in (*taken, *keys):
                raise GraphError(
                    f"an aggregate cannot be called '{name}': the results have that column"
                )
            how, column = (aggregate, "") if isinstance(aggregate, str) else aggregate
            if how == "count" and column:
                raise GraphError(f"a count is of records, not of '{column}': write {name}='count'")
            if how not in KINDS and (how, column) != COUNT:
                known = ", ".join(KINDS)
                raise GraphError(f"'{how}' is no aggregate of sliding windows: count, {known} are")
            results[name] = (how, column)
        if not results:
            raise GraphError('say what is computed of a window, as in aggregate(n="count")')
        return SlidingPlan(tuple(keys), results, time)

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The partial results that are kept, each once; the count is always among them."""
        kept = [COUNT, ("max", self.time)] if self.time else [COUNT]
        for how, column in self.results.values():
            kept.append(("sum" if how == "mean" else how, column))
        return tuple(dict.fromkeys(kept))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of records of which something is computed."""
        return tuple(dict.fromkeys(column for _, column in self.partials if column))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The key columns as they are kept: there is always one."""
        return self.keys or (ALL,)

    def key_columns(self, batch: Batch) -> list[Column]:
        """The key of each record: the same for all where there is no key."""
        if not self.keys:
            return [np.zeros(batch.length, np.int64)]
        return [batch.columns[name] for name in self.keys]

    def put_together(self, partials: Mapping[Partial, Array]) -> dict[str, Column]:
        """The results, from the partial results of whole windows."""
        made: dict[str, Column] = {}
        for name, (how, column) in self.results.items():
            if how == "mean":
                made[name] = partials["sum", column] / partials[COUNT]
            else:
                made[name] = partials[how, column]
        return made

    def meanings(self, given: Mapping[str, Meaning | None]) -> dict[str, Meaning | None]:
        """What the results mean, from what the columns do. Raises GraphError for means without a type."""
        found: dict[str, Meaning | None] = dict.fromkeys(self.results)
        for name, (how, column) in self.results.items():
            meaning = given.get(column)
            if how == "mean" and meaning is not None:
                raise GraphError(
                    f"'{name}' is the mean of '{column}', a {meaning}, and has no type: use its sum and "
                    "a count"
                )
            if how in _SAME_MEANING:
                found[name] = meaning
            elif how == "sum" and meaning is not None:
                found[name] = summed(meaning)
        return found


def wide(column: Column, name: str) -> Array:
    """Numbers as they are kept: int64, or float64 if they have a fraction. Raises UsageError."""
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biuf":
        raise UsageError(f"sliding windows compute of numbers, and the column '{name}' has others")
    check_unsigned(column, name)
    return column.astype(wide_type(column.dtype), copy=False)


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which numbers of this one are kept."""
    return np.dtype(np.float64 if dtype.kind == "f" else np.int64)


def neutral(how: str, dtype: np.dtype[Any]) -> Array:
    """What combines with any other partial result to that one."""
    if how in ("min", "max") and dtype.kind == "f":
        return np.array(np.inf if how == "min" else -np.inf)
    if how in ("min", "max"):
        limits = np.iinfo(np.int64)
        return np.array(limits.max if how == "min" else limits.min, np.int64)
    return np.zeros((), dtype)
