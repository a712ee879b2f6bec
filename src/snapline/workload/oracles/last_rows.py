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
    partition their ids ascend. What a loss may have touched is `loose`: of a key that has such records the
    others are judged, up to the first of which not all that came before it are among them.
    """
    by_id = np.argsort(records["id"])
    records, found = records.take(by_id), found.take(np.argsort(found["id"]))
    assert np.array_equal(records["id"], found["id"]), "every record has one result"
    keys, places = Codes([records[name] for name in shape.key]).own, _places(shape, found)
    free = np.zeros(len(keys), np.bool_) if loose is None else loose[by_id]
    order = np.lexsort((places, free, keys))  # after a loss places may begin with one again
    starts = np.searchsorted(keys[order], keys[order])
    stray = places[order] != np.arange(len(order)) - starts + 1
    stray |= _overtaken(keys, places, records)[order]
    tied = np.isin(keys[order], keys[free])
    for record in records["id"][order[stray & ~tied]][:LIMIT].tolist():
        findings.instead(describe(record), "no order of arrival explains the window of its key")
    doubts = np.cumsum(stray | free[order])
    before = np.concatenate([[0], doubts])[starts]  # those of other keys
    sure = doubts == before
    _compare(findings, shape, records.take(order), found.take(order), starts, sure, describe)


def _places(shape: RowWindows, found: Batch) -> Ints:
    """The place of each record among those of its key that the results tell; 0 where they tell none."""
    ids, rows = found["id"], found[ROWS]
    at = np.minimum(np.searchsorted(ids, found[OLDEST]), max(len(ids) - 1, 0))
    chained = (rows == shape.rows) & (ids[at] == found[OLDEST])
    before: Ints = np.where(chained, at, np.arange(len(ids)))
    steps: Ints = np.where(chained, shape.rows - 1, 0)
    for _ in range(len(ids).bit_length()):  # each time chains are followed twice as far
        steps, before = steps + steps[before], before[before]
    # A chain that has not come to its end by then goes round in a circle.
    places: Ints = np.where(chained[before], 0, rows[before] + steps)
    return places


def _overtaken(keys: Ints, places: Ints, records: Batch) -> Bools:
    """Which records have a place before that of one that is earlier in their partition."""
    lanes = Codes([keys, records["partition"]]).own
    order = np.argsort(lanes, kind="stable")  # in each lane by id
    ordered, their = places[order], lanes[order]
    overtaken = np.zeros(len(order), np.bool_)
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
