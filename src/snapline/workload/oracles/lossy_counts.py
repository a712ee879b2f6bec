"""Compares running counts with the records that were counted, where losses were declared.

Nothing is excused that no loss touched. A record need not be counted if it may have been lost on its way,
and is counted again only if two lives of a task may have put it out. A number is *loose* if the task that
gave it may have lost what it had counted before: then it only has to be a number that its key can have. All
other numbers of a key are different ones, and none is larger than how many of its records were due by then.
A key without loose numbers has 1..k, where k is how many of its records were counted, or as many more as
may have been lost behind the count. A number may come again if its row may; and a record that may have been
counted again has its key count further from then on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
from snapline.ids import Millis
from snapline.wording import plural
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools, Excuses, Stay
from snapline.workload.oracles.codes import Codes
from snapline.workload.oracles.verdict import LIMIT, Kind, Problems, rows_of


@dataclass(frozen=True, slots=True)
class CountExcuses:
    """Where records that are counted, and the counts, are lost; the functions take columns of both."""

    excuses: Excuses
    before: Callable[[Batch], Sequence[Stay]]  # stays of a record before it is counted
    behind: Callable[[Batch], Sequence[Stay]]  # stays of its row once it was
    state: Callable[[Batch], Sequence[Stay]]  # stays of what was counted before it, of the same key


@dataclass(frozen=True, slots=True)
class NumberExcuses:
    """What may be wrong with the numbers that a count gave; records may be missing anyway."""

    loose: Callable[[Batch], Bools]  # which rows have numbers that a loss may have made wrong
    again: Callable[[Batch], Bools]  # which rows may have come again, with the same number
    counted_again: Bools  # which records may have been counted again
    lag_ms: Millis  # how long before a row was put out it can have been due


def judge_lossy_counts(
    findings: Problems,
    records: Batch,
    rows: Batch,
    key: Sequence[str],
    describe: Callable[..., str],
    name: Callable[[int], str],
    losses: CountExcuses,
) -> None:
    """Compare running counts (key, `count`, `time`) with records (key, `time`, `id`)."""
    keys = Codes([records[column] for column in key])
    of_row = keys.of([rows[column] for column in key])
    cells = Codes([keys.own, records["time"]])
    held = _Cells(cells.own, cells.of([of_row, rows["time"]]))
    unknown = ~held.known
    for *values, time in rows_of(rows.take(unknown).slice(0, LIMIT), *key, "time"):
        findings.excess("invented", f"{describe(*values)} at {time} ms", "no such record came")
    excuses = losses.excuses
    behind = excuses.touched(*losses.behind(records))
    touched = behind | excuses.touched(*losses.before(records))
    counted_again = excuses.repeated(*losses.before(records))
    again = counted_again | excuses.repeated(*losses.behind(records))
    surplus = np.where(held.count(again) > 0, np.maximum(held.counted - held.came, 0), 0)
    excuses.account(lost=int(held.lacking.sum()), of=len(records), again=int(surplus.sum()))

    def spoken(record: int) -> str:
        return describe(*rows_of(records.slice(record, record + 1), *key)[0])

    lost = held.lacking > held.count(touched)
    for cell in np.flatnonzero(lost | (held.counted - surplus > held.came)).tolist():
        names = " or ".join(map(name, records["id"][held.of_record == cell][:LIMIT].tolist()))
        came, counted = int(held.came[cell]), int(held.counted[cell])
        because = (
            f"counted {plural(counted, 'time')} in the {spoken(held.first[cell])}, {came} came"
        )
        if counted > came:
            findings.excess("duplicate", names, because)
        else:
            findings.lack("missing", names, f"{because}, and no declared loss touched it")
    known = rows.take(~unknown)
    gone = np.minimum(held.lacking, held.count(behind))  # of each cell: lost behind the count
    numbers = LossyNumbers(
        (keys.own, records["time"]),
        (of_row[~unknown], known["time"] + excuses.lag_ms),
        known["count"],
    )
    numbers.more = np.bincount(
        np.searchsorted(numbers.distinct, keys.own[held.first]), gone, len(numbers.distinct)
    ).astype(np.int64)
    numbers.count_further(counted_again)
    loose = excuses.touched(*losses.state(known))
    excuses.account(free=int(np.count_nonzero(loose)))
    numbers.judge(findings, loose, spoken, excuses.repeated(*losses.behind(known)))


class _Cells:
    """Records by key and time, how often they came, and how often they were counted."""

    def __init__(self, cells: Ints, found: Ints) -> None:
        distinct, first, inverse, came = np.unique(
            cells, return_index=True, return_inverse=True, return_counts=True
        )
        ordered = np.sort(found)
        self.first: Final[Ints] = first  # record of each cell
        self.of_record: Final[Ints] = inverse  # the cell of each record
        self.came: Final[Ints] = came
        self.counted: Final[Ints] = np.searchsorted(ordered, distinct, "right") - np.searchsorted(
            ordered, distinct
        )
        self.lacking: Final[Ints] = np.maximum(self.came - self.counted, 0)
        at = np.minimum(np.searchsorted(distinct, found), max(len(distinct) - 1, 0))
        known = distinct[at] == found if len(distinct) else np.zeros(len(found), np.bool_)
        self.known: Final[Bools] = known  # which counts are of a cell at all

    def count(self, records: Bools) -> Ints:
        """How many of these records each cell has."""
        return np.bincount(self.of_record[records], minlength=len(self.came))


class LossyNumbers:
    """The numbers that each key got. Keys are given as codes."""

    def __init__(self, records: tuple[Ints, Ints], rows: tuple[Ints, Ints], counts: Ints) -> None:
        """Records are given with their times, and rows with the moment by which they were put out."""
        keys, times = records
        of_row, self._by = rows
        self.distinct, self._first, place, self._true = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        self._keys: Final[Ints] = place  # of each record, by its place among the distinct ones
        self._at: Final[Ints] = np.searchsorted(self.distinct, of_row)  # the same of each row
        self._times: Final = times
        self._counts: Final = counts
        #: how many numbers of each key may have been given and lost
        self.more: Ints = np.zeros(len(self.distinct), np.int64)
        #: from when on records of each key may have been counted again
        self._further: Final[Ints] = np.full(len(self.distinct), END_OF_TIME)

    def count_further(self, records: Bools) -> None:
        """Say which records may have been counted again, which has their keys count further."""
        np.minimum.at(self._further, self._keys[records], self._times[records])

    def judge(
        self, findings: Problems, loose: Bools, spoken: Callable[[int], str], again: Bools
    ) -> None:
        """Add a problem for each number that no loss explains; `spoken` names the key of a record.

        `again` says which rows may have come again, with the number that they had.
        """
        at, counts = self._at, self._counts
        highest = self._highest(loose, again)
        for row in np.flatnonzero((counts < 1) | (counts > highest))[:LIMIT].tolist():
            most = f"{plural(int(highest[row]), 'record')} can have been counted"
            self._say(findings, row, "wrong", f"it has the count {counts[row]}; {most}", spoken)
        firm = np.flatnonzero(~loose & ~again)
        order = firm[np.lexsort((counts[firm], at[firm]))]
        again = (at[order][1:] == at[order][:-1]) & (counts[order][1:] == counts[order][:-1])
        for row in order[1:][again][:LIMIT].tolist():
            because = f"the count {counts[row]} came out again, and no declared loss touched it"
            self._say(findings, row, "duplicate", because, spoken)

    def _highest(self, loose: Bools, again: Bools) -> Ints:
        """How many records can have been counted at most for the number of each row.

        A row that may have come again was perhaps put out by a later life, when more records had come.
        """
        at, true = self._at, self._true
        rows = np.bincount(at, minlength=len(self.distinct))
        free = np.zeros(len(self.distinct), np.bool_)
        free[at[loose]] = True
        highest = np.where(free, true, np.minimum(rows + self.more, true))[at]
        highest = np.where(loose | again, highest, np.minimum(highest, self._due()))
        further = self._further[at] <= np.where(loose | again, END_OF_TIME - 1, self._by)
        result: Ints = np.where(further, (rows + true)[at], highest)  # each came out, or was lost
        return result

    def _due(self) -> Ints:
        """How many records of its key were due by the moment by which each row was put out."""
        span = int(self._times.max(initial=0)) + 2
        due = np.sort(self._keys * span + self._times)
        key = self._at * span
        last = np.clip(self._by, -1, span - 2)
        found: Ints = np.searchsorted(due, key + last, "right") - np.searchsorted(due, key)
        return found

    def _say(
        self, findings: Problems, row: int, kind: Kind, because: str, spoken: Callable[[int], str]
    ) -> None:
        findings.excess(kind, spoken(int(self._first[self._at[row]])), because)
