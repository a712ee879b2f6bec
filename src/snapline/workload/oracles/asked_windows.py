"""Whether there is an order of arrival that explains what records found in a sliding window by rows.

Rows are stored in a known order; records that ask come from several partitions, each in its own order, and
each finds those of the last rows that match it. Nobody knows when a record came between the rows. But what
it found tells how many rows can have been stored by then: all that it found and no later match, and its
window reached back to the first that it found and to no match before. A record cannot have come before one
that is earlier in its partition. If there is such a number for each record, that order explains the result,
and it is right; otherwise no order does. Both are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.workload.common.generated import Ints
from snapline.workload.oracles.verdict import LIMIT, Problems


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows, by number. Those that a record matches have its key."""

    keys: Ints  # of each row: its key, from 0
    places: Ints  # of each row: how many rows were stored in its window before it
    ends: Ints  # of each key: how many rows are stored in its window in all
    window: int  # how many rows a window holds


@dataclass(frozen=True, slots=True)
class AskingRecords:
    """Records, by number, those of a partition in their order."""

    keys: Ints  # -1: no row has its key
    lanes: Ints  # those with the same number come to the same window one after the other


class _Matches:
    """The rows of each key, and which of them each record found."""

    def __init__(self, rows: StoredRows, asked: Ints, record: Ints, row: Ints) -> None:
        self.rows: Final = rows
        self.asked: Final = asked
        self.order: Final = np.lexsort((rows.places, rows.keys))  # rows by key and place
        self.begins: Final = np.searchsorted(rows.keys[self.order], np.arange(len(rows.ends) + 1))
        self.places: Final = rows.places[self.order]
        at = np.empty(len(self.order), np.int64)
        at[self.order] = np.arange(len(self.order))
        self._pairs: Final = (record, at[row])
        self.counts: Final = np.bincount(record, minlength=len(asked))
        #: of each record: where the first that it found stands in that order, and the end of the last
        self.first: Final = np.full(len(asked), len(self.order), np.int64)
        self.end: Final = np.zeros(len(asked), np.int64)
        np.minimum.at(self.first, record, at[row])
        np.maximum.at(self.end, record, at[row] + 1)

    def hole(self, record: int) -> int:
        """The first row that a record did not find between others that it found."""
        found = np.sort(self._pairs[1][self._pairs[0] == record])
        gap = np.flatnonzero(np.diff(found) > 1)[0]
        return int(self.order[found[gap] + 1])

    def bounds(self) -> tuple[Ints, Ints]:
        """How many rows were stored at least and at most when each record came, by what it found."""
        key, window = np.maximum(self.asked, 0), self.rows.window
        begin, stop = self.begins[key], self.begins[key + 1]
        some, padded = self.counts > 0, np.append(self.places, 0)
        last, next_ = (
            padded[self.end - 1] + 1,
            np.where(
                self.end < stop, padded[np.minimum(self.end, len(padded) - 1)], self.rows.ends[key]
            ),
        )
        older = np.where(self.first > begin, padded[self.first - 1] + window + 1, 0)
        least = np.where(some, np.maximum(last, older), 0)
        most = np.where(some, np.minimum(next_, padded[self.first] + window), self.rows.ends[key])
        return least, most

    def next_gap(self, record: int, low: int) -> int:
        """How many rows, from `low` on, must be stored for a window without any match of a record."""
        key, window = int(self.asked[record]), self.rows.window
        places = self.places[self.begins[key] : self.begins[key + 1]]
        at = int(np.searchsorted(places, low - window))  # the first match that may be in the window
        while at < len(places) and places[at] < low:
            low = int(places[at]) + window + 1
            at = int(np.searchsorted(places, low - window))
        return low


def judge_asked(
    findings: Problems,
    rows: StoredRows,
    records: AskingRecords,
    pairs: tuple[Ints, Ints],
    describe: Callable[[int, int], str],
) -> None:
    """Report where no order explains these pairs (record, row): of equal keys, and each there once."""
    found = _Matches(rows, records.keys, *pairs)
    holes = (found.counts > 0) & (found.end - found.first != found.counts)
    for record in np.flatnonzero(holes)[:LIMIT].tolist():
        because = "rows before it and behind it were found"
        findings.lack("missing", describe(record, found.hole(record)), because)
    least, most = found.bounds()
    reached: dict[int, int] = {}
    for record in np.flatnonzero((records.keys >= 0) & ~holes).tolist():
        lane = int(records.lanes[record])
        low = max(int(least[record]), reached.get(lane, 0))
        if not found.counts[record]:
            low = found.next_gap(record, low)
        if low <= most[record]:
            reached[lane] = low
        else:
            _report(findings, found, record, int(least[record]), int(most[record]), describe)


def _report(
    findings: Problems,
    found: _Matches,
    record: int,
    least: int,
    most: int,
    describe: Callable[[int, int], str],
) -> None:
    """Say why no order explains what a record found."""
    key = int(found.asked[record])
    if not found.counts[record]:
        row = int(found.order[found.begins[key + 1] - 1])
        because = "it found nothing, but some row was there whenever it may have come"
        findings.lack("missing", describe(record, row), because)
        return
    first, end = int(found.first[record]), int(found.end[record])
    if found.places[end - 1] - found.places[first] >= found.rows.window:
        because = "it was found, but had left the window before another that was found came"
        findings.excess("wrong", describe(record, int(found.order[first])), because)
    elif least > most:
        because = "it was not found, but cannot have left the window when the record came"
        findings.lack("missing", describe(record, int(found.order[first - 1])), because)
    else:
        row = int(found.order[min(end, found.begins[key + 1] - 1)])
        because = "records before it in its partition had found later rows"
        findings.lack("missing", describe(record, row), because)
