"""Takes out of an output what came again, where two lives of a task may have put it out.

Of several outputs of a resource and window the most complete one is judged: that with the most events that
no loss touched, and of these that with the most events. What the others claim is taken
out if it may have come again, and so is what the first claims twice; an event that is then in no output has
to be excused by a loss. An event that is claimed and late as well is looked at once. What is claimed in a
wrong place is never taken out.
"""

from collections.abc import Iterator

import numpy as np

from snapline.batch import Batch, Varlen
from snapline.ids import Millis
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools
from snapline.workload.oracles.codes import UNKNOWN, Codes

#: columns of lists of ids, the column that counts each, and whether its events are POSTs (None: GETs only)
LISTS = (("ids", "count", None), ("get_ids", "gets", False), ("post_ids", "posts", True))


def without_repeats(
    events: Batch,
    may: Bools,
    touched: Bools,
    counts: Batch | None,
    late: Batch | None,
    size_ms: Millis,
) -> tuple[Batch | None, Batch | None, int]:
    """Both outputs without what came again of the events that `may`, and how often that was."""
    again = events.take(may).take(np.argsort(events["id"][may], kind="stable"))
    if not len(again):
        return counts, late, 0
    removed, claimed = 0, np.zeros(0, np.int64)
    if counts is not None:
        claims = _claims(again, counts, size_ms)
        surplus = _surplus(claims, _complete(counts, events["id"][~touched]))
        claimed, removed = claims["id"][~surplus], int(np.count_nonzero(surplus))
        counts = _without(counts, claims.take(surplus)) if removed else counts
    if late is not None:
        first = np.zeros(len(late), np.bool_)
        first[np.unique(late["id"], return_index=True)[1]] = True
        twice = np.isin(late["id"], again["id"]) & (~first | np.isin(late["id"], claimed))
        removed += int(np.count_nonzero(twice))
        late = late.take(~twice) if twice.any() else late
    return counts, late, removed


def _claims(again: Batch, counts: Batch, size_ms: Millis) -> Batch:
    """The claims of these events that are right: list, place in it, row, and id."""
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
        parts.append((np.full(len(place), number), place, row[place], lists.values[place]))
    names = ("list", "place", "row", "id")
    return Batch(dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True)))


def _complete(counts: Batch, firm: Ints) -> Bools:
    """Which row of each resource and window has the most `firm` events, then the most; or is the first."""
    size, firm_size = np.zeros((2, len(counts)), np.int64)
    for name, _, _ in _there(counts):
        lists = counts[name].compact()
        row = np.repeat(np.arange(len(counts)), np.diff(lists.offsets))
        distinct = np.unique(Codes([row, lists.values]).own, return_index=True)[1]
        size += np.bincount(row[distinct], minlength=len(counts))
        distinct = distinct[np.isin(lists.values[distinct], firm)]
        firm_size += np.bincount(row[distinct], minlength=len(counts))
    place = Codes([counts["resource"], counts["window"]]).own
    order = np.lexsort((-size, -firm_size, place))
    result = np.zeros(len(counts), np.bool_)
    result[order[np.flatnonzero(np.diff(place[order], prepend=UNKNOWN))]] = True
    return result


def _there(counts: Batch) -> Iterator[tuple[str, str, bool | None]]:
    return (each for each in LISTS if each[0] in counts.columns)


def _surplus(claims: Batch, complete: Bools) -> Bools:
    """The claims of rows that are not complete, and of the others all of an id but the first."""
    order = np.lexsort((claims["place"], claims["row"], claims["id"]))
    result: Bools = ~complete[claims["row"]]
    ids, rows = claims["id"][order], claims["row"][order]
    result[order[1:]] |= (ids[1:] == ids[:-1]) & (rows[1:] == rows[:-1])
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
