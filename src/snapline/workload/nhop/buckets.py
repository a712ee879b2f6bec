"""Rows by key and time: who looks for rows near a time does not meet those of other times.

Time is cut into stretches as long as the TTL, so what is at most one TTL away lies in the same stretch or
in one of its neighbours, and the rows of all others cost nothing, however many there are. What is kept for
ever is in one map, whose keys are key and stretch together, and is captured without a copy. What is
dropped some day has a map for each stretch, a bucket, and is dropped with it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.dataflow.operators.window import runs, take_rows
from snapline.dataflow.state.multi_map import MultiMap
from snapline.ids import Millis
from snapline.workload.common.generated import Ints

_KEY_BITS: Final = 32


class Stretches:
    """Rows by the columns `time` and `key`, in one map; keys are below 2^32."""

    def __init__(self, time: str, key: str, ttl_ms: Millis) -> None:
        self._time: Final = time
        self._key: Final = key
        self._width_ms: Final = max(ttl_ms, 1)
        self._rows: Final = MultiMap()

    def add(self, batch: Batch) -> None:
        """Keep rows."""
        stretches = batch[self._time] // self._width_ms
        self._rows.add((stretches << _KEY_BITS) + batch[self._key], batch)

    def near(self, keys: Ints, times: Ints) -> Iterator[tuple[Ints, Batch, Ints]]:
        """The rows with these keys in the stretches around these times.

        They come as positions in `keys`, rows, and the places of those that were found among them.
        """
        here = (times // self._width_ms << _KEY_BITS) + keys
        step = 1 << _KEY_BITS
        found, rows = self._rows.find(np.concatenate([here - step, here, here + step]))
        if len(rows):
            yield found % len(keys), self._rows.rows.view(), rows

    def capture(self, *, full: bool) -> Batch:
        """All rows, or those that are new."""
        return self._rows.capture(full=full)

    def restore(self, batches: Sequence[Batch]) -> None:
        """Take back rows that were captured."""
        if known := [batch for batch in batches if batch.length]:
            self.add(concat(known))
            self._rows.rows.mark()


class Buckets:
    """Rows in buckets by the column `time`, and in each by the column `key`."""

    def __init__(self, time: str, key: str, ttl_ms: Millis) -> None:
        self._time: Final = time
        self._key: Final = key
        self._ttl_ms: Final = ttl_ms
        self._width_ms: Final = max(ttl_ms, 1)
        self._buckets: Final[dict[int, MultiMap]] = {}
        self._changed: dict[int, MultiMap] = {}  # since the last capture
        self._first = -1  # buckets up to here were dropped

    def add(self, batch: Batch) -> None:
        """Keep rows; those of a bucket that was dropped are not needed any more."""
        for number, at in runs(batch[self._time] // self._width_ms):
            if number > self._first:
                bucket = self._buckets.setdefault(number, MultiMap())
                rows = take_rows(batch, at)
                bucket.add(rows[self._key], rows)
                self._changed[number] = bucket

    def near(self, keys: Ints, times: Ints) -> Iterator[tuple[Ints, Batch, Ints]]:
        """The rows with these keys in the buckets around these times, bucket by bucket; see above."""
        for number, at in runs(times // self._width_ms):
            for neighbour in (number - 1, number, number + 1):
                if (bucket := self._buckets.get(neighbour)) is not None:
                    found, rows = bucket.find(keys if at is None else keys[at])
                    if len(rows):
                        yield found if at is None else at[found], bucket.rows.view(), rows

    def drop(self, watermark: Millis) -> None:
        """Nobody will ask with a time below the watermark: drop what is more than the TTL before it."""
        first = (watermark - self._ttl_ms) // self._width_ms - 1
        if first > self._first:
            self._first = first
            for number in [number for number in self._buckets if number <= first]:
                del self._buckets[number]
                self._changed.pop(number, None)

    def capture(self, *, full: bool) -> Batch:
        """All rows, or those that are new."""
        chosen = self._buckets if full else self._changed
        self._changed = {}
        parts = [bucket.capture(full=full) for bucket in chosen.values()]
        return concat(parts) if parts else Batch({}, 0)

    def restore(self, batches: Sequence[Batch]) -> None:
        """Take back rows that were captured."""
        for batch in batches:
            if batch.length:
                self.add(batch)
        self.capture(full=False)  # they have been
