"""Latency: how long after its time a record was written by a sink, and how long until it was public.

A record's time is when it was due; a result carries the latest time of what it was made of. *Uncommitted*
latency ends when a sink writes the record: it counts each write, also those that a rollback took back.
*Committed* latency ends with the publication of the manifest that has the record, and counts it once.
"""

from collections.abc import Iterable, Mapping

from snapline.journal.entry import Happened
from snapline.journal.happenings import OutputPublished
from snapline.metrics.histogram import Counts, Histogram, merged
from snapline.metrics.second import Second


def uncommitted(seconds: Iterable[Second]) -> Histogram:
    """The latency of all records that were written."""
    return merged(second.latency for second in seconds)


def committed(entries: Iterable[Happened], times_ms: Mapping[str, Counts]) -> Histogram:
    """The latency of all records that were published, from the manifests and the times of the rows.

    The rows of a sink are numbered from 0 on in the order in which they were published.
    """
    histogram = Histogram()
    for entry in entries:
        if not isinstance(entry.what, OutputPublished):
            continue
        for task, (start, stop) in entry.what.rows.items():
            if task in times_ms:
                histogram.add_ages(times_ms[task][start:stop], entry.at_us)
    return histogram
