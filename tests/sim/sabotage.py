"""Deliberate bugs: each breaks one rule of the protocols, of recovery, of the engine or of the storage.

A bug is patched in from outside; the product has no switches for them. Each names a case in which it does
harm, and the invariants that notice: a bug that passes unnoticed would mean that an invariant is missing.
Some break two things, the rule and the guard that would stop the run before an invariant can look; their
comments say so.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from snapline.core.effects import Block, Deliver, Forward, Record, Snapshot, Unblock
from snapline.core.messages import Marker, Message, RecoveryLine
from snapline.core.topology import Topology
from snapline.dataflow.operators.join import Join
from snapline.dataflow.operators.operator import Capture
from snapline.engine import control
from snapline.engine.coordinator import coordinator, ledger
from snapline.engine.coordinator.anchor import Anchor
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.coordinator.decider import Decider, Intent, Writing
from snapline.engine.coordinator.members import Members
from snapline.engine.coordinator.registry import Collected, Registry
from snapline.engine.shell import Ticket
from snapline.engine.slot import restore
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.engine.slot.checkpoints import CheckpointWriter, key_of
from snapline.engine.slot.outbox import Outbox
from snapline.engine.slot.progress import tell_progress
from snapline.engine.slot.restore import Restoration
from snapline.engine.slot.slot import Slot
from snapline.engine.slot.task import Task
from snapline.engine.slot.watermarks import Watermarks
from snapline.errors import ObjectMissing
from snapline.ids import INITIAL, first_checkpoint
from snapline.protocols.aligned import AlignedCoordinator, AlignedTask
from snapline.protocols.aligned_cyclic import AlignedCyclicTask
from snapline.protocols.bcs import BcsTask
from snapline.protocols.hmnr import HmnrTask
from snapline.protocols.synchronous import SynchronousCoordinator, SynchronousTask
from snapline.protocols.uncoordinated import UncoordinatedCoordinator, UncoordinatedTask
from snapline.recovery.line_tracker import LineTracker
from snapline.recovery.replay import ReplayPart
from snapline.sim.case import Case
from snapline.sim.world import coordinator as world_coordinator
from snapline.sim.world.launching import SimLaunches
from snapline.sim.world.outlet import SimOutlet
from snapline.sim.world.storage import SimStorage
from snapline.storage.manifest import ManifestChain
from snapline.storage.memory import MemoryLog

ORACLE = "output_is_exactly-once"


@dataclass(frozen=True)
class Bug:
    """One way to be wrong."""

    name: str
    protocol: str
    workload: str
    caught_by: tuple[str, ...]
    apply: Callable[[pytest.MonkeyPatch], None]
    faults: str | None  # as in a case: None means drawn from the seed
    given: Mapping[str, Any]  # what else is given of a case

    def case(self, seed: int) -> Case:
        return Case(self.protocol, self.workload, seed, faults=self.faults, **self.given)


BUGS: list[Bug] = []


def bug(protocol: str, workload: str, *caught_by: str, faults: str | None = None, **given: Any):
    """Enter a function that patches a bug in; its name, in words, is that of the bug."""

    def enter(apply: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        name = apply.__name__.replace("_", " ")
        BUGS.append(Bug(name, protocol, workload, caught_by, apply, faults, given))
        return apply

    return enter


def then(patch: pytest.MonkeyPatch, owner: type, method: str, extra: Callable[..., None]) -> None:
    """Let a method do something more, behind what it does."""
    original = getattr(owner, method)

    def extended(self: Any, *args: Any, **options: Any) -> Any:
        result = original(self, *args, **options)
        extra(self, *args, **options)
        return result

    patch.setattr(owner, method, extended)


def never(patch: pytest.MonkeyPatch, owner: type, method: str) -> None:
    """Let a method do nothing."""
    patch.setattr(owner, method, lambda self, *args, **options: None)


def drop(patch: pytest.MonkeyPatch, protocol: Any, unwanted: Callable[[Any, Any], bool]) -> None:
    """Leave effects of a protocol's task side out."""
    original = protocol._dispatch

    def dispatch(self: Any, event: Any) -> Iterator[Any]:
        return (effect for effect in original(self, event) if not unwanted(self, effect))

    patch.setattr(protocol, "_dispatch", dispatch)


DAMAGED = "damage slot=0 at=1200ms; kill slot=1 at=1201ms"
PAUSED = "pause coordinator at=900ms for=500ms"
KILLED = "kill coordinator at=1200ms for=100ms"
BAD_START = "kill slot=1 at=900ms; launch failing slot=1 at=890ms for=100ms"
GAP = "lose decision at=900ms; kill coordinator at=1500ms for=100ms"


# The coordinated protocols.


@bug("aligned", "counting", "line_is_consistent")
def no_blocking(patch):
    drop(patch, AlignedTask, lambda task, effect: isinstance(effect, Block | Unblock))


@bug("aligned", "counting", "line_is_consistent")
def snapshot_after_unblock(patch):
    finish = AlignedTask._finish_round

    def forward_first(self):
        if self.context.inputs:
            self.owed = self.round
            yield Forward(Marker(self.round))
            yield from self._expect(self.round + 1)
        else:
            yield from finish(self)

    def on_message(self, message):
        yield Deliver(message)
        if owed := self.__dict__.pop("owed", None):
            yield Snapshot(owed)

    patch.setattr(AlignedTask, "_finish_round", forward_first)
    patch.setattr(AlignedTask, "on_message", on_message)


@bug("aligned", "counting", "line_is_complete")
def marker_before_snapshot(patch):
    """The marker goes on with the first one that comes, and output of the other inputs follows it."""
    finish, on_marker = AlignedTask._finish_round, AlignedTask.on_marker

    def forward_at_once(self, channel, marker):
        begun = self.cut and marker.checkpoint == self.round
        if marker.checkpoint >= self.round and not begun:
            yield Forward(marker)
        yield from on_marker(self, channel, marker)

    def without_forward(self):
        for effect in finish(self):
            if not (self.context.inputs and isinstance(effect, Forward)):
                yield effect

    patch.setattr(AlignedTask, "on_marker", forward_at_once)
    patch.setattr(AlignedTask, "_finish_round", without_forward)


@bug("aligned", "counting", "blocked_channel_is_not_read")
def blocked_channels_are_read(patch):
    perform = Task.perform

    def forgetful(self, effect):
        if not isinstance(effect, Block | Unblock):
            perform(self, effect)

    patch.setattr(Task, "perform", forgetful)


@bug("aligned", "counting", "run_goes_on", "line_is_not_behind_public_output")
def rollback_behind_the_published_line(patch):
    lost = AlignedCoordinator.on_tasks_lost

    def too_far(self, tasks):
        self.lines = self.lines[:1]
        yield from lost(self, tasks)

    patch.setattr(AlignedCoordinator, "on_tasks_lost", too_far)


@bug("aligned-cyclic", "nhop", "line_is_consistent", faults="")
def early_back_edge_not_blocked(patch):
    def on_back_edge(task, effect):
        return isinstance(effect, Block | Unblock) and effect.channel in task.back_edges

    drop(patch, AlignedCyclicTask, on_back_edge)


@bug("aligned-cyclic", "nhop", "line_is_complete")
def back_edge_not_recorded(patch):
    drop(patch, AlignedCyclicTask, lambda task, effect: isinstance(effect, Record))


@bug("unaligned", "nhop", "line_is_complete")
def overtaken_output_forgotten(patch):
    never(patch, CheckpointWriter, "overtook")


@bug("unaligned", "counting", "channels_continue_at_the_line")
def recorded_input_forgotten_on_restore(patch):
    never(patch, Slot, "_inject")


@bug("synchronous", "counting", "line_is_complete")
def what_is_under_way_not_recorded(patch):
    drop(patch, SynchronousTask, lambda task, effect: isinstance(effect, Record))


@bug("synchronous", "counting", "line_is_complete")
def capture_through_old_counters(patch):
    """Reports of a pause are taken for those of the next round, and the check before the commit is gone."""
    on_paused, commit = SynchronousCoordinator.on_paused, SynchronousCoordinator._commit_round

    def one_round_late(self, paused):
        before = self.__dict__.setdefault("before", {})
        known, before[paused.task] = before.get(paused.task, paused), paused
        yield from on_paused(self, known)

    def unchecked(self):
        self.through = {}
        yield from commit(self)

    patch.setattr(SynchronousCoordinator, "on_paused", one_round_late)
    patch.setattr(SynchronousCoordinator, "_commit_round", unchecked)


# Snapshots.


def at_store(patch: pytest.MonkeyPatch, change: Callable[[Task, Any], None]) -> None:
    """Change a checkpoint when it is stored, with what its task is by then."""
    store = CheckpointWriter._store

    def changed(self, pending):
        change(self.task, pending)
        store(self, pending)

    patch.setattr(CheckpointWriter, "_store", changed)
    take = CheckpointWriter.take

    def remember(self, task, effect):
        self.task = task
        take(self, task, effect)

    patch.setattr(CheckpointWriter, "take", remember)


@bug("unaligned", "counting", "snapshot_covers_what_was_delivered")
def counters_of_another_moment(patch):
    def late(task, pending):
        pending.meta = replace(pending.meta, received=dict(task.received))

    at_store(patch, late)


@bug("unaligned", "counting", ORACLE)
def state_of_another_moment(patch):
    def late(task, pending):
        if pending.open:
            pending.capture = task.capture(full=True)

    at_store(patch, late)


@bug("aligned", "counting", "deltas_have_a_base")
def delta_on_the_wrong_base(patch):
    """Every delta claims to build on the last full snapshot; those between are lost."""
    take = CheckpointWriter.take

    def on_full(self, task, effect):
        base = self.last
        take(self, task, effect)
        if self.deltas:
            self.last = base

    patch.setattr(CheckpointWriter, "take", on_full)


@bug("aligned", "counting", ORACLE)
def dirty_bits_cleared_twice(patch):
    capture = Task.capture

    def twice(self, *, full) -> Capture:
        capture(self, full=False)
        return capture(self, full=full)

    patch.setattr(Task, "capture", twice)


@bug("aligned", "counting", "deltas_have_a_base")
def life_begins_with_a_delta(patch):
    then(patch, CheckpointWriter, "__init__", lambda self, *args: setattr(self, "deltas", 0))


@bug("aligned", "counting", "deltas_have_a_base")
def delta_on_an_abandoned_snapshot(patch):
    abandon = CheckpointWriter.abandon

    def forgetful(self, checkpoint):
        deltas = self.deltas
        abandon(self, checkpoint)
        self.deltas = deltas

    patch.setattr(CheckpointWriter, "abandon", forgetful)


@bug("aligned", "q8", "tasks_stand_at_the_line")
def watermark_not_in_the_snapshot(patch):
    never(patch, Watermarks, "restore")


@bug("aligned", "counting", "tasks_stand_at_the_line")
def source_offset_not_restored(patch):
    def from_the_start(self, captures, meta):
        self.offsets = dict.fromkeys(self.offsets, 0)

    then(patch, Task, "restore", from_the_start)


@bug("aligned", "counting", "tasks_stand_at_the_line")
def egress_position_not_restored(patch):
    reopen = Task.open
    patch.setattr(Task, "open", lambda self, position: reopen(self, 0))


@bug("uncoordinated", "counting", ORACLE)
def progress_told_before_the_output_is_sent(patch):
    """A checkpoint by count holds a message, and not that what came of it was sent."""
    put_out = Task._put_out

    def early(self, outputs, rose):
        if self.follows:
            tell_progress(self, sum(batch.length for _, batch in outputs))
        put_out(self, outputs, rose)

    patch.setattr(Task, "_put_out", early)


# When a checkpoint counts.


def counts_without(patch: pytest.MonkeyPatch, kind: str) -> None:
    """Let a checkpoint not wait for one of the calls to storage."""
    store, done = CheckpointWriter._store, CheckpointWriter.done

    def hasty_store(self, pending):
        store(self, pending)
        pending.waiting = [ticket for ticket in pending.waiting if ticket.kind != kind]

    def hasty_done(self, ticket):
        if ticket.kind != kind:
            done(self, ticket)

    patch.setattr(CheckpointWriter, "_store", hasty_store)
    patch.setattr(CheckpointWriter, "done", hasty_done)


@bug("aligned", "counting", "counted_means_durable")
def counted_before_the_snapshot_is_stored(patch):
    counts_without(patch, "snapshot")


@bug("uncoordinated", "counting", "counted_means_durable")
def counted_before_the_log_is_synced(patch):
    counts_without(patch, "log")


@bug("aligned", "counting", "counted_means_durable")
def counted_before_the_egress_is_synced(patch):
    counts_without(patch, "egress")


@bug("uncoordinated", "counting", "counted_means_durable")
def logged_after_sent(patch):
    """A message is logged when the next one is sent. Merely to swap the two calls does no harm: nothing
    can be captured between them, and what a dying task sent without logging it is beyond every line."""
    append = MemoryLog.append

    def late(self, message):
        before = self.__dict__.get("late")
        self.late = message
        return append(self, before) if before is not None else 0

    patch.setattr(MemoryLog, "append", late)


@bug("bcs", "counting", "checkpoints_count_in_order", "deltas_have_a_base")
def counted_before_an_earlier_one(patch):
    def any_order(self, ticket):
        pending = self.pending.get(ticket.number)
        if pending is not None:
            pending.waiting.remove(ticket)
            if not pending.waiting:
                self._count(pending.meta, pending.content, pending.groups)

    patch.setattr(CheckpointWriter, "done", any_order)


@bug("uncoordinated", "counting", "dead_checkpoints_do_not_count")
def stale_report_accepted(patch):
    report = Coordinator.report

    def gullible(self, slot, incarnation, said):
        if isinstance(said, control.Stored):
            said = replace(said, epoch=self.epoch)
            incarnation = self.members.incarnations[slot]
        report(self, slot, incarnation, said)

    patch.setattr(Coordinator, "report", gullible)


@bug("aligned", "counting", "checkpoint_number_is_new")
def checkpoint_numbers_used_again(patch):
    for module in (restore, coordinator):
        patch.setattr(module, "first_checkpoint", lambda epoch, life=0: first_checkpoint(1))


# The line.


@bug("uncoordinated", "counting", "line_is_consistent")
def line_ignores_a_channel(patch):
    def blind(self, context):
        topology = context.topology
        self.tracker = LineTracker(Topology(topology.tasks, topology.channels[1:]))

    then(patch, UncoordinatedCoordinator, "__init__", blind)


def header_without(patch: pytest.MonkeyPatch, row: int) -> None:
    decode = HmnrTask._decode

    def blank(self, raw):
        lc, ckpt, flags = decode(self, raw)
        flags = flags.copy()
        flags[row] = False
        return lc, ckpt, flags

    patch.setattr(HmnrTask, "_decode", blank)


@bug("hmnr", "nhop", "no_checkpoint_is_useless")
def hmnr_without_taken(patch):
    header_without(patch, 0)


@bug("hmnr", "nhop", "no_checkpoint_is_useless")
def hmnr_without_greater(patch):
    header_without(patch, 1)


@bug("bcs", "nhop", "no_checkpoint_is_useless")
def bcs_without_the_local_increment(patch):
    patch.setattr(BcsTask, "_local_checkpoint", UncoordinatedTask._local_checkpoint)


# Replay.


def in_replay(patch: pytest.MonkeyPatch, change: Callable[[Task, Message], Message]) -> None:
    """Change what senders send again."""

    def changed(self, tasks):
        for task in tasks.values():
            for channel, outbox in task.outbox.items():
                again = [change(task, message) for message in outbox.messages()]
                task.outbox[channel] = Outbox()
                task.outbox[channel].replay(again, len(again))

    then(patch, Restoration, "_prepare_replay", changed)


def cut_replay(patch: pytest.MonkeyPatch, change: Callable[[ReplayPart], ReplayPart]) -> None:
    """Change which messages are sent again."""

    def shorter(self, slot, order):
        parts = tuple(part for part in map(change, order.replay) if part.after < part.through)
        self.order = replace(order, replay=parts)

    then(patch, Restoration, "__init__", shorter)


@bug("uncoordinated", "counting", "channels_continue_at_the_line")
def replay_begins_one_late(patch):
    cut_replay(patch, lambda part: replace(part, after=part.after + 1))


@bug("uncoordinated", "counting", "channels_continue_at_the_line")
def replay_ends_one_early(patch):
    cut_replay(patch, lambda part: replace(part, through=part.through - 1))


@bug("uncoordinated", "q8", "replay_is_faithful")
def watermark_lost_in_replay(patch):
    in_replay(patch, lambda task, message: replace(message, watermark=None))


@bug("bcs", "counting", "replay_is_faithful")
def replayed_messages_stamped_again(patch):
    def stamped(task, message):
        channel = task.job.topology.by_id[message.channel]
        return replace(message, header=task.protocol.stamp(channel).header)

    in_replay(patch, stamped)


@bug("uncoordinated", "counting", "replay_is_faithful")
def log_entries_of_the_older_timeline_win(patch):
    def keep(self, entries, message):
        entries.setdefault(message.seq, ((message.epoch, self._incarnation), message))

    patch.setattr(MemoryLog, "_keep", keep)


# Channels and rollbacks.


@bug("aligned", "counting", "message_is_of_this_epoch")
def no_fencing(patch):
    """The guard of the order is gone, too."""
    patch.setattr(Inputs, "check_order", lambda self, message, received, kept=(): True)
    receive = Slot.receive

    def trusting(self, source, frame):
        if self.tasks:
            life = (self.epoch, self.peers[source], self.incarnation)
            receive(self, source, replace(frame, life=life))

    patch.setattr(Slot, "receive", trusting)


@bug("aligned", "counting", "messages_come_in_order")
def newest_message_taken_first(patch):
    """The guard of the order is gone, too."""

    def pop(self, channel):
        inbox = self.inbox[channel]
        messages = [k for k, payload in enumerate(inbox) if isinstance(payload, Message)]
        if isinstance(inbox[0], Marker) or len(messages) < 2:
            payload = inbox.popleft()
        else:
            payload = inbox[messages[1]]
            del inbox[messages[1]]
        if not inbox:
            del self.waiting[channel]
        return payload

    patch.setattr(Inputs, "pop", pop)
    patch.setattr(Inputs, "check_order", lambda self, message, received, kept=(): True)


@bug("aligned", "counting", "run_ends_by_itself")
def credit_never_returned(patch):
    never(patch, Outputs, "refund")


@bug("aligned", "counting", "tasks_stand_at_the_line")
def go_before_all_have_acknowledged(patch):
    patch.setattr(Members, "complete", property(lambda self: True))


# Decisions, output, garbage, the end.


@bug("aligned", "counting", "published_output_was_decided")
def published_before_decided(patch):
    def ticket(self):
        if self.unpublished:
            return Ticket("manifest", self.decision.epoch, None, self.unpublished[0].number)
        return Ticket("decision", self.decision.epoch, None, self.decision.number)

    def step(self):
        if self.unpublished:
            self.unpublished.pop(0)
        else:
            self.durable = True

    patch.setattr(Writing, "ticket", ticket)
    patch.setattr(Writing, "step", step)


@bug("aligned", "counting", "decided_means_durable")
def epoch_begins_without_a_decision(patch):
    ask = Decider.ask

    def hasty(self, intent: Intent):
        if intent.begins_epoch and self.number:
            self.waiting, self.chains = [], intent.chains
            self.on_decided(intent)
        else:
            ask(self, intent)

    patch.setattr(Decider, "ask", hasty)


@bug(
    "aligned",
    "counting",
    "decided_means_durable",
    "published_output_was_decided",
    "tasks_stand_at_the_line",
    faults=PAUSED,
)
def conflict_of_two_coordinators_ignored(patch):
    patch.setattr(Decider, "conflict", lambda self, ticket, found: self.done(ticket))


@bug("aligned", "counting", "published_output_continues", faults=KILLED)
def published_twice_after_a_resume(patch):
    def forgetful(self, past):
        self.public = {}

    then(patch, Decider, "resume", forgetful)


@bug("aligned", "counting", "line_is_not_behind_public_output", faults=DAMAGED)
def rollback_takes_published_output_back(patch):
    """Damage makes the protocol choose the older line, and nobody stops it."""
    patch.setattr(Decider, "published_line", property(lambda self: self.kept.older))


@bug("aligned", "counting", "what_is_kept_is_not_deleted")
def garbage_one_line_early(patch):
    collect = Registry.collect
    patch.setattr(
        Registry, "collect", lambda self, older, newer, policies=None: collect(self, newer, newer)
    )


@bug("aligned", "counting", "what_is_kept_is_not_deleted")
def a_sweep_does_not_know_what_deltas_build_on(patch):
    def without_bases(self):
        known = [meta for metas in self.metas.values() for meta in metas.values()]
        bases = {(meta.task, meta.parent) for meta in known}
        return {key_of(meta) for meta in known if (meta.task, meta.checkpoint) not in bases}

    patch.setattr(Registry, "keys", without_bases)


@bug("aligned", "counting", "what_is_kept_is_not_deleted", faults=KILLED)
def a_sweep_of_a_resumed_coordinator_takes_the_line(patch):
    patch.setattr(Registry, "keys", lambda self: set())


@bug("aligned", "counting", "StorageError")
def a_sweep_takes_output_that_is_held_back(patch):
    patch.setattr(Decider, "held_files", lambda self: set())


@bug(
    "uncoordinated", "counting", "line_is_complete", "kept_lines_are_whole", "counted_means_durable"
)
def log_pruned_too_far(patch):
    collect = Registry.collect

    def greedy(self, older, newer, policies=None):
        found = collect(self, older, newer)
        return replace(found, logs={channel: seq + 1 for channel, seq in found.logs.items()})

    patch.setattr(Registry, "collect", greedy)


@bug("aligned", "counting", "storage_is_bounded")
def garbage_never_collected(patch):
    patch.setattr(Registry, "collect", lambda self, older, newer, policies=None: Collected((), {}))


@bug("uncoordinated", "counting", ORACLE)
def end_without_a_covering_line(patch):
    patch.setattr(coordinator, "covers", lambda *args: True)


@bug("aligned", "counting", ORACLE, "public_output_is_one_chain")
def end_without_a_final_checkpoint(patch):
    def at_once(self, slot, counters):
        if self.final is not None:
            self._end(None)

    then(patch, Coordinator, "_count", at_once)


# An operator that forgets.


@bug("aligned", "q3", ORACLE, faults="kill slot=1 at=1500ms")
def capture_forgets_the_state(patch):
    """What it gives is right until something fails: only a crash shows it."""
    capture = Join.capture

    def forgetful(self, *, full) -> Capture:
        return replace(
            captured := capture(self, full=full),
            parts={name: batch.slice(0, 0) for name, batch in captured.parts.items()},
        )

    patch.setattr(Join, "capture", forgetful)


# Processes that do not start. The engine asks for a life once; the rest is the driver's contract, which
# `sim/world/launching.py` plays.


@bug("aligned", "counting", "lost_slot_is_replaced", faults=BAD_START)
def process_that_dies_before_it_registers_is_not_replaced(patch):
    never(patch, SimLaunches, "failed")


@bug("aligned", "counting", "run_goes_on", faults="kill slot=1 at=590ms")
def one_registration_timer_for_the_whole_run(patch):
    """It rings once, and takes a slot that is just being replaced for one that never started."""

    def one_shot(self, world, boss):
        def check():
            if len(boss.engine.members.registered) < len(world.job.slots):
                boss.give_up("only 2 of 3 slots have started")

        world.at(world.now_us + world.costs.register_us, lambda: boss.call(check))

    then(patch, SimLaunches, "__init__", one_shot)


# A memory with holes.


def exists(store, number: int) -> bool:
    try:
        store.get(ledger.decision_key(number))
    except ObjectMissing:
        return False
    return True


def first_hole(store) -> int:
    """The number before the first decision that is not there."""
    number = 0
    while exists(store, number + 1):
        number += 1
    return number


@bug("aligned", "counting", "resume_goes_on_at_the_last_decision", faults=GAP)
def gap_in_the_ledger_taken_for_its_end(patch):
    """The guard that compares the ledger with the public output is gone, too."""
    patch.setattr(ledger, "last_number", first_hole)
    never(patch, SimOutlet, "reopen")


@bug("aligned", "counting", ORACLE, faults="lose manifest at=1200ms")
def reader_skips_a_manifest_that_is_gone(patch):
    def careless(self):
        chain = ManifestChain()
        for manifest in self.manifests:
            if not manifest.lost:
                chain.add(manifest.number, manifest.extents)
        return chain

    patch.setattr(SimOutlet, "readable", careless)
    never(patch, SimOutlet, "require_all")


def in_manifests(patch: pytest.MonkeyPatch, change: Callable[[list[Any]], None]) -> None:
    """Spoil the third manifest that is written, or what stands around it."""

    def changed(self, manifest):
        if len(self.manifests) == 3:
            change(self.manifests)

    then(patch, SimOutlet, "_write", changed)


def moved(manifest: Any, rows: int) -> Any:
    extents = {t: replace(e, start=e.start + rows) for t, e in manifest.extents.items()}
    return replace(manifest, extents=extents)


@bug("aligned", "counting", "public_output_is_one_chain", faults="")
def manifests_overlap(patch):
    in_manifests(patch, lambda written: written.append(moved(written.pop(), -1)))


@bug("aligned", "counting", "public_output_is_one_chain", faults="")
def manifests_leave_a_gap(patch):
    in_manifests(patch, lambda written: written.append(moved(written.pop(), 1)))


@bug("aligned", "counting", "public_output_is_one_chain", faults="")
def manifest_is_missing(patch):
    in_manifests(patch, lambda written: written.__delitem__(1))


@bug("aligned", "counting", "public_output_is_one_chain", faults="")
def manifest_is_there_twice(patch):
    in_manifests(patch, lambda written: written.append(written[-1]))


@bug("aligned", "counting", "public_output_is_one_chain", faults="")
def last_manifest_is_never_written(patch):
    publish = SimOutlet._write

    def late(self, manifest):
        before = self.__dict__.get("late")
        self.late = manifest
        if before is not None:
            publish(self, before)

    patch.setattr(SimOutlet, "_write", late)


# A coordinator that was deposed and does not know it.


@bug("none", "counting", "deposed_coordinator_ends_nothing")
def result_of_a_deposed_coordinator_wins(patch):
    patch.setattr(SimStorage, "may_end", lambda self, author: True)


@bug("aligned", "counting", "what_is_kept_is_not_deleted", faults=PAUSED)
def deletes_of_a_deposed_coordinator_go_through(patch):
    """It acts on a rollback that it could not decide."""
    deposed = Coordinator._deposed

    def act_all_the_same(self):
        beginning = RecoveryLine(dict.fromkeys(self.job.topology.tasks, INITIAL))
        for meta in self.registry.drop_beyond(beginning):
            self.shell.delete(key_of(meta))
        deposed(self)

    patch.setattr(Coordinator, "_deposed", act_all_the_same)


@bug(
    "uncoordinated",
    "counting",
    "decided_means_durable",
    "published_output_was_decided",
    faults="pause coordinator at=500ms for=1200ms",
)
def number_that_was_collected_is_won_again(patch):
    """It stood still while others decided, and deleted the number that it then finds free."""
    patch.setattr(world_coordinator, "is_superseded", lambda store, number: False)


@bug(
    "aligned",
    "counting",
    "what_is_needed_of_the_ledger_is_not_deleted",
    "resume_goes_on_at_the_last_decision",
)
def signposts_are_collected(patch):
    def all_of_them(self):
        return list(range(self.cleared, self.number))

    patch.setattr(Anchor, "doomed", property(all_of_them))


@bug("aligned", "counting", "what_is_needed_of_the_ledger_is_not_deleted")
def decisions_are_deleted_before_the_anchor_is_durable(patch):
    ask = Decider._write

    def hasty(self, ticket):
        if ticket.kind == "decision":
            for number in self.writing.decision.anchor.doomed:
                self.shell.delete(ledger.decision_key(number))
        ask(self, ticket)

    patch.setattr(Decider, "_write", hasty)
    patch.setattr(SimStorage, "call", slow_store(SimStorage.call))


def slow_store(call: Callable[..., None]) -> Callable[..., None]:
    """A store whose writes take longer than a deletion."""

    def slowly(self, cost_us, *args, **options):
        call(self, cost_us + 20_000, *args, **options)

    return slowly
