"""The events: GET and POST requests for resources, from producers that lag behind each other.

Record n of a partition comes from producer n modulo the number of producers. Every producer has a constant
lag: the time of a record is when it is due minus that lag, so the times of a producer only rise. The first
producer of a partition has no lag, the others any up to `disorder`. The watermark stays `bound` behind what
is due: a producer that lags more sends events behind the watermark, and those whose window has closed by
then, `lateness` after its end, are late. All resources are equally frequent, except the hot one. An id is
unique over both kinds of events.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np

from snapline.batch import Batch, Column, concat
from snapline.ids import Millis
from snapline.workload.common.base import Params
from snapline.workload.common.generated import (
    PARTITION_BITS,
    Generated,
    Ints,
    draw,
    heated,
    label,
    next_of,
    record_ids,
    share_of,
)
from snapline.workload.common.settings import Setting, values_of

POST_BIT: Final = 1 << 55
"""Set in the ids of POST events: above every partition."""

_PIECE: Final = 1 << 20

SST_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "resources": Setting("how many resources are asked for", 1_000, 6, least=1),
        "producers": Setting("of each partition; each lags behind by its own", 4, 3, least=1),
        "disorder": Setting("the largest lag of a producer", 1_000, 300, "duration"),
        "bound": Setting("how far the watermark stays behind", 500, 50, "duration"),
        "lateness": Setting("how long a window waits behind its end", 200, 20, "duration"),
        "window": Setting("how long a window is", 2_000, 400, "duration", least=1),
    }
)
MST_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        **SST_SETTINGS,
        "posts": Setting("of 1,000 events, so many are POST", 5, 200, "permille", 1, 999),
    }
)


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """The values of all settings of a run."""

    resources: int
    producers: int
    posts: int
    disorder_ms: Millis
    bound_ms: Millis
    lateness_ms: Millis
    window_ms: Millis


@lru_cache(maxsize=64)
def shape_of(params: Params) -> LineageSettings:
    """The settings of a run: as given, or as its size says."""
    values = values_of(MST_SETTINGS, params.settings, full=params.full)
    return LineageSettings(
        values["resources"],
        values["producers"],
        values["posts"],
        values["disorder"],
        values["bound"],
        values["lateness"],
        values["window"],
    )


def gets(params: Params) -> Generated:
    """The GET events of SST, which are all there are."""
    return _events("gets", params, params.records)


def gets_beside_posts(params: Params) -> Generated:
    """The GET events of MST: what is not POST."""
    return _events("gets", params, max(params.records - _posts_of(params), 1))


def posts(params: Params) -> Generated:
    """The POST events of MST."""
    return _events("posts", params, _posts_of(params))


def _posts_of(params: Params) -> int:
    """How many of a partition's events are POST: at least one."""
    return max(params.records * shape_of(params).posts // 1_000, 1)


def _events(name: str, params: Params, records: int) -> Generated:
    fields = _Fields(name, records)
    return Generated(name, params, fields, records, lag=lags, bound_ms=shape_of(params).bound_ms)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The columns of one kind of events."""

    name: str
    records: int  # of a partition

    def __call__(self, params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
        is_post, field = self.name == "posts", f"{self.name}.resource"
        below = shape_of(params).resources
        even = draw(params, field, partition, offsets, below)
        hottest = next_of(params, "resource", below)  # the same for both kinds of events
        ids = record_ids(partition, offsets)
        return {
            "id": ids | POST_BIT if is_post else ids,
            "resource": heated(params, field, partition, offsets, self.records, even, hottest),
            "post": np.full(len(offsets), is_post),
        }


def lags(params: Params, partition: int, offsets: Ints) -> Ints:
    """The lag of the producer of each record. A producer lags equally with both kinds of events."""
    shape = shape_of(params)
    producers = np.arange(shape.producers)
    own = draw(params, "producer.lag", partition, producers, shape.disorder_ms + 1)
    own[0] = 0
    return own[offsets % shape.producers]


def event_label(event_id: int) -> str:
    """An event as people read it: `POST 1:17` is at offset 17 of partition 1."""
    kind = "POST" if event_id & POST_BIT else "GET"
    return label(kind, event_id & ~POST_BIT)


@dataclass(frozen=True, slots=True)
class EventRanges:
    """The events by their places (`Ranges`): the partitions of the first source, then of the next."""

    sources: tuple[Generated, ...]

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return sum(source.partitions for source in self.sources)

    @property
    def disorder_ms(self) -> Millis:
        """The largest lag of a producer."""
        return shape_of(self.sources[0].params).disorder_ms

    def end(self, stream: int) -> int:
        """How many events a stream has."""
        source, partition = self._source(stream)
        return source.seen(partition)

    def through(self, stream: int, time_ms: Millis) -> int:
        """The first offset from which on all events are later than this."""
        source, _ = self._source(stream)
        last_ms = time_ms + self.disorder_ms
        # Offset n stands for the time n * duration // records, from which its event may lag.
        through = -((last_ms + 1) * source.records // -source.params.duration_ms)
        return min(max(through, 0), self.end(stream))

    def make(self, stream: int, start: int, stop: int) -> Batch:
        """The events start <= n < stop of a stream: see `lineage_pieces`."""
        source, partition = self._source(stream)
        return _placed(source, partition, start, min(stop, self.end(stream)))

    def places(self, ids: Ints) -> tuple[Ints, Ints]:
        """Stream and offset of each id; the stream is -1 if there is no such event."""
        kind, rest = np.divmod(ids, POST_BIT)
        partition, offset = np.divmod(rest, 1 << PARTITION_BITS)
        partitions = self.sources[0].partitions
        known = (kind >= 0) & (kind < len(self.sources)) & (partition < partitions)
        ends = np.array([[each.seen(p) for p in range(partitions)] for each in self.sources])
        known[known] = offset[known] < ends[kind[known], partition[known]]
        return np.where(known, kind * partitions + partition, -1), offset

    def _source(self, stream: int) -> tuple[Generated, int]:
        kind, partition = divmod(stream, self.sources[0].partitions)
        return self.sources[kind], partition


def event_ranges(params: Params, *, with_posts: bool) -> EventRanges:
    """The events of MST, or without POSTs those of SST."""
    if with_posts:
        return EventRanges((gets_beside_posts(params), posts(params)))
    return EventRanges((gets(params),))


def lineage_pieces(params: Params, *, with_posts: bool) -> Iterator[Batch]:
    """All events as a judge takes them, so many at a time that memory hardly grows.

    Columns: `id`, `time`, `resource`, `post`, where it stands (`partition`, `offset`), `arrival`, when it
    was due, and `watermark` (`_placed`). `with_posts`: those of MST; otherwise those of SST.
    """
    ranges = event_ranges(params, with_posts=with_posts)
    for stream in range(ranges.streams):
        for start in range(0, max(ranges.end(stream), 1), _PIECE):
            yield ranges.make(stream, start, start + _PIECE)


def _placed(source: Generated, partition: int, start: int, stop: int) -> Batch:
    """Events with their places, and with the highest watermark that any task can have when it meets them.

    A task's watermark is the least over its inputs, so it is never ahead of that of the input on which the
    event comes. A channel keeps its order: what comes before the event was said by its source before the
    event was read, so it is no more than the source's watermark at the event's own offset. Rollbacks,
    replays, kills and delays change when messages come, never their order within a channel. Where a sender
    repeats what it had sent (at least once), an event may come behind its watermark, but then for the
    second time, and the first was in time. So an event whose window closes after this watermark is never
    late alone.
    """
    events, offsets = source.make(partition, start, stop), np.arange(start, stop, dtype=np.int64)
    params = source.params
    due = share_of(offsets, params.duration_ms, source.records)
    return events.with_columns(
        partition=np.full(stop - start, partition, np.int64),
        offset=offsets,
        arrival=np.zeros_like(due) if params.at_once else due,
        watermark=np.maximum(due - shape_of(params).bound_ms, 0),
    )


def lineage_of(params: Params, *, with_posts: bool) -> Batch:
    """All events of a run, at once: see `lineage_pieces`."""
    return concat(list(lineage_pieces(params, with_posts=with_posts)))
