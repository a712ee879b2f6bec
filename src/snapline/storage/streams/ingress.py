"""A stream as its slots read it: an `Ingress` that grows until its chain is sealed.

The records of a partition are those that the manifests name, one manifest after the other, so an offset
means the same record for ever. A record is due as soon as its manifest was seen. Manifests are looked for
where blocks are fetched, beside the loop of a slot, when a source has read all that it knows: then *the
next manifests* is a block like others that it waits for.

A reader knows the manifests from that on in which its source goes on, and forgets those that its source has
left behind. So neither its start nor its memory depends on how long the stream is. A source that goes back,
in a rollback, has them looked for again. A block is called by the offset of its first record.

**Time.** Behind a micro-batch the watermark of every partition is the highest time of the stream so far,
minus its disorder: of the whole stream, because rows are dealt out to partitions as they come. Inside a
micro-batch the rows are sorted, so the watermark follows them. It depends on the offset alone, but for the
end of what is known: there a partition takes the watermark of the last manifest, even if that has no rows
for it. If nothing was added for the stream's idle time, its watermark is IDLE until something is.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import BEFORE_TIME, END_OF_TIME, IDLE, watermark_of
from snapline.errors import ObjectMissing, StorageError, StoreUnavailable
from snapline.ids import Millis
from snapline.storage.blocks import BLOCKS_KEPT, LoadedBlock
from snapline.storage.files.ingress import Segment, load_block
from snapline.storage.streams.chain import StreamDescription, described_stream
from snapline.storage.streams.manifests import BatchManifest, Manifests

LOOK: Final = -1
"""The number of the block that stands for what comes next: fetching it is to look for manifests."""

LOOK_MS: Final = 50
"""A source that has read everything looks for more this often."""

FORGET: Final = 256
"""Blocks that a source has left behind are forgotten when there are so many of them."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of one partition."""

    path: Path
    place: int
    end: int
    before: Millis  # the watermark before its manifest ...
    behind: Millis  # ... and behind it
    following: Millis  # the lowest time that follows in its manifest


class _Records:
    """The blocks of one partition from some offset on, as far as they are known."""

    def __init__(self, first: int = 0) -> None:
        self.starts: list[int] = [first]  #: the first offset of each block, and the end of the last
        self.blocks: dict[int, _Block] = {}  #: by their first offsets

    @property
    def first(self) -> int:
        return self.starts[0]

    @property
    def end(self) -> int:
        return self.starts[-1]

    def index_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def block_at(self, offset: int) -> int:
        return self.starts[self.index_at(offset)]

    def add(self, path: Path, segment: Segment, before: Millis, behind: Millis) -> None:
        for number, block in enumerate(segment.blocks):
            following = min((b.time_min for b in segment.blocks[number + 1 :]), default=END_OF_TIME)
            place, end = segment.places[number : number + 2]
            self.blocks[self.end] = _Block(path, place, end, before, behind, following)
            self.starts.append(self.end + block.records)

    def forget(self, through: int) -> None:
        """Forget the blocks that end before an offset, if there are many."""
        count = self.index_at(through)
        if count >= FORGET:
            for start in self.starts[:count]:
                del self.blocks[start]
            del self.starts[:count]


class StreamIngress:
    """An `Ingress`, and `Prefetched`, over the chain in a directory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._about: StreamDescription = described_stream(place)
        self._forget()

    def _forget(self) -> None:
        self._manifests = Manifests(self._place)
        self._records = [_Records() for _ in range(self._about.partitions)]
        self._goes_on: dict[
            int, int
        ] = {}  #: where the source of a partition reads next, if it has one
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
        self._open(partition)
        return self._records[partition].end if self._sealed else None

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due: at once, or if it is not known, at the next look."""
        self._open(partition)
        return 0 if offset < self._records[partition].end else self._next_look_ms or 0

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are known. One more if the chain cannot be read: `read` says why."""
        self._open(partition)
        known = self._records[partition].end + (self._trouble is not None)
        return known if now_ms >= 0 else 0

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`; see above."""
        records = self._known_from(partition, offset)
        if offset > records.end:
            raise ObjectMissing(
                f"{self._manifests.file(self._number + 1)} is gone: {offset} records of partition "
                f"{partition} were read, and the manifests have {records.end}"
            )
        if offset == records.end:
            if self._sealed:
                return END_OF_TIME
            return IDLE if self._idle else self._mark(self._highest)
        start = records.block_at(offset)
        block = records.blocks[start]
        lowest = int(self._block(partition, start).lowest[offset - start])
        return max(block.before, min(lowest, block.behind))

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop. Raises InputDeleted if they are no longer there."""
        records = self._known_from(partition, offset)
        if stop > records.end and self._trouble is not None:
            raise self._trouble
        stop = min(stop, records.end)
        if offset >= stop:
            return Batch.empty(self.schema)
        parts = []
        for index in range(records.index_at(offset), records.index_at(stop - 1) + 1):
            start = records.starts[index]
            batch = self._block(partition, start).batch
            parts.append(batch.slice(max(0, offset - start), stop - start))
        return concat(parts)

    # Fetching blocks, and looking for manifests, before they are asked for.

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The blocks that are not at hand; at the end of what is known, now and then, what comes next."""
        records = self._records[partition]
        back = offset < self._goes_on.get(partition, inf)
        self._goes_on[partition] = offset
        if not self._opened or not records.first <= offset < records.end:
            return [LOOK] if self._may_look(now_ms or 0, back and offset < records.first) else []
        first, last = records.index_at(offset), records.index_at(min(stop, records.end - 1))
        blocks = {records.starts[first], records.starts[min(last, first + 1)]}
        return [block for block in blocks if (partition, block) not in self._loaded]

    def _may_look(self, now_ms: Millis, back: bool) -> bool:
        if self._trouble is not None or (self._sealed and not back):
            return False
        soon = self._next_look_ms is not None and now_ms < self._next_look_ms <= now_ms + LOOK_MS
        if soon and not back:
            return False  # a clock that was set back does not count
        self._asked_ms, self._next_look_ms = now_ms, now_ms + LOOK_MS
        return True

    def next_block(self, partition: int, stop: int) -> int | None:
        """The block behind that in which `stop` lies, if there is one and it is not in memory."""
        records = self._records[partition]
        following = records.index_at(stop) + 1
        if not 0 < following < len(records.starts) - 1:
            return None
        block = records.starts[following]
        return block if (partition, block) not in self._loaded else None

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are known."""
        return self._records[partition].end

    def fetch(self, partition: int, block: int) -> Any:
        """Load a block, or look for manifests; in any thread."""
        if block == LOOK:
            return self._look(partition)
        known = self._records[partition].blocks[block]
        try:
            loaded = load_block(known.path, known.place, known.end)
        except StoreUnavailable:
            if known.path.parent.exists():
                raise
            raise ObjectMissing(f"{known.path} is gone, or was deleted as too old") from None
        return LoadedBlock.of(loaded, 0, known.following)

    def _look(self, partition: int) -> list[BatchManifest] | StorageError:
        """The manifests behind the last one that is known, or from where the source goes on."""
        offset, first = self._goes_on.get(partition), self._records[partition].first
        try:
            if not self._opened:
                self._manifests.check_no_gap()
            if self._opened and (offset is None or offset >= first):
                start = self._number + 1
            elif offset is None:
                start = max(1, self._manifests.last_number())
            else:
                start = self._manifests.locate(partition, offset)
            return list(self._manifests.since(start))
        except StorageError as error:
            return error

    def keep(self, partition: int, block: int, loaded: Any) -> None:
        """Keep a fetched block, or what was found. Only the thread that reads from this calls it."""
        if block == LOOK:
            self._take(partition, loaded)
            return
        self._loaded[partition, block] = loaded
        if len(self._loaded) > BLOCKS_KEPT * self.partitions:
            self._loaded.popitem(last=False)

    def _take(self, partition: int, found: list[BatchManifest] | StorageError) -> None:
        if isinstance(found, StorageError):
            # A store that does not answer may answer the next time.
            self._trouble = None if isinstance(found, StoreUnavailable) else found
            return
        if found and not self._opened:
            self._records = [_Records(offset) for offset in found[0].before.offsets]
            self._number = found[0].number - 1
            self._highest = found[0].before.highest
        self._opened = True
        if found and found[0].number <= self._number <= found[-1].number:
            self._go_back(partition, [each for each in found if each.number <= self._number])
        news = [manifest for manifest in found if manifest.number > self._number]
        for manifest in news:
            self._number, self._sealed = manifest.number, manifest.sealed
            self._highest = manifest.after.highest
            for each, records in enumerate(self._records):
                self._add(records, each, manifest)
        for each, records in enumerate(self._records):
            records.forget(self._goes_on.get(each, records.end))
        if news or self._news_ms is None:
            self._news_ms, self._idle = self._asked_ms, False
        elif self._asked_ms - self._news_ms >= self._about.idle_ms:
            # A look found nothing that BEGAN when it was time: a slot that slept has missed nothing.
            self._idle = True

    def _go_back(self, partition: int, manifests: list[BatchManifest]) -> None:
        """Know the records of a partition from an earlier manifest on."""
        if manifests[0].before.offsets[partition] < self._records[partition].first:
            records = _Records(manifests[0].before.offsets[partition])
            for manifest in manifests:
                self._add(records, partition, manifest)
            self._records[partition] = records

    def _add(self, records: _Records, partition: int, manifest: BatchManifest) -> None:
        segments = manifest.segments or {}
        if partition in segments:
            paths = dict(zip(segments, manifest.files(self._place), strict=True))
            before, behind = self._mark(manifest.before.highest), self._mark(manifest.after.highest)
            records.add(paths[partition][0], segments[partition], before, behind)

    def _mark(self, highest: Millis | None) -> Millis:
        """The watermark behind records of which this is the highest time."""
        return BEFORE_TIME if highest is None else watermark_of(highest - self._about.disorder_ms)

    def _open(self, partition: int) -> None:
        """Look for manifests here and now if nobody has: where nobody fetches, and after a restart."""
        if not self._opened and self._trouble is None:
            self._look_now(partition)
            self._news_ms = None  # nobody has said what time it is

    def _look_now(self, partition: int) -> None:
        found = self._look(partition)
        if isinstance(found, StorageError):
            raise found
        self._take(partition, found)

    def _known_from(self, partition: int, offset: int) -> _Records:
        """The records of a partition, with those from an offset on among them. Raises StorageError."""
        self._goes_on[partition] = offset
        self._open(partition)
        if offset < self._records[partition].first:
            self._look_now(partition)
        return self._records[partition]

    def _block(self, partition: int, start: int) -> LoadedBlock:
        found = self._loaded.pop((partition, start), None)
        if found is None:
            found = self.fetch(partition, start)
        self.keep(partition, start, found)
        return found
