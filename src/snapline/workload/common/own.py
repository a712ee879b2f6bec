"""Inputs for dataflows of the user's own: computed from a number, or taken from a list."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from snapline.arguments import refused, shown
from snapline.batch import Batch, Column, Schema
from snapline.dataflow.operators.guard import check_batch
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.storage.api import Ingress
from snapline.storage.list_ingress import ListIngress
from snapline.workload.common.base import Params
from snapline.workload.common.generated import GeneratedFeed, Ints

Rule: TypeAlias = Callable[[Ints], Mapping[str, Any]]
"""The numbers of some records (0, 1, 2, ... over the whole input) -> their columns. Pure."""


def generated(rule: Rule, *, rate: int, name: str = "records") -> GeneratedFeed:
    """Records computed from their numbers: `sl.generated(lambda n: {"key": n % 10}, rate=1_000)`.

    The rule takes an array of numbers and returns a column for each name. It must be pure: for the same
    number it always returns the same, in whichever process and however often it is called.
    """
    _check_rate(rate)
    if not callable(rule):
        raise refused("rule", "a function from numbers to columns", rule)
    return GeneratedFeed(name, partial(_follow, rule), rate)


def _follow(rule: Rule, params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    made = rule(offsets * params.partitions + partition)
    if not isinstance(made, Mapping):
        raise TypeError(f"the rule returned {shown(made)} where a dict of columns should be")
    columns = Batch.of(**made).columns
    check_batch(Batch(columns, len(offsets)), "the rule returned")
    taken = [name for name in ("id", "time") if name in columns]
    if taken:
        raise UsageError(f"a rule cannot make the column {taken[0]}: every record has one already")
    return columns


@dataclass(frozen=True, slots=True)
class RecordsFeed:
    """A `Feed` of records from a list, in their order, at a rate per second."""

    batch: Batch
    rate: int

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return {**self.batch.schema, "time": "int64"}

    def bind(self, partitions: int, duration_ms: Millis) -> Ingress:
        """The records that are due within this time, dealt out to the partitions."""
        numbers = np.arange(len(self.batch), dtype=np.int64)
        due = numbers * 1000 // self.rate
        stamped = self.batch.with_columns(time=due)
        return ListIngress(
            [
                [stamped.take((numbers % partitions == partition) & (due < duration_ms))]
                for partition in range(partitions)
            ]
        )


def records(rows: Sequence[Mapping[str, Any]] | Batch, *, rate: int) -> RecordsFeed:
    """Records that are there already: `sl.records([{"word": "to"}, {"word": "be"}], rate=10)`.

    Each gets the column `time`: the milliseconds at which it is due.
    """
    _check_rate(rate)
    if not isinstance(rows, Sequence | Batch) or isinstance(rows, str | bytes):
        raise refused("rows", "a list of dicts, or a Batch", rows)
    if not len(rows):
        raise UsageError("there are no records")
    if isinstance(rows, Batch):
        return RecordsFeed(rows, rate)
    names = tuple(rows[0]) if isinstance(rows[0], Mapping) else ()
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UsageError(f"record {number} is {shown(row)}, not a dict of its columns")
        if tuple(row) != names:
            has, should = ", ".join(row), ", ".join(names)
            raise UsageError(f"record {number} has the columns {has}, but the first has {should}")
    return RecordsFeed(Batch.of(**{name: [row[name] for row in rows] for name in names}), rate)


def _check_rate(rate: object) -> None:
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or rate < 1:
        raise refused("rate", "a whole number of records per second, at least 1", rate)
