"""Peers that restart alone: how a slot goes on without one, and meets it again.

While a peer is away, nothing is sent to it: what would be is discarded and counted, and costs no credit, so
no task waits for it. What it had sent before is still taken, and then its channels count no more for event
time. Frames of its old life that come later are fenced, because the slot knows the number of the next life
from the moment of the loss on.
"""

from collections.abc import Mapping
from typing import Protocol

from snapline.core.topology import Channel
from snapline.engine.control import Met
from snapline.engine.shell import SlotShell
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.engine.slot.task import Task
from snapline.ids import ChannelId, Epoch, Incarnation, SlotId, TaskId
from snapline.journal.happenings import MessagesDiscarded


class PartingSlot(Protocol):
    """What is asked of the slot."""

    slot: SlotId
    epoch: Epoch
    running: bool
    tasks: dict[TaskId, Task]
    inputs: Inputs
    outputs: Outputs
    peers: dict[SlotId, Incarnation]
    slot_by_task: dict[TaskId, SlotId]
    by_id: Mapping[ChannelId, Channel]
    shell: SlotShell


class Partings:
    """The peers of one slot that are away."""

    def __init__(self, slot: PartingSlot) -> None:
        self.slot = slot
        self.away: dict[SlotId, None] = {}

    def sever(self, peer: SlotId, incarnation: Incarnation) -> None:
        """Go on without a peer; `incarnation` is its next life."""
        self.slot.peers[peer] = incarnation
        self.away[peer] = None
        self._disconnect(peer)

    def restored(self) -> None:
        """Connect tasks that restart alone: any first number of an input will do, and peers may be away."""
        self.slot.inputs.joining.update(self.slot.inputs.inbox)
        slot = self.slot
        for task in slot.tasks.values():
            for channel in task.inputs.values():
                # It begins with the time of those who live on: a window that they saw closed stays closed.
                if slot.slot_by_task[channel.source] == slot.slot:
                    task.watermarks.sever(channel.id)
        for peer in self.away:
            self._disconnect(peer)

    def _disconnect(self, peer: SlotId) -> None:
        slot = self.slot
        for task in slot.tasks.values():
            for channel in task.outputs:
                if slot.slot_by_task[channel.target] == peer:
                    slot.outputs.sever(channel.id)
            for channel in task.inputs.values():
                if slot.slot_by_task[channel.source] == peer:
                    slot.inputs.sever(channel.id)
                    self.drained(channel.id)

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
        """Let time go on in tasks that begin while peers are away."""
        if self.away:
            for task in self.slot.tasks.values():
                task.catch_up()

    def meet(self, peer: SlotId) -> None:
        """Send to a peer again that was away, beginning with the time that it missed."""
        slot = self.slot
        if peer in self.away:
            del self.away[peer]
            for task in slot.tasks.values():
                for channel in task.outputs:
                    if slot.slot_by_task[channel.target] == peer:
                        self._reconnect(task, channel)
        slot.shell.report(Met(slot.epoch, peer, slot.peers[peer]))

    def _reconnect(self, task: Task, channel: Channel) -> None:
        slot, missed = self.slot, self.slot.outputs.severed.pop(channel.id)
        if missed.messages:
            discarded = MessagesDiscarded(channel.id, missed.messages, missed.records)
            slot.shell.note(channel.source, slot.epoch, discarded)
        task.tell_again(channel)
