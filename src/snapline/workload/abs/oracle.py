"""What is right: every record comes out once, and in every stage the counts of a key are 1..k.

Which record of a key gets which number is free: it depends on what arrives first. But each number must be
given once, and each record pass once: so a record that a stage lost or took twice is found, and the stage.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.workload.abs.model import STAGES, unpacked
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import label
from snapline.workload.oracles.codes import pieces
from snapline.workload.oracles.count_verdict import judge_numbers
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import Problems

SINK = "results"


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the records that came out with those that went in, then the counts of each stage."""
    keys = tuple(stage.key for stage in STAGES)
    records = list(pieces(unpacked(params), "id", "time", *keys))
    findings, found = Problems(level), output.get(SINK)
    judge_table(findings, records, found, ("id",), ("time", *keys), partial(label, "record"))
    for stage in STAGES:
        counted = concat([piece.select(stage.key) for piece in records])
        describe = f"count of {stage.key} key {{}}".format
        judge_numbers(findings, counted, found, stage.key, stage.count, describe)
    return findings.problems
