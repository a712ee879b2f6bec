"""Message logs as segments of frames.

A life of a task writes segments named after it and reads those of all lives of its task. When the log is
opened, their indexes are read (`log_index`), and what these do not cover is scanned; from then on an index
in memory knows where each message stands. Pruning takes away whole segments in which no message is needed;
in the other segments it only hides messages.

Messages are written down some at a time. Whoever appends has much else to do between two messages, and what
a processor has not done for a while is slow: a message that is encoded among others takes less time. Only
one that is to be compressed is encoded at once, so that its size is known; each is compressed by itself,
so that it can be read alone, and what a log holds may be compressed in part.

A segment that is full is not synced at once, which would hold up whoever appends: it waits for the next
sync, which takes all that is not durable yet.

What is pruned becomes, if it can, the file of a later segment (`Spares`). Such a file holds messages of
earlier segments behind those of its own. They are not taken for its own, because the checksums of a segment
depend on its name, and a life gives no name twice. There is no other sign, so none that a crash can take.
"""

import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from snapline.batch import Buffer, size_of
from snapline.core.messages import Message
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import ChannelId, Epoch, Incarnation, Seq, numbers_through
from snapline.storage.api import Life, PendingSync
from snapline.storage.codec import (
    FRAME_OVERHEAD,
    PACKED_FROM,
    decode_message,
    message_pieces,
    peek_message,
    unframe,
)
from snapline.storage.files.frames import (
    Appender,
    FileSync,
    check_frames,
    scan,
    unavailable_on_os_error,
)
from snapline.storage.files.log_index import IndexWriter, index_of, read_index
from snapline.storage.files.places import Descriptor, Spares, open_shared

_Rank = tuple[Epoch, Incarnation]  # where several lives logged a seq, the highest rank counts
_NAME = re.compile(r"(?P<task>.+)\.e(?P<epoch>\d+)\.i(?P<incarnation>\d+)\.(?P<number>\d+)\.[a-z]+")
_TOGETHER = 32  # messages that are written down at once ...
_TOGETHER_SHARE = 64  # ... or fewer, if they fill this part of a segment: a megabyte
_SPARES_MAX = 4  # of a log; with checkpoints every second enough for 250 MB/s


def seed_of(segment: Path) -> int:
    """What the checksums in a segment depend on."""
    return xxh3_64_intdigest(segment.name.encode())


@dataclass(slots=True)
class _Segment:
    path: Path
    life: _Rank
    number: int
    last: dict[ChannelId, Seq] = field(default_factory=dict)  #: the highest seq per channel
    ours: bool = False  #: whether this log has written it
    damaged: bool = False
    index: IndexWriter | None = None  #: only while messages are appended
    file: Descriptor | None = None  #: opened for reading when first needed

    def open(self) -> int:
        """Open the file for reading. It stays readable from now on, even if it is pruned by anyone."""
        if self.file is None:
            with unavailable_on_os_error(f"read {self.path}"):
                self.file = open_shared(self.path)
        assert self.file.fd is not None
        return self.file.fd

    def read(self, place: int, length: int) -> Message:
        """The message in the frame at this place."""
        fd = self.open()
        with unavailable_on_os_error(f"read {self.path}"):
            data = os.pread(fd, FRAME_OVERHEAD + length, place)
        payload = unframe(data, 0, seed_of(self.path))
        if payload is None:
            raise ObjectDamaged(f"the message at byte {place} of {self.path} is damaged")
        return decode_message(payload)

    def close(self) -> None:
        self.end()
        if self.file is not None:
            self.file.close()
            self.file = None

    def end(self) -> None:
        """Close the index: nothing more is appended to this segment."""
        if self.index is not None:
            self.index.close()
            self.index = None


class _Place(NamedTuple):
    rank: _Rank
    segment: _Segment
    at: int
    length: int


class FileLogs:
    """The message logs of all tasks of a run, in one directory."""

    def __init__(self, directory: Path, segment_bytes: int = 64 << 20) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes

    def open(self, life: Life, *, compress: bool = False) -> "FileLog":
        """The log of one life, with what earlier lives left, compressed or not."""
        return FileLog(self._directory, life, self._segment_bytes, compress=compress)


class FileLog:
    """A `MessageLog` in segments."""

    def __init__(
        self, directory: Path, life: Life, segment_bytes: int, *, compress: bool = False
    ) -> None:
        self._directory = directory
        self._life = life
        self._rank = (life.epoch, life.incarnation)
        self._segment_bytes = segment_bytes
        self._compress = compress
        self._index: dict[ChannelId, dict[Seq, _Place]] = {}
        self._floor: dict[ChannelId, Seq] = {}  #: everything up to here was pruned
        #: those to which we do not append
        self._closed = [_Segment(*found) for found in _find(directory, life, "log")]
        #: appended, and not written down yet; in their stored form if they are compressed
        self._waiting: deque[tuple[Message, list[Buffer] | None]] = deque()
        self._waiting_bytes = 0
        self._waiting_max = segment_bytes // _TOGETHER_SHARE
        self._over = False  #: whether it was closed
        self._active: tuple[Appender, _Segment] | None = None
        self._full: list[tuple[Appender, _Segment]] = []  #: not active any more, not yet durable
        mine = [s.number for s in self._closed if s.life == self._rank]
        self._number = max(mine, default=-1) + 1  #: of the next segment of this life
        left = [path for path, rank, _ in _find(directory, life, "spare") if rank <= self._rank]
        self._spares = Spares(directory, _SPARES_MAX, left)
        for segment in self._closed:
            self._load(segment)
        #: the highest rank of a damaged segment, which may have held an entry for any seq
        self._damaged = max((s.life for s in self._closed if s.damaged), default=None)

    def _load(self, segment: _Segment) -> None:
        size = os.fstat(segment.open()).st_size
        entries, through = read_index(segment.path, size)
        found = scan(segment.path, through, seed_of(segment.path))
        segment.close()
        segment.damaged = found.damaged
        for at, payload in found.frames:
            entries.append((*peek_message(payload), at, len(payload)))
        for channel, seq, epoch, at, length in entries:
            rank = (epoch, segment.life[1])
            self._enter(channel, seq, _Place(rank, segment, at, length))

    def _enter(self, channel: ChannelId, seq: Seq, place: _Place) -> None:
        last = place.segment.last
        if seq > last.get(channel, 0):
            last[channel] = seq
        if seq <= self._floor.get(channel, 0):
            return
        places = self._index.get(channel)
        if places is None:
            places = self._index[channel] = {}
        known = places.get(seq)
        if known is None or known.rank <= place.rank:
            places[seq] = place

    def append(self, message: Message) -> int:
        """Add a message, durable only after the next `sync`; return how many bytes of it are kept."""
        batch = message.batch
        batch.freeze()
        form: list[Buffer] | None = None
        size = batch.nbytes + len(message.header)
        if self._compress and size >= PACKED_FROM:
            form = message_pieces(message, compress=True)
            # The first piece is channel and numbers, which do not count where nothing is compressed either.
            size = sum(map(size_of, form[1:]))
        self._waiting.append((message, form))
        self._waiting_bytes += size
        if len(self._waiting) >= _TOGETHER or self._waiting_bytes >= self._waiting_max:
            self._write_down()
        return size

    def _write_down(self) -> None:
        """Add what waits to segments."""
        if self._waiting and self._over:
            raise StorageError(f"the log of {self._life.name} is closed")
        while self._waiting:
            self._add(*self._waiting[0])
            self._waiting.popleft()  # AFTER: what could not be added is not durable with the next sync
        self._waiting_bytes = 0

    def _add(self, message: Message, form: list[Buffer] | None) -> None:
        appender, segment = self._active or self._roll()
        channel, seq, epoch = message.channel, message.seq, message.epoch
        at = appender.append(*(form or message_pieces(message)))
        length = appender.size - at - FRAME_OVERHEAD
        rank = (epoch, self._life.incarnation)
        self._enter(channel, seq, _Place(rank, segment, at, length))
        assert segment.index is not None
        segment.index.add((channel, seq, epoch, at, length))
        if appender.size >= self._segment_bytes:
            self._retire(appender, segment)

    def _roll(self) -> tuple[Appender, _Segment]:
        path = self._directory / f"{self._life.name}.{self._number:06d}.log"
        segment = _Segment(path, self._rank, self._number, ours=True, index=IndexWriter(path))
        self._active = (Appender(path, seed_of(path), self._spares.take(path)), segment)
        self._number += 1
        return self._active

    def _retire(self, appender: Appender, segment: _Segment) -> None:
        """Append no more to the active segment."""
        appender.flush()
        self._full.append((appender, segment))
        self._active = None

    def sync(self) -> None:
        """Make everything appended so far durable."""
        sync = self.start_sync()
        sync.wait()
        sync.finish()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        self._write_down()
        full = tuple(self._full)
        unsynced = [*full, self._active] if self._active else full
        files = [(segment, appender.start_sync()) for appender, segment in unsynced]
        return _LogSync(self, files, full, self._spares)

    def settle(self, full: Sequence[tuple[Appender, _Segment]]) -> None:
        """Close these full segments: they are durable, and nothing more is written to them."""
        for appender, segment in full:
            if (appender, segment) in self._full:
                self._full.remove((appender, segment))
                self._closed.append(segment)
                segment.end()
                appender.close()

    def read(self, channel: ChannelId, *, after: Seq, through: Seq) -> Iterator[Message]:
        """The messages after < seq <= through, in order, each read when it is asked for."""
        return self._pick(channel, range(after + 1, through + 1))

    def tail(self, channel: ChannelId, *, after: Seq) -> tuple[Iterator[Message], int]:
        """All messages after this number, in order, and how many there are."""
        self._write_down()
        seqs = sorted(seq for seq in self._index.get(channel, ()) if seq > after)
        return self._pick(channel, seqs), len(seqs)

    def _pick(self, channel: ChannelId, seqs: Sequence[Seq]) -> Iterator[Message]:
        """These messages, in this order, each read when it is asked for."""
        self._write_down()
        if self._active is not None:
            self._active[0].flush()
        index = self._index.get(channel, {})
        places = [self._find(index.get(seq), channel, seq) for seq in seqs]
        for segment in {id(place.segment): place.segment for place in places}.values():
            segment.open()  # so that it can be read even if it is pruned meanwhile
        return (place.segment.read(place.at, place.length) for place in places)

    def segment_of(self, channel: ChannelId, seq: Seq) -> tuple[Epoch, Path]:
        """The epoch and the file of the message that counts. Raises ObjectMissing or ObjectDamaged."""
        place = self._find(self._index.get(channel, {}).get(seq), channel, seq)
        return place.rank[0], place.segment.path

    @property
    def damaged(self) -> list[Path]:
        """The segments that were found to be damaged when the log was opened; the newest is last."""
        return [segment.path for segment in self._closed if segment.damaged]

    def _find(self, place: _Place | None, channel: ChannelId, seq: Seq) -> _Place:
        pruned = seq <= self._floor.get(channel, 0)
        if self._damaged and not pruned and (place is None or place.rank < self._damaged):
            # Something older may be there, but the entry that counts may have been lost.
            paths = ", ".join(map(str, self.damaged))
            raise ObjectDamaged(f"message {seq} of {channel} may have been in {paths}: damaged")
        if place is None:
            raise ObjectMissing(f"message {seq} of {channel} is not in the log {self._directory}")
        return place

    def prune(self, channel: ChannelId, *, through: Seq) -> None:
        """Hide the messages up to here, and take away the segments of which nothing is needed."""
        places = self._index.setdefault(channel, {})
        for seq in numbers_through(places, self._floor.get(channel, 0), through):
            places.pop(seq, None)
        self._floor[channel] = max(through, self._floor.get(channel, 0))
        self._spares.tidy()
        for segment in [segment for segment in self._closed if self._obsolete(segment)]:
            with unavailable_on_os_error(f"delete {segment.path}"):
                # BEFORE the segment: an index must never be taken for that of a later one.
                index_of(segment.path).unlink(missing_ok=True)
                if not (segment.ours and self._spares.keep(segment.path)):
                    segment.path.unlink(missing_ok=True)
            self._closed.remove(segment)

    def _obsolete(self, segment: _Segment) -> bool:
        # A later life may still append to its segments; a damaged one is kept as a warning.
        return (
            segment.life <= self._rank
            and not segment.damaged
            and all(seq <= self._floor.get(name, 0) for name, seq in segment.last.items())
        )

    def close(self) -> None:
        """Let go of all files, and delete the spares. What was not flushed is gone."""
        self._over = True
        for appender, segment in [*self._full, self._active] if self._active else self._full:
            appender.close()
            segment.close()
        for segment in self._closed:
            segment.close()
        self._spares.discard()


class _LogSync:
    """A `PendingSync` of all segments that were not durable."""

    def __init__(
        self,
        log: FileLog,
        files: Sequence[tuple[_Segment, FileSync]],
        full: Sequence[tuple[Appender, _Segment]],
        spares: Spares,
    ) -> None:
        self._log = log
        self._files = files
        self._full = full
        self._spares = spares
        self._renamed = tuple(spares.renamed)
        self._settled = False

    def wait(self) -> None:
        """Wait for the disk, in any thread, once."""
        for _, file in self._files:
            file.wait()
        self._settled = bool(self._renamed) and self._spares.sync_names()

    def finish(self) -> None:
        """Mark what is durable; the writer calls this, when `wait` has returned."""
        for segment, file in self._files:
            if segment.index is None:  # a sync that began earlier has closed it: it is durable
                continue
            file.finish()
            segment.index.write(file.place)
        self._log.settle(self._full)
        if self._settled:
            self._spares.settle(self._renamed)


def check_segment(path: Path) -> None:
    """Read a whole segment. ObjectDamaged if anything in it that was ever durable is not what it was."""
    end = check_frames(path, 0, seed_of(path))
    _, durable = read_index(path, sys.maxsize)
    if end < durable:
        raise ObjectDamaged(
            f"{path} is whole through byte {end}, and was durable through {durable}"
        )


def _find(directory: Path, life: Life, suffix: str) -> list[tuple[Path, _Rank, int]]:
    """The files of all lives of a task, with life and number, in the order in which they were written."""
    task = life.name.partition(f".e{life.epoch}.i")[0]
    found = []
    for path in directory.glob(f"*.{suffix}"):
        match = _NAME.fullmatch(path.name)
        if match and match["task"] == task:
            rank = (int(match["epoch"]), int(match["incarnation"]))
            found.append((rank, int(match["number"]), path))
    return [(path, rank, number) for rank, number, path in sorted(found)]
