"""What is right: per key the counts 1..k, and every record counted once."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import PARTITION_BITS, label
from snapline.workload.common.losses import Stay, losses_of, stay_of
from snapline.workload.counting.model import records
from snapline.workload.oracles.codes import pieces
from snapline.workload.oracles.count_verdict import judge_counts, last_counts
from snapline.workload.oracles.lossy_counts import CountExcuses
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
        _losses(params),
    )
    return findings.problems


def right_counts(params: Params) -> Batch:
    """How often every key comes, at the time of its last record."""
    return last_counts(pieces(records(params), "key", "time"), ("key",))


def _losses(params: Params) -> CountExcuses | None:
    """Where records and counts are lost: a count is never closed, so it depends on all before it."""
    excuses = losses_of(params)
    if excuses is None:
        return None
    return CountExcuses(
        excuses,
        lambda some: (stay_of(("records",), some["time"], partition=some["id"] >> PARTITION_BITS),),
        lambda some: (stay_of(("count", SINK), some["time"], key=(some["key"],)),),
        _counted,
    )


def _counted(rows: Batch) -> Sequence[Stay]:
    time = rows["time"]
    return (Stay(("count",), (rows["key"],), None, np.zeros_like(time), time, time),)
