"""What is right: per key the counts 1..k, and every record counted once."""

from collections.abc import Mapping, Sequence

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.workload.base import Params, Problem
from snapline.workload.counting.model import records
from snapline.workload.generated import label
from snapline.workload.verdict import Findings, judge_counts, rows_of

SINK = "counts"


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Hold the counts that came out against the records that went in."""
    inputs: dict[int, list[tuple[Millis, str]]] = {}
    for key, time, record in rows_of(records(params).everything(), "key", "time", "id"):
        inputs.setdefault(key, []).append((time, label("record", record)))
    findings = Findings(level)
    rows = rows_of(output.get(SINK), "key", "count", "time")
    judge_counts(findings, inputs, rows, lambda key: f"count of key {key}")
    return findings.problems
