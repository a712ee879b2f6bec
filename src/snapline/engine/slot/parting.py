"""Peers that restart alone: how a slot goes on without one, and meets it again.

While a peer is away, nothing is sent to it. What would be is discarded and counted, and costs no credit, so
no task waits for it; or, if the receiver's policy says so, its sender holds it back and waits, or keeps it
in its log and sends it again when the peer is back. What the peer had sent before is still taken, and then
its channels count no more for event time. Frames of its old life that come later are fenced, because the
slot knows the number of the next life from the moment of the loss on.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from snapline.core.messages import END_OF_TIME, Message
from snapline.core.policy import Intake
from snapline.core.topology import Channel
from snapline.dataflow.state.identity import identities_of
from snapline.engine.control import Met, RowsByKey
from snapline.engine.job import Job
from snapline.engine.shell import SlotShell
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.engine.slot.outbox import Outbox
from snapline.engine.slot.task import Task
from snapline.engine.stale.forgetting import forget_stale
from snapline.engine.stale.recollection import recall
from snapline.ids import ChannelId, Epoch, Incarnation, Seq, SlotId, TaskId
from snapline.journal.happenings import MessagesDiscarded
from snapline.journal.loss_happenings import StaleRowsDropped
from snapline.storage.discards.port import Discard, Discards, IdentityKind


class PartingSlot(Protocol):
    """What is asked of the slot."""

    slot: SlotId
    epoch: Epoch
    running: bool
    tasks: dict[TaskId, Task]
    inputs: Inputs
    outputs: Outputs
    job: Job
    replaying: dict[ChannelId, None]
    peers: dict[SlotId, Incarnation]
    slot_by_task: dict[TaskId, SlotId]
    by_id: Mapping[ChannelId, Channel]
    shell: SlotShell


class Partings:
    """The peers of one slot that are away."""

    def __init__(self, slot: PartingSlot) -> None:
        self.slot = slot
        self.away: dict[SlotId, None] = {}
        self.discards: dict[TaskId, Discards] = {}  #: where tasks write down what they discard
        self.rejoins = False  #: whether this slot restarted alone itself

    def sever(self, peer: SlotId, incarnation: Incarnation) -> None:
        """Go on without a peer; `incarnation` is its next life."""
        self.slot.peers[peer] = incarnation
        self.away[peer] = None
        self._disconnect(peer)

    def restored(self, away: Iterable[SlotId]) -> None:
        """Connect tasks that restart alone: any first number of an input will do, and peers may be away."""
        slot, self.rejoins = self.slot, True
        self.away.update(dict.fromkeys(away))
        slot.inputs.joining.update(slot.inputs.inbox)
        for task in slot.tasks.values():
            for channel in task.inputs.values():
                # It begins with the time of those who live on: a window that they saw closed stays closed.
                # Where messages are kept, they bring their own time with them.
                own = slot.slot_by_task[channel.source] == slot.slot
                if own and channel.id not in slot.job.kept:
                    task.watermarks.sever(channel.id)
        for peer in self.away:
            self._disconnect(peer)

    def _disconnect(self, peer: SlotId) -> None:
        slot = self.slot
        for task in slot.tasks.values():
            for channel in task.outputs:
                if slot.slot_by_task[channel.target] == peer:
                    policy = slot.job.policies[channel.target]
                    slot.outputs.sever(channel.id, policy.intake, policy.buffer)
            for channel in task.inputs.values():
                if slot.slot_by_task[channel.source] == peer:
                    slot.inputs.sever(channel.id)
                    self.drained(channel.id)

    def miss(self, channel: Channel, message: Message) -> None:
        """Do with a message what is done while its receiver is away; what is discarded is written down."""
        slot, task = self.slot, channel.source
        slot.outputs.miss(channel.id, message)
        if slot.job.policies[channel.target].intake is Intake.DROP and message.batch.length:
            if task not in self.discards:
                self.discards[task] = slot.shell.open_discards(slot.tasks[task].life)
            by_id, rows = identities_of(message.batch)
            kind: IdentityKind = "id" if by_id else "hash"
            self.discards[task].append(Discard(channel.id, message.seq, kind, rows))

    def drained(self, channel: ChannelId) -> None:
        """Let a task wait no more for an input, if all is taken that its lost sender had sent."""
        slot = self.slot
        if not slot.inputs.inbox[channel]:
            slot.inputs.severed.discard(channel)
            task = slot.tasks[slot.by_id[channel].target]
            task.watermarks.sever(channel)
            if slot.running:
                task.catch_up()

    def go(self) -> None:
        """Let time go on in tasks that begin while peers are away, and say again where it has ended.

        A task that went back alone to a state behind the end of time would not say so by itself: it rises
        no more, and those who have heard it from the life before have forgotten it with that life.
        """
        for task in self.slot.tasks.values():
            if self.rejoins and task.watermarks.low == END_OF_TIME:
                for channel in task.outputs:
                    task.tell_again(channel)
            if self.away:
                task.catch_up()

    def meet(
        self, peer: SlotId, received: Mapping[ChannelId, Seq], recalled: Mapping[ChannelId, Seq]
    ) -> None:
        """Send to a peer again that was away, or that this slot meets because it was away itself.

        `received` says behind which message each channel begins that sends again what was missed, and
        `recalled` the same of channels on which the peer only wants to know what it missed.
        """
        slot, was_away = self.slot, peer in self.away
        self.away.pop(peer, None)
        missed: dict[ChannelId, RowsByKey] = {}
        for task in slot.tasks.values():
            missed |= recall(task.recollections, task.sent, recalled)
            for channel in task.outputs:
                if slot.slot_by_task[channel.target] == peer:
                    if channel.id in received:
                        self._send_again(task, channel, received[channel.id])
                    if was_away:
                        self._reconnect(task, channel)
        slot.shell.report(Met(slot.epoch, peer, slot.peers[peer], missed))

    def _reconnect(self, task: Task, channel: Channel) -> None:
        slot, missed = self.slot, self.slot.outputs.reconnect(channel.id)
        if missed is not None and missed.messages:
            discarded = MessagesDiscarded(channel.id, missed.messages, missed.records)
            slot.shell.note(channel.source, slot.epoch, discarded)
            if channel.source in self.discards:
                self.discards[channel.source].flush()
        if missed is not None and missed.held:
            task.outbox.setdefault(channel.id, Outbox()).put_first(missed.held)
            slot.replaying[channel.id] = None
        task.tell_again(channel)

    def prune(self, through: Mapping[ChannelId, Seq]) -> None:
        """Forget messages up to these numbers, which nobody will ask for."""
        for channel, seq in through.items():
            source = self.slot.tasks[self.slot.by_id[channel].source]
            if channel in source.recollections:
                source.recollections[channel].prune(seq)
            else:
                source.log.prune(channel, through=seq)

    def forget_stale(self, missed: Mapping[ChannelId, RowsByKey]) -> None:
        """Let tasks that went back alone forget rows that should have left their windows meanwhile."""
        shell = self.slot.shell
        for name, task in self.slot.tasks.items() if self.rejoins else ():
            rows = forget_stale(task.guard, task.by_port, task.arrivals, missed, shell.now_ms())
            if rows:
                shell.note(name, self.slot.epoch, StaleRowsDropped(name, rows))

    def send_again(self, kept: Container[ChannelId], missed: Mapping[ChannelId, Seq]) -> None:
        """Send again what was under way to tasks of this slot, or to others that restart with it."""
        for task in self.slot.tasks.values():
            for channel in task.outputs:
                receiver = self.slot.tasks.get(channel.target)
                if receiver is not None and channel.id in kept:
                    self._send_again(task, channel, receiver.received[channel.id])
                elif channel.id in missed:
                    self._send_again(task, channel, missed[channel.id])

    def _send_again(self, task: Task, channel: Channel, after: Seq) -> None:
        """Fill the outbox of a channel with all that its log has behind a message."""
        slot = self.slot
        messages, count = task.log.tail(channel.id, after=after)
        outbox = task.outbox[channel.id] = Outbox()  # what was in it is in the log, too
        outbox.replay((replace(message, epoch=slot.epoch) for message in messages), count)
        if count:
            slot.replaying[channel.id] = None
        else:
            slot.replaying.pop(channel.id, None)
