"""Judging a dataflow that has no oracle: its output, held against that of runs without failures.

Rows are compared as multisets. Where a dataflow's output depends on the order in which its inputs come
together (a running count, say, tells in `time` which record it counted) two runs without failures differ,
too. Then the columns in which they differ are left out, as few as possible, and the verdict says which.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, TypeAlias

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.workload.base import Problem
from snapline.workload.verdict import Findings, rows_of

Output: TypeAlias = Mapping[str, Batch]
"""The rows of each sink."""

LEFT_OUT_MAX = 2
"""If more columns of a sink than this depend on the order of input, too little is left to judge."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found."""

    problems: tuple[Problem, ...]
    left_out: tuple[str, ...] = ()  # columns, as `sink.column`, that depend on the order of input
    undecided: str | None = None  # why nothing can be said


def compare(found: Output, reference: Callable[[int], Output], level: Guarantee) -> Comparison:
    """Hold an output against the references: `reference(0)`, and others only if that one differs."""
    first = reference(0)
    findings = Findings(level)
    for sink in first:
        _hold(findings, sink, found.get(sink), first[sink], _columns(first[sink], found.get(sink)))
    if not findings.problems:
        return Comparison(())
    others = [reference(order) for order in (1, 2)]
    findings = Findings(level)
    left_out: list[str] = []
    for sink, rows in first.items():
        columns = _steady_columns([rows, *(other[sink] for other in others)])
        if columns is None:
            because = (
                f"the output of '{sink}' depends on the order in which its inputs come together"
            )
            return Comparison((), (), f"{because}: runs without failures differ, too")
        left_out += [f"{sink}.{name}" for name in rows.columns if name not in columns]
        columns = columns or _columns(rows, found.get(sink))  # no reference has a row
        _hold(findings, sink, found.get(sink), rows, columns)
    return Comparison(tuple(findings.problems), tuple(left_out))


def _columns(expected: Batch, found: Batch | None) -> tuple[str, ...]:
    return tuple(expected.columns if len(expected) else found.columns if found is not None else ())


def _steady_columns(references: Sequence[Batch]) -> tuple[str, ...] | None:
    """As many columns as possible in which all references agree; None if too few do."""
    names = tuple(references[0].columns)
    most = min(LEFT_OUT_MAX, max(len(names) - 1, 0))
    for absent in chain.from_iterable(combinations(names, n) for n in range(most + 1)):
        columns = tuple(name for name in names if name not in absent)
        first, *others = (Counter(rows_of(batch, *columns)) for batch in references)
        if all(other == first for other in others):
            return columns
    return None


def _hold(
    findings: Findings,
    sink: str,
    found: Batch | None,
    expected: Batch,
    columns: Sequence[str],
) -> None:
    """Hold the rows of one sink against the right ones, in these columns."""
    right, here = Counter(rows_of(expected, *columns)), Counter(rows_of(found, *columns))
    for row, copies in right.items():
        if here[row] < copies:
            name = _describe(sink, columns, row)
            because = f"it should come out {_times(copies)} and came out {_times(here[row])}"
            findings.lack("missing", name, because)
    for row, copies in here.items():
        if copies > right[row]:
            name = _describe(sink, columns, row)
            if right[row]:
                because = f"it came out {_times(copies)} and should {_times(right[row])}"
                findings.excess("duplicate", name, because)
            else:
                because = "it came out, and does not without failures"
                findings.excess("invented", name, because)


def _describe(sink: str, columns: Sequence[str], row: tuple[Any, ...]) -> str:
    values = ", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=True))
    return f"{sink}({values})"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
