"""The barrier: brings the n-th record of each input together, per key if there is one.

A record waits until each of the other inputs has had as many records (of its key). Those that wait are the
state, and nothing else is: of a key of which none waits nothing is known, so that the state does not grow
with the number of keys. Waiting rows lie in append-only columns and are found by key and number; when most
of the rows there have gone, the others move to new columns. A delta holds the rows that are new and still
wait, and the numbers of those that have gone since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, Column, concat
from snapline.dataflow.operators.known import Known, check_keys
from snapline.dataflow.operators.operator import IN, OUT, Capture, Operator, Outputs
from snapline.dataflow.state.columns import Fixed, Int64s, Rows
from snapline.dataflow.state.key_index import KeyIndex
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.errors import GraphError
from snapline.kernels import grouping

NUMBER: Final = "(number)"  # of a captured row; no column of the rows is called so
GONE: Final = "-gone"
ARRIVED: Final = "arrived"
_FEW: Final = 1_024  # so many rows that have gone are not worth a move


def port_of(number: int) -> str:
    """The port of an input of a barrier: `in`, `in-2`, `in-3` ..."""
    return IN if number == 0 else f"{IN}-{number + 1}"


@dataclass(frozen=True, slots=True)
class BarrierPlan:
    """What is paired: the key columns of each input; none: all records of a task are of one key."""

    keys: tuple[tuple[str, ...], ...]
    by_value: bool  # records belong together because of their key, and not because of their order

    @staticmethod
    def of(keys: Sequence[tuple[str, ...]], *, by_value: bool) -> "BarrierPlan":
        """Make a plan; raises GraphError unless all inputs have as many key columns."""
        if len(keys) < 2:
            raise GraphError("a barrier brings streams together: name another, as in a.barrier(b)")
        if len({len(each) for each in keys}) > 1:
            raise GraphError(
                "a barrier needs key_by with the same number of columns on all sides, or on none"
            )
        return BarrierPlan(tuple(keys), by_value)

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports of the inputs."""
        return tuple(map(port_of, range(len(self.keys))))

    def names(self, columns: Sequence[Sequence[str]]) -> list[dict[str, str]]:
        """What the columns of each input are called in the result, where it has them.

        A key column that is called as that of the first input is left out. A name that is taken gets the
        number of its input: `price`, then `price_2`.
        """
        taken: set[str] = set()
        found = []
        for number, (names, keys) in enumerate(zip(columns, self.keys, strict=True), 1):
            shared = {k for k, first in zip(keys, self.keys[0], strict=True) if k == first}
            given = {}
            for name in names:
                if number > 1 and name in shared:
                    continue
                free = name
                while free in taken:
                    free += f"_{number}"
                taken.add(free)
                given[name] = free
            found.append(given)
        return found


class _Waiting:
    """The rows of one input that wait, each found by a code of its key and its number there."""

    def __init__(self) -> None:
        self.rows: Final = Rows()
        self.dead = 0  #: how many rows have gone, and still lie there
        self.numbers: Final = Fixed(np.int64)  #: by row: which record of the input it is; they rise
        self._gone: Final = Fixed(np.bool_)
        self._index: Final = (
            KeyIndex()
        )  # each code is there once, so it numbers the rows as they lie

    def add(self, codes: Int64s, batch: Batch, numbers: Int64s) -> None:
        """Let the rows of a batch wait."""
        self._index.locate(codes)
        self.rows.append(batch.columns, batch.length)
        self.numbers.append(numbers)
        self._gone.reach(self.rows.length)
        self._gone.length = self.rows.length

    def find(self, codes: Int64s) -> Int64s:
        """Where the rows of these codes lie."""
        return self._index.find(codes)

    def remove(self, at: Int64s) -> None:
        """Let rows go."""
        self._gone.data[at] = True
        self.dead += len(at)

    def left(self, start: int = 0) -> tuple[Batch, Int64s]:
        """Copies of the rows that wait, in order, from the record with the number `start` on."""
        known: Int64s = self.numbers.view()
        first = int(np.searchsorted(known, start))
        at = first + np.flatnonzero(~self._gone.view(first))
        return self.rows.take(at), known[at]


class _State:
    """All rows that wait, since they were moved the last time."""

    def __init__(self, plan: BarrierPlan) -> None:
        self._keyed: Final = bool(plan.keys[0])
        self._numbers: Final = KeyedState(plan.keys[0], {})
        self.waiting: Final = [_Waiting() for _ in plan.keys]
        self._arrived: Final = [Fixed(np.int64) for _ in plan.keys]  # by input and key: records
        self._passed: Final = Fixed(np.int64)  # by key: how many have left

    def add(self, number: int, keys: Sequence[Column], batch: Batch, numbers: Int64s) -> Int64s:
        """Add rows to an input; return the codes of those that are complete, in no certain order."""
        key = self._located(keys, batch.length)
        ranks = np.empty(batch.length, np.int64)
        grouping.occurrences(key, ranks)
        arrived = self._arrived[number].data
        self.waiting[number].add(_code(key, arrived[key] + ranks), batch, numbers)
        np.add.at(arrived, key, 1)
        touched = np.unique(key)
        through = np.min([counts.data[touched] for counts in self._arrived], axis=0)
        before = self._passed.data[touched]
        self._passed.data[touched] = through
        ready = through - before
        firsts = np.cumsum(ready) - ready
        within = np.arange(int(ready.sum())) - np.repeat(firsts, ready)
        return _code(np.repeat(touched, ready), np.repeat(before, ready) + within)

    def _located(self, keys: Sequence[Column], length: int) -> Int64s:
        rows = self._numbers.locate(keys) if self._keyed else np.zeros(length, np.int64)
        known = len(self._numbers) if self._keyed else 1
        for counts in (*self._arrived, self._passed):
            counts.reach(known)
        return rows


def _code(keys: Int64s, ordinals: Int64s) -> Int64s:
    return (keys << 32) | ordinals


class Barrier(Operator):
    """Puts out one row for the n-th record of each input, with the columns of all of them."""

    def __init__(self, plan: BarrierPlan) -> None:
        self.plan: Final = plan
        self._state = _State(plan)
        self._next = [0] * len(plan.keys)  # by input: the number of the next record
        self._marked = [0] * len(plan.keys)  # by input: records before it were captured
        self._gone: list[list[Int64s]] = [
            [] for _ in plan.keys
        ]  # captured rows that have left since

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has the columns of all inputs."""
        inputs = [given[port] for port in self.plan.ports]
        for keys, columns in zip(self.plan.keys[1:], inputs[1:], strict=True):
            check_keys(inputs[0], columns, tuple(zip(self.plan.keys[0], keys, strict=True)))
        known = [columns for columns in inputs if columns is not None]
        if len(known) < len(inputs):
            return None
        names = self.plan.names([tuple(columns) for columns in known])
        pairs = zip(known, names, strict=True)
        return {new: each[old] for each, named in pairs for old, new in named.items()}

    def process(self, port: str, batch: Batch) -> Outputs:
        """Add the records to those that wait; put out what is complete, in the order of these records."""
        number = self.plan.ports.index(port)
        first, self._next[number] = self._next[number], self._next[number] + batch.length
        codes = self._add(number, batch, np.arange(first, first + batch.length))
        if not len(codes):
            return ()
        order = np.argsort(self._state.waiting[number].find(codes))
        parts = [self._taken(each, codes[order]) for each in range(len(self.plan.keys))]
        names = self.plan.names([tuple(part.columns) for part in parts])
        pairs = zip(parts, names, strict=True)
        columns = {new: part.columns[old] for part, named in pairs for old, new in named.items()}
        self._tidy()
        return ((OUT, Batch(columns, len(codes))),)

    def _add(self, number: int, batch: Batch, numbers: Int64s) -> Int64s:
        keys = [batch.columns[name] for name in self.plan.keys[number]]
        return self._state.add(number, keys, batch, numbers)

    def _taken(self, number: int, codes: Int64s) -> Batch:
        waiting = self._state.waiting[number]
        at = waiting.find(codes)
        waiting.remove(at)
        numbers = waiting.numbers.take(at)
        if len(captured := numbers[numbers < self._marked[number]]):
            self._gone[number].append(captured)
        return waiting.rows.take(at)

    def _tidy(self) -> None:
        """Move the rows that wait to new columns, if most rows have gone: each pays for a constant."""
        waiting = self._state.waiting
        lying = sum(each.rows.length for each in waiting)
        if lying < _FEW or 2 * sum(each.dead for each in waiting) < lying:
            return
        left = [each.left() for each in waiting]
        self._state = _State(self.plan)
        for number, (batch, numbers) in enumerate(left):
            if batch.length:
                self._add(number, batch, numbers)

    def capture(self, *, full: bool) -> Capture:
        """Capture the rows that wait, all or those that are new, and in a delta which have gone."""
        parts: dict[str, Batch] = {}
        for number, port in enumerate(self.plan.ports):
            batch, numbers = self._state.waiting[number].left(0 if full else self._marked[number])
            parts[port] = batch.with_columns(**{NUMBER: numbers}) if batch.length else Batch({})
            gone = _joined(self._gone[number]) if not full else np.zeros(0, np.int64)
            parts[port + GONE] = Batch({NUMBER: gone}) if len(gone) else Batch({})
            self._marked[number], self._gone[number] = self._next[number], []
        return Capture(full, {**parts, ARRIVED: Batch({NUMBER: np.array(self._next, np.int64)})})

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows that wait, in the order in which they came."""
        if captures:
            self._next = captures[-1].parts[ARRIVED][NUMBER].tolist()
            self._marked = list(self._next)
        for number, port in enumerate(self.plan.ports):
            kept = [capture.parts[port] for capture in captures if capture.parts[port].length]
            ends = [capture.parts[port + GONE] for capture in captures]
            if not kept:
                continue
            rows = concat(kept)
            gone = _joined([part[NUMBER] for part in ends if part.length])
            rows = rows.take(np.flatnonzero(~np.isin(rows[NUMBER], gone)))
            if rows.length:
                columns = [name for name in rows.columns if name != NUMBER]
                self._add(number, rows.select(*columns), rows[NUMBER])


def _joined(numbers: Sequence[Array]) -> Int64s:
    return np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
