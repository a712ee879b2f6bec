"""Input that lies in blocks: one ingress for every form that stores records in pieces.

A partition is a row of blocks. Of each only three numbers are kept in memory: how many records it has, and
the lowest and the highest of their times. When a record is due, and which watermark holds at it, depends on
the times in its own block and on what came before and comes after: two running figures per block, one from
each end. So opening an input reads no records, whatever its size, and following it reads each block once.

A block is loaded when it is asked for, or before that by another thread (`Prefetched`): then whoever asks
finds it in memory. Blocks never change, so one that was loaded in vain costs memory and nothing else.

A record is due at its time, or with the record before it if its own time is earlier. The watermark at an
offset is the lowest time that is still to come: the best that any source could know. Records without a
column `time` have the time 0.
"""

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import END_OF_TIME, watermark_of
from snapline.errors import UsageError
from snapline.ids import Millis

BLOCKS_KEPT = 4
"""How many blocks per partition stay in memory: a source reads forwards, and asks for times nearby."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """What is known of a block without reading it."""

    records: int
    time_min: Millis
    time_max: Millis

    @staticmethod
    def of(batch: Batch) -> "StoredBlock":
        """Describe a block with these records, of which there must be at least one."""
        times = _times(batch)
        return StoredBlock(len(batch), int(times.min()), int(times.max()))


def _times(batch: Batch) -> npt.NDArray[np.int64]:
    if "time" not in batch.columns:
        return np.zeros(len(batch), np.int64)
    times: npt.NDArray[np.int64] = batch["time"]
    return times


class _Partition:
    """Finds the block for an offset or a time, from what is known of all blocks of a partition."""

    def __init__(self, blocks: Sequence[StoredBlock]) -> None:
        low = np.array([block.time_min for block in blocks], np.int64)
        high = np.array([block.time_max for block in blocks], np.int64)
        records = np.array([block.records for block in blocks], np.int64)
        self.starts: list[int] = [0, *np.cumsum(records).tolist()]
        never = np.iinfo(np.int64).min
        #: the highest time before each block: nothing in it is due earlier
        before = np.concatenate([[never], np.maximum.accumulate(high)])[: len(blocks)]
        self.before: list[int] = before.tolist()
        #: the lowest time from each block on, and at the end of all
        lowest = np.concatenate([np.minimum.accumulate(low[::-1])[::-1], [END_OF_TIME]])
        self.lowest: list[int] = lowest.tolist()

    @property
    def end(self) -> int:
        return self.starts[-1]

    def block_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def due_block(self, now_ms: Millis) -> int:
        """The last block with records that may be due; all blocks before it are due. -1: none is."""
        return bisect_right(self.before, now_ms) - 1


@dataclass(frozen=True, slots=True)
class LoadedBlock:
    """A block in memory, with the due time and the watermark of each record."""

    batch: Batch
    due: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]

    @staticmethod
    def of(batch: Batch, before: Millis, after: Millis) -> "LoadedBlock":
        """A loaded block; `before` is the highest time before it, `after` the lowest behind it."""
        times = _times(batch)
        due = np.maximum(np.maximum.accumulate(times), before)
        lowest = np.minimum(np.minimum.accumulate(times[::-1])[::-1], after)
        return LoadedBlock(batch, due, lowest)


class BlockIngress:
    """An `Ingress` over blocks. A subclass describes its blocks and says how one is loaded.

    It can be pickled: open files and loaded blocks are left out, and are made again where needed.
    """

    def __init__(self, schema: Schema, partitions: Sequence[Sequence[StoredBlock]]) -> None:
        if not partitions:
            raise UsageError("an input needs a partition")
        if schema.get("time", "int64") != "int64":
            raise UsageError("the column `time` of an input is int64, in milliseconds")
        self._schema = dict(schema)
        self._partitions = [_Partition(blocks) for blocks in partitions]
        self._loaded: OrderedDict[tuple[int, int], LoadedBlock] = OrderedDict()
        #: held while a block is loaded, because a subclass may share an open file between loads
        self._loading = threading.Lock()

    def load(self, partition: int, block: int) -> Batch:
        """Read one block."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_loading"}
        return {**kept, "_loaded": OrderedDict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _loading=threading.Lock())

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
        return int(self._block(partition, block).due[offset - known.starts[block]])

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        known = self._partitions[partition]
        block = known.due_block(now_ms)
        if block < 0:
            return 0
        due = np.searchsorted(self._block(partition, block).due, now_ms, side="right")
        return known.starts[block] + int(due)

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`: no record from there on has a time below it."""
        known = self._partitions[partition]
        if offset >= known.end:
            return END_OF_TIME
        block = known.block_at(offset)
        return watermark_of(int(self._block(partition, block).lowest[offset - known.starts[block]]))

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        known = self._partitions[partition]
        stop = min(stop, known.end)
        if offset >= stop:
            return Batch.empty(self._schema)
        parts = []
        for block in range(known.block_at(offset), known.block_at(stop - 1) + 1):
            start = known.starts[block]
            batch = self._block(partition, block).batch
            parts.append(batch.slice(max(0, offset - start), stop - start))
        return concat(parts)

    # Fetching blocks before they are asked for.

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The blocks that a read of these records needs, and that are not in memory.

        The record at `stop` counts, too: its due time and watermark are asked for. If `now_ms` is given,
        so does the block that is due by then. Of a read that spans many small blocks only the first two
        are named, because few are kept.
        """
        known = self._partitions[partition]
        if offset >= known.end:
            return ()
        first, last = known.block_at(offset), known.block_at(min(stop, known.end - 1))
        due = first if now_ms is None else known.due_block(now_ms)
        blocks = {first, min(last, first + 1), max(due, 0)}
        return [block for block in blocks if (partition, block) not in self._loaded]

    def next_block(self, partition: int, stop: int) -> int | None:
        """The block behind that in which `stop` lies, if there is one and it is not in memory."""
        known = self._partitions[partition]
        block = known.block_at(stop) + 1
        there = block < len(known.starts) - 1 and (partition, block) not in self._loaded
        return block if there else None

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """A lower bound of `due_through` that is known without waiting for a block."""
        known = self._partitions[partition]
        block = known.due_block(now_ms)
        if (partition, block) in self._loaded:
            # Not that of a subclass, which may count time from another moment.
            return BlockIngress.due_through(self, partition, now_ms)
        return known.starts[max(0, block)]

    def fetch(self, partition: int, block: int) -> LoadedBlock:
        """Load a block, in any thread."""
        known = self._partitions[partition]
        with self._loading:
            batch = self.load(partition, block)
        return LoadedBlock.of(batch, known.before[block], known.lowest[block + 1])

    def keep(self, partition: int, block: int, loaded: LoadedBlock) -> None:
        """Keep a fetched block in memory. Only the thread that reads from this ingress calls this."""
        self._loaded[partition, block] = loaded
        if len(self._loaded) > BLOCKS_KEPT * len(self._partitions):
            self._loaded.popitem(last=False)

    def _block(self, partition: int, block: int) -> LoadedBlock:
        found = self._loaded.pop((partition, block), None)
        if found is None:
            found = self.fetch(partition, block)
        self.keep(partition, block, found)
        return found
