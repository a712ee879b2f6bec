"""The ports in memory, for the simulator and for tests.

What must survive a crash and what must not is modelled, not left to chance: every life keeps what it
appended and did not sync apart, `sync` moves it to the shared part, and `crash` throws it away. Nothing
is encoded; messages and batches are kept as they are, because they never change.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from snapline.core.messages import Message
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import ChannelId, Epoch, Incarnation, Seq, numbers_through
from snapline.storage.api import Ingress, Life, PendingSync
from snapline.storage.codec import Pieces, digest_of
from snapline.storage.memory_output import MemoryOutlet, MemorySync


class MemoryStore:
    """A `Store` in a dict."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}  #: key -> data, digest when it was stored

    def put(self, key: str, data: bytes | Pieces) -> str:
        """Store an object and return its digest. The same object again is no error."""
        whole = bytes(data)
        digest = digest_of(whole)
        if self._objects.setdefault(key, (whole, digest))[1] != digest:
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

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder."""
        inside = [key.removeprefix(f"{folder}/").partition("/") for key in self._inside(folder)]
        return list(dict.fromkeys(name for name, _, rest in inside if rest))

    def clear(self, folder: str, keep: Collection[str]) -> None:
        """Delete all objects in a folder but those of these names."""
        for key in self._inside(folder):
            if key not in keep:
                self.delete(key)

    def _inside(self, folder: str) -> list[str]:
        return [key for key in self._objects if key.startswith(f"{folder}/")]

    def damage(self, key: str) -> None:
        """Change the stored bytes behind the store's back, as a failing disk does."""
        data, digest = self._objects[key]
        self._objects[key] = (data[:-1] + bytes([(data[-1] if data else 0) ^ 0xFF]), digest)

    def has(self, key: str) -> bool:
        """Whether an object of this name is stored."""
        return key in self._objects

    def keys(self) -> tuple[str, ...]:
        """The names of all objects; tests use them to see that nothing is left behind."""
        return tuple(self._objects)

    @property
    def nbytes(self) -> int:
        """The size of all objects together."""
        return sum(len(data) for data, _ in self._objects.values())


# The message log.

_Rank = tuple[Epoch, Incarnation]  # where several lives logged a seq, the highest rank counts


@dataclass(slots=True)
class _ChannelLog:
    """What all lives synced of one channel."""

    entries: dict[Seq, tuple[_Rank, Message]] = field(default_factory=dict)
    floor: Seq = 0  #: all up to here was pruned, and stays so if an old life appends it again


class MemoryLogs:
    """The message logs of all tasks of a run."""

    def __init__(self) -> None:
        self._channels: dict[ChannelId, _ChannelLog] = {}
        self._pending: dict[Life, dict[ChannelId, dict[Seq, Message]]] = {}

    def open(self, life: Life, *, compress: bool = False) -> "MemoryLog":
        """The log of one life; there is nothing to compress."""
        return MemoryLog(self._channels, self._pending.setdefault(life, {}), life.incarnation)

    def crash(self, life: Life) -> None:
        """Drop what a life did not sync, as its crash would."""
        self._pending.setdefault(life, {}).clear()

    def holds(self, message: Message) -> bool:
        """Whether any life has appended this message, synced or not."""
        lives = (life.get(message.channel, {}) for life in self._pending.values())
        synced = self._channels.get(message.channel) or _ChannelLog()
        kept = synced.entries.get(message.seq)
        return (kept is not None and kept[1] is message) or any(
            life.get(message.seq) is message for life in lives
        )

    def epochs(self) -> Iterator[Epoch]:
        """The epochs in which lives opened a log."""
        return (life.epoch for life in self._pending)

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

    def append(self, message: Message) -> int:
        """Add a message; durable only after the next `sync`."""
        self._pending.setdefault(message.channel, {})[message.seq] = message
        return message.batch.nbytes + len(message.header)

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.start_sync().finish()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        pending = [(name, tuple(messages.values())) for name, messages in self._pending.items()]
        return MemorySync(lambda: self._settle(pending))

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
        return self._pick(channel, range(after + 1, through + 1))

    def tail(self, channel: ChannelId, *, after: Seq) -> tuple[Iterator[Message], int]:
        """All messages after this number, in order, and how many there are."""
        synced = self._channels.get(channel) or _ChannelLog()
        mine = self._pending.get(channel, {})
        seqs = sorted(seq for seq in {**synced.entries, **mine} if seq > max(after, synced.floor))
        return self._pick(channel, seqs), len(seqs)

    def _pick(self, channel: ChannelId, seqs: Sequence[Seq]) -> Iterator[Message]:
        """These messages, in this order."""
        synced = self._channels.get(channel) or _ChannelLog()
        mine = self._pending.get(channel, {})
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
        """Drop the messages up to `through`."""
        log = self._channels.setdefault(channel, _ChannelLog())
        for seq in numbers_through(log.entries, log.floor, through):
            log.entries.pop(seq, None)
        log.floor = max(log.floor, through)

    def close(self) -> None:
        """Do nothing: there are no files."""


# The storage that makes all of these.


class MemoryStorage:
    """A `Storage` in memory: one object for all lives of a run."""

    def __init__(
        self, outlet: MemoryOutlet | None = None, inputs: Mapping[str, Ingress] | None = None
    ) -> None:
        self.store = MemoryStore()
        self.logs = MemoryLogs()
        self.outlet = outlet if outlet is not None else MemoryOutlet()
        self._inputs = dict(inputs or {})

    @property
    def output(self) -> MemoryOutlet:
        """The output, for those who read it."""
        return self.outlet

    def ingress(self, name: str) -> Ingress:
        """The input of this name."""
        if name not in self._inputs:
            raise ObjectMissing(f"no input is stored as {name}")
        return self._inputs[name]

    def last_epoch(self) -> Epoch:
        """The highest epoch in which a life opened a log or an egress; 0 if none did."""
        return max((*self.logs.epochs(), *self.outlet.epochs()), default=0)
