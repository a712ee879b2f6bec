"""Which events a loss touched: these need not come out, and may be late.

An event that was touched and is nowhere to be found is taken out of the input; then the output has to be
exactly what the rest of the input gives. One that did come out, and was touched or came soon after a loss,
may have come out late: the watermark does not wait for a slot that is away. What two lives of a task may
have put out is looked at once (`repeats`).
"""

from collections.abc import Iterator

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools, Stay, losses_of, stay_of
from snapline.workload.lineage.model import shape_of
from snapline.workload.lineage.repeats import LISTS, without_repeats


def excused(
    params: Params,
    events: Batch,
    counts: Batch | None,
    late: Batch | None,
    sinks: tuple[str, str],
    *,
    with_posts: bool,
) -> tuple[Batch, Batch | None, Batch | None]:
    """The events, without those that a loss touched and no output has; and the outputs to judge."""
    excuses = losses_of(params)
    if excuses is None or not len(events):
        return events, counts, late
    stays = tuple(_stays(params, events, sinks, with_posts=with_posts))
    may, size_ms = excuses.repeated(*stays), shape_of(params).window_ms
    touched = excuses.touched(*stays)
    counts, late, again = without_repeats(events, may, touched, counts, late, size_ms)
    gone = touched & ~np.isin(events["id"], _present(counts, late))
    excuses.account(lost=int(np.count_nonzero(gone)), of=len(events), again=again)
    watermark = np.where(excuses.late(*stays), END_OF_TIME, events["watermark"])
    return events.with_columns(watermark=watermark).take(~gone), counts, late


def _present(counts: Batch | None, late: Batch | None) -> Ints:
    """The ids that any output has."""
    found = [np.zeros(0, np.int64)]
    if counts is not None:
        lists = (counts[name] for name, _, _ in LISTS if name in counts.columns)
        found += [column.compact().values for column in lists]
    if late is not None:
        found.append(late["id"])
    return np.concatenate(found)


def _stays(
    params: Params, events: Batch, sinks: tuple[str, str], *, with_posts: bool
) -> Iterator[Stay]:
    counts, late = sinks
    due, key, partition = events["arrival"], (events["resource"],), events["partition"]
    shape, time = shape_of(params), events["time"]
    ends = time - time % shape.window_ms + shape.window_ms
    arrivals, waits = np.sort(due), shape.lateness_ms + shape.bound_ms
    closed = np.maximum(due, _last_before(ends + waits, arrivals))
    recounted = np.maximum(closed, _last_before(ends + shape.lateness_ms + waits, arrivals))
    # A window that ended while its task was away is dropped with all that still comes for it.
    missed = np.minimum(due, ends)
    if not with_posts:
        yield stay_of(("gets", "marshal"), due, partition=partition)
        yield Stay(("count",), key, None, missed, due, closed)
        yield stay_of(("count", counts), closed, key=key)
        yield stay_of(("count", late), due, key=key)
        return
    for name, ours in (("gets", ~events["post"]), ("posts", events["post"])):
        yield _of_some(stay_of((name, f"marshal-{name}"), due, partition=partition), ours)
    yield Stay(("join",), key, None, missed, due, closed)
    yield stay_of(("join", late), due, key=key)
    yield stay_of(("count",), closed, key=key, until=recounted)
    yield stay_of(("count", counts), recounted, key=key)
    yield stay_of(("count", late), closed, key=key)


def _last_before(times: Ints, arrivals: Ints) -> Ints:
    """When the last event before each of these times came.

    Then a watermark passes that time: when a source has read an event it says how late the next one is.
    """
    earlier: Ints = arrivals[np.maximum(np.searchsorted(arrivals, times) - 1, 0)]
    return earlier


def _of_some(stay: Stay, ours: Bools) -> Stay:
    """The stay of some rows only: of the others it says that they never came."""
    never = np.where(ours, stay.first, END_OF_TIME)
    return Stay(stay.operators, stay.key, stay.partition, never, stay.last, stay.until)
