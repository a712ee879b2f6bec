"""Brings a task's checkpoints from the capture to where they count.

A checkpoint counts once its snapshot is stored, the sender log is durable through its `sent`, the egress
of a sink is durable through its `position`, and every earlier checkpoint of the task counts. Until then
it is pending here, and nobody else knows it. To encode a large state, and to compress it if so asked, takes
long, so that is left to whoever stores it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from snapline.core.effects import Record, Snapshot
from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.dataflow.operators.operator import Capture
from snapline.engine.control import NotStored, Stored
from snapline.engine.groups.book import GroupBook, GroupChange
from snapline.engine.groups.content import SNAPSHOTS, Content
from snapline.engine.groups.index import StoredGroup, groups_of_chain
from snapline.engine.shell import RetryAlarm, SlotShell, Ticket
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, CheckpointNo, Millis, Seq
from snapline.storage.api import Egress, Life, MessageLog, Store
from snapline.storage.codec import decode_snapshot

CHAIN_BYTES_MIN = 4 << 20
"""Deltas of up to so many bytes in all are allowed, however small the full capture: loading is quick."""

CHAIN_MAX = 1_000
"""The most deltas behind a full capture: a chain stands in decisions, and is loaded piece by piece."""


def snapshot_key(life: Life, checkpoint: CheckpointNo) -> str:
    """The name of a snapshot in the store: of one life, so never written twice."""
    return f"{SNAPSHOTS}/{life.name}/{checkpoint}"


def key_of(meta: CheckpointMeta) -> str:
    """The name under which the snapshot of a checkpoint is stored."""
    return snapshot_key(Life(meta.task, meta.epoch, meta.incarnation), meta.checkpoint)


def stored_groups(store: Store, chain: Sequence[CheckpointMeta]) -> list[StoredGroup]:
    """The groups of a checkpoint, given after those of which it is a delta. Raises StorageError."""
    if not chain or not chain[-1].groups:
        return []
    snapshots = (decode_snapshot(store.get(key_of(meta), meta.digest)) for meta in chain)
    return list(groups_of_chain(snapshots).values())


@dataclass(slots=True)
class Recording:
    """Messages of one input that belong to an open snapshot."""

    after: Seq
    through: Seq | None  # known from the start, or when the marker is seen
    messages: list[Message] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether all messages that belong to the snapshot are there."""
        last = self.messages[-1].seq if self.messages else self.after
        return self.through is not None and last >= self.through


@dataclass(slots=True)
class Pending:
    """A checkpoint that does not count yet."""

    meta: CheckpointMeta
    capture: Capture
    groups: GroupChange
    memo: bytes
    open: bool
    sealed: bool
    recordings: dict[ChannelId, Recording] = field(default_factory=dict)
    overtaken: dict[ChannelId, list[Message]] = field(default_factory=dict)
    content: Content | None = None  # once nothing more is recorded
    waiting: list[Ticket] = field(default_factory=list)  # calls to storage still under way


class Captured(Protocol):
    """What the writer asks of its task: the counters of this moment, and the state."""

    def capture(self, *, full: bool) -> Capture:
        """The operator's state, with the engine's own part of it."""
        ...

    def meta(self, effect: Snapshot) -> CheckpointMeta:
        """The metadata of the checkpoint, with the counters of this moment."""
        ...


class CheckpointWriter:
    """The pending checkpoints of one task, in order."""

    def __init__(
        self,
        life: Life,
        shell: SlotShell,
        log: MessageLog,
        egress: Egress | None,
        full_every: int,
        retry_ms: Millis,
        compress: bool = False,
        groups: Iterable[StoredGroup] = (),
    ) -> None:
        self.life = life
        self.shell = shell
        self.log = log
        self.egress = egress
        self.full_every = full_every
        self.retry_ms = retry_ms
        self.compress = compress
        self.groups = GroupBook(life, shell, compress, groups)
        self.pending: dict[CheckpointNo, Pending] = {}  #: in the order in which they were taken
        self.open: Pending | None = None  #: the one that still records
        self.deltas = CHAIN_MAX  #: deltas since the last full capture; the first capture is full
        self.full_bytes = 0  #: the size of that capture, with what the state has grown by since
        self.delta_bytes = 0  #: the rest of those deltas, which replaces older state
        self.last: CheckpointNo | None = None  #: the capture to which the next delta refers

    def take(self, task: Captured, effect: Snapshot) -> None:
        """Perform a `Snapshot`."""
        if self.open is not None:
            self.abandon(self.open.meta.checkpoint)
        capture = task.capture(full=self._chain_is_long())
        self._note_size(capture)
        meta = replace(task.meta(effect), parent=None if capture.full else self.last)
        if self.egress is not None:
            self.egress.cut()  # at the position that is in `meta`: rows may follow before the sync
        self.last = effect.checkpoint
        groups = self.groups.take(effect.checkpoint, capture)
        meta = replace(meta, groups=len(self.groups.held))
        pending = Pending(meta, capture, groups, effect.memo, effect.open, not effect.open)
        self.pending[effect.checkpoint] = pending
        if effect.open:
            self.open = pending
        else:
            self._store(pending)
        self.shell.captured(self.life.task, effect.checkpoint)

    def _chain_is_long(self) -> bool:
        """Whether a restore would have to load much more than the state, or too many pieces.

        The larger the state, the more deltas may follow: so what full captures cost per checkpoint does
        not grow with the state, and one that only grows is hardly ever written again.
        """
        pieces = self.full_every * max(1, self.full_bytes // CHAIN_BYTES_MIN)
        too_many = self.deltas >= min(pieces, CHAIN_MAX)
        return too_many or self.delta_bytes > max(self.full_bytes, CHAIN_BYTES_MIN)

    def _note_size(self, capture: Capture) -> None:
        size = sum(part.nbytes for part in capture.parts.values())
        if capture.full:
            self.deltas, self.full_bytes, self.delta_bytes = 0, size, 0
        else:
            self.deltas += 1
            self.full_bytes += capture.grown
            self.delta_bytes += size - capture.grown

    def record(self, effect: Record, after: Seq, queued: Iterable[Message | Marker]) -> None:
        """Perform a `Record`: begin with what is queued already."""
        if self.open is None or self.open.sealed:
            raise ProtocolViolation(
                f"{self.life.task} records {effect.channel} into no open snapshot"
            )
        self.open.recordings[effect.channel] = Recording(after, effect.through)
        for payload in queued:
            self.see(effect.channel, payload)

    def see(self, channel: ChannelId, payload: Message | Marker) -> None:
        """Look at what reached an inbox: an open snapshot may record a message, or end at a marker."""
        pending = self.open
        if pending is None or (recording := pending.recordings.get(channel)) is None:
            return
        if recording.ended:
            return
        if isinstance(payload, Message):
            recording.messages.append(payload)
        elif payload.checkpoint == pending.meta.checkpoint and recording.through is None:
            last = recording.messages[-1].seq if recording.messages else recording.after
            recording.through = last
        elif payload.checkpoint > pending.meta.checkpoint:
            self.abandon(pending.meta.checkpoint)  # its round was given up by the others
            return
        self._store_if_complete()

    def overtook(self, channel: ChannelId, messages: list[Message]) -> None:
        """Add messages to the open snapshot that its marker has passed on an output."""
        if self.open is None:
            raise ProtocolViolation(f"{self.life.task} overtakes output without an open snapshot")
        self.open.overtaken[channel] = messages

    def seal(self, checkpoint: CheckpointNo) -> None:
        """Perform a `Seal`."""
        if self.open is None or self.open.meta.checkpoint != checkpoint:
            raise ProtocolViolation(f"{self.life.task} seals {checkpoint}, which is not open")
        self.open.sealed = True
        self._store_if_complete()

    def abandon(self, checkpoint: CheckpointNo) -> None:
        """Perform an `Abandon`."""
        if any(later.meta.parent == checkpoint for later in self.pending.values()):
            return  # a delta was captured on top of it meanwhile; then it is stored, for that alone
        pending = self.pending.pop(checkpoint, None)
        if pending is None:
            return
        if self.open is pending:
            self.open = None
        later = (each for number, each in self.pending.items() if number > checkpoint)
        next((each.groups for each in later), self.groups.left).follow(pending.groups)
        self.deltas = CHAIN_MAX  # so the next capture is full: a delta would lack its base
        if pending.content is not None:
            self.shell.delete(snapshot_key(self.life, checkpoint))

    def _store_if_complete(self) -> None:
        pending = self.open
        if pending is None or not pending.sealed:
            return
        if all(recording.ended for recording in pending.recordings.values()):
            self.open = None
            self._store(pending)

    def _store(self, pending: Pending) -> None:
        recorded = {c: (r.after, r.through or 0, r.messages) for c, r in pending.recordings.items()}
        for channel, passed in pending.overtaken.items():
            # A task that sends to itself has both: what it has queued, and behind that what it passed.
            after, _, queued = recorded.get(channel, (passed[0].seq - 1, 0, []))
            recorded[channel] = (after, passed[-1].seq, queued + passed)
        messages = [message for _, _, part in recorded.values() for message in part]
        pending.content = Content(
            pending.capture,
            pending.memo,
            messages,
            compress=self.compress,
            more=pending.groups.index,
        )
        pending.meta = replace(
            pending.meta,
            channel_state={c: (after, through) for c, (after, through, m) in recorded.items() if m},
        )
        epoch, task, number = self.life.epoch, self.life.task, pending.meta.checkpoint
        pending.waiting = [
            Ticket("snapshot", epoch, task, number),
            Ticket("log", epoch, task, number),
        ]
        if self.egress is not None:
            pending.waiting.append(Ticket("egress", epoch, task, number))
        for ticket in tuple(pending.waiting):
            self._ask(ticket, pending)

    def _ask(self, ticket: Ticket, pending: Pending) -> None:
        if ticket.kind == "snapshot":
            assert pending.content is not None
            if not pending.groups.waiting:  # AFTER its groups, whose digests it has
                self.shell.store(ticket, snapshot_key(self.life, ticket.number), pending.content)
        else:
            file = self.log if ticket.kind == "log" else self.egress
            assert file is not None
            self.shell.sync(ticket, file)

    def done(self, ticket: Ticket) -> None:
        """Note that a call to storage has succeeded, and report the checkpoints that count now."""
        if ticket.kind == "group":
            self._group_done(ticket)
            return
        pending = self.pending.get(ticket.number)
        if pending is None:
            return
        pending.waiting.remove(ticket)
        while self.pending:
            first = next(iter(self.pending.values()))
            if first.content is None or first.waiting:
                return  # a checkpoint counts only after all earlier ones of its task
            self._count(first.meta, first.content, first.groups)

    def _group_done(self, ticket: Ticket) -> None:
        self.groups.stored(ticket.number)
        for pending in self.pending.values():
            if ticket.number in pending.groups.waiting:
                pending.groups.waiting.remove(ticket.number)
                snapshot = [each for each in pending.waiting if each.kind == "snapshot"]
                if snapshot and not pending.groups.waiting:
                    self._ask(snapshot[0], pending)

    def _count(self, meta: CheckpointMeta, content: Content, groups: GroupChange) -> None:
        del self.pending[meta.checkpoint]
        known = replace(meta, bytes=content.bytes + groups.bytes, digest=content.digest)
        added, dropped = ([each.key for each in some] for some in (groups.added, groups.dropped))
        self.groups.reported(groups)
        report = Stored(self.life.epoch, known, added=tuple(added), dropped=tuple(dropped))
        self.shell.report(report)

    def failed(self, ticket: Ticket) -> None:
        """Report a call to storage that failed, and have it made again unless it was abandoned."""
        if ticket.kind == "group":
            held_up = [n for n, p in self.pending.items() if ticket.number in p.groups.waiting]
        else:
            held_up = [ticket.number] if ticket.number in self.pending else []
        for number in held_up[:1]:
            self.shell.report(NotStored(self.life.epoch, self.life.task, number))
        if held_up or ticket.kind == "group":
            self.shell.set_alarm(RetryAlarm(ticket), self.retry_ms)

    def retry(self, ticket: Ticket) -> None:
        """Make a failed call to storage again, unless its checkpoint was abandoned."""
        if ticket.kind == "group":
            self.groups.ask(ticket.number)
        elif pending := self.pending.get(ticket.number):
            self._ask(ticket, pending)

    def forget(self) -> None:
        """Abandon all pending checkpoints: the epoch is over, so they will never count."""
        for checkpoint in reversed(tuple(self.pending)):  # deltas before what they build on
            self.abandon(checkpoint)
        self.groups.forget()
