"""Which slots there are: their lives, who has registered, and whose acknowledgement is awaited.

In a rollback of all, every slot must acknowledge before any may send. A slot that restarts alone is first
restored, then introduced to the others, and only then let go: what they send to its new life must find
it in this epoch, and what they have left of its old life must be dropped before the new one speaks.
"""

from collections.abc import Callable

from snapline.core.messages import RecoveryLine
from snapline.engine.control import Order, Replaced, Restore
from snapline.engine.coordinator.decider import Chains
from snapline.engine.job import Job
from snapline.ids import CheckpointNo, Epoch, Incarnation, SlotId, TaskId


class Members:
    """The slots of a job."""

    def __init__(self, job: Job, send: Callable[[SlotId, Order], None]) -> None:
        self.job = job
        self.send = send
        self.incarnations: dict[SlotId, Incarnation] = {}
        self.registered: dict[SlotId, None] = {}  #: slots whose present life has registered
        self.acks: dict[SlotId, int] = {}  #: acknowledgements that are still to come, per slot
        #: slots that restart alone, and whether the others were told
        self.rejoining: dict[SlotId, bool] = {}
        self.alone: dict[TaskId, CheckpointNo] = {}  #: the checkpoints at which their tasks begin

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
        self.acks[slot] = 0
        return True

    def await_all(self) -> None:
        """Wait for every slot to acknowledge the new epoch."""
        self.rejoining = {}
        self.acks = dict.fromkeys(self.job.slots, 1)

    def line_alone(self, slot: SlotId) -> RecoveryLine:
        """Where the tasks of a slot that restarts alone begin."""
        return RecoveryLine({task: self.alone[task] for task in self.job.hosted[slot]})

    def rejoin(self, slot: SlotId, epoch: Epoch, chains: Chains) -> None:
        """Restore a slot that restarts alone."""
        self.acks[slot] = 1
        self.send(slot, Restore(epoch, dict(self.incarnations), chains, {}, (), alone=True))

    def _introduce(self, slot: SlotId, epoch: Epoch) -> None:
        self.rejoining[slot] = True
        for other in tuple(self.registered):
            if other != slot:
                self.acks[other] = self.acks.get(other, 0) + 1
                self.send(other, Replaced(epoch, slot, self.incarnations[slot]))

    def acknowledge(self, slot: SlotId, epoch: Epoch, *, restored: bool = True) -> bool:
        """Count that a slot was restored, or has met another; True if nothing is awaited any more."""
        self.acks[slot] -= 1
        if restored and self.rejoining.get(slot) is False:
            self._introduce(slot, epoch)
        complete = len(self.registered) == len(self.job.slots) and not any(self.acks.values())
        return complete and all(self.rejoining.values())

    def settle(self) -> tuple[SlotId, ...]:
        """Clear and return the slots that restarted alone."""
        back = tuple(self.rejoining)
        self.rejoining = {}
        return back
