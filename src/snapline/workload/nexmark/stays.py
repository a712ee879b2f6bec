"""Where the records of the queries are, and for how long: what a loss touches (`common.losses`)."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.workload.common.base import Params
from snapline.workload.common.generated import PARTITION_BITS
from snapline.workload.common.losses import Stay, losses_of, stay_of
from snapline.workload.oracles.lossy_counts import CountExcuses
from snapline.workload.oracles.table_verdict import TableExcuses


def of_bids(params: Params, sink: str) -> TableExcuses | None:
    """What losses touch of the bids of q1, which are only passed on."""

    def stays(bids: Batch) -> Sequence[Stay]:
        partition = bids["id"] >> PARTITION_BITS
        return (stay_of(("bids", "convert", sink), bids["time"], partition=partition),)

    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, stays)


def of_pairs(
    params: Params,
    sources: tuple[tuple[str, ...], tuple[str, ...]],
    behind: tuple[str, ...],
    *,
    timed: bool,
) -> TableExcuses | None:
    """What losses touch of auctions with their sellers; `sources` are their ways to the join.

    `timed` says that the join is one of windows, for which a record may be late.
    """

    def stays(pairs: Batch) -> Sequence[Stay]:
        lot, person = pairs["time"], pairs["time_right"]
        both, key = np.maximum(lot, person), (pairs["seller"],)
        lots, people = sources
        return (
            stay_of(lots, lot, partition=pairs["id"] >> PARTITION_BITS, timed=timed),
            stay_of(people, person, partition=pairs["id_right"] >> PARTITION_BITS, timed=timed),
            stay_of(behind[:1], lot, key=key, until=both),
            stay_of(behind[:1], person, key=key, until=both),
            stay_of(behind, both, key=key),
        )

    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, stays)


def of_counts(params: Params, sink: str, length: Millis) -> CountExcuses | None:
    """What losses touch of the running counts of q12, which begin again with every window."""
    excuses = losses_of(params)
    if excuses is None:
        return None
    return CountExcuses(
        excuses,
        _read,
        lambda bids: (stay_of(("count", sink), bids["time"], key=(bids["bidder"],)),),
        partial(_counted, length),
    )


def _read(bids: Batch) -> Sequence[Stay]:
    partition = bids["id"] >> PARTITION_BITS
    return (stay_of(("bids",), bids["time"], partition=partition, timed=True),)


def _counted(length: Millis, rows: Batch) -> Sequence[Stay]:
    time = rows["time"]
    return (Stay(("count",), (rows["bidder"],), None, time - time % length, time, time),)
