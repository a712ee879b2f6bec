"""Phase one of a rollback, at one slot: load the snapshots, build the tasks, prepare what is replayed.

Replay has three origins (recovery/replay.py). What the receiver recorded is injected into its inbox. What
the sender recorded or logged goes into its outbox, with the number and header that it had: it is not
stamped again, because its stamp is part of the timeline to which the line belongs. A log is not read here:
that it has every message is known from its index, and the outbox reads each in its turn.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from snapline.core.messages import CheckpointMeta, Message
from snapline.core.policy import Intake
from snapline.dataflow.operators.operator import Capture
from snapline.engine.control import Restore, Unreadable
from snapline.engine.groups.index import INDEX, Held, StoredGroup, groups_of_chain
from snapline.engine.groups.loading import GroupLoader
from snapline.engine.job import Job
from snapline.engine.shell import Ticket
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.host import Host
from snapline.engine.slot.outbox import Outbox, SentBefore
from snapline.engine.slot.task import Task
from snapline.ids import (
    ChannelId,
    CheckpointNo,
    Incarnation,
    Seq,
    SlotId,
    TaskId,
    first_checkpoint,
    last_seq_before,
)
from snapline.journal.entry import Built
from snapline.journal.happenings import InputSkipped
from snapline.journal.loss_happenings import GroupLost
from snapline.recovery.replay import Origin
from snapline.storage.api import Life
from snapline.storage.codec import StoredSnapshot, decode_snapshot


class RestoredSlot(Host, Protocol):
    """What a restoration asks of its slot."""

    slot: SlotId
    incarnation: Incarnation
    job: Job

    def restored(
        self,
        tasks: dict[TaskId, Task],
        order: Restore,
        recorded: Sequence[tuple[ChannelId, Sequence[Message]]],
    ) -> None:
        """Go on with tasks that are as they were at the line, and with what their inputs recorded."""
        ...


class Restoration:
    """Loads the snapshots of a slot, and builds its tasks when all are there."""

    def __init__(self, slot: RestoredSlot, order: Restore) -> None:
        self.slot = slot
        self.order = order
        self.metas: dict[tuple[TaskId, CheckpointNo], CheckpointMeta] = {
            (meta.task, meta.checkpoint): meta for chain in order.chains.values() for meta in chain
        }
        self.loaded: dict[tuple[TaskId, CheckpointNo], StoredSnapshot] = {}
        self.indexes: dict[TaskId, Held] = {}  #: the groups of each task, once snapshots are loaded
        self.groups: GroupLoader | None = None
        self.unreadable: dict[TaskId, None] = {}  #: tasks that lack a group, and cannot do without
        self.lost: list[GroupLost] = []  #: groups that tasks lack, and do without

    def begin(self) -> None:
        """Begin to load every snapshot."""
        for meta in self.metas.values():
            order = self.order
            self.retry(Ticket("fetch", order.epoch, meta.task, meta.checkpoint, order.number))
        self._finish_if_complete()

    def awaits(self, ticket: Ticket) -> bool:
        """Whether this was asked for here, and has not come yet.

        An alarm, or an answer of storage, may be for an order to restore that came before this one.
        """
        if ticket.order != self.order.number:
            return False
        if ticket.kind == "fetch group":
            return self.groups is not None and self.groups.awaits(ticket)
        assert ticket.task is not None
        snapshot = ticket.task, ticket.number
        return snapshot in self.metas and snapshot not in self.loaded

    def retry(self, ticket: Ticket) -> None:
        """Begin to load a snapshot or a group, for the first time or again, unless nobody waits for it."""
        if not self.awaits(ticket):
            return
        if ticket.kind == "fetch group":
            assert self.groups is not None
            self.groups.retry(ticket)
            return
        assert ticket.task is not None
        meta = self.metas[ticket.task, ticket.number]
        self.slot.shell.fetch(ticket, key_of(meta), meta.digest)

    def fetched(self, ticket: Ticket, data: bytes | None) -> None:
        """Take a snapshot or a group that was loaded; None: it cannot be read."""
        if not self.awaits(ticket):
            return
        if ticket.kind == "fetch group":
            assert self.groups is not None
            self.groups.fetched(ticket, data)
            self._finish_if_complete()
            return
        assert ticket.task is not None
        if data is None:
            self.slot.shell.report(Unreadable(self.order.epoch, ticket.task, ticket.number))
            return
        self.loaded[ticket.task, ticket.number] = decode_snapshot(data)
        self._finish_if_complete()

    def _finish_if_complete(self) -> None:
        if len(self.loaded) < len(self.metas):
            return
        if self.groups is None:
            self._load_groups()
        if self.groups is None or not self.groups.complete or self.unreadable:
            return
        tasks = {task: self._build(task) for task in self.slot.job.hosted[self.slot.slot]}
        self.slot.restored(tasks, self.order, self._prepare_replay(tasks))

    def _load_groups(self) -> None:
        """Begin to load the groups that the snapshots name."""
        for task, chain in self.order.chains.items():
            loaded = [self.loaded[task, meta.checkpoint] for meta in chain]
            self.indexes[task] = groups_of_chain(loaded)
        self.groups = GroupLoader(self.slot.shell, self.order, self._damaged)
        self.groups.begin(self.indexes)

    def _damaged(self, task: TaskId, group: StoredGroup) -> None:
        """Report a snapshot of which a group cannot be read, unless the task can go on without it."""
        if self.order.alone:
            self.lost.append(GroupLost(task, group.part, group.rows))
        elif task not in self.unreadable:
            self.unreadable[task] = None
            number = self.order.chains[task][-1].checkpoint
            self.slot.shell.report(Unreadable(self.order.epoch, task, number))

    def _build(self, name: TaskId) -> Task:
        slot, job, epoch = self.slot, self.slot.job, self.order.epoch
        life = Life(name, epoch, slot.incarnation)
        chain = self.order.chains.get(name, ())
        memo = self.loaded[name, chain[-1].checkpoint].memo if chain else None
        seed = f"{job.seed}:{name}:{epoch}:{slot.incarnation}"
        first = self._first_checkpoint()
        protocol = job.protocol.task(job.task_context(name, first, slot.shell.rng(seed)))
        if memo is not None:
            protocol.restore(memo)
        now_us = slot.shell.now_us()
        slot.shell.journal(Built(now_us, name, epoch, slot.incarnation, seed, memo, first))
        task = Task(job, job.deployment.plans[name], life, protocol, slot)
        if chain:
            captures = [self._capture(meta) for meta in chain]
            assert self.groups is not None
            captures[-1] = replace(captures[-1], groups=self.groups.groups(name))
            task.restore(captures, chain[-1])
            task.groups = tuple(self.indexes[name].values())
        if self.order.alone:
            self._rejoin(task)
            task.open(0)  # the rows that earlier lives wrote are public, and stay as they are
            return task
        if not chain:
            task.received |= {c: s for c, s in self.order.received.items() if c in task.inputs}
        task.open(chain[-1].position if chain else 0)
        return task

    def _rejoin(self, task: Task) -> None:
        """Let a task go on among others that did not go back."""
        job = self.slot.job
        for channel in job.remembered.intersection(task.sent):
            task.sent[channel] = last_seq_before(self.slot.incarnation)
        if job.policies[task.plan.task].intake is Intake.KEEP:
            self._remember_sent(task)
        else:
            task.watermarks.hear_again()
            task.told = dict.fromkeys(task.told, task.watermarks.said)
            task.may_be_stale = True
        self._skip_to_present(task)

    def _remember_sent(self, task: Task) -> None:
        """Let a task that gets its input again not send again what its log has sent already."""
        chain = self.order.chains.get(task.plan.task, ())
        for channel in self.slot.job.kept.intersection(task.sent):
            after = chain[-1].sent.get(channel, 0) if chain else 0
            messages, count = task.log.tail(channel, after=after)
            if count:
                task.sent_before[channel] = SentBefore(message.batch for message in messages)

    def _skip_to_present(self, task: Task) -> None:
        """Let a source begin at what is due now: what was due before is lost."""
        if (ingress := task.plan.ingress) is None:
            return
        shell = self.slot.shell
        for partition in task.offsets:
            start, due = task.offsets[partition], ingress.due_through(partition, shell.now_ms())
            task.offsets[partition] = due
            shell.note(task.plan.task, self.order.epoch, InputSkipped(partition, start, due))

    def _first_checkpoint(self) -> CheckpointNo:
        """The first number for checkpoints of the new tasks.

        Tasks that restart alone stay in their epoch, so their incarnation keeps the numbers apart.
        """
        life = self.slot.incarnation if self.order.alone else 0
        return first_checkpoint(self.order.epoch, life)

    def _capture(self, meta: CheckpointMeta) -> Capture:
        loaded = self.loaded[meta.task, meta.checkpoint]
        return Capture(loaded.full, {n: p for n, p in loaded.parts.items() if n != INDEX})

    def _prepare_replay(
        self, tasks: dict[TaskId, Task]
    ) -> list[tuple[ChannelId, Sequence[Message]]]:
        """Fill the outboxes of senders; return what receivers recorded, per channel and in order."""
        recorded: list[tuple[ChannelId, Sequence[Message]]] = []
        for part in self.order.replay:
            channel = self.slot.job.topology.by_id[part.channel]
            if part.origin is Origin.RECEIVER:
                known = self._recorded(channel.target, part.channel, part.after, part.through)
                recorded.append((part.channel, known))
                continue
            task = tasks[channel.source]
            messages: Iterable[Message]
            if part.origin is Origin.SENDER:
                messages = self._recorded(channel.source, part.channel, part.after, part.through)
            else:
                messages = task.log.read(part.channel, after=part.after, through=part.through)
            outbox = task.outbox.setdefault(part.channel, Outbox())
            again = (replace(message, epoch=self.order.epoch) for message in messages)
            outbox.replay(again, part.through - part.after)
        return recorded

    def _recorded(
        self, task: TaskId, channel: ChannelId, after: Seq, through: Seq
    ) -> list[Message]:
        loaded = self.loaded[task, self.order.chains[task][-1].checkpoint]
        return [m for m in loaded.messages if m.channel == channel and after < m.seq <= through]
