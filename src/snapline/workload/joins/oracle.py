"""What is right: every record of stream 2 with those of the last rows of stream 1 that have its key.

Where records meet in the order of their times it is known which these are. Where they meet as they come,
there has to be an order of arrival that explains all pairs (`oracles.asked_windows`). Where records may be
lost, windows reach back further, and a record may meet rows that should have gone; where they may be
repeated, windows hold fewer rows: then only the newest row has to be met, in whose way nothing can be.
That is not known where records meet as they come: there only the pairs are compared that came out and, with
declared losses, those that every order gives. What else should be there nobody can say (`doubts`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import PARTITION_BITS, Ints, label
from snapline.workload.common.losses import losses_of
from snapline.workload.joins.model import asking, shape_of, stored
from snapline.workload.joins.pairs import BothStreams
from snapline.workload.joins.stays import PairExcuses, excuses_of
from snapline.workload.oracles.asked_windows import AskingRecords, StoredRows, judge_asked
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import Problems

SINK: Final = "pairs"
IDENTITY: Final = ("id", "id_right")

_AS_THEY_COME: Final = "not compared: records meet as they come here (ordered=0), so"
_NOT_COMPARED: Final = {
    Guarantee.AT_LEAST_ONCE: f"{_AS_THEY_COME} nobody knows which pairs have to be there",
    Guarantee.BOUNDED_LOSS: f"{_AS_THEY_COME} nobody knows which pairs should be there, but for those that "
    "every order of arrival gives",
}


def judge(
    by_key: bool,
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the pairs with those that should have come out."""
    shape, found = shape_of(params, by_key=by_key), output.get(SINK)
    streams = BothStreams(
        shape, asking(params, shape).everything(), stored(params, shape).everything()
    )
    findings, excuses = Problems(level), losses_of(params)
    if level is Guarantee.AT_MOST_ONCE:
        _judge(findings, streams, found, [], streams.conceivable(found))
    elif level is Guarantee.AT_LEAST_ONCE:
        if shape.ordered:
            newest, others = streams.newest()
            _judge(findings, streams, found, [newest], [others])
    elif excuses is not None:
        losses = excuses_of(params, streams, excuses, SINK)
        if shape.ordered:
            must, may = streams.expected(), streams.beyond(found, losses.lost)
        else:
            must = streams.certain(excuses.lag_ms)
            may = streams.without(streams.conceivable(found), must)
        _judge(findings, streams, found, must, may, losses)
    elif shape.ordered:
        _judge(findings, streams, found, streams.expected(), [])
    else:
        _judge(findings, streams, found, [], streams.conceivable(found))
        if not findings.problems:
            _judge_order(findings, streams, found)
    return findings.problems


def doubts(by_key: bool, params: Params, level: Guarantee) -> str | None:
    """Why nobody can say that a level was kept, though nothing wrong was found; None if one can."""
    if shape_of(params, by_key=by_key).ordered:
        return None
    return _NOT_COMPARED.get(level)


def describe(record: int, row: int) -> str:
    """A pair as people read it."""
    return f"{label('record', record)} with row {row}"


def _judge(
    findings: Problems,
    streams: BothStreams,
    found: Batch | None,
    must: Sequence[Batch],
    may: Sequence[Batch],
    losses: PairExcuses | None = None,
) -> None:
    values = ["key", "time", "time_right", "number"]
    if found is not None and len(found):
        values += [name for name in ("text", "text_right") if name in found.columns]
    right, allowed = ([streams.written(pairs, values) for pairs in some] for some in (must, may))
    judge_table(findings, right, found, IDENTITY, values, describe, allowed, losses)


def _judge_order(findings: Problems, streams: BothStreams, found: Batch | None) -> None:
    """Judge pairs that are all conceivable by whether an order of arrival explains them."""
    asked, rows = streams.asked, streams.rows
    keys = np.unique(rows["key"])
    own = np.searchsorted(keys, rows["key"])
    at = np.minimum(np.searchsorted(keys, asked["key"]), max(len(keys) - 1, 0))
    theirs = np.where(keys[at] == asked["key"], at, -1) if len(keys) else np.full(len(asked), -1)
    ends = np.bincount(own) if streams.shape.by_key else np.full(len(keys), len(rows))
    lanes: Ints = asked["id"] >> PARTITION_BITS
    if streams.shape.by_key:
        lanes = lanes * (len(keys) + 1) + theirs
    pairs = streams.places(found)

    def named(record: int, row: int) -> str:
        return describe(int(asked["id"][record]), int(rows["id"][row]))

    stored_rows = StoredRows(own, streams.places_of_rows, ends, streams.shape.window)
    judge_asked(findings, stored_rows, AskingRecords(theirs, lanes), pairs, named)
