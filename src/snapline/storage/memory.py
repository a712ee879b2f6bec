"""The ports in memory, for the simulator and for tests.

What must survive a crash and what must not is modelled, not left to chance: every life keeps what it
appended and did not sync apart, `sync` moves it to the shared part, and `crash` throws it away. Nothing
is encoded; messages and batches are kept as they are, because they never change.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Schema, concat
from snapline.core.messages import END_OF_TIME, Message
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError, UsageError
from snapline.ids import ChannelId, Epoch, Incarnation, Millis, Seq, TaskId
from snapline.storage.api import Extent, Life, PendingSync
from snapline.storage.codec import digest_of
from snapline.storage.manifest import ManifestChain


class MemoryStore:
    """A `Store` in a dict."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}  #: key -> data, digest when it was stored

    def put(self, key: str, data: bytes) -> str:
        """Store an object and return its digest. The same object again is no error."""
        digest = digest_of(data)
        if self._objects.setdefault(key, (data, digest))[1] != digest:
            raise StorageError(f"{key} is stored with other content, and objects never change")
        return digest

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store an object unless the name is taken."""
        if key in self._objects:
            return False
        self._objects[key] = (data, digest_of(data))
        return True

    def get(self, key: str, digest: str | None = None) -> bytes:
        """The object, checked against its digest."""
        if key not in self._objects:
            raise ObjectMissing(f"nothing is stored as {key}")
        data, stored = self._objects[key]
        if digest_of(data) != stored or digest not in (None, stored):
            raise ObjectDamaged(f"{key} is not what was stored")
        return data

    def delete(self, key: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        self._objects.pop(key, None)

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back, as a failing disk does."""
        data, digest = self._objects[key]
        self._objects[key] = (data[:-1] + bytes([(data[-1] if data else 0) ^ 0xFF]), digest)

    def has(self, key: str) -> bool:
        """Whether an object of this name is stored."""
        return key in self._objects

    def keys(self) -> tuple[str, ...]:
        """What is stored, for tests that nothing is left behind."""
        return tuple(self._objects)

    @property
    def nbytes(self) -> int:
        """The size of all objects together."""
        return sum(len(data) for data, _ in self._objects.values())


@dataclass(frozen=True, slots=True)
class _MemorySync:
    """A `PendingSync` that waits for nothing."""

    finish: Callable[[], None]

    def wait(self) -> None:
        """There is no disk."""


# The message log.

_Rank = tuple[Epoch, Incarnation]  # where several lives logged a seq, the highest rank counts


@dataclass(slots=True)
class _ChannelLog:
    """What all lives synced of one channel."""

    entries: dict[Seq, tuple[_Rank, Message]] = field(default_factory=dict)
    floor: Seq = 0  #: everything up to here was pruned, and stays so whatever a zombie adds


class MemoryLogs:
    """The message logs of all tasks of a run."""

    def __init__(self) -> None:
        self._channels: dict[ChannelId, _ChannelLog] = {}
        self._pending: dict[Life, dict[ChannelId, dict[Seq, Message]]] = {}

    def open(self, life: Life) -> "MemoryLog":
        """The log of one life."""
        return MemoryLog(self._channels, self._pending.setdefault(life, {}), life.incarnation)

    def crash(self, life: Life) -> None:
        """The life ends: what it did not sync is gone."""
        self._pending.setdefault(life, {}).clear()

    def entries(self, channel: ChannelId) -> int:
        """How many messages of a channel are kept, synced or not."""
        synced = self._channels.get(channel)
        pending = sum(len(life.get(channel, ())) for life in self._pending.values())
        return pending + (len(synced.entries) if synced else 0)


class MemoryLog:
    """A `MessageLog` in dicts."""

    def __init__(
        self,
        channels: dict[ChannelId, _ChannelLog],
        pending: dict[ChannelId, dict[Seq, Message]],
        incarnation: Incarnation,
    ) -> None:
        self._channels = channels
        self._pending = pending
        self._incarnation = incarnation

    def append(self, message: Message) -> None:
        """Add a message; durable only after the next `sync`."""
        self._pending.setdefault(message.channel, {})[message.seq] = message

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.start_sync().finish()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        pending = [(name, tuple(messages.values())) for name, messages in self._pending.items()]
        return _MemorySync(lambda: self._settle(pending))

    def _settle(self, pending: Sequence[tuple[ChannelId, Sequence[Message]]]) -> None:
        for name, messages in pending:
            channel = self._channels.setdefault(name, _ChannelLog())
            mine = self._pending.get(name, {})
            for message in messages:
                if mine.get(message.seq) is message:  # else lost in a crash, or synced already
                    del mine[message.seq]
                    if message.seq > channel.floor:
                        self._keep(channel.entries, message)

    def _keep(self, entries: dict[Seq, tuple[_Rank, Message]], message: Message) -> None:
        rank = (message.epoch, self._incarnation)
        known = entries.get(message.seq)
        if known is None or known[0] <= rank:
            entries[message.seq] = (rank, message)

    def read(self, channel: ChannelId, *, after: Seq, through: Seq) -> Iterator[Message]:
        """The messages after < seq <= through, in order."""
        synced = self._channels.get(channel) or _ChannelLog()
        mine = self._pending.get(channel, {})
        seqs = range(after + 1, through + 1)
        return iter([self._find(synced, mine, channel, seq) for seq in seqs])

    def _find(
        self, synced: _ChannelLog, mine: dict[Seq, Message], channel: ChannelId, seq: Seq
    ) -> Message:
        entry = synced.entries.get(seq)
        own = mine.get(seq) if seq > synced.floor else None
        if own is not None and (entry is None or entry[0] <= (own.epoch, self._incarnation)):
            return own
        if entry is None:
            raise ObjectMissing(f"message {seq} of {channel} is not in the log")
        return entry[1]

    def prune(self, channel: ChannelId, *, through: Seq) -> None:
        """Drop the messages up to here."""
        log = self._channels.setdefault(channel, _ChannelLog())
        for seq in range(log.floor + 1, through + 1):
            log.entries.pop(seq, None)
        log.floor = max(log.floor, through)


# The output.


@dataclass(slots=True)
class _File:
    """What one life of a sink wrote."""

    life: Life
    first: int  #: rows of the timeline before this file
    position: int  #: rows of the timeline, this file's included
    synced: int  #: rows of the timeline that survive a crash
    starts: list[int] = field(default_factory=list)  #: number of the first row of each batch
    batches: list[Batch] = field(default_factory=list)

    def rows(self, start: int, stop: int) -> list[Batch]:
        """The rows start <= n < stop, as slices of what was appended."""
        parts = []
        for i in range(max(0, bisect_right(self.starts, start) - 1), len(self.starts)):
            first = self.starts[i]
            if first >= stop:
                break
            part = self.batches[i].slice(max(0, start - first), stop - first)
            if len(part):
                parts.append(part)
        return parts


class MemoryOutlet:
    """An `Outlet` in memory, and the place where sinks open their egress."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._chain = ManifestChain()

    def open(self, life: Life, position: int) -> "MemoryEgress":
        """The egress of one life, which goes on at `position`."""
        if life.name in self._files:
            raise StorageError(f"the egress of {life.name} was opened before")
        file = self._files[life.name] = _File(life, position, position, position)
        return MemoryEgress(file)

    def crash(self, life: Life) -> None:
        """The life ends: what it did not sync is gone."""
        file = self._files.get(life.name)
        if file is None:
            return
        while file.starts and file.starts[-1] >= file.synced:
            file.starts.pop()
            file.batches.pop()
        file.position = file.synced

    def synced(self, life: Life) -> int | None:
        """Rows of the timeline that are durable in the file of a life; None if it has none."""
        file = self._files.get(life.name)
        return None if file is None else file.synced

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public; idempotent."""
        verdict = self._chain.judge(number, extents)
        if verdict is not None:
            return verdict
        for task, extent in extents.items():
            file = self._files.get(extent.file)
            if file is None:
                raise StorageError(f"{task} has no egress file {extent.file}")
            if extent.start == extent.stop:
                continue
            if extent.start < file.first:
                raise StorageError(f"{extent} of {task} begins before its file, at {file.first}")
            if extent.stop > file.synced:
                raise StorageError(f"{extent} of {task} is synced only through {file.synced}")
        self._chain.add(number, extents)
        return True

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is."""
        return self._chain.last

    def committed(self, task: TaskId) -> Sequence[Batch]:
        """What was published of a sink task, in order."""
        return [
            part
            for extent in self._chain.extents(task)
            for part in self._files[extent.file].rows(extent.start, extent.stop)
        ]

    def uncommitted(self, task: TaskId) -> Sequence[Batch]:
        """All that any life of a sink task wrote and no crash took away."""
        files = [file for file in self._files.values() if file.life.task == task]
        files.sort(key=lambda file: (file.life.epoch, file.life.incarnation))
        return [batch for file in files for batch in file.batches]


class MemoryEgress:
    """An `Egress` in a list."""

    def __init__(self, file: _File) -> None:
        self._file = file

    @property
    def file(self) -> str:
        """The name of the file, unique to this life."""
        return self._file.life.name

    @property
    def position(self) -> int:
        """Rows of this timeline that were appended, earlier lives included."""
        return self._file.position

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        if len(batch):
            self._file.starts.append(self._file.position)
            self._file.batches.append(batch)
            self._file.position += len(batch)

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.start_sync().finish()

    def flush(self) -> None:
        """Let everything appended so far be read by others, as it is at once."""

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        position = self._file.position
        return _MemorySync(lambda: self._settle(position))

    def _settle(self, position: int) -> None:
        file = self._file
        file.synced = max(file.synced, min(position, file.position))  # less than that after a crash


# The input.


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
        """No record at `offset` or later has a time below this."""
        return int(self._lowest[offset]) if offset < len(self._lowest) else END_OF_TIME


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
        """No record at `offset` or later has a time below this."""
        return self._times[partition].watermark(offset)
