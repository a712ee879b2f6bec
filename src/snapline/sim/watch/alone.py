"""What must hold where lost slots restart alone: named invariants, and the account that they need.

A monitor asks these instead of those about lines (`invariants.py`) if the protocol has no lines. As there,
one side of each comparison is the engine's claim, and the other the account kept from the journal.
"""

from collections.abc import Iterator, Mapping

from snapline.core.messages import CheckpointMeta, Message, RecoveryLine, initial_meta
from snapline.core.policy import Intake
from snapline.core.topology import Channel
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.task import Task
from snapline.ids import (
    INITIAL,
    ChannelId,
    CheckpointNo,
    Incarnation,
    Seq,
    SlotId,
    TaskId,
    checkpoint_label,
    same_life,
    slot_of,
)
from snapline.journal.entry import Happened
from snapline.journal.happenings import (
    GarbageCollected,
    InputSkipped,
    JobRunning,
    MessagesDiscarded,
    SlotLeft,
    SlotLost,
    SlotRestored,
    SlotRunning,
)
from snapline.journal.loss_happenings import RowsMissed
from snapline.sim.watch.invariants import OBSERVER, broken
from snapline.sim.world.process import SimSlotProcess
from snapline.sim.world.world import World
from snapline.wording import are, plural


class Alone:
    """The account of lives that begin while others go on."""

    def __init__(
        self, world: World, metas: Mapping[tuple[TaskId, CheckpointNo], CheckpointMeta]
    ) -> None:
        self.world = world
        self.metas = metas  #: all that ever counted
        self.away: dict[
            SlotId, int
        ] = {}  #: lost slots that are not back, and when they were lost (us)
        self.readable: dict[
            TaskId, list[CheckpointMeta]
        ] = {}  #: those that count and are not damaged
        #: per task the first checkpoint that is kept once the decision that was asked for is made
        self.first: dict[TaskId, CheckpointNo] = {}
        self.restored: dict[TaskId, CheckpointMeta] = {}  #: to which each task last went back
        self.meeting: set[ChannelId] = set()  #: channels one end of which is new to the other
        self.last: dict[ChannelId, Seq] = {}  #: the last message that any life took
        self.discarded: dict[ChannelId, int] = {}  #: messages, since the receiver last took one ...
        self.losses: dict[ChannelId, int] = {}  #: ... and how often it was lost since then
        self.stamped: dict[ChannelId, Seq] = {}  #: the highest number ever used on a kept channel
        #: what earlier lives of its sender had made durable
        self.left: dict[ChannelId, set[Seq]] = {}
        #: per channel whose sender has to remember it, the rows of all messages of its present life
        self.rows: dict[ChannelId, dict[Seq, int]] = {}
        self.missed: dict[ChannelId, int] = {}  #: what such senders say that was missed
        self.skipped: dict[tuple[TaskId, int], int] = {}  #: where sources said that they go on
        self.gaps = 0  #: how often numbers jumped because two lives met, and messages were lost

    def see(self, entry: Happened) -> None:
        """Take something that happened into the account, and check what concerns it."""
        match entry.what:
            case JobRunning():
                self.begins()
            case SlotLost(slot) | SlotLeft(slot):
                self.lost(slot, entry.at_us)
            case SlotRestored():
                self.restores(slot_of(TaskId(entry.actor)))
            case SlotRunning():
                self.back(slot_of(TaskId(entry.actor)))
            case MessagesDiscarded(channel, messages):
                self.discards(channel, messages)
            case InputSkipped(partition, _, stop):
                self.skips(TaskId(entry.actor), partition, stop)
            case GarbageCollected():
                self.collected()
            case RowsMissed():
                self.misses(entry.what)
            case _:
                pass

    def _channels(self, slot: SlotId) -> Iterator[Channel]:
        slots = self.world.job.slot_by_task
        for channel in self.world.job.topology.channels:
            if slot in (slots[channel.source], slots[channel.target]):
                yield channel

    def saved(self, task: TaskId) -> bool:
        """Whether a task may take checkpoints: it is saved, or feeds a channel that is kept."""
        job = self.world.job
        feeds = any(channel.id in job.kept for channel in job.topology.outputs[task])
        return not job.protocol.heeds_policies or bool(job.policies[task].saved) or feeds

    # Checkpoints.

    def takes(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """P1: a task that is not saved takes no checkpoint."""
        if not self.saved(task):
            label = checkpoint_label(checkpoint)
            broken("unsaved_start_empty", f"{task} is not saved, and takes checkpoint {label}")

    def counts(self, meta: CheckpointMeta) -> None:
        """Note a checkpoint that counts."""
        self.readable.setdefault(meta.task, []).append(meta)

    def damaged(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """Note a checkpoint that turned out to be damaged."""
        known = self.readable.get(task, [])
        self.readable[task] = [meta for meta in known if meta.checkpoint != checkpoint]

    def asks(self, line: RecoveryLine) -> None:
        """Note what is to be decided: what it does not keep may be given up from now on."""
        for task, number in line.checkpoints.items():
            kept = self._kept(task, number)
            self.first[task] = kept[0].checkpoint if kept else INITIAL

    def decides(self, line: Mapping[TaskId, CheckpointNo]) -> None:
        """Note what was decided, and what therefore is kept of each task."""
        for task, number in line.items():
            newer = [meta for meta in self.readable.get(task, []) if meta.checkpoint > number]
            self.readable[task] = self._kept(task, number) + newer

    def _kept(self, task: TaskId, number: CheckpointNo) -> list[CheckpointMeta]:
        """What is kept of a task once this checkpoint of it is decided, without what is newer."""
        through = [meta for meta in self.readable.get(task, []) if meta.checkpoint <= number]
        return through[-self.world.job.policies[task].versions :]

    def deleting(self, key: str) -> None:
        """P5: what a task may have to go back to is not deleted, nor what that builds on."""
        for task, known in self.readable.items():
            for meta in known if self.saved(task) else ():
                if key in map(key_of, self._chain(meta)):
                    label = checkpoint_label(meta.checkpoint)
                    broken(
                        "decided_before_deleted", f"{key} is deleted, but {label} of {task} is kept"
                    )

    def _chain(self, meta: CheckpointMeta) -> Iterator[CheckpointMeta]:
        base: CheckpointMeta | None = meta
        while base is not None:
            yield base
            base = None if base.parent is None else self.metas.get((base.task, base.parent))

    def collected(self) -> None:
        """P4: of each task as many checkpoints are kept as its policy says, and what they build on."""
        engine = self.world.coordinator.engine
        for task, known in engine.registry.metas.items():
            line = engine.decider.chains[task]
            decided = line[-1].checkpoint if line else INITIAL
            bases = {meta.parent for meta in known.values()}
            tips = [n for n in known if n <= decided and n not in bases]
            versions = self.world.job.policies[task].versions
            if len(tips) > versions:
                story = f"{plural(len(tips), 'checkpoint')} of {task} {are(len(tips))} kept, not {versions}"
                broken("storage_is_bounded_per_task", story)

    # Losses.

    def lost(self, slot: SlotId, at_us: int) -> None:
        """Note that a slot is lost."""
        self.away.setdefault(slot, at_us)
        slots = self.world.job.slot_by_task
        for channel in self._channels(slot):
            self.losses[channel.id] = self.losses.get(channel.id, 0) + 1
            if slots[channel.source] == slot:
                self.last.pop(channel.id, None)  # what it has discarded is lost, and its count

    def resumes(self, line: Mapping[TaskId, CheckpointNo]) -> None:
        """Begin anew at what was decided: all tasks go back, as lost ones do."""
        self.away = {}
        self.restored = {
            t: self.metas[t, number] for t, number in line.items() if number != INITIAL
        }
        self.readable = {task: [meta] for task, meta in self.restored.items()}

    def begins(self) -> None:
        """Forget who took what: all tasks are new, for the first time or after a resume."""
        self.last, self.discarded, self.losses = {}, {}, {}
        self.meeting = {channel.id for channel in self.world.job.topology.channels}
        for process in filter(None, map(self.world.current, self.world.job.slots)):
            if process.alive:
                for task in process.engine.tasks.values():
                    self._stands(task)

    def goes_back(self, line: RecoveryLine, *, resuming: bool) -> None:
        """P2, P3: only lost tasks go back, each to its newest checkpoint that can be read."""
        slots = self.world.job.slot_by_task
        for task, number in line.checkpoints.items():
            if slots[task] not in self.away and not resuming:
                broken("only_the_lost_go_back", f"{task} goes back, and its slot was not lost")
            known = self.readable.get(task, [])
            newest = known[-1] if known else initial_meta(task)
            if number == INITIAL and newest.checkpoint < self.first.get(task, INITIAL):
                newest = initial_meta(task)  # all were given up, and may be gone any moment
                self.readable[task] = []
            if number != newest.checkpoint:
                broken(
                    "restored_is_the_newest_readable",
                    f"{task} goes back to {checkpoint_label(number)}, but "
                    f"{checkpoint_label(newest.checkpoint)} can be read",
                )
            self.restored[task] = newest

    def discards(self, channel: ChannelId, messages: int) -> None:
        """Note messages that were declared to be discarded."""
        self.discarded[channel] = self.discarded.get(channel, 0) + messages

    def skips(self, task: TaskId, partition: int, stop: int) -> None:
        """Note where a source said that it goes on."""
        self.skipped[task, partition] = stop

    def back(self, slot: SlotId) -> None:
        """Check the tasks of a slot that is let go, and those that had to do without it."""
        lost_us = self.away.pop(slot, None)
        process = self.world.current(slot)
        for channel in self._channels(slot):
            self.meeting.add(channel.id)
        if process is None or not process.alive:
            return  # it died after it had acknowledged
        for task in process.engine.tasks.values():
            self._stands(task)
            if lost_us is not None:
                self._reads_at_the_present(task, lost_us)

    def _stands(self, task: Task) -> None:
        """P1, P3: a task is what the checkpoint says to which it went back, or empty."""
        name = task.life.task
        meta = self.restored.get(name) or initial_meta(name)
        expected = {channel: meta.received.get(channel, 0) for channel in task.received}
        if task.received != expected:
            label = checkpoint_label(meta.checkpoint)
            story = f"{name} goes on with {task.received}, but {label} has {expected}"
            broken("restored_is_the_newest_readable", story)

    def _reads_at_the_present(self, task: Task, lost_us: int) -> None:
        """P8: a source goes on at what was not due when it was lost, and says from where on."""
        ingress, name = task.plan.ingress, task.life.task
        for partition, offset in task.offsets.items() if ingress is not None else ():
            assert ingress is not None
            if offset < ingress.due_through(partition, lost_us // 1000):
                story = f"{name} reads partition {partition} again from record {offset}"
                broken("sources_at_the_present", story)
            if offset and self.skipped.get((name, partition)) != offset:
                story = f"{name} goes on with record {offset} of partition {partition}, and does not say so"
                broken("loss_is_declared", story)

    def restores(self, slot: SlotId) -> None:
        """P10: nobody who was there waits for credit of the lost slot, unless its policy says so."""
        job, log = self.world.job, self.world.storage.logs.open(OBSERVER)
        for channel in job.kept_from(slot):
            self.left[channel.id] = {message.seq for message in log.tail(channel.id, after=0)[0]}
        for channel in self._channels(slot):
            sender = job.slot_by_task[channel.source]
            process = self.world.current(sender)
            if process is None or not self._does_without(process, slot):
                continue
            waits = job.policies[channel.target].intake is Intake.WAIT
            dry = channel.id in process.engine.outputs.dry
            if dry and not waits:
                broken("survivors_go_on", f"{channel.source} waits for the lost {channel.target}")
        for channel in self._channels(slot):
            self._time_goes_on(channel, slot)

    def _does_without(self, process: SimSlotProcess, slot: SlotId) -> bool:
        """Whether a process runs, and has heard that a slot is lost."""
        runs = process.alive and not process.paused and process.engine.running
        return runs and process.slot not in self.away and slot in process.engine.partings.away

    def _time_goes_on(self, channel: Channel, slot: SlotId) -> None:
        """P10: the watermark of no survivor waits for a lost sender of which nothing is left."""
        receiver = self.world.job.slot_by_task[channel.target]
        process = self.world.current(receiver)
        if process is None or not self._does_without(process, slot):
            return
        engine = process.engine
        task = engine.tasks.get(channel.target)
        if task is None or channel.id not in task.watermarks.by_channel:
            return
        if channel.id not in task.watermarks.severed and not engine.inputs.inbox[channel.id]:
            broken(
                "nobody_waits_for_the_dead", f"{channel.target} waits for the lost {channel.source}"
            )

    # Messages.

    def lives(self, task: TaskId, incarnation: Incarnation) -> bool:
        """Whether this is the present life of a task; one that was given up may go on for a while."""
        slot = self.world.job.slot_by_task[task]
        return self.world.coordinator.engine.members.incarnations.get(slot) == incarnation

    def misses(self, missed: RowsMissed) -> None:
        """Note how many rows a sender that was not lost says that its receiver did not get."""
        if missed.estimated:
            self.missed.pop(missed.channel, None)
        else:
            self.missed[missed.channel] = missed.rows

    def _all_missed_were_counted(self, channel: ChannelId, first: Seq) -> None:
        """P11: these are the rows of all messages before the first one that the receiver gets again."""
        meta, said = self.restored.get(self._target(channel)), self.missed.pop(channel, None)
        after = meta.received.get(channel, 0) if meta else 0
        if said is None or not same_life(first, after):
            return
        sent = self.rows.get(channel, {})
        rows = sum(count for seq, count in sent.items() if after < seq < first)
        if rows != said:
            story = (
                f"{said} rows of {channel} are said to be missed before message {first}, not {rows}"
            )
            broken("missed_rows_are_counted", story)

    def _target(self, channel: ChannelId) -> TaskId:
        return self.world.job.topology.by_id[channel].target

    def stamps(self, channel: ChannelId, seq: Seq, rows: int) -> None:
        """P7: no number of a kept channel is used twice."""
        if channel in self.world.job.recalled:
            self.rows.setdefault(channel, {})[seq] = rows
        if channel in self.world.job.kept:
            last = self.stamped.get(channel, 0)
            if seq <= last:
                broken("kept_numbers_continue", f"{channel} uses number {seq} after {last}")
            self.stamped[channel] = seq

    def sends(self, message: Message) -> None:
        """P7: what is kept for a receiver is logged BEFORE it is sent."""
        kept = message.channel in self.world.job.kept
        if kept and not self.world.storage.logs.holds(message):
            story = f"message {message.seq} of {message.channel} is sent, and not in the log"
            broken("kept_is_logged_before_it_is_sent", story)

    def takes_in(self, message: Message, delivered: Seq | None) -> None:
        """P6, P7: numbers jump only where two lives meet, and what is kept is not left out."""
        channel, seq = message.channel, message.seq
        kept = channel in self.world.job.kept
        if delivered is None:
            self._all_missed_were_counted(channel, seq)
        if delivered is None or seq != delivered + 1:
            if delivered is not None and channel not in self.meeting and not kept:
                story = f"message {seq} of {channel} comes after {delivered}, and no life has begun"
                broken("gaps_only_at_introductions", story)
            if kept:
                self._nothing_left_out(channel, seq, delivered)
            elif delivered is None:
                self._nothing_undeclared(channel, seq)
            else:
                self.gaps += seq > delivered + 1
            if delivered is not None or self._is_of_present_life(channel, seq):
                self.meeting.discard(channel)  # else the new life of its sender has yet to be met
        self.last[channel] = seq

    def _is_of_present_life(self, channel: ChannelId, seq: Seq) -> bool:
        source = self.world.job.topology.by_id[channel].source
        process = self.world.current(self.world.job.slot_by_task[source])
        task = process.engine.tasks.get(source) if process is not None else None
        return task is None or seq <= task.sent[channel]

    def _nothing_left_out(self, channel: ChannelId, seq: Seq, delivered: Seq | None) -> None:
        after = delivered
        if after is None:
            meta = self.restored.get(self._target(channel))
            after = meta.received.get(channel, 0) if meta else 0
        messages, _ = self.world.storage.logs.open(OBSERVER).tail(channel, after=after)
        # A zombie may have added to it later, which nobody can know.
        left = self.left.get(channel, ())
        known = (m.seq for m in messages if m.seq in left or same_life(m.seq, seq))
        first = next(known, seq)
        if first < seq:
            story = f"message {seq} of {channel} comes after {after}, but the log has {first}"
            broken("kept_edge_loses_nothing", story)

    def _nothing_undeclared(self, channel: ChannelId, seq: Seq) -> None:
        """P8: what a new life of a receiver did not get was discarded by count, or under way."""
        last, discarded = self.last.get(channel), self.discarded.pop(channel, 0)
        losses = self.losses.pop(channel, 0)
        feedback = self.world.job.topology.by_id[channel].feedback
        if last is None or seq <= last or feedback or not same_life(seq, last):
            return  # the first life, the sender began anew, or nothing bounds what is under way
        self.gaps += seq > last + 1
        missing = seq - 1 - last - discarded
        if missing > losses * self.world.job.settings.credit:
            broken(
                "loss_is_declared",
                f"{plural(missing, 'message')} of {channel} before {seq} {are(missing)} lost, and nobody "
                f"declared that: {discarded} were discarded",
            )
