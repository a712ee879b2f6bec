"""What is right: per key the counts 1..k, and every record counted once."""

from collections.abc import Mapping, Sequence
from functools import partial

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import label
from snapline.workload.counting.model import records
from snapline.workload.oracles.codes import pieces
from snapline.workload.oracles.count_verdict import judge_counts
from snapline.workload.oracles.verdict import Problems

SINK = "counts"


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the counts that came out with the records that went in."""
    findings = Problems(level)
    judge_counts(
        findings,
        pieces(records(params), "key", "time", "id"),
        output.get(SINK),
        ("key",),
        "count of key {}".format,
        partial(label, "record"),
    )
    return findings.problems
