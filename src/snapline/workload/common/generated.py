"""Inputs that are computed when they are read, by a pure function, and stored nowhere.

A field of a record is a hash of (seed, field, partition, offset). There is no state to advance, so
any range of any partition can be made at any time, by anyone, in one vectorised call, and is always
the same. So a source can read again after a crash, and an oracle sees the input without having
watched the run.

Records are due evenly over the duration. The time of a record is the time at which it is due; with
`disorder_ms` it lies up to that much earlier, as if the record had been delayed on its way, and the
watermark keeps the same distance. A model may say itself how far the times lie back (`lag`), and how far
the watermark does (`bound_ms`): where that is less than a lag, records come behind their watermark, and
some of them will be late. With `at_once` every record is due at the beginning, so the flow takes them as
fast as it can, and times and watermarks are as they would be otherwise. An endless input goes on beyond its
records at the same rate: all of this is arithmetic on offsets, of which a partition has 2^40.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from time import thread_time_ns
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Column, Schema, concat
from snapline.batch_form import encode
from snapline.core.messages import END_OF_TIME
from snapline.ids import Millis
from snapline.kernels import generating
from snapline.storage.api import Identified, Ingress, Prefetched
from snapline.storage.codec import digest_of
from snapline.workload.common.base import Params

Ints: TypeAlias = npt.NDArray[np.int64]
Fields: TypeAlias = Callable[[Params, int, Ints], Mapping[str, Column]]
"""(params, partition, offsets) -> the columns of these records; an `id` among them is theirs. Pure."""

Lag: TypeAlias = Callable[[Params, int, Ints], Ints]
"""(params, partition, offsets) -> how long before they are due the times of these records lie. Pure."""

PARTITION_BITS = 40
"""A record's id is its partition above this many bits of offset: unique within its source."""

BLOCK = 256
"""How many records are made at once for small reads."""

PERIOD_MS: Millis = 20_000
"""What sizes are worked out for where input has no end, such as how many keys there are."""

_SAMPLE = 32  # how many records are hashed to tell one rule from another
_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def draw(params: Params, field: str, partition: int, offsets: Ints, below: int | Ints) -> Ints:
    """Evenly distributed numbers in [0, below), one per offset; fields are independent of each other."""
    if isinstance(below, np.ndarray):
        bits = draw_bits(params, field, partition, offsets)
        bits %= below.astype(np.uint64)
        return bits.view(np.int64)
    if below == 1:
        return np.zeros(len(offsets), np.int64)
    start, whole = _start(params.seed, field, partition), np.ascontiguousarray(offsets, np.int64)
    return generating.drawn(whole, start, below, *generating.divisor_of(below))


def draw_bits(params: Params, field: str, partition: int, offsets: Ints) -> npt.NDArray[np.uint64]:
    """64 random bits per offset, evenly distributed."""
    start = _start(params.seed, field, partition)
    return generating.bits_at(np.ascontiguousarray(offsets, np.int64), start)


def share_of(offsets: Ints, whole: int, records: int) -> Ints:
    """How much of `whole` has passed at each offset, if all of it passes evenly in `records` records."""
    return generating.shares(np.ascontiguousarray(offsets, np.int64), whole, records)


Hottest: TypeAlias = Callable[[Ints], Ints]
"""(number of moves so far) -> the hot key."""


def heated(
    params: Params,
    field: str,
    partition: int,
    offsets: Ints,
    records: int,
    keys: Ints,
    hottest: Hottest,
) -> Ints:
    """The keys of a field, of which `params.hot` percent are replaced by the hot key.

    `records` is how many the source has in a partition: with `params.hot_ms` the hot key moves with the
    time at which a record is due, at the same moment in every partition.
    """
    if not params.hot:
        return keys
    moves = np.zeros(1, np.int64)
    if params.hot_ms:
        moves = share_of(offsets, params.duration_ms, records) // params.hot_ms
    is_hot = draw(params, f"{field}.heat", partition, offsets, 100) < params.hot
    return np.where(is_hot, hottest(moves), keys)


def next_of(params: Params, field: str, below: int) -> Hottest:
    """A hot key among the keys in [0, below): any of them at first, then always the next one."""
    first = draw(params, f"{field}.hot", 0, np.zeros(1, np.int64), below)
    return lambda moves: (first + moves) % below


@lru_cache(maxsize=1024)
def _start(seed: int, field: str, partition: int) -> int:
    """Where the numbers of a field begin in a partition."""
    words = np.array([(seed * _GOLDEN + zlib.crc32(field.encode())) & _WORD], np.uint64)
    generating.mix(words)
    words += np.uint64(partition)
    generating.mix(words)
    return int(words[0])


def record_ids(partition: int, offsets: Ints) -> Ints:
    """The ids of these records."""
    return offsets + (partition << PARTITION_BITS)


def label(what: str, record_id: int) -> str:
    """A record as people read it: `bid 2:17` is at offset 17 of partition 2."""
    return f"{what} {record_id >> PARTITION_BITS}:{record_id & ((1 << PARTITION_BITS) - 1)}"


class _Blocks(dict[int, tuple[int, Batch]]):
    """The block that was made last in each partition, and its first offset. A copy of a source has none."""

    def __reduce__(self) -> tuple[type["_Blocks"], tuple[()]]:
        return _Blocks, ()


_NO_BLOCK: tuple[int, Batch] = (-1, Batch({}))


class _Spent:
    """The CPU time that making records took. A copy of a source has spent nothing."""

    def __init__(self) -> None:
        self.ns = 0

    def __reduce__(self) -> tuple[type["_Spent"], tuple[()]]:
        return _Spent, ()


@dataclass(frozen=True, slots=True)
class Generated:
    """An `Ingress` whose records are computed when they are read."""

    name: str
    params: Params
    fields: Fields
    records: int  # per partition
    disorder_ms: Millis = 0
    lag: Lag | None = None
    bound_ms: Millis | None = None  # None: as far back as the disorder, so that nothing is late
    _blocks: _Blocks = field(default_factory=_Blocks, init=False, repr=False, compare=False)
    _spent: _Spent = field(default_factory=_Spent, init=False, repr=False, compare=False)

    @property
    def schema(self) -> Schema:
        """The kinds of the columns: `id`, `time` and the fields."""
        return self.make(0, 0, 0).schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return self.params.partitions

    @property
    def identity(self) -> str:
        """A text that differs between inputs: all parameters, and a digest of the first records.

        The digest stands for the function that makes the records, which has no name to compare.
        """
        said = (self.name, self.params, self.records, self.disorder_ms, self.bound_ms)
        return repr((said, digest_of(encode(self.read(0, 0, _SAMPLE)))))

    def end(self, partition: int) -> int | None:
        """The number of records in the partition; None if it has no end."""
        return None if self.params.endless else self.records

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return 0 if self.params.at_once else self._time_ms(offset)

    def _time_ms(self, offset: int) -> Millis:
        return offset * self.params.duration_ms // self.records

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        if self.params.at_once:
            return self.records
        # due_ms(n) <= now  <=>  n * duration < (now + 1) * records
        due = max(-((now_ms + 1) * self.records // -self.params.duration_ms), 0)
        return due if self.params.endless else min(due, self.records)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        first = offset - offset % BLOCK
        if stop - offset >= BLOCK // 4 or stop > first + BLOCK:
            return self.make(partition, offset, stop)
        # A handful of records costs as many numpy calls as a thousand, so a slow source would
        # spend its time here: small reads are slices of a block that was made once.
        kept, block = self._blocks.get(partition, _NO_BLOCK)
        if kept != first:
            block = self.make(partition, first, first + BLOCK)
            self._blocks[partition] = (first, block)
        return block.slice(offset - first, stop - first)

    def make(self, partition: int, offset: int, stop: int) -> Batch:
        """Compute records offset <= n < stop."""
        began_ns = thread_time_ns()
        last = stop if self.params.endless else min(stop, self.records)
        offsets = np.arange(offset, last, dtype=np.int64)
        time = share_of(offsets, self.params.duration_ms, self.records)
        if self.disorder_ms:
            field = f"{self.name}.delay"
            delay = draw(self.params, field, partition, offsets, self.disorder_ms + 1)
            time = np.maximum(time - delay, 0)
        if self.lag is not None:
            time = np.maximum(time - self.lag(self.params, partition, offsets), 0)
        columns = {"id": record_ids(partition, offsets), "time": time}
        made = Batch({**columns, **self.fields(self.params, partition, offsets)}, len(offsets))
        self._spent.ns += thread_time_ns() - began_ns
        return made

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark before `offset`: records from there on are not earlier, unless they lag too far."""
        if offset >= self.records and not self.params.endless:
            return END_OF_TIME
        bound_ms = self.disorder_ms if self.bound_ms is None else self.bound_ms
        return max(self._time_ms(offset) - bound_ms, 0)

    @property
    def generated_ns(self) -> int:
        """CPU time that was spent on making records so far."""
        return self._spent.ns

    def seen(self, partition: int) -> int:
        """How many records of the partition an oracle looks at: all of them, or those before the cut."""
        for source, offsets in self.params.cut:
            if source == self.name:
                return offsets[partition]
        return self.records

    def everything(self) -> Batch:
        """All records of all partitions: the input as an oracle sees it."""
        return concat([self.make(p, 0, self.seen(p)) for p in range(self.partitions)])


@dataclass(frozen=True, slots=True)
class StoredAsGenerated:
    """An `Ingress` of generated records that were stored.

    When they are due, and the watermarks, are computed as for the generated ones, because the stored times
    of records that lag tell neither.
    """

    stored: Ingress
    made: Generated

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self.stored.schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return self.stored.partitions

    def end(self, partition: int) -> int | None:
        """The number of records in the partition."""
        return self.stored.end(partition)

    @property
    def identity(self) -> str:
        """The identity of the stored records and of the source that gives their times and watermarks."""
        stored = self.stored.identity if isinstance(self.stored, Identified) else ""
        return repr((stored, self.made.params, self.made.records, self.made.bound_ms))

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return self.made.due_ms(partition, offset)

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        return self.made.due_through(partition, now_ms)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop, from where they are stored."""
        return self.stored.read(partition, offset, stop)

    def watermark(self, partition: int, offset: int) -> Millis:
        """See `Generated.watermark`."""
        return self.made.watermark(partition, offset)

    # Times are computed, records are stored: see `Prefetched`.

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The stored blocks that are not at hand, and without which `read` would have to wait."""
        stored = self.stored
        return (
            stored.needed(partition, offset, stop, None) if isinstance(stored, Prefetched) else ()
        )

    def next_block(self, partition: int, stop: int) -> int | None:
        """The stored block behind the one in which `stop` lies, unless it is at hand."""
        stored = self.stored
        return stored.next_block(partition, stop) if isinstance(stored, Prefetched) else None

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now, which is computed."""
        return self.made.due_through(partition, now_ms)

    def fetch(self, partition: int, block: int) -> Any:
        """Load a stored block."""
        assert isinstance(self.stored, Prefetched)
        return self.stored.fetch(partition, block)

    def keep(self, partition: int, block: int, loaded: Any) -> None:
        """Have a stored block at hand that was fetched."""
        assert isinstance(self.stored, Prefetched)
        self.stored.keep(partition, block, loaded)


@dataclass(frozen=True, slots=True)
class GeneratedFeed:
    """A `Feed` of computed records: `rate` of them a second, over all partitions."""

    name: str
    fields: Fields
    rate: int
    seed: int = 1
    disorder_ms: Millis = 0
    #: how many of `Params.records` there are for each record of this feed, where a model depends on others
    scale: int = 1
    full: bool = False
    hot: int = 0
    hot_ms: Millis = 0

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self.bind(1, 1_000).schema

    def bind(self, partitions: int, duration_ms: Millis) -> Generated:
        """The records that are due in this time, in so many partitions."""
        return self._bind(partitions, duration_ms, endless=False)

    def bind_endless(self, partitions: int) -> Generated:
        """Records that never end, in so many partitions."""
        return self._bind(partitions, PERIOD_MS, endless=True)

    def _bind(self, partitions: int, duration_ms: Millis, *, endless: bool) -> Generated:
        records = records_per_partition(self.rate, partitions, duration_ms)
        params = Params(
            self.seed,
            partitions,
            records * self.scale,
            duration_ms,
            full=self.full,
            hot=self.hot,
            hot_ms=self.hot_ms,
            endless=endless,
        )
        return Generated(self.name, params, self.fields, records, self.disorder_ms)


def records_per_partition(rate: int, partitions: int, duration_ms: Millis) -> int:
    """How many records each partition has in this time, at `rate` per second over all: at least one."""
    return max(1, rate * duration_ms // 1000 // partitions)
