"""What is right: every walk of N edges within the TTL, once."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.workload.base import Params, Problem
from snapline.workload.generated import label
from snapline.workload.nhop.model import HOPS, edges, ttl_ms
from snapline.workload.verdict import Findings, judge_rows, rows_of

SINK = "walks"

Walk: TypeAlias = tuple[int, ...]
"""The ids of the edges, in order."""

Facts: TypeAlias = tuple[int, int, Millis, Millis]
"""The nodes at both ends, and the due times of the earliest and the latest edge."""


def walks_of(params: Params) -> dict[Walk, Facts]:
    """All walks of N edges whose due times span at most the TTL."""
    rows = rows_of(edges(params).everything(), "id", "start", "end", "time")
    leaving: dict[int, list[tuple[int, int, Millis]]] = {}
    for edge, start, end, time in rows:
        leaving.setdefault(start, []).append((edge, end, time))
    walks: dict[Walk, Facts] = {(e,): (start, end, time, time) for e, start, end, time in rows}
    for _ in range(HOPS - 1):
        walks = {
            (*walk, edge): (start, end, min(first, time), max(last, time))
            for walk, (start, middle, first, last) in walks.items()
            for edge, end, time in leaving.get(middle, ())
            if max(last, time) - min(first, time) <= ttl_ms(params)
        }
    return walks


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Hold the walks that came out against those that there are."""
    columns = ("edges", "start", "end", "first", "time")
    rows = [(row[0], row[1:]) for row in rows_of(output.get(SINK), *columns)]
    findings = Findings(level)
    judge_rows(findings, walks_of(params), rows, _describe)
    return findings.problems


def _describe(walk: Walk) -> str:
    return f"walk {' > '.join(label('edge', edge) for edge in walk)}"
