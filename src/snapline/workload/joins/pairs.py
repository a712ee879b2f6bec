"""Both streams as an oracle sees them, and which of their records and rows are pairs."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.workload.common.generated import PARTITION_BITS, Ints
from snapline.workload.common.losses import Bools
from snapline.workload.joins.model import JoinShape
from snapline.workload.oracles.codes import ranges

RECORD, ROW = "record", "row"
"""The columns of pairs: the numbers of a record of stream 2 and of a row of stream 1."""


def ranks(keys: Ints) -> Ints:
    """Of each row how many before it have its key."""
    order = np.argsort(keys, kind="stable")
    ordered, result = keys[order], np.empty(len(keys), np.int64)
    result[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return result


class BothStreams:
    """The records of stream 2 and the rows of stream 1, which are numbered as they come from its source."""

    def __init__(self, shape: JoinShape, asked: Batch, rows: Batch) -> None:
        self.shape: Final = shape
        self.asked: Final = asked
        self.rows: Final = rows
        keys = rows["key"]
        #: of each row: how many rows are before it in its window
        self.places_of_rows: Final[Ints] = ranks(keys) if shape.by_key else np.arange(len(rows))
        self._nth: Final = ranks(keys)  # of each row: how many before it have its key
        self._order: Final = np.argsort(keys, kind="stable")
        self._keys: Final = keys[self._order]
        by_partition = np.bincount(asked["id"] >> PARTITION_BITS) if len(asked) else np.zeros(1)
        self._begins: Final[Ints] = np.concatenate([[0], np.cumsum(by_partition)]).astype(np.int64)

    def stored_by(self, records: Ints) -> Ints:
        """How many rows are stored when each of these records comes, by its time."""
        tick = self.shape.tick_ms
        steps: Ints = np.searchsorted(
            self.rows["time"] // tick, self.asked["time"][records] // tick, "right"
        )
        return steps

    def _met(self, stored: Ints, driving: Ints) -> tuple[Ints, Ints]:
        """Of all records the matches that they meet: where they begin in the order by key, and end.

        They meet rows among so many `stored`, unless one of so many `driving` has driven them out.
        """
        key = self.asked["key"]
        begin = np.searchsorted(self._keys, key)
        packed = self._keys * (len(self.rows) + 1) + self._order  # ascending: by key, then row
        stop = np.searchsorted(packed, key * (len(self.rows) + 1) + stored)
        if self.shape.by_key:
            end = np.searchsorted(packed, key * (len(self.rows) + 1) + driving)
            return np.maximum(begin, end - self.shape.window), stop
        first = np.maximum(driving - self.shape.window, 0)
        return np.searchsorted(packed, key * (len(self.rows) + 1) + first), stop

    def expected(self) -> list[Batch]:
        """All pairs, if records meet in the order of their times."""
        stored = self.stored_by(np.arange(len(self.asked)))
        return self._pairs(stored, stored)

    def certain(self, lag_ms: Millis) -> list[Batch]:
        """The pairs of every order of arrival in which nothing comes later than this after it is due."""
        due, asked = self.rows["time"], self.asked["time"]
        stored = np.searchsorted(due, asked - lag_ms)
        return self._pairs(stored, np.searchsorted(due, asked + lag_ms, "right"))

    def _pairs(self, stored: Ints, driving: Ints) -> list[Batch]:
        begin, stop = self._met(stored, driving)
        counts = np.maximum(stop - begin, 0)
        rows = self._order[ranges(begin, counts)]
        return [Batch({RECORD: np.repeat(np.arange(len(self.asked)), counts), ROW: rows})]

    def newest(self) -> tuple[Batch, Batch]:
        """Of all pairs those with the newest row of a window, and the others."""
        (pairs,) = self.expected()
        row, record = pairs[ROW], pairs[RECORD]
        if self.shape.by_key:
            stored = self.stored_by(record)
            last = np.full(len(row), -1)
            np.maximum.at(newest := np.full(len(self.asked), -1), record, row)
            last = newest[record]
            mask = (row == last) & (stored > row)
        else:
            mask = row == self.stored_by(record) - 1
        return pairs.take(mask), pairs.take(~mask)

    def places(self, found: Batch | None) -> tuple[Ints, Ints]:
        """The records and rows of pairs that came out; -1 where there is no such one."""
        if found is None or not len(found):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        partition, offset = found["id"] >> PARTITION_BITS, found["id"] & ((1 << PARTITION_BITS) - 1)
        there = (partition >= 0) & (partition < len(self._begins) - 1)
        begin = self._begins[np.where(there, partition, 0)]
        end = self._begins[np.where(there, partition + 1, 0)]
        record = np.where(there & (begin + offset < end), begin + offset, -1)
        row = np.where(
            (found["id_right"] >= 0) & (found["id_right"] < len(self.rows)), found["id_right"], -1
        )
        return record, row

    def conceivable(self, found: Batch | None) -> list[Batch]:
        """Of the pairs that came out those of equal keys; by times, the row is not behind the record."""
        record, row = self.places(found)
        known = (record >= 0) & (row >= 0)
        record, row = record[known], row[known]
        fits = self.asked["key"][record] == self.rows["key"][row]
        if self.shape.ordered:
            fits &= row < self.stored_by(record)
        distinct = np.unique(record[fits] * (len(self.rows) + 1) + row[fits])
        return [
            Batch(dict(zip((RECORD, ROW), np.divmod(distinct, len(self.rows) + 1), strict=True)))
        ]

    def without(self, some: Sequence[Batch], others: Sequence[Batch]) -> list[Batch]:
        """Pairs that are not among others."""
        codes = [
            [pairs[RECORD] * (len(self.rows) + 1) + pairs[ROW] for pairs in each]
            for each in (some, others)
        ]
        known = np.concatenate(codes[1])
        return [pairs.take(~np.isin(own, known)) for pairs, own in zip(some, codes[0], strict=True)]

    def beyond(self, found: Batch | None, lost: Bools) -> list[Batch]:
        """Of the pairs that came out those that are none, but would be if these rows were not there."""
        (pairs,) = self.conceivable(found)
        between = self.between(pairs, np.ones(len(self.rows), np.bool_))
        left = self.between(pairs, ~lost)
        window = self.shape.window
        return [pairs.take((between >= window) & (left < window))]

    def between(self, pairs: Batch, chosen: Bools) -> Ints:
        """How many of the chosen rows were stored in the window of each pair after its row."""
        row, stored = pairs[ROW], self.stored_by(pairs[RECORD])
        if not self.shape.by_key:
            before = np.concatenate([[0], np.cumsum(chosen)])
            counts: Ints = before[np.maximum(stored, row + 1)] - before[row + 1]
            return counts
        before = np.concatenate([[0], np.cumsum(chosen[self._order])])
        at = np.empty(len(self.rows), np.int64)
        at[self._order] = np.arange(len(self.rows))
        packed = self._keys * (len(self.rows) + 1) + self._order
        key = self.rows["key"][row]
        stop = np.searchsorted(packed, key * (len(self.rows) + 1) + stored)
        counts = before[np.maximum(stop, at[row] + 1)] - before[at[row] + 1]
        return counts

    def written(self, pairs: Batch, values: Sequence[str]) -> Batch:
        """Pairs with the columns that they should have."""
        asked, rows = self.asked.take(pairs[RECORD]), self.rows.take(pairs[ROW])
        theirs = {"id_right": "id", "time_right": "time", "text_right": "text", "number": "number"}
        columns = {
            "id": asked["id"],
            "id_right": rows["id"],
            RECORD: pairs[RECORD],
            ROW: pairs[ROW],
        }
        for name in values:
            columns[name] = rows[theirs[name]] if name in theirs else asked[name]
        return Batch(columns, len(pairs))
