"""What is right: every record comes out once, and in every stage the counts of a key are 1..k.

Which record of a key gets which number is free: it depends on what arrives first. But each number must be
given once, and each record pass once: so a record that a stage lost or took twice is found, and the stage.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.workload.abs.model import STAGES, unpacked
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import PARTITION_BITS, label
from snapline.workload.common.losses import Bools, Excuses, Stay, losses_of, stay_of
from snapline.workload.oracles.codes import pieces
from snapline.workload.oracles.count_verdict import judge_numbers
from snapline.workload.oracles.lossy_counts import NumberExcuses
from snapline.workload.oracles.table_verdict import TableExcuses, judge_table
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
    findings, found, losses = Problems(level), output.get(SINK), _losses(params)
    describe = partial(label, "record")
    judge_table(findings, records, found, ("id",), ("time", *keys), describe, losses=losses)
    again = None if losses is None else losses.repeated(concat(records))
    for stage in STAGES:
        counted = concat([piece.select(stage.key, "time") for piece in records])
        of_key = f"count of {stage.key} key {{}}".format
        excused = None
        if losses is not None and again is not None:
            loose = partial(_loose, losses.excuses, stage.key)
            excused = NumberExcuses(loose, losses.repeated, again, losses.excuses.lag_ms)
        judge_numbers(findings, counted, found, stage.key, stage.count, of_key, excused)
    return findings.problems


def _losses(params: Params) -> TableExcuses | None:
    """Where records are lost: on the way to the first shuffle, or in a task of one of the counts."""

    def stays(records: Batch) -> Sequence[Stay]:
        time, partition = records["time"], records["id"] >> PARTITION_BITS
        counts: list[tuple[str, ...]] = [(f"count-{stage.key}",) for stage in STAGES]
        counts[-1] += (SINK,)
        return (
            stay_of(("records", "unpack"), time, partition=partition),
            *(
                stay_of(way, time, key=(records[stage.key],))
                for way, stage in zip(counts, STAGES, strict=True)
            ),
        )

    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, stays)


def _loose(excuses: Excuses, key: str, rows: Batch) -> Bools:
    """Which rows have a number that depends on what a task of the stage may have lost."""
    time = rows["time"]
    loose = excuses.touched(
        Stay((f"count-{key}",), (rows[key],), None, np.zeros_like(time), time, time)
    )
    excuses.account(free=int(np.count_nonzero(loose)))
    return loose
