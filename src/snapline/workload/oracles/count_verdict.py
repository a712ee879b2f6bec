"""Compares running counts with the records that were counted, as whole columns.

The counts of a key are exactly 1..k and every record is counted once; which record got which number is
free. A count gives its record's time, so records are told apart by key and time: a *cell*. That no count
is missing need not be checked: k counts of 1..k, none twice, are all of them.

If all is right, sorting the cells of both sides shows it. Otherwise what differs is found by key, by cell
and by row, and only the first few of each kind become sentences.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, concat
from snapline.wording import plural
from snapline.workload.common.generated import Ints
from snapline.workload.oracles.codes import UNKNOWN, Bools, Codes
from snapline.workload.oracles.lossy_counts import (
    CountExcuses,
    LossyNumbers,
    NumberExcuses,
    judge_lossy_counts,
)
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of


def last_counts(inputs: Iterable[Batch], key: Sequence[str]) -> Batch:
    """The last count of every key (key, `count`, `time`), at the time of its last record."""
    records = concat(list(inputs))
    codes = Codes([records[column] for column in key]).own
    _, first, at, counts = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    times = np.zeros(len(first), np.int64)
    np.maximum.at(times, at, records["time"])
    return records.select(*key).take(first).with_columns(count=counts, time=times)


def judge_counts(
    findings: Problems,
    inputs: Iterable[Batch],
    found: Batch | None,
    key: Sequence[str],
    describe: Callable[..., str],
    name: Callable[[int], str],
    losses: CountExcuses | None = None,
) -> None:
    """Compare running counts (key, `count`, `time`) with records (key, `time`, `id`).

    The columns of a key are whole numbers. `describe` takes a key, column by column; `name` an id.
    """
    records = concat(list(inputs))
    rows = _only(found, (*key, "count", "time"))
    if losses is not None:
        judge_lossy_counts(findings, records, rows, key, describe, name, losses)
        return
    keys = Codes([records[column] for column in key])
    keys_found = keys.of([rows[column] for column in key])
    numbers = _Numbers(keys.own, keys_found, rows["count"])
    cells = Codes([keys.own, records["time"]])
    cells_found = cells.of([keys_found, rows["time"]])
    if numbers.all_right() and np.array_equal(np.sort(cells.own), np.sort(cells_found)):
        return

    def spoken(at: int) -> str:
        return describe(*rows_of(records.slice(at, at + 1), *key)[0])

    numbers.judge(findings, spoken)
    held = _Cells(cells.own, cells_found)
    for first, came, counted in held.differing(numbers):
        names = " or ".join(map(name, records["id"][cells.own == cells.own[first]].tolist()))
        because = f"counted {plural(counted, 'time')} in the {spoken(first)}, {came} came"
        if counted < came:
            findings.lack("missing", names, because)
        else:
            findings.excess("duplicate", names, because)
    _judge_invented(findings, rows.take(~held.known), key, describe)


def judge_numbers(
    findings: Problems,
    records: Batch,
    found: Batch | None,
    key: str,
    count: str,
    describe: Callable[[int], str],
    losses: NumberExcuses | None = None,
) -> None:
    """Compare only the counts of each key with the number of its records.

    Where losses were declared, records and rows need their `time`.
    """
    keys = Codes([records[key]])
    if losses is not None:
        if found is not None and len(found):
            rows = found.take(keys.of([found[key]]) != UNKNOWN)
            by = rows["time"] + losses.lag_ms
            free = LossyNumbers(
                (keys.own, records["time"]), (keys.of([rows[key]]), by), rows[count]
            )
            free.more += len(records)  # what was counted may have been lost behind it
            free.count_further(losses.counted_again)
            loose, again = losses.loose(rows), losses.again(rows)
            free.judge(findings, loose, lambda at: describe(records[key][at].item()), again)
        return
    rows = _only(found, (key, count))
    numbers = _Numbers(keys.own, keys.of([rows[key]]), rows[count])
    if not numbers.all_right():
        numbers.judge(findings, lambda at: describe(records[key][at].item()))


def _only(found: Batch | None, columns: Sequence[str]) -> Batch:
    if found is None or not len(found):
        return Batch(dict.fromkeys(columns, np.zeros(0, np.int64)), 0)
    return found.select(*columns)


class _Numbers:
    """The counts of every key that has records. Keys are given as codes, of records and of counts."""

    def __init__(self, keys: Ints, keys_found: Ints, counts: Array) -> None:
        self._keys: Final = keys
        ordered = np.sort(keys)
        self._starts: Final = np.flatnonzero(np.diff(ordered, prepend=UNKNOWN))
        self._distinct: Final = ordered[self._starts]
        self._true: Final = np.diff(self._starts, append=len(ordered))  # records of each key
        at = np.minimum(np.searchsorted(self._distinct, keys_found), len(self._starts) - 1)
        known = self._distinct[at] == keys_found
        self._all_known: Final = bool(known.all())
        self._at: Final = at if self._all_known else at[known]  # the place of each count's key
        self._counts: Final = counts if self._all_known else counts[known]

    def all_right(self) -> bool:
        """Whether every count has a key, and every key its counts 1..k, each once."""
        counts = self._counts
        if not self._all_known or len(counts) != len(self._keys) or counts.dtype.kind not in "iu":
            return False
        if not ((counts >= 1) & (counts <= self._true[self._at])).all():
            return False
        # There are as many counts as numbers 1..k of all keys: if each number occurs, none occurs twice.
        taken = np.zeros(len(self._keys), np.bool_)
        taken[self._starts[self._at] + (counts - 1)] = True
        return bool(taken.all())

    @cached_property
    def first(self) -> Ints:
        """The first record of each key."""
        return np.unique(self._keys, return_index=True)[1]

    def first_like(self, records: Ints) -> Ints:
        """The first record that has the key of each of these."""
        return self.first[np.searchsorted(self._distinct, self._keys[records])]

    def judge(self, findings: Problems, spoken: Callable[[int], str]) -> None:
        """Add a problem for each wrong key; `spoken` names the key of a record."""
        codes = Codes([self._at, self._counts]).own
        _, rows, copies = np.unique(codes, return_index=True, return_counts=True)
        at, counts = self._at[rows], self._counts[rows]  # in order of the key, then of the count
        highest = np.zeros(len(self._distinct), counts.dtype)
        highest[at] = counts  # where keys repeat the last value stays, which is the largest
        excess = (counts < 1) | (counts > self._true[at]) | (copies > 1)
        lacking = self._earliest(np.flatnonzero(highest < self._true))
        exceeding = self._earliest(np.unique(at[excess]))
        chosen = np.unique(np.concatenate([lacking, exceeding]))
        for key in chosen[np.argsort(self.first[chosen])].tolist():
            here = slice(*np.searchsorted(at, [key, key + 1]))
            worth = np.flatnonzero(excess[here])[:LIMIT]
            said = dict(
                zip(counts[here][worth].tolist(), copies[here][worth].tolist(), strict=True)
            )
            true = int(self._true[key])
            _judge_key(findings, spoken(int(self.first[key])), true, highest[key].item(), said)

    def _earliest(self, keys: Ints) -> Ints:
        return keys[np.argsort(self.first[keys])[:LIMIT]]


def _judge_key(
    findings: Problems, key: str, true: int, highest: int, excess: Mapping[int, int]
) -> None:
    came = f"{plural(true, 'record')} came"
    if highest < true:
        findings.lack("missing", key, f"it ends at {highest}; {came}")
    for number, copies in excess.items():
        if not 1 <= number <= true:
            findings.excess("wrong", key, f"it has the count {number}; {came}")
        else:
            findings.excess("duplicate", key, f"the count {number} came out {copies} times")


class _Cells:
    """The cells that have records, and how often these came and were counted."""

    def __init__(self, cells: Ints, cells_found: Ints) -> None:
        distinct, first, came = np.unique(cells, return_index=True, return_counts=True)
        ordered = np.sort(cells_found)
        counted = np.searchsorted(ordered, distinct, "right") - np.searchsorted(ordered, distinct)
        self._first: Final = first  # record of each cell
        self._came: Final = came
        self._counted: Final = counted
        at = np.minimum(np.searchsorted(distinct, cells_found), len(distinct) - 1)
        self.known: Final[Bools] = distinct[at] == cells_found  # which counts are of a cell at all

    def differing(self, numbers: _Numbers) -> Iterator[tuple[int, int, int]]:
        """The first cells of each kind, key by key: their first record, how many came, and counted."""
        came, counted = self._came, self._counted
        kinds = [
            self._in_order(np.flatnonzero(d), numbers) for d in (counted < came, counted > came)
        ]
        for cell in self._in_order(np.concatenate([kind[:LIMIT] for kind in kinds]), numbers):
            yield int(self._first[cell]), int(came[cell]), int(counted[cell])

    def _in_order(self, cells: Ints, numbers: _Numbers) -> Ints:
        first = self._first[cells]
        return cells[np.lexsort((first, numbers.first_like(first)))]


def _judge_invented(
    findings: Problems, rows: Batch, key: Sequence[str], describe: Callable[..., str]
) -> None:
    columns = (*key, "time")
    codes = Codes([rows[column] for column in columns]).own
    firsts = np.sort(np.unique(codes, return_index=True)[1])[:LIMIT]
    for *values, time in rows_of(rows.take(firsts), *columns):
        findings.excess("invented", f"{describe(*values)} at {time} ms", "no such record came")
