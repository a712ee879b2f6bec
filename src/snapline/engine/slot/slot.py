"""One slot: it hosts one task of every operator of its pool, and takes their inputs one at a time.

Its adapter calls it for frames, orders, alarms and answers of storage; `step` takes one ready input. After
a rollback only `Go` lets it send again, so no frame of the new epoch reaches a slot still in the old one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from snapline.core.events import (
    CommandArrived,
    MarkerArrived,
    MarkerSighted,
    Started,
    Timer,
    TimerFired,
)
from snapline.core.messages import Marker, Message
from snapline.core.topology import Channel
from snapline.engine import control
from snapline.engine.job import Job
from snapline.engine.shell import Alarm, RetryAlarm, SlotShell, SourceAlarm, Ticket, TimerAlarm
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.engine.slot.parting import Partings
from snapline.engine.slot.progress import count, tell_progress
from snapline.engine.slot.restore import Restoration
from snapline.engine.slot.source import at_hand, is_over, next_due_ms
from snapline.engine.slot.task import Task
from snapline.engine.timers import Timers
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, Epoch, Incarnation, Millis, SlotId, TaskId
from snapline.journal import happenings as h
from snapline.storage.api import Life


class Slot:
    """All tasks of one slot, in one incarnation."""

    def __init__(self, slot: SlotId, incarnation: Incarnation, job: Job, shell: SlotShell) -> None:
        self.slot = slot
        self.incarnation = incarnation
        self.job = job
        self.shell = shell
        self.name = f"slot/{slot}"
        self.by_id, self.slot_by_task = job.topology.by_id, job.slot_by_task  #: asked per message
        self.linger_ms = job.settings.linger_ms  #: its adapter may change it at any time
        self.epoch: Epoch = 0
        self.running = False
        self.stopped = False
        self.peers: dict[SlotId, Incarnation] = {}  #: the present life of every slot
        self.restoration: Restoration | None = None  #: phase one of a rollback, while under way
        self._clear()

    def _clear(self) -> None:
        self.partings = Partings(self)  #: peers that are away
        self.tasks: dict[TaskId, Task] = {}
        self.inputs = Inputs()
        self.outputs = Outputs()
        self.replaying: dict[ChannelId, None] = {}  #: outputs that have something to send again
        self.awake: dict[TaskId, None] = {}  #: sources that may have something due
        self.hold = False  #: the coordinator asked not to read input
        self.pressed = False  #: a back edge here holds too much
        self.all_read = False  #: every source here was seen at its end
        self.timers: Timers[tuple[TaskId, Timer]] = Timers()

    # From other slots.

    def receive(self, source: SlotId, frame: control.Frame) -> None:
        """Take a frame that came from another slot; drop it if it is of another life."""
        if frame.life != (self.epoch, self.peers.get(source), self.incarnation):
            self.shell.note(self.name, self.epoch, h.FrameFenced(source, frame.channel, frame.life))
        elif isinstance(frame.payload, control.Credit):
            self.outputs.refund(frame.channel, frame.payload.messages)
        else:
            self.arrive(frame.channel, frame.payload)

    def arrive(self, channel: ChannelId, payload: Message | Marker) -> None:
        """Put a message or marker into its inbox; snapshots may record it, and protocols sight markers."""
        length = self.inputs.push(channel, payload)
        edge = self.by_id[channel]
        task = self.tasks[edge.target]
        task.writer.see(channel, payload)
        if isinstance(payload, Marker):
            if self.running:
                task.handle(MarkerSighted(channel, payload))
        elif edge.feedback and length > self.job.settings.feedback_high and not self.pressed:
            self.pressed = True
            self.shell.report(control.Pressure(self.epoch, True))

    # To other slots: what the tasks ask of their host.

    def send(self, channel: Channel, payload: Message | Marker) -> None:
        """Send on an output of a task, behind what waits in its outbox."""
        outbox = self.tasks[channel.source].outbox.get(channel.id)
        if outbox:
            outbox.append(payload)
        else:
            self._dispatch(channel, payload)

    def _dispatch(self, channel: Channel, payload: Message | Marker) -> None:
        if self.outputs.severed and channel.id in self.outputs.severed:
            if isinstance(payload, Message):
                self.partings.miss(channel, payload)
            return
        if isinstance(payload, Message):
            self.outputs.spend(channel.id)
        target = self.slot_by_task[channel.target]
        if target == self.slot:
            self.arrive(channel.id, payload)
        else:
            self.shell.transmit(target, self._frame(target, channel.id, payload))

    def _frame(
        self, peer: SlotId, channel: ChannelId, payload: Message | Marker | control.Credit
    ) -> control.Frame:
        return control.Frame(channel, (self.epoch, self.incarnation, self.peers[peer]), payload)

    def overtake(self, channel: Channel, marker: Marker) -> list[Message]:
        """Send a marker ahead of output that has not left; return what it passed, in order."""
        passed: list[Message] = []
        target = self.slot_by_task[channel.target]
        if target == self.slot:
            self.arrive(channel.id, marker)
        else:
            under_way = self.shell.overtake(target, self._frame(target, channel.id, marker))
            # A slow link may still hold messages of the epoch before, which nobody takes any more.
            passed += [message for message in under_way if message.epoch == self.epoch]
        if outbox := self.tasks[channel.source].outbox.get(channel.id):
            passed += outbox.messages()
        if passed:
            count = len(passed)
            self.shell.note(channel.source, self.epoch, h.MessagesOvertaken(channel.id, count))
        return passed

    def queued(self, channel: ChannelId) -> Iterable[Message | Marker]:
        """What has arrived on an input and was not taken yet."""
        return tuple(self.inputs.inbox[channel])

    def set_timer(self, life: Life, timer: Timer, delay_ms: Millis) -> None:
        """Set a timer of a task's protocol."""
        self.job.check_known(timer)
        generation = self.timers.set((life.task, timer))
        self.shell.set_alarm(TimerAlarm(self.epoch, life.task, timer, generation), delay_ms)

    def cancel_timer(self, life: Life, timer: Timer) -> None:
        """Cancel a timer of a task's protocol."""
        self.timers.cancel((life.task, timer))

    # One step: take one ready input.

    def step(self) -> bool:
        """Take one input: a message, a replay, or what is due at a source. False: none is ready."""
        something = self.inputs.waiting or self.awake or self.replaying
        if not something or self.stopped or not self.running or not (ready := self.ready()):
            return False
        kind, name = ready[self.shell.choose(len(ready)) if len(ready) > 1 else 0]
        if kind == "take":
            self._take(name)
            if name in self.inputs.severed:
                self.partings.drained(name)
        elif kind == "read":
            self._read(name)
        else:
            self._replay(self.by_id[name])
        return True

    def ready(self) -> list[tuple[str, Any]]:
        """The inputs that may be taken now: ("take" or "replay", channel) and ("read", source)."""
        tasks, dry = self.tasks, self.outputs.dry
        free: dict[TaskId, bool] = {}
        ready: list[tuple[str, Any]] = []
        for channel in self.inputs.waiting:
            target = self.by_id[channel].target
            if target not in free:
                free[target] = tasks[target].may_take(dry)
            if free[target] and channel not in tasks[target].blocked:
                ready.append(("take", channel))
        if self.awake and not self.hold:
            ready += [("read", task) for task in self.awake if tasks[task].may_take(dry)]
        for channel in self.replaying:
            task = tasks[self.by_id[channel].source]
            may_go = task.outbox[channel].marker_is_next or self.outputs.may_send(channel)
            if may_go and not task.halted:
                ready.append(("replay", channel))
        return ready

    def _take(self, channel: ChannelId) -> None:
        payload = self.inputs.pop(channel)
        target = self.tasks[self.by_id[channel].target]
        if isinstance(payload, Marker):
            target.handle(MarkerArrived(channel, payload))
            return
        if not self.inputs.check_order(payload, target.received[channel], self.job.kept):
            self._give_credit(channel)  # it was sent again, and had arrived before
            return
        messages = [payload]
        if self.shell.gathers and target.accept(payload):
            if self.inputs.waiting:
                room, beside = self.job.settings.batch_max_records, target.beside(channel)
                messages = self.inputs.gather(payload, beside, target.received, room, target.accept)
            for message in messages:
                self._give_credit(message.channel)
            target.deliver(*messages)
        else:
            self._give_credit(channel)
            target.take(payload)
        if target.follows:
            tell_progress(target, sum(message.batch.length for message in messages))
        self.shell.worked(payload.batch.length)

    def _give_credit(self, channel: ChannelId) -> None:
        owed = self.inputs.owe(channel)
        edge = self.by_id[channel]
        source = self.slot_by_task[edge.source]
        if edge.feedback:
            self._relax()
        elif source == self.slot:
            self.outputs.refund(channel, owed)
            self.inputs.settle(channel)
        elif owed * 2 >= self.job.settings.credit:
            self.shell.transmit(source, self._frame(source, channel, control.Credit(owed)))
            self.inputs.settle(channel)

    def _relax(self) -> None:
        """Report that sources may go on, once no back edge here holds much any more."""
        if self.pressed:
            back_edges = [c for c in self.inputs.inbox if self.by_id[c].feedback]
            if self.inputs.longest(back_edges) < self.job.settings.feedback_low:
                self.pressed = False
                self.shell.report(control.Pressure(self.epoch, False))

    def _read(self, name: TaskId) -> None:
        task = self.tasks[name]
        now = self.shell.now_ms()
        if task.fetches and not at_hand(task, now):
            del self.awake[name]
            return
        self.shell.worked(records := task.read_source(now))
        if task.follows:
            tell_progress(task, records)
        due = next_due_ms(task)
        if due is None:
            del self.awake[name]
            self._note_all_read()
        elif due > now or not records:
            del self.awake[name]
            delay = max(due - now, self.linger_ms)
            self.shell.set_alarm(SourceAlarm(self.epoch, name), delay)

    def _note_all_read(self) -> None:
        if not self.all_read and all(map(is_over, self.tasks.values())):
            self.all_read = True
            self.shell.report(control.InputRead(self.epoch))

    def _replay(self, channel: Channel) -> None:
        outbox = self.tasks[channel.source].outbox[channel.id]
        again, payload = outbox.replays, outbox.popleft()
        if not outbox:
            del self.replaying[channel.id]
        self._dispatch(channel, payload)
        if isinstance(payload, Message):
            if again:
                self.shell.sent(payload, logged=0)
            self.shell.note(channel.source, self.epoch, h.MessageReplayed(payload))

    # From the coordinator.

    def order(self, order: control.Order) -> None:
        """Obey an order of the coordinator, unless it is of another epoch."""
        if isinstance(order, control.Stop):
            self.stopped = True
        elif isinstance(order, control.Restore):
            if order.epoch > self.epoch or (order.alone and order.epoch == self.epoch):
                self._restore(order)
        elif order.epoch == self.epoch:
            self._obey(order)

    def _obey(self, order: control.EpochOrder) -> None:
        match order:
            case control.Go(_, missed):
                self._go(missed)
            case control.Severed(_, slot, incarnation):
                self.partings.sever(slot, incarnation)
            case control.Replaced(_, slot, received, recalled):
                self.partings.meet(slot, received, recalled)
            case control.Instruct(_, tasks, command):
                for task in tasks:
                    self.tasks[task].handle(CommandArrived(command))
            case control.Probe(_, wave):
                busy, inputs = bool(self.inputs.waiting or self.replaying), self.inputs
                counted = count(self.epoch, wave, self.tasks, inputs, self.outputs, busy=busy)
                self.shell.report(counted)
            case control.HoldSources(_, hold):
                self.hold = hold
            case control.Prune(_, through):
                self.partings.prune(through)
            case _:
                assert_never(order)

    # Rollback.

    def _restore(self, order: control.Restore) -> None:
        for task in self.tasks.values():
            task.writer.forget()
        self.epoch = order.epoch
        self.peers = dict(order.incarnations)
        self.running = False
        self._clear()
        self.restoration = Restoration(self, order)
        self.restoration.begin()

    def restored(
        self,
        tasks: dict[TaskId, Task],
        order: control.Restore,
        recorded: Sequence[tuple[ChannelId, Sequence[Message]]],
    ) -> None:
        """Connect tasks that are as they were at the line, and acknowledge: all is ready to go on."""
        lost = () if self.restoration is None else tuple(self.restoration.lost)
        self.restoration = None
        self.tasks = tasks
        self.inputs = Inputs(c for task in tasks.values() for c in task.inputs.values())
        outputs = (c for task in tasks.values() for c in task.outputs)
        self.outputs = Outputs(outputs, self.job.settings.credit)
        if order.alone:
            self.partings.restored(order.away)
        for channel, messages in recorded:
            self._inject(channel, messages)
        if order.alone:
            self.partings.send_again(self.job.kept, order.missed)
        self.replaying |= {c: None for t in tasks.values() for c, box in t.outbox.items() if box}
        self.shell.note(self.name, self.epoch, h.SlotRestored(self.incarnation))
        groups = {name: keys for name, task in tasks.items() if (keys := task.writer.groups.keys)}
        self.shell.report(control.Restored(self.epoch, groups, lost, order.number))

    def _inject(self, channel: ChannelId, messages: Sequence[Message]) -> None:
        """Put channel state that the receiver recorded back into its inbox."""
        target = self.by_id[channel].target
        self.inputs.inject(channel, again := [replace(m, epoch=self.epoch) for m in messages])
        for message in again:
            self.shell.note(target, self.epoch, h.MessageReplayed(message))

    def _go(self, missed: Mapping[ChannelId, control.RowsByKey]) -> None:
        self.running = True
        self.partings.forget_stale(missed)  # BEFORE anything is taken in
        for task in tuple(self.tasks.values()):
            task.handle(Started())
        self.awake |= {name: None for name, task in self.tasks.items() if task.is_source}
        self._note_all_read()  # there may be no source here
        for channel, inbox in self.inputs.inbox.items():  # frames may have come before this order
            task = self.tasks[self.by_id[channel].target]
            for payload in tuple(inbox):
                if isinstance(payload, Marker):
                    task.handle(MarkerSighted(channel, payload))
        self.partings.go()

    # From alarms and storage.

    def alarm(self, alarm: Alarm) -> None:
        """Act on an alarm that went off, if it still matters."""
        match alarm:
            case SourceAlarm(epoch, task):
                if epoch == self.epoch and self.running:
                    self.awake[task] = None
            case TimerAlarm(epoch, task, timer, generation):
                if task and epoch == self.epoch and self.timers.fires((task, timer), generation):
                    self.tasks[task].handle(TimerFired(timer))
            case RetryAlarm(ticket):
                self._retry(ticket)
            case _:
                raise ProtocolViolation(f"{self.name} never set {alarm}")

    def _retry(self, ticket: Ticket) -> None:
        if ticket.kind.startswith("fetch"):
            if ticket.epoch == self.epoch and self.restoration is not None:
                self.restoration.retry(ticket)
        elif ticket.epoch == self.epoch and ticket.task in self.tasks:
            self.tasks[ticket.task].writer.retry(ticket)

    def done(self, ticket: Ticket) -> None:
        """Tell the task's writer that a call to storage has succeeded."""
        if ticket.epoch == self.epoch and ticket.task in self.tasks:
            self.tasks[ticket.task].writer.done(ticket)

    def failed(self, ticket: Ticket) -> None:
        """Have a call to storage that failed made again after a while."""
        if ticket.epoch != self.epoch:
            return
        if ticket.kind.startswith("fetch"):
            if self.restoration is not None and self.restoration.awaits(ticket):
                self.shell.set_alarm(RetryAlarm(ticket), self.job.settings.retry_ms)
        elif ticket.task in self.tasks:
            self.tasks[ticket.task].writer.failed(ticket)

    def fetched(self, ticket: Ticket, data: bytes | None) -> None:
        """Give a loaded object to the restoration; None if it is damaged or missing."""
        if ticket.epoch == self.epoch and self.restoration is not None:
            self.restoration.fetched(ticket, data)
