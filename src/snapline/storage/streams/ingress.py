"""A stream as its slots read it: an `Ingress` that grows until its chain is sealed.

The records of a partition are those that the manifests name, one manifest after the other, so an offset
means the same record for ever. A record is due as soon as its manifest was seen. Manifests are looked for
where blocks are fetched, beside the loop of a slot, when a source has read all that it knows: then *the
next manifests* is a block like others that it waits for.

**Time.** Behind a micro-batch the watermark of every partition is the highest time of the stream so far,
minus its disorder: of the whole stream, because rows are dealt out to partitions as they come. Inside a
micro-batch the rows are sorted, so the watermark follows them. It depends on the offset alone, but for the
end of what is known: there a partition takes the watermark of the last manifest, even if that has no rows
for it. If nothing was added for the stream's idle time, its watermark is IDLE until something is.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import BEFORE_TIME, END_OF_TIME, IDLE
from snapline.errors import ObjectMissing, StorageError, StoreUnavailable
from snapline.ids import Millis
from snapline.storage.blocks import BLOCKS_KEPT, LoadedBlock
from snapline.storage.files.ingress import Segment, load_block
from snapline.storage.streams.chain import (
    BatchManifest,
    StreamDescription,
    check_no_gap,
    described_stream,
    manifest_path,
    read_manifests,
)

LOOK: Final = -1
"""The number of the block that stands for what comes next: fetching it is to look for manifests."""

LOOK_MS: Final = 50
"""A source that has read everything looks for more this often."""


class _Records:
    """The blocks of one partition, as far as they are known."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]  #: the first offset of each block, and the end of the last
        self.places: list[tuple[Path, int, int]] = []
        #: per block: the watermark before its manifest, behind it, and the lowest time that follows in it
        self.marks: list[tuple[Millis, Millis, Millis]] = []

    @property
    def end(self) -> int:
        return self.starts[-1]

    def block_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def add(self, path: Path, segment: Segment, before: Millis, behind: Millis) -> None:
        for number, block in enumerate(segment.blocks):
            following = min((b.time_min for b in segment.blocks[number + 1 :]), default=END_OF_TIME)
            self.starts.append(self.end + block.records)
            self.places.append((path, segment.places[number], segment.places[number + 1]))
            self.marks.append((before, behind, following))


class StreamIngress:
    """An `Ingress`, and `Prefetched`, over the chain in a directory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._about: StreamDescription = described_stream(place)
        self._forget()

    def _forget(self) -> None:
        self._records = [_Records() for _ in range(self._about.partitions)]
        self._number = 0  #: of the last manifest that is known
        self._sealed = False
        self._highest: Millis | None = None  #: of all times so far
        self._loaded: OrderedDict[tuple[int, int], LoadedBlock] = OrderedDict()
        self._opened = False  #: whether anybody has looked yet
        self._trouble: StorageError | None = None  #: why the chain cannot be read
        self._next_look_ms: Millis | None = None  #: when it is worth looking again
        self._asked_ms: Millis = 0  #: when the last look began
        self._news_ms: Millis | None = None  #: when the last look began that found something
        self._idle = False

    def __getstate__(self) -> dict[str, Any]:
        return {"_place": self._place, "_about": self._about}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def about(self) -> StreamDescription:
        """What the stream is."""
        return self._about

    @property
    def place(self) -> Path:
        """Where its chain lies."""
        return self._place

    @property
    def identity(self) -> str:
        """What the stream is; not its records, which are still to come."""
        return repr(self._about)

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self._about.schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return self._about.partitions

    def end(self, partition: int) -> int | None:
        """The number of records in the partition; None as long as more may come."""
        self._open()
        return self._records[partition].end if self._sealed else None

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due: at once, or if it is not known, at the next look."""
        self._open()
        return 0 if offset < self._records[partition].end else self._next_look_ms or 0

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are known. One more if the chain cannot be read: `read` says why."""
        self._open()
        known = self._records[partition].end + (self._trouble is not None)
        return known if now_ms >= 0 else 0

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`; see above."""
        self._open()
        records = self._records[partition]
        if offset > records.end:
            raise ObjectMissing(
                f"{manifest_path(self._place, self._number + 1)} is gone: {offset} records of partition "
                f"{partition} were read, and the manifests have {records.end}"
            )
        if offset == records.end:
            if self._sealed:
                return END_OF_TIME
            return IDLE if self._idle else self._mark(self._highest)
        number = records.block_at(offset)
        before, behind, _ = records.marks[number]
        lowest = int(self._block(partition, number).lowest[offset - records.starts[number]])
        return max(before, min(lowest, behind))

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        self._open()
        records = self._records[partition]
        if stop > records.end and self._trouble is not None:
            raise self._trouble
        stop = min(stop, records.end)
        if offset >= stop:
            return Batch.empty(self.schema)
        parts = []
        for number in range(records.block_at(offset), records.block_at(stop - 1) + 1):
            start = records.starts[number]
            batch = self._block(partition, number).batch
            parts.append(batch.slice(max(0, offset - start), stop - start))
        return concat(parts)

    # Fetching blocks, and looking for manifests, before they are asked for.

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The blocks that are not at hand; at the end of what is known, now and then, what comes next."""
        records = self._records[partition]
        if offset >= records.end:
            return [LOOK] if self._may_look(now_ms or 0) else []
        first, last = records.block_at(offset), records.block_at(min(stop, records.end - 1))
        blocks = {first, min(last, first + 1)}
        return [block for block in blocks if (partition, block) not in self._loaded]

    def _may_look(self, now_ms: Millis) -> bool:
        if self._sealed or self._trouble is not None:
            return False
        if self._next_look_ms is not None and now_ms < self._next_look_ms <= now_ms + LOOK_MS:
            return False  # a clock that was set back does not count
        self._asked_ms, self._next_look_ms = now_ms, now_ms + LOOK_MS
        return True

    def next_block(self, partition: int, stop: int) -> int | None:
        """The block behind that in which `stop` lies, if there is one and it is not in memory."""
        records = self._records[partition]
        block = records.block_at(stop) + 1
        there = block < len(records.places) and (partition, block) not in self._loaded
        return block if there else None

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are known."""
        return self._records[partition].end

    def fetch(self, partition: int, block: int) -> Any:
        """Load a block, or look for manifests; in any thread."""
        if block == LOOK:
            return self._look()
        records = self._records[partition]
        return LoadedBlock.of(load_block(*records.places[block]), 0, records.marks[block][2])

    def _look(self) -> list[BatchManifest] | StorageError:
        number = self._number
        try:
            found = read_manifests(self._place, number + 1)
            if not self._opened:
                check_no_gap(self._place, number + len(found))
            return found
        except StorageError as error:
            return error

    def keep(self, partition: int, block: int, loaded: Any) -> None:
        """Keep a fetched block, or what was found. Only the thread that reads from this calls it."""
        if block == LOOK:
            self._take(loaded)
            return
        self._loaded[partition, block] = loaded
        if len(self._loaded) > BLOCKS_KEPT * self.partitions:
            self._loaded.popitem(last=False)

    def _take(self, found: list[BatchManifest] | StorageError) -> None:
        if isinstance(found, StorageError):
            # A store that does not answer may answer the next time.
            self._trouble = None if isinstance(found, StoreUnavailable) else found
            return
        self._opened = True
        news = [manifest for manifest in found if manifest.number > self._number]
        for manifest in news:
            self._add(manifest)
        if news or self._news_ms is None:
            self._news_ms, self._idle = self._asked_ms, False
        elif self._asked_ms - self._news_ms >= self._about.idle_ms:
            # A look found nothing that BEGAN when it was time: a slot that slept has missed nothing.
            self._idle = True

    def _add(self, manifest: BatchManifest) -> None:
        self._number = manifest.number
        self._sealed = manifest.sealed
        if not manifest.segments:
            return
        before = self._mark(self._highest)
        highest = max(b.time_max for s in manifest.segments.values() for b in s.blocks)
        self._highest = highest if self._highest is None else max(self._highest, highest)
        behind = self._mark(self._highest)
        paths = dict(zip(manifest.segments, manifest.files(self._place), strict=True))
        for partition, segment in manifest.segments.items():
            self._records[partition].add(paths[partition][0], segment, before, behind)

    def _mark(self, highest: Millis | None) -> Millis:
        """The watermark behind records of which this is the highest time."""
        mark = BEFORE_TIME if highest is None else highest - self._about.disorder_ms
        return mark if mark >= 0 else BEFORE_TIME

    def _open(self) -> None:
        """Look for manifests here and now if nobody has: where nobody fetches, and after a restart."""
        if not self._opened and self._trouble is None:
            found = self._look()
            if isinstance(found, StorageError):
                raise found
            self._take(found)
            self._news_ms = None  # nobody has said what time it is

    def _block(self, partition: int, number: int) -> LoadedBlock:
        found = self._loaded.pop((partition, number), None)
        if found is None:
            found = self.fetch(partition, number)
        self.keep(partition, number, found)
        return found
