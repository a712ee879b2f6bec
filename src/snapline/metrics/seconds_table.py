"""The seconds of a run as a table: a row for each second and slot, and one for all slots together.

What was done in a second is as slots have reported it in that second (`second.Second`), so it is up to a
fifth of a second old. What was published counts in the second of its publication (`latency`).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from snapline.ids import SlotId, slot_of
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import SecondMeasured
from snapline.metrics.histogram import Histogram
from snapline.metrics.latency import Publication, RowTimes, publications
from snapline.metrics.second import SECOND_US


class SecondRow(NamedTuple):
    """One second of one slot, or of all of them. What was not measured is None."""

    second: int  # it covers second <= time < second + 1, from when input began to be due
    slot: SlotId | None  # None: all slots
    running: int | None  # slots that run at its end; only of all slots
    read: int | None  # records that sources read
    written: int | None  # records that sinks wrote
    backlog: int | None  # records due and not read, at its end
    p50_ms: float | None  # of what was written
    p99_ms: float | None
    published: int  # rows that became public
    published_p50_ms: float | None
    published_p99_ms: float | None


class _Done(NamedTuple):
    """What one slot, or all of them, did in a second, if that is known."""

    read: int | None = None
    written: int | None = None
    backlog: int | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


class _Published(NamedTuple):
    """What one slot, or all of them, published in a second."""

    rows: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None


def second_rows(entries: Iterable[Entry], times: Mapping[str, RowTimes]) -> Iterator[SecondRow]:
    """The rows of the table, by second and slot; all slots come first.

    `entries` are those of the drivers' journals in the order of time, `times` those of published rows.
    """
    known = list(entries)
    measured = {
        entry.what.at_s: entry.what
        for entry in known
        if isinstance(entry, Happened) and isinstance(entry.what, SecondMeasured)
    }
    by_second = groupby(publications(known, times), lambda each: each.at_us // SECOND_US)
    published = {second: dict(_by_slot(list(each))) for second, each in by_second}
    for second in sorted({*measured, *published}):
        yield from _rows(second, measured.get(second), published.get(second, {}))


def _rows(
    second: int, measured: SecondMeasured | None, published: Mapping[SlotId | None, _Published]
) -> Iterator[SecondRow]:
    whole, slots = _Done(), dict[SlotId, _Done]()
    if measured is not None:
        said = measured.read, measured.written, measured.backlog, measured.p50_ms, measured.p99_ms
        whole = _Done(*said)
        slots = {each[0]: _Done(*each[1:]) for each in measured.slots}
    running = None if measured is None else measured.running
    yield SecondRow(second, None, running, *whole, *published.get(None, _Published()))
    for slot in sorted({*slots, *(slot for slot in published if slot is not None)}):
        done = slots.get(slot, _Done())
        yield SecondRow(second, slot, None, *done, *published.get(slot, _Published()))


def _by_slot(some: list[Publication]) -> Iterator[tuple[SlotId | None, _Published]]:
    """What was published in one second: of all slots, and of each."""
    yield None, _published(some)
    for slot in {slot_of(each.task): None for each in some}:
        yield slot, _published([each for each in some if slot_of(each.task) == slot])


def _published(some: Iterable[Publication]) -> _Published:
    histogram, rows = Histogram(), 0
    for each in some:
        rows += each.rows
        if each.times_ms is not None:
            histogram.add_ages(each.times_ms, each.at_us)
    return _Published(rows, histogram.percentile_ms(50), histogram.percentile_ms(99))
