"""Deliberate bugs of slots that restart alone: see `sabotage`, in whose list they are entered.

Each breaks one of the invariants P1 to P11 of the protocol `partial`, here or in the engine.
"""

from dataclasses import replace

from sabotage import bug, never

from snapline.core.effects import Rollback, Scope
from snapline.core.messages import Message, RecoveryLine
from snapline.core.policy import Intake
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.coordinator.registry import Collected, Registry
from snapline.engine.coordinator.restoring import RestorePlan
from snapline.engine.slot import restore
from snapline.engine.slot.channels import Inputs, Missed
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.parting import Partings
from snapline.engine.slot.restore import Restoration
from snapline.engine.slot.slot import Slot
from snapline.engine.slot.watermarks import Watermarks
from snapline.engine.stale.recollection import Recollection
from snapline.ids import INITIAL
from snapline.protocols.partial import PartialCoordinator, PartialTask
from snapline.storage.memory import MemoryLog

KILLS = "kill slot=1 at=900ms; kill slot=0 at=1500ms for=300ms"
AWAY = "kill slot=1 at=900ms for=800ms"
RESUMED = "kill coordinator at=1200ms for=100ms"
JOINED = {"slots": 2, "save": (("join", "200ms"),), "inputs": (("join", "drop"),)}


@bug("partial", "counting", "only_the_lost_go_back", faults=KILLS)
def a_survivor_goes_back_too(patch):
    def on_tasks_lost(self, tasks):
        others = [task for task in self.context.topology.tasks if task not in tasks]
        yield Rollback(self._newest((*tasks, others[0])), Scope.LOST)

    patch.setattr(PartialCoordinator, "on_tasks_lost", on_tasks_lost)


@bug("partial", "counting", "restored_is_the_newest_readable", faults=KILLS)
def a_lost_task_goes_back_to_its_oldest_checkpoint(patch):
    def newest(self, tasks):
        return RecoveryLine({t: self.known[t][0] if self.known[t] else INITIAL for t in tasks})

    patch.setattr(PartialCoordinator, "_newest", newest)


@bug("partial", "counting", "unsaved_start_empty", faults=KILLS)
def the_policy_is_ignored(patch):
    original = PartialTask.__init__

    def init(self, context):
        original(self, context)
        self.saved = True

    patch.setattr(PartialTask, "__init__", init)


def _unguarded(patch):
    """Let a slot take messages in any order: the guard would stop the run before an invariant looks."""
    original = Inputs.check_order

    def check_order(self, message, received, kept=()):
        if message.channel in kept and message.seq <= received:
            return False
        return original(self, message, message.seq - 1, kept)

    patch.setattr(Inputs, "check_order", check_order)


@bug("partial", "counting", "gaps_only_at_introductions", faults=KILLS)
def a_message_between_living_ends_is_dropped(patch):
    original = Slot._dispatch
    _unguarded(patch)

    def dispatch(self, channel, payload):
        if not (isinstance(payload, Message) and payload.seq == 6):
            original(self, channel, payload)

    patch.setattr(Slot, "_dispatch", dispatch)


@bug("partial", "counting", "gaps_only_at_introductions", faults="pause slot=1 at=800ms for=500ms")
def the_incarnation_of_a_sender_is_not_compared(patch):
    original = Slot.receive
    _unguarded(patch)

    def receive(self, source, frame):
        present = (self.epoch, self.peers.get(source), self.incarnation)
        life = (frame.life[0], self.peers.get(source), frame.life[2])
        original(self, source, replace(frame, life=life) if life == present else frame)

    patch.setattr(Slot, "receive", receive)


@bug("partial", "counting", "survivors_go_on", faults=AWAY)
def survivors_wait_for_the_lost_whatever_their_policy(patch):
    patch.setattr(Missed, "full", property(lambda self: True))


@bug("partial", "q12", "nobody_waits_for_the_dead", faults=AWAY)
def time_waits_for_the_dead(patch):
    never(patch, Watermarks, "sever")


@bug("partial", "counting", "loss_is_declared", faults=KILLS)
def a_skipped_part_of_the_input_is_not_noted(patch):
    patch.setattr(restore, "InputSkipped", lambda partition, start, stop: None)
    original = Restoration._skip_to_present

    def skip(self, task):
        noting, self.slot.shell.note = self.slot.shell.note, lambda *said: None
        try:
            original(self, task)
        finally:
            self.slot.shell.note = noting

    patch.setattr(Restoration, "_skip_to_present", skip)


@bug("partial", "counting", "sources_at_the_present", faults=KILLS)
def sources_read_again_what_they_had_read(patch):
    never(patch, Restoration, "_skip_to_present")


@bug("partial", "counting", "kept_edge_loses_nothing", "counted_means_durable", faults=KILLS)
def the_log_is_pruned_too_far(patch):
    original = Registry._collect_each

    def collect(self, line, policies):
        found = original(self, line, policies)
        return Collected(found.metas, {c: seq + 2 for c, seq in found.logs.items()})

    patch.setattr(Registry, "_collect_each", collect)


@bug("partial", "counting", "kept_is_logged_before_it_is_sent", faults=KILLS)
def what_is_kept_is_not_logged(patch):
    patch.setattr(MemoryLog, "append", lambda self, message: 0)


@bug("partial", "counting", "kept_edge_loses_nothing", faults=AWAY)
def what_was_kept_is_not_sent_again(patch):
    never(patch, Partings, "_send_again")


@bug("partial", "counting", "kept_numbers_continue", faults=KILLS)
def a_sender_numbers_on_from_its_checkpoint(patch):
    patch.setattr(restore, "last_seq_before", lambda life: 0)


@bug("partial", "counting", "storage_is_bounded_per_task", faults=KILLS)
def nothing_is_ever_collected(patch):
    patch.setattr(Registry, "_collect_each", lambda self, line, policies: Collected((), {}))


@bug("partial", "counting", "decided_before_deleted", faults=KILLS)
def older_checkpoints_are_deleted_before_newer_ones_are_decided(patch):
    original = Coordinator._ask_line

    def ask_line(self, line, *, flush=False):
        tips = {task: chain[-1].checkpoint if chain else INITIAL for task, chain in line.items()}
        for meta in self.registry._collect_each(RecoveryLine(tips), self.policies).metas:
            self.shell.delete(key_of(meta))
        original(self, line, flush=flush)

    patch.setattr(Coordinator, "_ask_line", ask_line)


@bug("partial", "counting", "restored_is_the_newest_readable", faults=RESUMED)
def a_resume_ignores_what_was_saved(patch):
    original = RestorePlan.order

    def order(self, slot, epoch, lives, line, *, alone):
        return original(self, slot, epoch, lives, dict.fromkeys(line, ()), alone=alone)

    patch.setattr(RestorePlan, "order", order)


@bug("partial", "counting", "loss_is_declared", faults=AWAY)
def what_is_discarded_is_not_counted(patch):
    original = Missed.add

    def add(self, message):
        if self.intake is not Intake.DROP:
            original(self, message)

    patch.setattr(Missed, "add", add)


@bug("partial", "gjoin", "missed_rows_are_counted", faults=AWAY, **JOINED)
def what_was_sent_since_the_checkpoint_is_pruned_too_far(patch):
    original = Recollection.prune
    patch.setattr(Recollection, "prune", lambda self, through: original(self, through + 3))


@bug("partial", "gjoin", "missed_rows_are_counted", faults=AWAY, **JOINED)
def only_what_was_discarded_counts_as_missed(patch):
    original = Recollection.missed
    patch.setattr(Recollection, "missed", lambda self, after: original(self, after + 2))
