"""Checks what outputs of `sst` and `mst` repeat of their events beside the ids: times and resources.

A row of `counts` has the time of its latest event, a row of `late` the resource and the time of its event.
A row of the join of `mst` that comes too late hands its events on with its own time, which is that of the
latest of them: there the time may also be that of a later event of the same resource and window.
Outputs of other systems need not have these columns, so `snapline.validate` does not ask for them; where
they are there, they have to be right.
"""

from collections.abc import Iterator

import numpy as np

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.validate.columns import Ints
from snapline.workload.common.base import Problem
from snapline.workload.oracles.codes import UNKNOWN, Bools, Codes

_LISTS = ("ids", "get_ids", "post_ids")


def wrong_echoes(events: Batch, counts: Batch, late: Batch, size_ms: Millis) -> Iterator[Problem]:
    """The first row of each sink whose time or resource is not that of its events."""
    order = np.argsort(events["id"], kind="stable")
    ids = events["id"][order]
    if len(counts) and "time" in counts.columns:
        right, known = _latest(ids, events["time"][order], counts)
        for row in np.flatnonzero(known & (counts["time"] != right))[:1].tolist():
            record = f"resource {counts['resource'][row]} in window {counts['window'][row]}"
            said = f"its time is {counts['time'][row]}, that of its latest event {right[row]}"
            yield Problem("wrong", record, said)
    if len(late):
        at, known = _places(ids, late["id"])
        joined = "ids" not in counts.columns
        for name in (name for name in ("resource", "time") if name in late.columns):
            right = events[name][order][at]
            wrong = known & (late[name] != right)
            if name == "time" and joined:
                wrong &= ~_handed_on(events, late, right, size_ms)
            for row in np.flatnonzero(wrong)[:1].tolist():
                said = f"its {name} is {right[row]}, and the late output says {late[name][row]}"
                yield Problem("wrong", f"late event {late['id'][row]}", said)


def _handed_on(events: Batch, late: Batch, own: Ints, size_ms: Millis) -> Bools:
    """Which late rows have, instead of their `own` time, that of a later event of their place."""
    there = Codes([events["resource"], events["time"]])
    known: Bools = there.of([late["resource"], late["time"]]) != UNKNOWN
    later: Bools = (late["time"] > own) & (late["time"] // size_ms == own // size_ms)
    return known & later


def _places(ids: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Where each id stands among the sorted ones, and whether it is there at all."""
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1).astype(np.int64)
    return at, ids[at] == wanted


def _latest(ids: Ints, times: Ints, counts: Batch) -> tuple[Ints, Bools]:
    """The latest time of each row's events, and whether the row names any, all of them known."""
    latest = np.full(len(counts), np.iinfo(np.int64).min)
    known = np.ones(len(counts), np.bool_)
    for name in (name for name in _LISTS if name in counts.columns):
        claimed = counts[name].compact()
        rows = np.repeat(np.arange(len(counts)), np.diff(claimed.offsets))
        at, there = _places(ids, claimed.values)
        np.maximum.at(latest, rows[there], times[at[there]])
        known[rows[~there]] = False
    return latest, known & (latest > np.iinfo(np.int64).min)
