"""Input that lies in blocks: one ingress for every form that stores records in pieces.

A partition is a row of blocks. Of each only three numbers are kept in memory: how many records it has, and
the lowest and the highest of their times. When a record is due, and which watermark holds at it, depends on
the times in its own block and on what came before and comes after: two running figures per block, one from
each end. So opening an input reads no records, whatever its size, and following it reads each block once.

A record is due at its time, or with the record before it if its own time is earlier. The watermark at an
offset is the lowest time that is still to come: the best that any source could know.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import END_OF_TIME
from snapline.errors import UsageError
from snapline.ids import Millis

BLOCKS_KEPT = 4
"""So many blocks of a partition stay in memory: a source reads forwards, and asks for times nearby."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """What is known of a block without reading it."""

    records: int
    time_min: Millis
    time_max: Millis

    @staticmethod
    def of(batch: Batch) -> "StoredBlock":
        """What is to be known of these records, of which there is at least one."""
        times = batch["time"]
        return StoredBlock(len(batch), int(times.min()), int(times.max()))


class _Partition:
    """Where the blocks of a partition begin, in numbers and in time."""

    def __init__(self, blocks: Sequence[StoredBlock]) -> None:
        low = np.array([block.time_min for block in blocks], np.int64)
        high = np.array([block.time_max for block in blocks], np.int64)
        records = np.array([block.records for block in blocks], np.int64)
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(records)])
        never = np.iinfo(np.int64).min
        #: the highest time before each block: nothing in it is due earlier
        self.before = np.concatenate([[never], np.maximum.accumulate(high)])[: len(blocks)]
        #: the lowest time from each block on, and at the end of all
        self.lowest = np.concatenate([np.minimum.accumulate(low[::-1])[::-1], [END_OF_TIME]])

    @property
    def end(self) -> int:
        return int(self.starts[-1])

    def block_at(self, offset: int) -> int:
        return int(np.searchsorted(self.starts, offset, side="right")) - 1


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A block in memory, with the due time and the watermark of each record."""

    batch: Batch
    due: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]

    @staticmethod
    def of(batch: Batch, before: np.int64, after: np.int64) -> "_Loaded":
        times = batch["time"]
        due = np.maximum(np.maximum.accumulate(times), before)
        lowest = np.minimum(np.minimum.accumulate(times[::-1])[::-1], after)
        return _Loaded(batch, due, lowest)


class BlockIngress:
    """An `Ingress` over blocks. A form says what they are and how one is loaded.

    It can be pickled: what it opened or loaded stays behind, and is opened again where it is needed.
    """

    def __init__(self, schema: Schema, partitions: Sequence[Sequence[StoredBlock]]) -> None:
        if not partitions:
            raise UsageError("an input needs a partition")
        if schema.get("time") != "int64":
            raise UsageError("an input needs a column `time`: int64, in milliseconds")
        self._schema = dict(schema)
        self._partitions = [_Partition(blocks) for blocks in partitions]
        self._loaded: OrderedDict[tuple[int, int], _Loaded] = OrderedDict()

    def load(self, partition: int, block: int) -> Batch:
        """Read one block."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": OrderedDict()}

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self._schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self._partitions)

    def end(self, partition: int) -> int:
        """The number of records in the partition."""
        return self._partitions[partition].end

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        known = self._partitions[partition]
        block = known.block_at(offset)
        return int(self._block(partition, block).due[offset - int(known.starts[block])])

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        known = self._partitions[partition]
        # The last block of which something may be due: all before it is.
        block = int(np.searchsorted(known.before, now_ms, side="right")) - 1
        if block < 0:
            return 0
        due = np.searchsorted(self._block(partition, block).due, now_ms, side="right")
        return int(known.starts[block]) + int(due)

    def watermark(self, partition: int, offset: int) -> Millis:
        """No record at `offset` or later has a time below this."""
        known = self._partitions[partition]
        if offset >= known.end:
            return END_OF_TIME
        block = known.block_at(offset)
        return int(self._block(partition, block).lowest[offset - int(known.starts[block])])

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        known = self._partitions[partition]
        stop = min(stop, known.end)
        if offset >= stop:
            return Batch.empty(self._schema)
        parts = []
        for block in range(known.block_at(offset), known.block_at(stop - 1) + 1):
            start = int(known.starts[block])
            batch = self._block(partition, block).batch
            parts.append(batch.slice(max(0, offset - start), stop - start))
        return concat(parts)

    def _block(self, partition: int, block: int) -> _Loaded:
        found = self._loaded.pop((partition, block), None)
        if found is None:
            known = self._partitions[partition]
            batch = self.load(partition, block)
            found = _Loaded.of(batch, known.before[block], known.lowest[block + 1])
        self._loaded[partition, block] = found
        if len(self._loaded) > BLOCKS_KEPT * len(self._partitions):
            self._loaded.popitem(last=False)
        return found
