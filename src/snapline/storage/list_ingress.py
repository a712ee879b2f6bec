"""Input in memory: an ingress over batches that are already there."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import END_OF_TIME, watermark_of
from snapline.errors import UsageError
from snapline.ids import Millis


class Timetable:
    """When the records of one partition are due, from their times.

    A record is due at its time, or with the record before it if its own time is earlier. The watermark
    at an offset is the lowest time that is still to come: the best that any source could know.
    """

    def __init__(self, times: npt.NDArray[np.int64]) -> None:
        self._due = np.maximum.accumulate(times)
        self._lowest = np.minimum.accumulate(times[::-1])[::-1]

    def due_ms(self, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return int(self._due[offset])

    def due_through(self, now_ms: Millis) -> int:
        """The first offset that is not due by now."""
        return int(np.searchsorted(self._due, now_ms, side="right"))

    def watermark(self, offset: int) -> Millis:
        """The watermark at `offset`: no record from there on has a time below it."""
        at_end = offset >= len(self._lowest)
        return END_OF_TIME if at_end else watermark_of(int(self._lowest[offset]))


class ListIngress:
    """An `Ingress` over batches that are already there: for each partition, its batches in order."""

    def __init__(self, partitions: Sequence[Sequence[Batch]]) -> None:
        if not partitions or not all(partitions):
            raise UsageError("an input needs a partition, and each partition at least one batch")
        self._partitions = [concat(batches) for batches in partitions]
        self._times = [Timetable(batch["time"]) for batch in self._partitions]

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self._partitions[0].schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self._partitions)

    def end(self, partition: int) -> int:
        """The number of records in the partition."""
        return len(self._partitions[partition])

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return self._times[partition].due_ms(offset)

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        return self._times[partition].due_through(now_ms)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        return self._partitions[partition].slice(offset, stop)

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`: no record from there on has a time below it."""
        return self._times[partition].watermark(offset)
