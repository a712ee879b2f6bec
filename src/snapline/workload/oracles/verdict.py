"""How an oracle compares what came out with what is right, at each guarantee level.

Outputs are multisets: nobody may rely on an order. A finding says that something is lacking (a
record that should be there is not), or that something is in excess (a record that should not be
there is), or both (a wrong value in the place of the right one). At least once forbids only lacks,
at most once only excess, exactly once both. Where nothing was promised everything is reported, for
the caller to describe.

`judge_rows` is the plain form, for some thousands of rows. `table_verdict` and `count_verdict` judge whole
columns, and say the same.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from snapline.batch import Batch, Column, Varlen, Words
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Problem

LIMIT = 20
"""The most problems that are reported: more of them would not help anybody."""

Kind: TypeAlias = Literal["missing", "duplicate", "wrong", "invented"]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)


class Problems:
    """The problems of one verdict, filtered by what the level forbids."""

    def __init__(self, level: Guarantee) -> None:
        self._lacks_count = level is not Guarantee.AT_MOST_ONCE
        self._excess_counts = level is not Guarantee.AT_LEAST_ONCE
        self.problems: list[Problem] = []

    def lack(self, kind: Kind, record: str, because: str) -> None:
        """Report a record that should be there and is not."""
        if self._lacks_count:
            self._add(kind, record, because)

    def excess(self, kind: Kind, record: str, because: str) -> None:
        """Report a record that is there and should not be."""
        if self._excess_counts:
            self._add(kind, record, because)

    def instead(self, record: str, because: str) -> None:
        """Report a wrong record in the place of the right one."""
        self._add("wrong", record, because)

    def _add(self, kind: Kind, record: str, because: str) -> None:
        if len(self.problems) < LIMIT:
            self.problems.append(Problem(kind, record, because))


def rows_of(batch: Batch | None, *columns: str) -> list[tuple[Any, ...]]:
    """These columns as Python rows; none for a sink that wrote nothing. Lists become tuples."""
    if batch is None or not len(batch):
        return []
    return list(zip(*(_values(batch[name]) for name in columns), strict=True))


def _values(column: Column) -> Sequence[Any]:
    if isinstance(column, Varlen) and column.kind == "list":
        return [tuple(value) for value in column.to_list()]
    return column.to_list() if isinstance(column, Words | Varlen) else column.tolist()


def judge_rows(
    findings: Problems,
    expected: Mapping[Key, Value],
    rows: Iterable[tuple[Key, Value]],
    describe: Callable[[Key], str],
    optional: Mapping[Key, Value] = MappingProxyType({}),
) -> None:
    """Compare (identity, value) rows with the value that each identity should have, once.

    What is `optional` may come out or not, but only once and only with that value.
    """
    found: dict[Key, Counter[Value]] = {}
    for key, value in rows:
        found.setdefault(key, Counter())[value] += 1
    for key, right in expected.items():
        if key not in found:
            findings.lack("missing", describe(key), f"it should have come out as {right}")
        elif right not in found[key]:
            wrong = next(iter(found[key]))
            findings.instead(describe(key), f"it came out as {wrong}; right is {right}")
    for key, values in found.items():
        if key in expected:
            _judge_excess(findings, describe(key), expected[key], values)
        elif key in optional:
            _judge_excess(findings, describe(key), optional[key], values, right_may_lack=True)
        else:
            wrong = next(iter(values))
            findings.excess("invented", describe(key), f"nothing gives it, but it is {wrong}")


def _judge_excess(
    findings: Problems,
    record: str,
    right: Value,
    values: "Counter[Value]",
    right_may_lack: bool = False,
) -> None:
    for value in values:
        if value != right and (right in values or right_may_lack):
            findings.excess("wrong", record, f"it came out as {value}; right is {right}")
    copies = values.total()
    if copies > 1:
        findings.excess("duplicate", record, f"it came out {copies} times")
