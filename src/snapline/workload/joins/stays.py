"""Where the records and rows behind a pair are, and for how long: what a loss touches (`common.losses`)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snapline.batch import Array, Batch
from snapline.workload.common.base import Params
from snapline.workload.common.generated import PARTITION_BITS
from snapline.workload.common.losses import Bools, Excuses, Stay, stay_of
from snapline.workload.joins.model import ASKING, STORED
from snapline.workload.joins.pairs import RECORD, ROW, BothStreams
from snapline.workload.oracles.table_verdict import TableExcuses


@dataclass(frozen=True, slots=True)
class PairExcuses(TableExcuses):
    """Which pairs need not come out: also those whose row may have left because others came again."""

    streams: BothStreams
    lost: Bools  # which rows may not have been stored, or may have been forgotten
    again: Bools  # which rows may have been stored more than once

    def touched(self, rows: Batch) -> Bools:
        """Whether each of these pairs may be missing."""
        gone = self.excuses.late(*self.stays(rows))
        return gone | self._driven_out(rows) if self.again.any() else gone

    def _driven_out(self, pairs: Batch) -> Bools:
        """Whether a row may have left because others were stored more than once."""
        if self.streams.shape.ordered:
            return self.streams.between(pairs, self.again) > 0
        first_ms = self.streams.rows["time"][self.again].min() - self.excuses.lag_ms
        driven: Bools = self.streams.asked["time"][pairs[RECORD]] >= first_ms
        return driven


def excuses_of(params: Params, streams: BothStreams, excuses: Excuses, sink: str) -> PairExcuses:
    """What the losses of a run touch."""

    def stays(pairs: Batch) -> tuple[Stay, ...]:
        return tuple(_stays(pairs))

    def _stays(pairs: Batch) -> Iterator[Stay]:
        asked, rows = streams.asked.take(pairs[RECORD]), streams.rows.take(pairs[ROW])
        ends, key = _met_ms(asked["time"]), (asked[scope],)
        yield stay_of((ASKING,), asked["time"], partition=asked["id"] >> PARTITION_BITS)
        yield stay_of((STORED,), rows["time"], partition=np.zeros(len(rows), np.int64))
        yield Stay(("join",), key, None, asked["time"], ends, ends)
        yield Stay(("join",), key, None, rows["time"], rows["time"], ends)
        yield stay_of(("join", sink), ends, key=key)

    def _met_ms(time: Array) -> Array:
        tick = streams.shape.tick_ms if streams.shape.ordered else 1
        ends: Array = time - time % tick + tick
        return ends

    # What has no key goes to the first task, and so does the 0 that all have in `whole`.
    scope = "key" if streams.shape.by_key else "whole"
    rows = streams.rows
    end = np.full(len(rows), np.iinfo(np.int64).max // 4)
    source = stay_of((STORED,), rows["time"], partition=np.zeros(len(rows), np.int64))
    kept = Stay(("join",), (rows[scope],), None, rows["time"], _met_ms(rows["time"]), end)
    lost, again = excuses.late(source, kept), excuses.repeated(source)
    again |= excuses.repeated(stay_of(("join",), rows["time"], key=(rows[scope],)))
    return PairExcuses(excuses, stays, streams, lost, again)
