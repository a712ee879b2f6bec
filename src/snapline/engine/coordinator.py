"""The coordinator: who lives, which epoch it is, which line is committed, and when the job is done.

It performs what the protocol's coordinator side asks, and does for every protocol alike: registering
slots, the two phases of a rollback, deciding durably, publishing, deleting garbage, finding the end.
A failure may come at any moment, during a rollback too: each begins another epoch.
"""

from collections.abc import Mapping
from typing import assert_never

from snapline.core.effects import (
    CancelTimer,
    Commit,
    CoordinatorEffect,
    Order,
    Persist,
    Rollback,
    Scope,
    SetTimer,
)
from snapline.core.events import (
    AbortRound,
    CoordinatorEvent,
    JobStarted,
    Quiet,
    SnapshotStored,
    SnapshotUnreadable,
    StoreFailed,
    TasksLost,
    Timer,
    TimerFired,
)
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.core.protocol import JobContext
from snapline.engine.checkpoints import key_of
from snapline.engine.control import (
    Counters,
    Go,
    HoldSources,
    InputRead,
    Instruct,
    NotStored,
    Pressure,
    Probe,
    Prune,
    Replaced,
    Report,
    Restore,
    Restored,
    Stop,
    Stored,
    TaskPaused,
    Unreadable,
)
from snapline.engine.control import Order as ToSlot
from snapline.engine.decider import Chains, Decider, Intent, line_of
from snapline.engine.job import Job
from snapline.engine.ledger import Decision
from snapline.engine.levels import plan_restart
from snapline.engine.quiet import QuietDetector
from snapline.engine.registry import Registry
from snapline.engine.shell import (
    Alarm,
    CoordinatorShell,
    ProbeAlarm,
    RetryAlarm,
    Ticket,
    TimerAlarm,
)
from snapline.errors import ProtocolViolation
from snapline.ids import (
    ChannelId,
    CheckpointNo,
    Epoch,
    Incarnation,
    Seq,
    SlotId,
    TaskId,
    checkpoint_label,
    first_checkpoint,
)
from snapline.journal.entry import COORDINATOR, Built, Handled
from snapline.recovery.replay import Origin, ReplayPart

_RESUME_STRIDE = 1 << 16
"""A resumed coordinator numbers incarnations from the next multiple of this: the one before it may have
launched slots of which no decision tells."""


class Coordinator:
    """The engine's half of the coordinator; the other half is the protocol's."""

    def __init__(
        self, job: Job, shell: CoordinatorShell, author: str, past: Decision | None = None
    ) -> None:
        self.job = job
        self.shell = shell
        self.past = past
        seed = f"{job.seed}:coordinator:{past.epoch if past else 0}"
        context = JobContext(job.topology, job.options, job.guarantee, shell.rng(seed))
        self.protocol = job.protocol.coordinator(context)
        self.seed = seed
        self.decider = Decider(job, shell, author, self._decided, self._deposed)
        self.registry = Registry(job.topology)
        self.epoch: Epoch = past.epoch if past else 0
        self.epoch_asked: Epoch = self.epoch  #: the newest epoch that was asked to be decided
        self.incarnations: dict[SlotId, Incarnation] = {}
        self.registered: dict[SlotId, None] = {}  #: slots whose present life has registered
        self.acks: dict[SlotId, int] = {}  #: acknowledgements that are still to come, per slot
        self.rejoining: dict[SlotId, bool] = {}  #: slots that restart alone: do the others know?
        self.restoring = True  #: a rollback is under way: reports of the old epoch do not count
        self.ended = False
        self.memo = past.memo if past else b""
        self.timers: dict[Timer, int] = {}
        self.generation = 0
        self.quiet = QuietDetector(job.slots)
        self.final: Mapping[ChannelId, Seq] | None = (
            None  #: the last numbers, once the job is quiet
        )
        self.pressed: dict[SlotId, None] = {}
        self.line_alone: dict[TaskId, CheckpointNo] = {}  #: where slots that restart alone begin
        #: what the line of this epoch means for channels: numbers to assume, messages to replay
        self.restart: tuple[dict[ChannelId, Seq], tuple[ReplayPart, ...]] = ({}, ())

    # Beginning.

    def start(self) -> None:
        """Begin the first epoch of this coordinator, from nothing or from the past."""
        line: Chains = dict.fromkeys(self.job.topology.tasks, ())
        first = 1
        memo = None
        if self.past is not None:
            self.decider.resume(self.past)
            line.update(self.past.chains)
            self.registry.restore(line)
            metas = tuple(chain[-1] for chain in line.values() if chain)
            memo = self.past.memo
            self.protocol.restore(memo, metas)
            first = (max(self.past.incarnations.values()) // _RESUME_STRIDE + 1) * _RESUME_STRIDE
        now_us = self.shell.now_us()
        self.shell.journal(Built(now_us, COORDINATOR, self.epoch, 0, self.seed, memo))
        self.incarnations = dict.fromkeys(self.job.slots, first)
        self._ask_epoch(line)

    def _ask_epoch(self, line: Chains) -> None:
        self.restoring = True
        self.epoch_asked += 1
        self.timers = {}
        self.final = None
        incarnations = dict(self.incarnations)
        self.decider.ask(Intent(line, self.epoch_asked, incarnations, self.memo, True))

    # The protocol's other half.

    def handle(self, event: CoordinatorEvent) -> None:
        """Give an event to the protocol and perform what it answers, in order."""
        if self.ended:
            return
        effects = self.protocol.handle(event)
        self.shell.journal(Handled(self.shell.now_us(), COORDINATOR, self.epoch, 0, event, effects))
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: CoordinatorEffect) -> None:
        """Do what the protocol asks."""
        match effect:
            case Order(targets, command):
                if isinstance(command, AbortRound):
                    self.registry.abort(command.checkpoint)
                by_slot: dict[SlotId, list[TaskId]] = {}
                for task in targets:
                    by_slot.setdefault(self.job.slot_by_task[task], []).append(task)
                for slot, tasks in by_slot.items():
                    self._send(slot, Instruct(self.epoch, tuple(tasks), command))
            case Persist(memo):
                self.memo = memo
            case Commit(line):
                self._commit(line)
            case Rollback(line, scope):
                if scope is Scope.ALL:
                    self._rollback(line)
                else:
                    self.line_alone.update(line.checkpoints)
            case SetTimer(timer, delay_ms):
                self.generation += 1
                self.timers[timer] = self.generation
                alarm = TimerAlarm(self.epoch, None, timer, self.generation)
                self.shell.set_alarm(alarm, delay_ms)
            case CancelTimer(timer):
                self.timers.pop(timer, None)
            case _:
                assert_never(effect)

    def _commit(self, line: RecoveryLine) -> None:
        intent = Intent(self.registry.chains(line), self.epoch, self.incarnations, self.memo, False)
        self.decider.ask(intent)

    def _rollback(self, line: RecoveryLine) -> None:
        published = self.decider.published_line.checkpoints
        behind = [task for task, n in line.checkpoints.items() if n < published[task]]
        if behind:
            number = checkpoint_label(line.checkpoints[behind[0]])
            self._end(
                f"the published line is damaged: {behind[0]} could only go back to checkpoint "
                f"{number}, and output that was published already would come again"
            )
            return
        self._ask_epoch(self.registry.chains(line))

    # Slots come and go.

    def registered_slot(self, slot: SlotId, incarnation: Incarnation) -> None:
        """A slot has started and waits for orders."""
        if incarnation != self.incarnations.get(slot) or self.ended:
            return
        self.registered[slot] = None
        if slot in self.rejoining:
            self._rejoin(slot)
        elif self.epoch == self.epoch_asked:
            self._order_restore(slot)

    def lost(self, slot: SlotId, incarnation: Incarnation) -> None:
        """A life of a slot is gone, or does not answer: it will never be heard again."""
        if incarnation != self.incarnations.get(slot) or self.ended:
            return
        self.shell.note(COORDINATOR, self.epoch, "lost", {"slot": slot, "incarnation": incarnation})
        self.registered.pop(slot, None)
        self.pressed.pop(slot, None)
        self.acks[slot] = 0
        self.incarnations[slot] = incarnation + 1
        epoch_asked = self.epoch_asked
        self.handle(TasksLost(self.job.hosted[slot]))
        if self.ended:
            return
        if self.epoch_asked == epoch_asked:
            self.rejoining[slot] = False  # the others keep running
            self.quiet.lost(slot)
        self.shell.launch(slot, incarnation + 1)

    # The two phases of a rollback.

    def _decided(self, intent: Intent) -> None:
        """A decision is durable and its output public: act on it."""
        detail = {
            "epoch": intent.epoch,
            "line": line_of(intent.chains).checkpoints,
            "number": self.decider.number,
        }
        self.shell.note(COORDINATOR, self.epoch, "decided", detail)
        if intent.begins_epoch:
            self._begin_epoch(intent)
        else:
            self._collect()
            self._finish_if_covered()

    def _begin_epoch(self, intent: Intent) -> None:
        self.epoch = intent.epoch
        for meta in self.registry.drop_beyond(line_of(intent.chains)):
            self.shell.delete(key_of(meta))
        self.rejoining = {}
        self.pressed = {}
        self.quiet = QuietDetector(self.job.slots)
        self.acks = dict.fromkeys(self.job.slots, 1)
        if self.epoch != self.epoch_asked:
            return  # another failure has come meanwhile
        self._collect()
        line = self.decider.line_metas()
        self.restart = plan_restart(self.job.topology, line, self.job.guarantee)
        if self.epoch == (self.past.epoch if self.past else 0) + 1:
            for slot in self.job.slots:
                self.shell.launch(slot, self.incarnations[slot])
        for slot in tuple(self.registered):
            self._order_restore(slot)

    def _order_restore(self, slot: SlotId) -> None:
        received, replay = self.restart
        chains = {task: self.decider.chains[task] for task in self.job.hosted[slot]}
        parts = tuple(part for part in replay if self._keeper(part) == slot)
        order = Restore(self.epoch, dict(self.incarnations), chains, received, parts)
        self._send(slot, order)

    def _keeper(self, part: ReplayPart) -> SlotId:
        channel = self.job.topology.by_id[part.channel]
        keeper = channel.target if part.origin is Origin.RECEIVER else channel.source
        return self.job.slot_by_task[keeper]

    def _rejoin(self, slot: SlotId) -> None:
        chains = {t: self.registry.chain(t, self.line_alone[t]) for t in self.job.hosted[slot]}
        self.acks[slot] = 1
        self._send(slot, Restore(self.epoch, dict(self.incarnations), chains, {}, (), alone=True))

    def _introduce(self, slot: SlotId) -> None:
        """Only now: what the others send to the new life must find it in this epoch."""
        self.rejoining[slot] = True
        for other in tuple(self.registered):
            if other != slot:
                self.acks[other] = self.acks.get(other, 0) + 1
                self._send(other, Replaced(self.epoch, slot, self.incarnations[slot]))

    def _acknowledged(self, slot: SlotId) -> None:
        self.acks[slot] -= 1
        if self.rejoining.get(slot) is False:
            self._introduce(slot)
        if len(self.registered) < len(self.job.slots) or any(self.acks.values()):
            return
        if not all(self.rejoining.values()):
            return
        if self.restoring:
            self.restoring = False
            self.rejoining = {}
            self._send_all(Go(self.epoch))
            self.shell.note(COORDINATOR, self.epoch, "running", {})
            self.handle(JobStarted(first_checkpoint(self.epoch)))
        else:
            for back in tuple(self.rejoining):
                self._send(back, Go(self.epoch))
            self.rejoining = {}

    # Reports.

    def report(self, slot: SlotId, incarnation: Incarnation, report: Report) -> None:
        """A slot reported something. What an old life or an old epoch says does not count."""
        stale = incarnation != self.incarnations.get(slot) or report.epoch != self.epoch
        if stale or self.epoch != self.epoch_asked or self.ended:
            detail = {"slot": slot, "incarnation": incarnation, "report": type(report).__name__}
            self.shell.note(COORDINATOR, self.epoch, "fenced", detail)
            return
        match report:
            case Restored():
                self._acknowledged(slot)
            case Stored(_, meta):
                self.registry.add(meta)
                self.handle(SnapshotStored(meta))
            case NotStored(_, task, checkpoint):
                self.handle(StoreFailed(task, checkpoint))
            case Unreadable(_, task, checkpoint):
                self._unreadable(task, checkpoint)
            case TaskPaused(_, paused):
                self.handle(paused)
            case InputRead():
                if self.quiet.input_read(slot):
                    self._probe()
            case Counters():
                self._count(slot, report)
            case Pressure(_, high):
                self._press(slot, high)
            case _:
                assert_never(report)

    def _unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        # Deltas of a damaged snapshot are as damaged as it is; the last answer has them all.
        effects: tuple[CoordinatorEffect, ...] = ()
        for number in self.registry.damaged(task, checkpoint):
            event = SnapshotUnreadable(task, number)
            effects = self.protocol.handle(event)
            now_us = self.shell.now_us()
            self.shell.journal(Handled(now_us, COORDINATOR, self.epoch, 0, event, effects))
        for effect in effects:
            self.perform(effect)

    def _press(self, slot: SlotId, high: bool) -> None:
        held = bool(self.pressed)
        if high:
            self.pressed[slot] = None
        else:
            self.pressed.pop(slot, None)
        if held != bool(self.pressed):
            self._send_all(HoldSources(self.epoch, not held))

    # Garbage and the end.

    def _collect(self) -> None:
        garbage = self.registry.collect(self.decider.kept.older, line_of(self.decider.chains))
        for meta in garbage.metas:
            self.shell.delete(key_of(meta))
        by_slot: dict[SlotId, dict[ChannelId, Seq]] = {}
        for channel, through in garbage.logs.items():
            source = self.job.topology.by_id[channel].source
            by_slot.setdefault(self.job.slot_by_task[source], {})[channel] = through
        if not self.restoring:
            for slot, logs in by_slot.items():
                self._send(slot, Prune(self.epoch, logs))
        self.shell.note(COORDINATOR, self.epoch, "collected", {"snapshots": len(garbage.metas)})

    def _probe(self) -> None:
        self._send_all(Probe(self.epoch, self.quiet.next_wave()))

    def _count(self, slot: SlotId, counters: Counters) -> None:
        if not self.quiet.answer(slot, counters):
            return
        if self.quiet.is_quiet():
            self.final = dict(self.quiet.seqs)
            self.handle(Quiet())
            if not self.job.protocol.checkpoints:
                self._end(None)
        else:
            self.shell.set_alarm(ProbeAlarm(self.epoch), self.job.settings.probe_ms)

    def _finish_if_covered(self) -> None:
        if self.final is None or self.ended or self.decider.writing or self.decider.waiting:
            return
        if not all(self._covers(m, self.final) for m in self.decider.line_metas().values()):
            return
        if self.decider.held:
            line = self.decider.chains
            self.decider.ask(Intent(line, self.epoch, self.incarnations, self.memo, False, True))
        else:
            self._end(None)

    def _covers(self, meta: CheckpointMeta, final: Mapping[ChannelId, Seq]) -> bool:
        topology = self.job.topology
        sent = all(meta.sent.get(c.id, 0) == final[c.id] for c in topology.outputs[meta.task])
        return sent and all(
            meta.received.get(c.id, 0) == final[c.id] for c in topology.inputs[meta.task]
        )

    def _end(self, problem: str | None) -> None:
        self.ended = True
        self._send_all(Stop())
        what = "stopped" if problem else "finished"
        self.shell.note(COORDINATOR, self.epoch, what, {"problem": problem} if problem else {})
        self.shell.finish(problem)

    def _deposed(self) -> None:
        self.ended = True
        self.shell.note(COORDINATOR, self.epoch, "deposed", {})
        self.shell.deposed()

    # Plumbing.

    def _send(self, slot: SlotId, order: ToSlot) -> None:
        self.shell.send(slot, self.incarnations[slot], order)

    def _send_all(self, order: ToSlot) -> None:
        for slot in self.job.slots:
            self._send(slot, order)

    def alarm(self, alarm: Alarm) -> None:
        """An alarm went off."""
        if self.ended:
            return
        match alarm:
            case TimerAlarm(_, None, timer, generation):
                if self.timers.get(timer) == generation:
                    del self.timers[timer]
                    self.handle(TimerFired(timer))
            case ProbeAlarm(epoch):
                if epoch == self.epoch == self.epoch_asked and not self.restoring:
                    self._probe()
            case RetryAlarm(ticket):
                self.decider.retry(ticket)
            case _:
                raise ProtocolViolation(f"the coordinator never set {alarm}")

    def done(self, ticket: Ticket) -> None:
        """A write has succeeded."""
        if not self.ended:
            self.decider.done(ticket)

    def failed(self, ticket: Ticket) -> None:
        """A write has failed."""
        if not self.ended:
            self.decider.failed(ticket)

    def conflict(self, ticket: Ticket, found: bytes) -> None:
        """A name was taken already."""
        if not self.ended:
            self.decider.conflict(ticket, found)
