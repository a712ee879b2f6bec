"""Watches a run: keeps its own account of what happened, counts, and calls the invariants.

The account is independent of the engine: it is made from the journal alone (what protocol objects were told
and answered, what was sent), and the invariants compare the engine's claims with it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from snapline.core.effects import (
    Block,
    Commit,
    Deliver,
    Order,
    Rollback,
    Scope,
    Snapshot,
    TaskEffect,
    Unblock,
)
from snapline.core.events import MessageArrived, SnapshotStored, SnapshotUnreadable
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Message, RecoveryLine
from snapline.engine.coordinator.ledger import Decision
from snapline.engine.slot.checkpoints import key_of
from snapline.ids import Incarnation, TaskId
from snapline.journal.entry import COORDINATOR, Entry, Handled, Happened, Stamped
from snapline.journal.fault_happenings import (
    CoordinatorKilled,
    CoordinatorResumed,
    ProcessKilled,
    RecordSpoiled,
    SnapshotDamaged,
)
from snapline.journal.happenings import (
    CoordinatorDeposed,
    FrameFenced,
    GarbageCollected,
    Happening,
    JobRunning,
    LaunchFailed,
    LineDecided,
    MessageReplayed,
    MessagesDiscarded,
    MessagesOvertaken,
    RegisteredLate,
    ReportFenced,
    SentAway,
    SlotLeft,
    SlotLost,
    SlotRunning,
)
from snapline.journal.loss_happenings import (
    GroupLost,
    RowsMissed,
    StaleDropped,
    StaleRowsDropped,
    TaskLoss,
)
from snapline.recovery.kept_lines import KeptLines, is_behind
from snapline.sim.watch import fencing, groups, invariants
from snapline.sim.watch.account import Line, RunAccount, TaskAccount
from snapline.sim.watch.alone import Alone
from snapline.sim.world.world import World
from snapline.storage.api import Extent

Loss: TypeAlias = ProcessKilled | SlotLost | CoordinatorKilled | CoordinatorResumed
"""Something is lost, and has to be recovered from what is durable."""

COUNTED: Mapping[type[Happening], str] = {
    ReportFenced: "fenced",
    FrameFenced: "fenced",
    CoordinatorResumed: "coordinator-resumed",
    CoordinatorDeposed: "deposed",
    SnapshotDamaged: "damaged",
    RecordSpoiled: "damaged",
    LaunchFailed: "launch failed",
    RegisteredLate: "late",
    SentAway: "sent away",
    MessagesOvertaken: "overtaken",
    MessagesDiscarded: "discarded",
    SlotRunning: "rejoined",
    StaleRowsDropped: "stale rows",
}
"""Happenings that are only counted, and under which name."""


class Monitor(RunAccount):
    """Keeps the account of a whole run, from the first entry to the last."""

    def __init__(self, world: World, *, thorough: bool = True) -> None:
        super().__init__(world, thorough=thorough)
        self._alone: Alone | None = None  #: where lost slots restart alone; `alone` makes it

    @property
    def alone(self) -> Alone | None:
        """The account of lives that begin while others go on; None if the protocol has lines."""
        if self._alone is None and self.world.job.protocol.publishes_at_once:
            self._alone = Alone(self.world, self.metas)
        return self._alone

    def see(self, entry: Entry) -> None:
        """Take an entry of the journal into the account, and check the invariants about it."""
        if isinstance(entry, Handled):
            if entry.actor == COORDINATOR:
                if entry.epoch >= self.epoch:  # else: a zombie, whose effects come to nothing
                    self._coordinator(entry)
            else:
                self._task(entry)
        elif isinstance(entry, Stamped):
            invariants.channels_continue_at_the_line(self, entry.channel, entry.seq, entry.epoch)
            account = self._account(entry)
            if (
                self.alone is not None and self.accounts[TaskId(entry.actor)] is account
            ):  # no zombie
                self.alone.stamps(entry.channel, entry.seq, entry.records)
            if entry.stamp.log:
                account.logged[entry.channel] = entry.seq
            self.stats["messages"] += 1
        elif isinstance(entry, Happened):
            self._happened(entry)
        elif entry.actor == COORDINATOR:
            self.kept = None  # a resumed coordinator knows no line but the last

    def _account(self, entry: Handled | Stamped) -> TaskAccount:
        task = TaskId(entry.actor)
        account = self.accounts.get(task)
        if account is None or (account.epoch, account.incarnation) < (
            entry.epoch,
            entry.incarnation,
        ):
            account = self.accounts[task] = TaskAccount(entry.epoch, entry.incarnation)
        elif (account.epoch, account.incarnation) != (entry.epoch, entry.incarnation):
            return TaskAccount(entry.epoch, entry.incarnation)  # a zombie: not kept
        return account

    def _task(self, entry: Handled) -> None:
        account = self._account(entry)
        if isinstance(entry.event, MessageArrived):
            invariants.message_is_of_this_epoch(entry, entry.event.message)
            invariants.blocked_channel_is_not_read(entry, account, entry.event.message)
        task = TaskId(entry.actor)
        for effect in entry.effects:
            self._effect(task, account, entry, effect)  # type: ignore[arg-type]

    def _effect(
        self, task: TaskId, account: TaskAccount, entry: Handled, effect: TaskEffect
    ) -> None:
        match effect:
            case Deliver(message):
                invariants.messages_come_in_order(self, entry, account, message)
                live = entry.epoch == self.epoch and self.accounts.get(task) is account
                if self.alone is not None and live and self.alone.lives(task, entry.incarnation):
                    self.alone.takes_in(message, account.delivered.get(message.channel))
                    self.stats["gap"] = self.alone.gaps
                account.delivered[message.channel] = message.seq
                self.stats["delivered"] += 1
            case Snapshot(checkpoint):
                invariants.checkpoint_number_is_new(self, task, checkpoint)
                if self.alone is not None:
                    self.alone.takes(task, checkpoint)
                self.taken[task, checkpoint] = dict(account.delivered)
                self.before[task, checkpoint], account.taken = account.taken, checkpoint
                self.stats["checkpoints"] += 1
                self.stats["forced"] += effect.forced
            case Block(channel):
                account.blocked[channel] = None
                if self.world.job.topology.by_id[channel].feedback:
                    self.stats["early back-edge marker"] += 1
            case Unblock(channel):
                account.blocked.pop(channel, None)
            case _:
                pass

    def _coordinator(self, entry: Handled) -> None:
        if isinstance(entry.event, SnapshotStored):
            meta = entry.event.meta
            invariants.dead_checkpoints_do_not_count(self, entry, meta)
            invariants.checkpoints_count_in_order(self, meta)
            invariants.counted_means_durable(self, meta)
            invariants.deltas_have_a_base(self, meta)
            invariants.snapshot_covers_what_was_delivered(self, meta)
            groups.counted_groups_are_durable(self, meta)
            self.metas[meta.task, meta.checkpoint] = meta
            self.stored[key_of(meta)] = meta.task, meta.checkpoint
            self.reported[meta.task, meta.checkpoint] = meta
            self.live.setdefault(meta.task, []).append(meta.checkpoint)
            if self.alone is not None:
                self.alone.counts(meta)
        elif isinstance(entry.event, SnapshotUnreadable) and self.alone is not None:
            self.alone.damaged(entry.event.task, entry.event.checkpoint)
            self.stats["unreadable"] += 1
        for effect in entry.effects:
            match effect:
                case Order(_, command) if command.aborts is not None:
                    self.stats["round aborted"] += 1
                    self.round_open = False
                case Order(_, command) if command.begins is not None:
                    self.round_open = True
                case Commit(line):
                    if self.alone is not None:
                        self.alone.asks(line)
                    self.round_open = False
                case Rollback(line, scope):
                    self.recovering |= scope is Scope.ALL
                    if self.alone is not None:
                        self.alone.goes_back(line, resuming=self.recovering)
                    self._rolled_back(line.checkpoints)
                case _:
                    pass

    def _rolled_back(self, line: Line) -> None:
        self.stats["rollbacks"] += 1
        self.round_open = False
        skipped = [
            sum(number > line[task] for number in known)
            for task, known in self.live.items()
            if task in line
        ]
        self.stats["skipped"] += sum(skipped)
        self.stats["domino"] += max(skipped, default=0) >= 2
        self._drop_beyond(line)

    def _drop_beyond(self, line: Line) -> None:
        for task, number in line.items():
            self.live[task] = [n for n in self.live.get(task, ()) if n <= number]

    def _happened(self, entry: Happened) -> None:
        what = entry.what
        if isinstance(what, Loss):
            self._lost(entry, what)
        if self.alone is not None and entry.epoch == self.epoch:  # else: a zombie
            self.alone.see(entry)
        match what:
            case MessageReplayed(message):
                self.stats["replayed"] += 1
                seq, channel = message.seq, message.channel
                invariants.channels_continue_at_the_line(self, channel, seq, entry.epoch)
                invariants.replay_is_faithful(self, message)
            case TaskLoss() | RowsMissed() | GroupLost():
                self.declared.append(what)
                self.stats["groups lost"] += isinstance(what, GroupLost)
            case StaleDropped():
                self.stats["stale"] += 1
            case LineDecided():
                self._decided(entry, what)
            case GarbageCollected():
                if self.thorough:
                    invariants.kept_lines_are_whole(self)
                    groups.kept_groups_are_there(self, self.alone)
                    groups.no_group_is_left_over(self)
                invariants.storage_is_bounded(self)
            case JobRunning() if entry.epoch == self.epoch:  # else: a zombie
                self.recovering = False
                if self.thorough:
                    invariants.tasks_stand_at_the_line(self)
            case SlotLeft() if entry.epoch == self.epoch:  # else: a zombie
                self.stats["left"] += 1
                if not self.world.job.protocol.publishes_at_once:
                    fencing.line_holds_everything(self)
            case ProcessKilled():
                self._killed()
            case _ if type(what) in COUNTED:
                self.stats[COUNTED[type(what)]] += 1

    def _killed(self) -> None:
        self.stats["crashes"] += 1
        self.crashed_after_commit |= self.stats["commits"] > 0
        if self.recovering or (self.alone is not None and self.alone.away):
            self.stats["crash during recovery"] += 1
        if self.round_open:
            self.stats["crash during a round"] += 1

    def _lost(self, entry: Happened, loss: Loss) -> None:
        """Note the time of a loss once: when a process dies, not again when it is given up."""
        life: tuple[str, Incarnation | None] = entry.actor, None
        if isinstance(loss, SlotLost):
            life = f"slot/{loss.slot}", loss.incarnation
        elif isinstance(loss, ProcessKilled):
            life = entry.actor, loss.incarnation
        if not isinstance(loss, SlotLost) or life not in self.killed:
            self.losses_us.append(entry.at_us)
        self.killed[life] = None

    def _decided(self, entry: Happened, decided: LineDecided) -> None:
        number, line = decided.number, decided.line
        if self.thorough:
            invariants.decided_means_durable(self, number, decided.epoch, line)
        if number <= self.decisions:
            return  # a zombie hears late of what it decided when it was the coordinator
        self.decisions = number
        self.epoch = decided.epoch
        if self.alone is not None:
            self.alone.decides(line)
        elif self.thorough:
            invariants.line_is_not_behind_public_output(self, line)
            invariants.line_is_consistent(self, line)
            invariants.line_is_complete(self, line)
        if decided.epoch == entry.epoch:
            self.stats["commits"] += 1
            if self.first_line_us is None:
                self.first_line_us = entry.at_us
        else:
            self.recovering = True  # a resume comes without a Rollback
            if self.alone is not None:
                self.alone.resumes(line)
            self._drop_beyond(line)
            self._carry_on(line)
        self._keep(RecoveryLine(line))

    def _carry_on(self, line: Line) -> None:
        """Work out behind which message each channel goes on in an epoch that begins at this line.

        From now on the receiver's checkpoint counts as having received exactly that much: the
        sender uses the numbers behind it again. Where tasks go back alone, nobody's counters change.
        """
        self.carried = {}
        replays = self.world.job.guarantee is not Guarantee.AT_MOST_ONCE
        for channel in self.world.job.topology.channels:
            sender = self.metas.get((channel.source, line[channel.source]))
            receiver = self.metas.get((channel.target, line[channel.target]))
            sent = sender.sent.get(channel.id, 0) if sender else 0
            received = receiver.received.get(channel.id, 0) if receiver else 0
            self.carried[channel.id] = min(sent, received) if replays else sent
            settles = self.alone is None and self.carried[channel.id] != received
            if receiver is not None and settles:
                counters = {**receiver.received, channel.id: self.carried[channel.id]}
                settled = replace(receiver, received=counters)
                self.metas[channel.target, line[channel.target]] = settled

    def _keep(self, line: RecoveryLine) -> None:
        if self.alone is not None:
            self.lines = [line, line]
            return
        if self.kept is None:
            self.kept = KeptLines(line, self.world.job.options.kept_lines)
        elif is_behind(line, self.lines[-1]):
            self.kept.go_back(line)
        else:
            self.kept.advance(line)
        self.lines = [self.kept.older, line]

    def sending(self, message: Message) -> None:
        """Remember a message that is about to be sent for the first time."""
        if self.alone is not None:
            self.alone.sends(message)
        sent = self.truth.setdefault(message.channel, {})
        if message.seq not in sent or sent[message.seq].epoch <= message.epoch:  # else: a zombie
            sent[message.seq] = message

    def publishing(self, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Check and count what a manifest publishes that is about to be written."""
        invariants.published_output_was_decided(self, number, extents)
        if self.manifests.get(number) == extents:
            return  # the write was made again
        invariants.published_output_continues(self, number, extents)
        self.manifests[number] = dict(extents)
        for task, extent in extents.items():
            self.stats["published"] += extent.stop - extent.start
            self.public[task] = extent.stop

    @property
    def commits(self) -> int:
        """How many lines were committed."""
        return self.stats["commits"]

    # Output of sinks.

    def wrote(self) -> None:
        """Note when a sink first writes."""
        if self.first_output_us is None:
            self.first_output_us = self.world.now_us

    def resuming(self, past: Decision | None) -> None:
        """Check the invariants of a coordinator that resumes the run, and knows only its last line."""
        if self.kept is not None:
            self.kept = KeptLines(self.lines[-1], self.world.job.options.kept_lines)
            self.lines = [self.lines[-1], self.lines[-1]]
        fencing.resume_goes_on_at_the_last_decision(self, past)

    def finishing(self, author: str) -> None:
        """Check the invariants of a coordinator that ends the run."""
        fencing.deposed_coordinator_ends_nothing(self, author)

    def stopping(self) -> None:
        """Check the invariants of a run that stops with a last line."""
        self.stats["stopped"] += 1
        if not self.world.job.protocol.publishes_at_once:
            fencing.line_holds_everything(self)
            fencing.all_output_is_public(self)

    def deleting(self, key: str) -> None:
        """Check the invariants of a coordinator that deletes an object."""
        if self.alone is not None:
            self.alone.deleting(key)
        else:
            fencing.what_is_kept_is_not_deleted(self, key)
        groups.kept_groups_are_not_deleted(self, self.alone, key)
        fencing.what_is_needed_of_the_ledger_is_not_deleted(self, key)
