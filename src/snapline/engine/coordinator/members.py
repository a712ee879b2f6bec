"""Which slots there are: their lives, who has registered, and who waits for whom.

In a rollback of all, every slot must acknowledge before any may send. Where a slot restarts alone, the
others go on, and nobody waits for a slot that is away:

1. *Lost.* Everybody else is told (`Severed`), with the number of its next life, and sends nothing to it.
2. *Restored.* Its tasks are built. Until then nobody knows it, so nothing can reach it.
3. *Introduced.* All slots that are restored are told to expect it (`Replaced`), and say so (`Met`).
4. *Let go*, once all of them have met it: what they send to it, and it to them, now finds its receiver.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from snapline.core.messages import CheckpointMeta
from snapline.engine.control import (
    Go,
    HoldSources,
    Met,
    Order,
    Replaced,
    Report,
    Restore,
    Restored,
    RowsByKey,
    Severed,
)
from snapline.engine.job import Job
from snapline.ids import ChannelId, CheckpointNo, Epoch, Incarnation, Millis, Seq, SlotId, TaskId
from snapline.journal.loss_happenings import GroupLost

_RESUME_STRIDE = 1 << 16
"""A resumed coordinator numbers incarnations from its next multiple: no decision tells of all slots."""


class Members:
    """The slots of a job."""

    def __init__(
        self,
        job: Job,
        send: Callable[[SlotId, Order], None],
        newest: Callable[[TaskId], CheckpointMeta],
    ) -> None:
        self.job = job
        self.send = send
        self.newest = newest  #: the newest checkpoint of a task that exists
        self.incarnations: dict[SlotId, Incarnation] = {}
        self.registered: dict[SlotId, None] = {}  #: slots whose present life has registered
        self.awaited: dict[SlotId, None] = {}  #: slots that have to acknowledge the new epoch
        #: slots that restart alone, and who has not met them yet; None: it is not restored
        self.rejoining: dict[SlotId, dict[SlotId, None] | None] = {}
        self.alone: dict[TaskId, tuple[CheckpointMeta, ...]] = {}  #: where their tasks begin
        self.lost_ms: dict[SlotId, Millis] = {}  #: when they were lost
        #: per slot that was told to restart alone in this epoch the number of the last such order
        self.told: dict[SlotId, int] = {}
        #: per slot what its windows by rows missed, as far as those know it who have met it
        self.missed: dict[SlotId, dict[ChannelId, RowsByKey]] = {}
        #: per slot the groups of rows that it could not read, and restarted without
        self.groups_lost: dict[SlotId, Sequence[GroupLost]] = {}

    def begin(self, past: Mapping[SlotId, Incarnation]) -> None:
        """Number the first lives under this coordinator, behind all that an earlier one knew of."""
        first = (max(past.values()) // _RESUME_STRIDE + 1) * _RESUME_STRIDE if past else 1
        self.incarnations = dict.fromkeys(self.job.slots, first)

    def register(self, slot: SlotId, incarnation: Incarnation) -> bool:
        """Note that a slot has started; False if this is not its present life."""
        if incarnation != self.incarnations.get(slot):
            return False
        self.registered[slot] = None
        return True

    def lose(self, slot: SlotId, incarnation: Incarnation) -> bool:
        """Begin the next life of a slot; False if the lost one was not the present life."""
        if incarnation != self.incarnations.get(slot):
            return False
        self.incarnations[slot] = incarnation + 1
        self.registered.pop(slot, None)
        self.awaited.pop(slot, None)
        self.told.pop(slot, None)
        for strangers in self.rejoining.values():
            if strangers is not None:
                strangers.pop(slot, None)
        return True

    # A rollback of all.

    def await_all(self) -> None:
        """Wait for every slot to acknowledge the new epoch."""
        self.rejoining, self.lost_ms, self.told = {}, {}, {}
        self.awaited = dict.fromkeys(self.job.slots)

    @property
    def complete(self) -> bool:
        """Whether all slots are there and restored, and all who restart alone have met the others."""
        there = len(self.registered) == len(self.job.slots) and not self.awaited
        return there and self.settled.keys() == self.rejoining.keys()

    def go_back(self, slots: Iterable[SlotId]) -> bool:
        """Whether any of these slots goes back with all others, and is there."""
        return any(slot in self.registered and slot not in self.rejoining for slot in slots)

    def acknowledged(self, slot: SlotId, report: Restored | Met) -> None:
        """Take what a slot says: it is restored, or it expects another one."""
        if isinstance(report, Met):
            self.met(slot, report)
        else:
            self.groups_lost[slot] = report.lost
            self.restored(slot, report.epoch)

    # A slot that restarts alone.

    def sever(self, slot: SlotId, epoch: Epoch, now_ms: Millis) -> None:
        """Let the others go on without a slot until it is back."""
        self.rejoining[slot] = None
        self.lost_ms.setdefault(slot, now_ms)
        for other in self.registered:
            self.send(other, Severed(epoch, slot, self.incarnations[slot]))

    def rejoin(self, slot: SlotId, epoch: Epoch) -> None:
        """Restore a slot that restarts alone, if it is there, and tell it who else is away.

        It has to know that before anything can reach it: what comes from them then is of their next lives.
        """
        if slot not in self.registered or slot not in self.rejoining:
            return
        self.rejoining[slot] = None
        self.missed[slot] = {}
        number = self.told[slot] = self.told[slot] + 1 if slot in self.told else 0
        tasks = self.job.slot_by_task
        chains = {task: chain for task, chain in self.alone.items() if tasks[task] == slot}
        away = tuple(o for o, met in self.rejoining.items() if met is None and o != slot)
        lives = dict(self.incarnations)
        self.send(slot, Restore(epoch, lives, chains, {}, (), alone=True, away=away, number=number))

    def outdated(self, task: TaskId, checkpoint: CheckpointNo) -> bool:
        """Whether a task that restarts alone was told already to go back to another checkpoint.

        A slot reports a checkpoint that it cannot read for every order that names it.
        """
        alone = self.job.slot_by_task[task] in self.rejoining
        return alone and all(meta.checkpoint != checkpoint for meta in self.alone.get(task, ()))

    def is_overtaken(self, slot: SlotId, report: Report) -> bool:
        """Whether a slot says that it has restored what it was told before it was told anew.

        Let go for that, it would run while it restores again.
        """
        return isinstance(report, Restored) and report.number != self.told.get(slot, 0)

    def restored(self, slot: SlotId, epoch: Epoch) -> None:
        """Note that a slot was restored; one that restarts alone is introduced to the others.

        While all slots are restored, some may have restarted alone, and are restored before this one.
        """
        self.awaited.pop(slot, None)
        others = [other for other in self.registered if other != slot and self._is_restored(other)]
        alone = slot in self.rejoining
        if alone:
            self.rejoining[slot] = dict.fromkeys(others)
        for other in others:
            if alone or other in self.rejoining:
                self._introduce(epoch, slot, other)
                self._introduce(epoch, other, slot)

    def _introduce(self, epoch: Epoch, receiver: SlotId, sender: SlotId) -> None:
        """Tell a slot that another is there, and from where on it has to send, or to remember.

        What a receiver that did not go back has got since its newest checkpoint, it recognises itself.
        """
        received: dict[ChannelId, Seq] = {}
        recalled: dict[ChannelId, Seq] = {}
        for channel in self.job.remembered_between(sender, receiver):
            chain = self.alone.get(channel.target, ()) if receiver in self.rejoining else None
            meta = self.newest(channel.target) if chain is None else chain[-1] if chain else None
            through = meta.received.get(channel.id, 0) if meta else 0
            if channel.id in self.job.kept:
                received[channel.id] = through
            elif chain:
                recalled[channel.id] = through
        self.send(sender, Replaced(epoch, receiver, received, recalled))

    def _is_restored(self, slot: SlotId) -> bool:
        return slot not in self.awaited and self.rejoining.get(slot, {}) is not None

    def met(self, witness: SlotId, report: Met) -> None:
        """Note that a slot expects this life of another one, which restarts alone."""
        strangers = self.rejoining.get(report.slot)
        if strangers and report.incarnation == self.incarnations[report.slot]:
            strangers.pop(witness, None)
            self.missed.setdefault(report.slot, {}).update(report.missed)

    def let_back(self, epoch: Epoch, *, held: bool) -> dict[SlotId, Millis]:
        """Let slots go that have met all others; `held`: they may not read input.

        Returns them, and when each was lost.
        """
        back = {slot: self.lost_ms.pop(slot) for slot in self.settled}
        for slot in back:
            del self.rejoining[slot]
            self.send(slot, Go(epoch, self.missed.get(slot, {})))
            if held:
                self.send(slot, HoldSources(epoch, True))
        return back

    def let_all_back(self) -> dict[SlotId, Millis]:
        """Forget who restarted alone while all slots were restored: all of them are let go together.

        Returns those that did, and when each was lost.
        """
        back = {slot: self.lost_ms.pop(slot) for slot in self.rejoining}
        self.rejoining = {}
        return back

    @property
    def settled(self) -> dict[SlotId, None]:
        """The slots that restart alone and may be let go: all others have met them."""
        return {
            slot: None for slot, left in self.rejoining.items() if left is not None and not left
        }
