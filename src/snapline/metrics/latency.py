"""Latency: how long after its time a record was written by a sink, and how long until it was public.

A record's time is when it was due; a result carries the latest time of what it was made of. *Uncommitted*
latency ends when a sink writes the record: it counts each write, also those that a rollback took back.
*Committed* latency ends with the publication of the manifest that has the record, and counts it once, in
the second of that publication. It is computed when the run is over, from the rows that are still there.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from snapline.ids import Micros, TaskId
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import OutputPublished
from snapline.metrics.histogram import Counts, Histogram, merged
from snapline.metrics.second import Second


@dataclass(frozen=True, slots=True)
class RowTimes:
    """The times of the rows that a sink task has published, in order."""

    times_ms: Counts
    first: int = 0  # the number of the first of them; those before were deleted

    def between(self, start: int, stop: int) -> Counts:
        """The times of the rows start <= n < stop, as far as they are there."""
        return self.times_ms[max(0, start - self.first) : max(0, stop - self.first)]


class Publication(NamedTuple):
    """Rows of one sink task that became public at once."""

    at_us: Micros
    task: TaskId
    rows: int
    times_ms: Counts | None  # None: its rows have no times


def uncommitted(seconds: Iterable[Second]) -> Histogram:
    """The latency of all records that were written."""
    return merged(second.latency for second in seconds)


def publications(entries: Iterable[Entry], times: Mapping[str, RowTimes]) -> Iterator[Publication]:
    """What was published, in order, from the manifests in a journal and the times of the rows."""
    for entry in entries:
        if isinstance(entry, Happened) and isinstance(entry.what, OutputPublished):
            for task, (start, stop) in entry.what.rows.items():
                known = times[task].between(start, stop) if task in times else None
                yield Publication(entry.at_us, task, stop - start, known)


def committed(
    entries: Iterable[Entry], times: Mapping[str, RowTimes], from_us: Micros = 0
) -> Histogram:
    """The latency of all records that were published at this moment or later."""
    histogram = Histogram()
    for each in publications(entries, times):
        if each.times_ms is not None and each.at_us >= from_us:
            histogram.add_ages(each.times_ms, each.at_us)
    return histogram
