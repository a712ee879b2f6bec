"""Keyed folds: every record updates the state of its key and carries the new state out.

`Count` is the fold that needs no function: a record's count is what was there plus its own occurrence
number in the batch. `Fold` takes a function of whole columns; it is called once for the first record of
every key in the batch, once for the second of those that have one, and so on, so each call sees a key
at most once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from snapline.batch import Array, Batch, Column
from snapline.dataflow.operators.known import Known, running
from snapline.dataflow.operators.operator import IN, OUT, Capture, Operator, Outputs
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.kernels import grouping
from snapline.wording import plural

Step: TypeAlias = Callable[[Mapping[str, Array], Batch], Mapping[str, Array]]
"""(values per record, records) -> new values per record; no two of the records share a key."""

COUNT: Final = "count"
STATE: Final = "state"


def carried(batch: Batch, keys: Sequence[str]) -> dict[str, Column]:
    """The columns of a record that a running result keeps: the key and, if there is one, the time."""
    names = keys if "time" in keys or "time" not in batch.columns else (*keys, "time")
    return {name: batch.columns[name] for name in names}


class _KeyedOperator(Operator):
    """The base of operators with values per key, which are captured as the part `state`."""

    def __init__(self, keys: Sequence[str], fills: Mapping[str, Any]) -> None:
        self._keys: Final = tuple(keys)
        self._results: Final = tuple(fills)
        self._state: Final = KeyedState(keys, fills)

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has the key and the time of its record."""
        return running(given[IN], self._keys, self._results)

    def capture(self, *, full: bool) -> Capture:
        """Capture all keys, or those that changed."""
        return Capture(full, {STATE: self._state.capture(full=full)})

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the keys."""
        self._state.restore([capture.parts[STATE] for capture in captures])


class Count(_KeyedOperator):
    """The running count per key: one output per record."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(keys, {COUNT: 0})
        self.reads = (*keys, "time")

    def process(self, port: str, batch: Batch) -> Outputs:
        """Number the records of each key."""
        counts = self._state.count_up(COUNT, [batch[name] for name in self._keys])
        return ((OUT, Batch({**carried(batch, self._keys), COUNT: counts}, batch.length)),)


class Fold(_KeyedOperator):
    """A fold per key with a function of columns: one output per record, with the values after it."""

    def __init__(self, keys: Sequence[str], initial: Mapping[str, Any], step: Step) -> None:
        super().__init__(keys, initial)
        self._values: Final = tuple(initial)
        self.function: Final = step

    def process(self, port: str, batch: Batch) -> Outputs:
        """Fold the first record of every key in, then the second of every key, and so on."""
        at = self._state.locate([batch[name] for name in self._keys])
        self._state.touch(at)
        ranks = np.empty(len(at), np.int64)
        grouping.occurrences(at, ranks)
        results = {name: np.empty_like(self._state[name][at]) for name in self._values}
        if not ranks.any():
            self._round(at, batch, slice(None), results)
        else:
            order = np.argsort(ranks, kind="stable")
            ends = np.cumsum(np.bincount(ranks))
            for rows in np.split(order, ends[:-1]):
                self._round(at[rows], batch.take(rows), rows, results)
        return ((OUT, Batch({**carried(batch, self._keys), **results}, batch.length)),)

    def _round(
        self, at: Int64s, batch: Batch, rows: Array | slice, results: Mapping[str, Array]
    ) -> None:
        before = {name: self._state[name][at] for name in self._values}
        after = self.function(before, batch)
        try:
            for name in self._values:
                results[name][rows] = after[name]
                self._state[name][at] = after[name]
        except (TypeError, ValueError, LookupError) as error:
            wanted = ", ".join(self._values)
            raise TypeError(
                f"the step returned {after!r:.60} for {plural(batch.length, 'record')}: it must return a "
                f"mapping with a column of as many values for {wanted}"
            ) from error
