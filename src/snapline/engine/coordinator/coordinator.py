"""The coordinator: knows which slots live and which epoch it is, commits lines, and ends the job.

It performs what the protocol's coordinator side asks, and does for every protocol alike: registering
slots, the two phases of a rollback, deciding durably, publishing, deleting garbage, finding the end.
A failure may come at any moment, during a rollback too: each begins another epoch.
"""

from collections.abc import Iterable
from typing import assert_never

from snapline.core import effects, events
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.engine import control
from snapline.engine.coordinator.decider import Chains, Decider, Intent, line_of
from snapline.engine.coordinator.holding import STOPPED, SourceHold, how_it_ended
from snapline.engine.coordinator.ledger import Decision
from snapline.engine.coordinator.members import Members
from snapline.engine.coordinator.quiet import Final, QuietDetector, covers
from snapline.engine.coordinator.registry import Registry
from snapline.engine.coordinator.restoring import RestorePlan, declare
from snapline.engine.job import Job
from snapline.engine.shell import Alarm, CoordinatorShell, ProbeAlarm, RetryAlarm, TimerAlarm
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.timers import Timers
from snapline.errors import ProtocolViolation
from snapline.ids import CheckpointNo, Epoch, Incarnation, SlotId, TaskId, first_checkpoint
from snapline.journal import happenings
from snapline.journal.entry import COORDINATOR, Built, Handled


class Coordinator:
    """The engine's half of the coordinator; the other half is the protocol's."""

    def __init__(
        self, job: Job, shell: CoordinatorShell, author: str, past: Decision | None = None
    ) -> None:
        self.job = job
        self.shell = shell
        self.past = past
        self.seed = f"{job.seed}:coordinator:{past.epoch if past else 0}"
        self.protocol = job.protocol.coordinator(job.context(shell.rng(self.seed)))
        self.decider = decider = Decider(job, shell, author, self._decided, self._deposed)
        #: what the store answers
        self.done, self.failed, self.conflict = decider.done, decider.failed, decider.conflict
        self.registry = Registry(job.topology, job.remembered)
        self.epoch: Epoch = past.epoch if past else 0
        self.epoch_asked: Epoch = self.epoch  #: the newest epoch that was asked to be decided
        #: what is kept of each task, if each goes back by itself
        self.policies = job.policies if job.protocol.publishes_at_once else None
        self.members = Members(job, self._send, self.registry.newest)
        #: a resumed job without lines goes on at the present, as a lost slot of it would
        self.resumes_alone = past is not None and job.protocol.publishes_at_once
        self.restoring = True  #: a rollback is under way: reports of the old epoch do not count
        self.ended = False
        self.memo = past.memo if past else b""
        self.timers: Timers[events.Timer] = Timers()
        self.quiet = QuietDetector(job.slots)
        self.final: Final | None = None  #: what the last line must hold, once the job is quiet
        self.hold = SourceHold(lambda hold: self._send_all(control.HoldSources(self.epoch, hold)))
        self.plan = RestorePlan(job)  #: what slots restore in the epoch that was asked for

    # The beginning of a run.

    def start(self) -> None:
        """Begin the first epoch of this coordinator, from nothing or from the past."""
        line: Chains = dict.fromkeys(self.job.topology.tasks, ())
        memo = self.past.memo if self.past is not None else None
        metas: tuple[CheckpointMeta, ...] = ()
        if self.past is not None:
            self.decider.resume(self.past)
            line.update(self.past.chains)
            self.registry.restore(line)
            metas = tuple(chain[-1] for chain in line.values() if chain)
            self.protocol.restore(self.past.memo, metas)
        now_us = self.shell.now_us()
        self.shell.journal(Built(now_us, COORDINATOR, self.epoch, 0, self.seed, memo, 0, metas))
        self.members.begin(self.past.incarnations if self.past is not None else {})
        self._ask_epoch(line)

    def _ask_epoch(self, line: Chains) -> None:
        self.restoring = True
        self.epoch_asked += 1
        self.timers.clear()
        self.final = None
        incarnations = dict(self.members.incarnations)
        line = self.plan.settle(line, self.registry)
        self.decider.ask(Intent(line, self.epoch_asked, incarnations, self.memo, True))

    # Events for the protocol, and the effects with which it answers.

    def handle(self, event: events.CoordinatorEvent) -> None:
        """Give an event to the protocol and perform what it answers, in order."""
        if not self.ended:
            for effect in self._tell(event):
                self.perform(effect)

    def _tell(self, event: events.CoordinatorEvent) -> tuple[effects.CoordinatorEffect, ...]:
        answer = self.protocol.handle(event)
        self.shell.journal(Handled(self.shell.now_us(), COORDINATOR, self.epoch, 0, event, answer))
        return answer

    def perform(self, effect: effects.CoordinatorEffect) -> None:
        """Perform one effect that the protocol asks for."""
        match effect:
            case effects.Order(targets, command):
                self.job.check_known(command)
                if command.aborts is not None:
                    self.registry.abort(command.aborts)
                for slot, tasks in self.job.by_slot(targets).items():
                    self._send(slot, control.Instruct(self.epoch, tasks, command))
            case effects.Persist(memo):
                self.memo = memo
            case effects.Commit(line):
                self._ask_line(self.registry.chains(line))
            case effects.Rollback(line, scope):
                if scope is effects.Scope.ALL:
                    self._rollback(line)
                else:
                    self._rejoin_at(line)
            case effects.SetTimer(timer, delay_ms):
                self.job.check_known(timer)
                generation = self.timers.set(timer)
                self.shell.set_alarm(TimerAlarm(self.epoch, None, timer, generation), delay_ms)
            case effects.CancelTimer(timer):
                self.timers.cancel(timer)
            case _:
                assert_never(effect)

    def _ask_line(self, line: Chains, *, flush: bool = False) -> None:
        lives = self.members.incarnations
        self.decider.ask(Intent(line, self.epoch, lives, self.memo, False, flush))

    def _rollback(self, line: RecoveryLine) -> None:
        if objection := self.decider.objection(line):
            self._end(objection)
        else:
            self._ask_epoch(self.registry.chains(line))

    def _rejoin_at(self, line: RecoveryLine) -> None:
        """Let lost slots restart at these checkpoints; one that restores already is told anew."""
        chains, slots = self.registry.chains(line), self.job.by_slot(tuple(line.checkpoints))
        if self.restoring and self.members.go_back(slots):
            self._ask_epoch({**self.decider.chains, **chains})  # one of them cannot
            return
        self.members.alone.update(chains)
        for slot in slots:
            self.members.rejoin(slot, self.epoch)

    # Slots come and go.

    def registered_slot(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Register a slot that has started, and tell it what to restore as soon as that is decided."""
        if self.ended or not self.members.register(slot, incarnation):
            return
        if slot in self.members.rejoining:
            self.members.rejoin(slot, self.epoch)
        elif self.epoch == self.epoch_asked:
            self._order_restore(slot)

    def lost(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Give up a life of a slot that is gone or silent, and have another one launched."""
        self._replace(happenings.SlotLost(slot, incarnation))

    def leave(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Let a life of a slot go when a line holds all that was taken in: see `holding`."""
        present = incarnation == self.members.incarnations.get(slot)
        if present and not self.ended and slot not in self.hold.leaving:
            self.hold.leaving[slot] = None
            self._drain()

    def _replace(self, gone: happenings.SlotLost | happenings.SlotLeft) -> None:
        slot = gone.slot
        if self.ended or not self.members.lose(slot, gone.incarnation):
            return
        self.shell.note(COORDINATOR, self.epoch, gone)
        self.hold.forget(slot)
        epoch_asked = self.epoch_asked
        self.handle(events.TasksLost(self.job.hosted[slot]))
        if self.ended:
            return
        if self.epoch_asked == epoch_asked:  # the others keep running
            self.members.sever(slot, self.epoch, self.shell.now_us() // 1000)
            self.quiet.lost(slot)
            self.hold.tell(self.hold.held)
            self._let_go()
        self.shell.launch(slot, self.members.incarnations[slot])

    # The two phases of a rollback.

    def _decided(self, intent: Intent) -> None:
        """Act on a decision, now that it is durable and its output is public."""
        line, number = line_of(intent.chains).checkpoints, self.decider.number
        self.shell.note(COORDINATOR, self.epoch, happenings.LineDecided(number, intent.epoch, line))
        if intent.begins_epoch:
            self._begin_epoch(intent)
        else:
            self._collect()
            self._finish_if_covered()

    def _begin_epoch(self, intent: Intent) -> None:
        self.epoch = intent.epoch
        self._delete(self.registry.drop_beyond(line_of(intent.chains)))
        self.members.await_all()
        self.hold.pressed = {}
        self.quiet = QuietDetector(self.job.slots)
        if self.epoch != self.epoch_asked:
            return  # another failure has come meanwhile
        self._collect()
        if self.epoch == (self.past.epoch if self.past else 0) + 1:
            for slot in self.job.slots:
                self.shell.launch(slot, self.members.incarnations[slot])
        for slot in tuple(self.members.registered):
            self._order_restore(slot)

    def _order_restore(self, slot: SlotId) -> None:
        lives, line = self.members.incarnations, self.decider.chains
        self._send(slot, self.plan.order(slot, self.epoch, lives, line, alone=self.resumes_alone))

    def _let_go(self) -> None:
        if self.restoring:
            if not self.members.complete:
                return
            self.restoring, back = False, self.members.let_all_back()
            if self.hold.draining:
                self.hold.tell(True)  # BEFORE they go: nothing new is read in this epoch
            self._send_all(control.Go(self.epoch))
            if self.job.protocol.saves:
                self.shell.sweep(self.epoch, self.registry.keys(), self.decider.held_files())
            if self.resumes_alone:
                every = dict.fromkeys(self.job.slots, 0)
                declare(self.shell, self.members, self.epoch, every, self.decider.chains, {})
            else:
                declare(self.shell, self.members, self.epoch, back, self.members.alone, {})
            self.shell.note(COORDINATOR, self.epoch, happenings.JobRunning())
            self.handle(events.JobStarted(first_checkpoint(self.epoch)))
        else:
            back = self.members.let_back(self.epoch, held=self.hold.held)
            members = self.members
            declare(self.shell, members, self.epoch, back, members.alone, members.missed)
            for slot in back:
                self.shell.note(f"slot/{slot}", self.epoch, happenings.SlotRunning())
        if self.hold.draining and not self.members.rejoining:
            self._probe()

    # Reports.

    def report(self, slot: SlotId, incarnation: Incarnation, report: control.Report) -> None:
        """Act on the report of a slot, unless it is from an old life or epoch, or answers an old order."""
        stale = incarnation != self.members.incarnations.get(slot) or report.epoch != self.epoch
        stale |= self.members.is_overtaken(slot, report)
        if stale or self.epoch != self.epoch_asked or self.ended:
            fenced = happenings.ReportFenced(slot, incarnation, type(report).__name__)
            self.shell.note(COORDINATOR, self.epoch, fenced)
            return
        match report:
            case control.Restored() | control.Met():
                if isinstance(report, control.Restored):
                    self.registry.restored(self.job.hosted[slot], report.groups)
                self.members.acknowledged(slot, report)
                self._let_go()
            case control.Stored(_, meta, moments):
                self.registry.add(meta)
                added, dropped = report.added, report.dropped
                self.registry.groups.add(meta.task, meta.checkpoint, added, dropped)
                if moments is not None:
                    timed = happenings.CheckpointTimed(meta.task, meta.checkpoint, moments)
                    self.shell.note(COORDINATOR, self.epoch, timed)
                self.handle(events.SnapshotStored(meta))
            case control.NotStored(_, task, checkpoint):
                self.handle(events.StoreFailed(task, checkpoint))
            case control.Unreadable(_, task, checkpoint):
                self._unreadable(task, checkpoint)
            case control.TaskPaused(_, paused):
                self.handle(paused)
            case control.InputRead():
                if self.quiet.input_read(slot):
                    self._probe()
            case control.Counters():
                self._count(slot, report)
            case control.Pressure(_, high):
                self.hold.press(slot, high)
            case _:
                assert_never(report)

    def _unreadable(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        if self.members.outdated(task, checkpoint):
            return  # a second order that the slot can follow would build its tasks twice
        if meta := self.registry.metas[task].get(checkpoint):
            self.decider.unreadable = key_of(meta)
        # Deltas of a damaged snapshot are lost with it. Only the last answer knows of all of them.
        answer: tuple[effects.CoordinatorEffect, ...] = ()
        for number in self.registry.damage(task, checkpoint):
            answer = self._tell(events.SnapshotUnreadable(task, number))
        for effect in answer:
            self.perform(effect)

    # Garbage and the end.

    def stop(self) -> None:
        """Take in no more, and end with a line that holds all that was taken in: see `holding`."""
        if self.ended or self.hold.stopping:
            return
        self.hold.stopping = True
        if self.job.protocol.publishes_at_once:
            self._end(STOPPED)  # there are no lines, so there is nothing to wait for
        else:
            self._drain()

    def _drain(self) -> None:
        if not self.restoring:
            self.hold.tell(True)
            self._probe()

    def _collect(self) -> None:
        line = line_of(self.decider.chains)
        garbage = self.registry.collect(self.decider.kept.older, line, self.policies)
        self._delete(garbage.metas)
        if not self.restoring:
            for slot, logs in self.job.by_sender(garbage.logs).items():
                if slot not in self.members.rejoining:  # else it has no tasks yet: pruned later
                    self._send(slot, control.Prune(self.epoch, logs))
        self.shell.note(COORDINATOR, self.epoch, happenings.GarbageCollected(len(garbage.metas)))

    def _delete(self, metas: Iterable[CheckpointMeta]) -> None:
        """Delete snapshots, and the groups that nobody refers to any more."""
        for key in (*map(key_of, metas), *self.registry.groups.take_garbage()):
            self.shell.delete(key)

    def _probe(self) -> None:
        self._send_all(control.Probe(self.epoch, self.quiet.next_wave()))

    def _count(self, slot: SlotId, counters: control.Counters) -> None:
        if not self.quiet.answer(slot, counters):
            return
        if self.quiet.is_quiet(held=self.hold.draining):
            self.final = self.quiet.final()
            self.handle(events.Quiet())
            if self.job.protocol.publishes_at_once:
                self._complete()
        else:
            alarm = ProbeAlarm(self.epoch, self.quiet.wave)
            self.shell.set_alarm(alarm, self.job.settings.probe_ms)

    def _finish_if_covered(self) -> None:
        if self.final is None or self.ended or self.decider.writing or self.decider.waiting:
            return
        if covers(self.job.topology, self.decider.line_metas(), self.final):
            self._complete()

    def _complete(self) -> None:
        """End the job, or let slots leave: it is quiet, and its line, if it has lines, holds everything."""
        if self.hold.leaving and not self.hold.stopping and not self.quiet.all_read:
            self.final = None
            for slot in tuple(self.hold.leaving):
                left = happenings.SlotLeft(slot, self.members.incarnations[slot])
                self.shell.dismiss(slot, left.incarnation)
                self._replace(left)
        elif self.decider.held:
            self._ask_line(self.decider.chains, flush=True)
        else:
            self._end(None if self.quiet.all_read else STOPPED)

    def _end(self, problem: str | None) -> None:
        self.ended = self.decider.over = True
        self._send_all(control.Stop())
        line = None if self.job.protocol.publishes_at_once else self.decider.number
        self.shell.note(COORDINATOR, self.epoch, how_it_ended(problem, line))
        self.shell.finish(problem)

    def _deposed(self) -> None:
        self.ended = self.decider.over = True
        self.shell.note(COORDINATOR, self.epoch, happenings.CoordinatorDeposed())
        self.shell.deposed()

    # Sending orders; alarms, and answers of the store.

    def _send(self, slot: SlotId, order: control.Order) -> None:
        self.shell.send(slot, self.members.incarnations[slot], order)

    def _send_all(self, order: control.Order) -> None:
        for slot in self.job.slots:
            self._send(slot, order)

    def alarm(self, alarm: Alarm) -> None:
        """Act on an alarm that went off, if it still matters."""
        if self.ended:
            return
        match alarm:
            case TimerAlarm(_, None, timer, generation):
                if self.timers.fires(timer, generation):
                    self.handle(events.TimerFired(timer))
            case ProbeAlarm(epoch, wave):
                current = epoch == self.epoch == self.epoch_asked and wave == self.quiet.wave
                wanted = self.hold.draining or self.quiet.all_read
                if current and wanted and not self.restoring:
                    self._probe()
            case RetryAlarm(ticket):
                self.decider.retry(ticket)
            case _:
                raise ProtocolViolation(f"the coordinator never set {alarm}")
