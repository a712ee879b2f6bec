"""Judges the aggregates of sliding windows by rows: is there an order of arrival that explains them?

The rows of a window are in the order of arrival. Each partition keeps its order, but nobody knows how the
partitions were merged. Every result names the record with which it came, how many rows its window had, and
the oldest of them. So the results themselves tell in which order the records of a key came: where a window
is not full, it has as many rows as the place of its record says; where it is full, its record came
`rows - 1` places behind the oldest. If these places are the numbers from one on, each of them once, and the
records of each partition are in their order, then this is an order of arrival, and every result has to be
what it gives. Otherwise no order explains the results. Both answers are exact.

Fractions agree if they differ by a billionth at most.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Array, Batch
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools
from snapline.workload.oracles.codes import Codes
from snapline.workload.oracles.verdict import LIMIT, Problems

CLOSE: Final = 1e-9
ROWS, OLDEST = "rows", "oldest"
"""The columns of results that say how many rows a window had, and the id of the oldest of them."""

Aggregates: TypeAlias = Mapping[str, tuple[str, str]]
"""Of each column of the results what is computed, and of which column of the records."""


@dataclass(frozen=True, slots=True)
class RowWindows:
    """What is computed: the windows of these keys have so many rows, at least two."""

    key: Sequence[str]
    rows: int
    results: Aggregates


def judge_last_rows(
    findings: Problems,
    shape: RowWindows,
    records: Batch,
    found: Batch,
    describe: Callable[[int], str],
    loose: Bools | None = None,
) -> None:
    """Report what no order of arrival explains.

    Both have the column `id`, and every record has one result. Records also have `partition`; within a
    partition their ids ascend. What a loss may have touched is `loose`, and has any number of results. Of a
    key with such records the others are judged by where they stand, and their figures up to the first
    before which a loose one may have come.
    """
    by_id = np.argsort(records["id"])
    records, found = records.take(by_id), found.take(np.argsort(found["id"]))
    free = np.zeros(len(records), np.bool_) if loose is None else loose[by_id]
    keys = np.unique(Codes([records[name] for name in shape.key]).own, return_inverse=True)[1]
    _report_impossible(findings, shape, records["id"], keys, free, found, describe)
    more = _may_have_come(records["id"], keys, free, found["id"])
    ids, first, copies = np.unique(found["id"], return_index=True, return_counts=True)
    once = np.isin(records["id"], ids[copies == 1])
    assert once[~free].all(), "every record that no loss touched has one result"
    records, keys, free = records.take(once), keys[once], free[once]
    found = found.take(first[copies == 1])
    standing = _Standing(shape, records, found, keys, free)
    for record in records["id"][standing.wrong(more)][:LIMIT].tolist():
        findings.instead(describe(record), "no order of arrival explains the window of its key")
    order, starts = standing.order, standing.starts
    _compare(
        findings, shape, records.take(order), found.take(order), starts, standing.sure, describe
    )


def _report_impossible(
    findings: Problems,
    shape: RowWindows,
    ids: Ints,
    keys: Ints,
    free: Bools,
    found: Batch,
    describe: Callable[[int], str],
) -> None:
    """Report windows as no loss leaves them: with too many rows, or with one of another key."""
    at, oldest = np.searchsorted(ids, found["id"]), np.searchsorted(ids, found[OLDEST])
    oldest = np.minimum(oldest, max(len(ids) - 1, 0))
    wrong = (ids[oldest] != found[OLDEST]) | (keys[oldest] != keys[at])
    wrong |= (found[ROWS] < 1) | (found[ROWS] > shape.rows)
    wrong &= np.isin(keys, keys[free])[at]
    for n in np.flatnonzero(wrong)[:LIMIT].tolist():
        rows, oldest_id = found[ROWS][n], found[OLDEST][n]
        because = f"no window of its key has {rows} rows, the oldest with the id {oldest_id}"
        findings.instead(describe(int(found["id"][n])), because)


def _may_have_come(ids: Ints, keys: Ints, free: Bools, found: Ints) -> Ints:
    """How often loose records of each key may have come: each time a result came out, or was lost."""
    at = np.searchsorted(ids, found)
    count = int(keys.max(initial=-1)) + 1
    came: Ints = np.bincount(keys[free], minlength=count)
    return came + np.bincount(keys[at[free[at]]], minlength=count)


class _Standing:
    """Where the records of each key stand, as far as the results tell; each record has one."""

    def __init__(
        self, shape: RowWindows, records: Batch, found: Batch, keys: Ints, free: Bools
    ) -> None:
        places, told = _places(shape, found, free)
        self._keys: Final = keys
        #: records by key and place, behind them those of which nobody knows where they stand
        self.order: Final[Ints] = np.lexsort((places, ~told, keys))
        self._ordered: Final[Ints] = keys[self.order]
        self.starts: Final[Ints] = np.searchsorted(self._ordered, self._ordered)
        self._told, self._places = told[self.order], places[self.order]
        self._ranks: Final[Ints] = np.arange(len(self.order)) - self.starts + 1
        self._overtaken = _overtaken(keys, places, records, told)[self.order]
        self._hidden: Final[Bools] = ~told & ~free
        self._tied: Final[Bools] = np.isin(self._ordered, keys[free])
        self._stray = (self._places != self._ranks) | self._overtaken

    def wrong(self, more: Ints) -> Ints:
        """Records that no order explains; of loose ones of their key so many may have come before them."""
        others = more + np.bincount(self._keys[self._hidden], minlength=len(more))
        shared = np.zeros(len(self.order), np.bool_)
        shared[1:] = (self._ranks[1:] > 1) & (self._places[1:] == self._places[:-1])
        unexplained = (
            shared | (self._places < 1) | (self._places > self._ranks + others[self._ordered])
        )
        unexplained |= self._overtaken
        return self.order[np.where(self._tied, self._told & unexplained, self._stray)]

    @property
    def sure(self) -> Bools:
        """Which records, in that order, are such that all before them are known."""
        doubts = np.cumsum(self._stray | ~self._told)
        before = np.concatenate([[0], doubts])[self.starts]  # those of other keys
        sure: Bools = doubts == before
        return sure


def _places(shape: RowWindows, found: Batch, free: Bools) -> tuple[Ints, Bools]:
    """The place of each record among those of its key, 0 if there is none, and whether results tell it.

    What the result of a loose record tells may be wrong.
    """
    ids, rows = found["id"], found[ROWS]
    at = np.minimum(np.searchsorted(ids, found[OLDEST]), max(len(ids) - 1, 0))
    full = rows == shape.rows
    chained = full & (ids[at] == found[OLDEST])
    before: Ints = np.where(chained, at, np.arange(len(ids)))
    steps: Ints = np.where(chained, shape.rows - 1, 0)
    doubtful = free | (full & ~chained)
    for _ in range(len(ids).bit_length()):  # each time chains are followed twice as far
        steps, doubtful = steps + steps[before], doubtful | doubtful[before]
        before = before[before]
    # A chain that has not come to its end by then goes round in a circle.
    places: Ints = np.where(doubtful | chained[before], 0, rows[before] + steps)
    return places, ~doubtful


def _overtaken(keys: Ints, places: Ints, records: Batch, told: Bools) -> Bools:
    """Which records have a place before that of one that is earlier in their partition."""
    lanes = Codes([keys, records["partition"]]).own
    order = np.argsort(lanes, kind="stable")  # in each lane by id
    order = order[told[order]]
    ordered, their = places[order], lanes[order]
    overtaken = np.zeros(len(places), np.bool_)
    overtaken[order[1:]] = (their[1:] == their[:-1]) & (ordered[1:] <= ordered[:-1])
    return overtaken


def _compare(
    findings: Problems,
    shape: RowWindows,
    records: Batch,
    found: Batch,
    starts: Ints,
    sure: Bools,
    describe: Callable[[int], str],
) -> None:
    """Compare results with what the order gives in which these records are, key by key."""
    last = np.arange(len(records))
    first = np.maximum(starts, last - shape.rows + 1)
    asked = {ROWS: ("count", "id"), OLDEST: ("first", "id"), **shape.results}
    for name, (kind, column) in asked.items():
        right = _computed(kind, records[column], first, last, shape.rows)
        wrong = sure & ~np.isclose(found[name], right, rtol=CLOSE, atol=0)
        for at in np.flatnonzero(wrong)[:LIMIT].tolist():
            because = (
                f"its {name} came out as {found[name][at]}; in the order of arrival that the results "
                f"tell, right is {right[at]}"
            )
            findings.instead(describe(int(records["id"][at])), because)


_COMBINED: Final = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def _computed(kind: str, column: Array, first: Ints, last: Ints, rows: int) -> Array:
    """What the windows from one row to another give; none has more than so many rows."""
    result: Array
    match kind:
        case "count":
            result = last - first + 1
        case "first":
            result = column[first]
        case "last":
            result = column
        case "mean":
            result = _computed("sum", column, first, last, rows) / (last - first + 1)
        case _:
            result = column.copy()
            for back in range(1, min(rows, len(column))):
                there = np.flatnonzero(last - back >= first)
                result[there] = _COMBINED[kind](result[there], column[there - back])
    return result
