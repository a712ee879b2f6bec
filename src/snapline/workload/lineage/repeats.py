"""Takes out of an output what came again, where two lives of a task may have put it out.

An event that may be repeated may be claimed several times, all of them in its right place, and be late
beside. One of its claims stays: that in the output with the most events, so that of several outputs of a
window the most complete one is judged. What was claimed wrongly is never taken out.
"""

from collections.abc import Iterator

import numpy as np

from snapline.batch import Batch, Varlen
from snapline.ids import Millis
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools

#: columns of lists of ids, the column that counts each, and whether its events are POSTs (None: all are one)
LISTS = (("ids", "count", None), ("get_ids", "gets", False), ("post_ids", "posts", True))


def without_repeats(
    events: Batch, may: Bools, counts: Batch | None, late: Batch | None, size_ms: Millis
) -> tuple[Batch | None, Batch | None, int]:
    """Both outputs without what came again of the events that `may`, and how often that was."""
    again = events.take(may).take(np.argsort(events["id"][may], kind="stable"))
    if not len(again):
        return counts, late, 0
    removed, claimed = 0, np.zeros(0, np.int64)
    if counts is not None:
        claims = _claims(again, counts, size_ms)
        surplus = _surplus(claims)
        claimed, removed = claims["id"], int(np.count_nonzero(surplus))
        counts = _without(counts, claims.take(surplus)) if removed else counts
    if late is not None:
        first = np.zeros(len(late), np.bool_)
        first[np.unique(late["id"], return_index=True)[1]] = True
        twice = np.isin(late["id"], again["id"]) & (~first | np.isin(late["id"], claimed))
        removed += int(np.count_nonzero(twice))
        late = late.take(~twice) if twice.any() else late
    return counts, late, removed


def _claims(again: Batch, counts: Batch, size_ms: Millis) -> Batch:
    """The claims of these events that are right: list, place in it, row, size of the row, and id."""
    size = sum((np.diff(counts[name].offsets) for name, _, _ in _there(counts)), np.int64(0))
    parts: list[tuple[Ints, ...]] = []
    for number, (name, _, post) in enumerate(_there(counts)):
        lists = counts[name].compact()
        row = np.repeat(np.arange(len(counts)), np.diff(lists.offsets))
        at = np.minimum(np.searchsorted(again["id"], lists.values), len(again) - 1)
        event = again.take(at)
        right = event["id"] == lists.values
        right &= event["resource"] == counts["resource"][row]
        right &= event["time"] - event["time"] % size_ms == counts["window"][row]
        if post is not None:
            right &= event["post"] == post
        place = np.flatnonzero(right)
        row = row[place]
        parts.append((np.full(len(row), number), place, row, size[row], lists.values[place]))
    names = ("list", "place", "row", "size", "id")
    return Batch(dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True)))


def _there(counts: Batch) -> Iterator[tuple[str, str, bool | None]]:
    return (each for each in LISTS if each[0] in counts.columns)


def _surplus(claims: Batch) -> Bools:
    """All claims of an id but that in the largest row, of equal ones the first."""
    order = np.lexsort((claims["place"], claims["row"], -claims["size"], claims["id"]))
    ids = claims["id"][order]
    result = np.zeros(len(claims), np.bool_)
    result[order[1:]] = ids[1:] == ids[:-1]
    return result


def _without(counts: Batch, claims: Batch) -> Batch:
    """The output without these claims, and without rows of which nothing is left."""
    left = np.zeros(len(counts), np.int64)
    columns = {}
    for number, (name, count, _) in enumerate(_there(counts)):
        lists, ours = counts[name].compact(), claims["list"] == number
        gone = np.bincount(claims["row"][ours], minlength=len(counts))
        lengths = np.diff(lists.offsets) - gone
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        columns[name] = Varlen("list", offsets, np.delete(lists.values, claims["place"][ours]))
        columns[count] = counts[count] - gone
        left += lengths
    emptied = (left == 0) & np.isin(np.arange(len(counts)), claims["row"])
    return counts.with_columns(**columns).take(~emptied)
