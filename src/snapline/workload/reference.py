"""Judging a dataflow that has no oracle: its output, held against that of runs without failures.

Rows are compared as multisets. Where a dataflow's output depends on the order in which its inputs come
together (a running count, say: which record gets which number is free) runs without failures differ, too.
Then as few columns as possible are left out, so that they agree; where several choices do that, the output
is held against each of them: every count is there, and every record was counted.

Rows are told apart by 64-bit hashes: that two different ones of a billion look equal has a chance of 3 %,
and that this hides a fault, next to none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.dataflow.partition import hash_columns
from snapline.workload.base import Problem
from snapline.workload.verdict import LIMIT, Findings, rows_of

Output: TypeAlias = Mapping[str, Batch]
"""The rows of each sink."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

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
    for sink, right in first.items():
        here = found.get(sink, Batch({}, 0))
        _hold(findings, sink, here, right, _columns(right, here))
    if not findings.problems:
        return Comparison(())
    others = [reference(order) for order in (1, 2)]
    findings = Findings(level)
    left_out: dict[str, None] = {}
    for sink, right in first.items():
        here = found.get(sink, Batch({}, 0))
        choices = _steady([right, *(other[sink] for other in others)], _columns(right, here))
        if not choices:
            because = (
                f"the output of '{sink}' depends on the order in which its inputs come together"
            )
            return Comparison((), (), f"{because}: runs without failures differ, too")
        for columns in choices:
            left_out |= {f"{sink}.{c}": None for c in right.columns if c not in columns}
            _hold(findings, sink, here, right, columns)
    return Comparison(tuple(findings.problems), tuple(left_out))


def _columns(right: Batch, here: Batch) -> tuple[str, ...]:
    """The columns of a sink; one without rows does not know them."""
    return tuple(right.columns or here.columns)


def _steady(references: Sequence[Batch], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The largest choices of columns in which all references agree; none if they are too small."""
    most = min(LEFT_OUT_MAX, max(len(names) - 1, 0))
    for count in range(most + 1):
        choices = [tuple(c for c in names if c not in out) for out in combinations(names, count)]
        agreed = [columns for columns in choices if _agree(references, columns)]
        if agreed:
            return agreed
    return []


def _agree(references: Sequence[Batch], columns: tuple[str, ...]) -> bool:
    first, *others = (np.sort(_hashes(batch, columns)) for batch in references)
    return all(np.array_equal(first, other) for other in others)


def _hashes(batch: Batch, columns: Sequence[str]) -> Hashes:
    if not len(batch):
        return np.zeros(0, np.uint64)
    return hash_columns([batch[name] for name in columns])


def _hold(
    findings: Findings, sink: str, here: Batch, right: Batch, columns: tuple[str, ...]
) -> None:
    """Hold the rows of one sink against the right ones, in these columns."""
    found, expected = _hashes(here, columns), _hashes(right, columns)
    for row, copies, others in _more(expected, found):
        because = f"it should come out {_times(copies)} and came out {_times(others)}"
        findings.lack("missing", _describe(sink, right, row, columns), because)
    for row, copies, others in _more(found, expected):
        name = _describe(sink, here, row, columns)
        if others:
            because = f"it came out {_times(copies)} and should {_times(others)}"
            findings.excess("duplicate", name, because)
        else:
            findings.excess("invented", name, "it came out, and does not without failures")


def _more(these: Hashes, those: Hashes) -> Iterator[tuple[int, int, int]]:
    """What comes more often here than there: the first such row, and how often it comes in both."""
    values, rows, counts = np.unique(these, return_index=True, return_counts=True)
    sorted_those = np.sort(those)
    others = np.searchsorted(sorted_those, values, "right") - np.searchsorted(sorted_those, values)
    more = np.flatnonzero(counts > others)
    for at in more[np.argsort(rows[more])][:LIMIT].tolist():
        yield int(rows[at]), int(counts[at]), int(others[at])


def _describe(sink: str, batch: Batch, row: int, columns: Sequence[str]) -> str:
    (values,) = rows_of(batch.slice(row, row + 1), *columns)
    said = ", ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))
    return f"{sink}({said})"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
