"""One slot: one task of every operator, their inboxes, and the way from input to input.

A slot is driven by its adapter: frames, orders, alarms and answers of storage come in by method calls,
`step` takes one ready input. In a rollback it stops, forgets everything, restores and acknowledges; only
`Go` lets it send again, so a frame of the new epoch never reaches anybody who is still in the old one.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from snapline.core.events import (
    CommandArrived,
    MarkerArrived,
    MarkerSighted,
    MessageArrived,
    Started,
    Timer,
    TimerFired,
)
from snapline.core.messages import Marker, Message
from snapline.core.topology import Channel
from snapline.engine.control import (
    Counters,
    Credit,
    Frame,
    Go,
    HoldSources,
    InputRead,
    Instruct,
    Order,
    Pressure,
    Probe,
    Prune,
    Replaced,
    Restore,
    Restored,
    Stop,
)
from snapline.engine.job import Job
from snapline.engine.restore import Restoration
from snapline.engine.shell import Alarm, RetryAlarm, SlotShell, SourceAlarm, Ticket, TimerAlarm
from snapline.engine.task import Task
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, Epoch, Incarnation, Millis, SlotId, TaskId
from snapline.storage.api import Life


class Slot:
    """All tasks of one slot, in one incarnation."""

    def __init__(self, slot: SlotId, incarnation: Incarnation, job: Job, shell: SlotShell) -> None:
        self.slot = slot
        self.incarnation = incarnation
        self.job = job
        self.shell = shell
        self.name = f"slot/{slot}"
        self.epoch: Epoch = 0
        self.running = False
        self.stopped = False
        self.peers: dict[SlotId, Incarnation] = {}  #: the present life of every slot
        self.tasks: dict[TaskId, Task] = {}
        self.restoration: Restoration | None = None  #: phase one of a rollback, while under way
        self._clear()

    def _clear(self) -> None:
        self.inbox: dict[ChannelId, deque[Message | Marker]] = {}
        self.waiting: dict[ChannelId, None] = {}  #: inputs with something in their inbox, in order
        self.uncredited: dict[ChannelId, int] = {}  #: taken, and not yet given back as credit
        self.injected: dict[ChannelId, int] = {}  #: in the inbox without having cost a credit
        self.credit: dict[ChannelId, int] = {}  #: messages that may be sent, per limited output
        self.awake: dict[TaskId, None] = {}  #: sources that may have something due
        self.hold = False  #: the coordinator asked not to read input
        self.pressed = False  #: a back edge here holds too much
        self.all_read = False  #: every source here was seen at its end
        self.timers: dict[tuple[TaskId, Timer], int] = {}  #: the generation of each timer set
        self.generation = 0
        #: messages sent and taken on a channel since both of its ends live together
        self.sent: dict[ChannelId, int] = {}
        self.taken: dict[ChannelId, int] = {}
        self.joining: set[ChannelId] = set()  #: inputs whose first message may have any number

    # From other slots.

    def receive(self, source: SlotId, frame: Frame) -> None:
        """A frame came from another slot."""
        if frame.life != (self.epoch, self.peers.get(source), self.incarnation):
            detail = {"channel": frame.channel, "life": frame.life, "from": source}
            self.shell.note(self.name, self.epoch, "fenced", detail)
            return
        if isinstance(frame.payload, Credit):
            self.credit[frame.channel] += frame.payload.messages
        else:
            self.arrive(frame.channel, frame.payload)

    def arrive(self, channel: ChannelId, payload: Message | Marker) -> None:
        """A message or marker reached its inbox."""
        inbox = self.inbox[channel]
        inbox.append(payload)
        self.waiting[channel] = None
        task = self.tasks[self.job.topology.by_id[channel].target]
        task.writer.see(channel, payload)
        if isinstance(payload, Marker):
            if self.running:
                task.handle(MarkerSighted(channel, payload))
        elif (
            len(inbox) > self.job.settings.feedback_high
            and not self.pressed
            and self.job.topology.by_id[channel].feedback
        ):
            self.pressed = True
            self.shell.report(Pressure(self.epoch, True))

    # To other slots: the task's host.

    def send(self, channel: Channel, payload: Message | Marker) -> None:
        """Send on an output of a task, behind what waits in its outbox."""
        outbox = self.tasks[channel.source].outbox.get(channel.id)
        if outbox:
            outbox.append(payload)
        else:
            self._dispatch(channel, payload)

    def _dispatch(self, channel: Channel, payload: Message | Marker) -> None:
        if isinstance(payload, Message):
            self.sent[channel.id] = self.sent.get(channel.id, 0) + 1
            if channel.id in self.credit:
                self.credit[channel.id] -= 1
        target = self.job.slot_by_task[channel.target]
        if target == self.slot:
            self.arrive(channel.id, payload)
        else:
            self.shell.transmit(target, self._frame(target, channel.id, payload))

    def _frame(self, peer: SlotId, channel: ChannelId, payload: Message | Marker | Credit) -> Frame:
        return Frame(channel, (self.epoch, self.incarnation, self.peers[peer]), payload)

    def overtake(self, channel: Channel, marker: Marker) -> list[Message]:
        """Send a marker ahead of output that has not left; return what it passed, in order."""
        passed: list[Message] = []
        target = self.job.slot_by_task[channel.target]
        if target == self.slot:
            self.arrive(channel.id, marker)
        else:
            passed += self.shell.overtake(target, self._frame(target, channel.id, marker))
        outbox = self.tasks[channel.source].outbox.get(channel.id, ())
        passed += [payload for payload in outbox if isinstance(payload, Message)]
        if passed:
            detail = {"channel": channel.id, "messages": len(passed)}
            self.shell.note(channel.source, self.epoch, "overtaken", detail)
        return passed

    def queued(self, channel: ChannelId) -> Iterable[Message | Marker]:
        """What has arrived on an input and was not taken yet."""
        return tuple(self.inbox[channel])

    def set_timer(self, life: Life, timer: Timer, delay_ms: Millis) -> None:
        """Set a timer of a task's protocol."""
        self.generation += 1
        self.timers[life.task, timer] = self.generation
        alarm = TimerAlarm(self.epoch, life.task, timer, self.generation)
        self.shell.set_alarm(alarm, delay_ms)

    def cancel_timer(self, life: Life, timer: Timer) -> None:
        """Cancel one."""
        self.timers.pop((life.task, timer), None)

    # One step: take one ready input.

    def step(self) -> bool:
        """Take one input: a message, a replay, or what is due at a source. False: none is ready."""
        if not self.running or self.stopped:
            return False
        ready = self._ready()
        if not ready:
            return False
        kind, name = ready[self.shell.choose(len(ready)) if len(ready) > 1 else 0]
        if kind == "take":
            self._take(ChannelId(name))
        elif kind == "read":
            self._read(TaskId(name))
        else:
            self._replay(self.job.topology.by_id[ChannelId(name)])
        return True

    def _ready(self) -> list[tuple[str, str]]:
        free: dict[TaskId, bool] = {}
        for task in self.tasks.values():
            free[task.life.task] = not task.halted and self._may_send(task)
        topology = self.job.topology
        ready: list[tuple[str, str]] = [
            ("take", channel)
            for channel in self.waiting
            if free[target := topology.by_id[channel].target]
            and channel not in self.tasks[target].blocked
        ]
        if not self.hold:
            ready += [("read", task) for task in self.awake if free[task]]
        ready += [
            ("replay", channel)
            for task in self.tasks.values()
            if not task.halted
            for channel, outbox in task.outbox.items()
            if outbox and (isinstance(outbox[0], Marker) or self.credit.get(channel, 1) > 0)
        ]
        return ready

    def _may_send(self, task: Task) -> bool:
        # Credit is asked before an input is taken; its output is then always accepted.
        if any(task.outbox.values()):
            return False
        credit = self.credit
        return all(credit.get(channel.id, 1) > 0 for channel in task.outputs)

    def _take(self, channel: ChannelId) -> None:
        inbox = self.inbox[channel]
        payload = inbox.popleft()
        if not inbox:
            del self.waiting[channel]
        target = self.tasks[self.job.topology.by_id[channel].target]
        if isinstance(payload, Marker):
            target.handle(MarkerArrived(channel, payload))
            return
        self._give_credit(channel)
        self._check_order(target, payload)
        target.handle(MessageArrived(payload))
        self.shell.worked(payload.batch.length)

    def _check_order(self, target: Task, message: Message) -> None:
        expected = target.received[message.channel] + 1
        if message.seq == expected:
            return
        if message.channel in self.joining:
            self.joining.remove(message.channel)
            return
        raise ProtocolViolation(
            f"{message.channel} delivers message {message.seq} where {expected} is next"
        )

    def _give_credit(self, channel: ChannelId) -> None:
        if injected := self.injected.get(channel):
            self.injected[channel] = injected - 1
            return
        self.taken[channel] = self.taken.get(channel, 0) + 1
        edge = self.job.topology.by_id[channel]
        if edge.feedback:
            if self.pressed and len(self.inbox[channel]) < self.job.settings.feedback_low:
                self.pressed = False
                self.shell.report(Pressure(self.epoch, False))
            return
        source = self.job.slot_by_task[edge.source]
        if source == self.slot:
            self.credit[channel] += 1
            return
        due = self.uncredited.get(channel, 0) + 1
        if due * 2 >= self.job.settings.credit:
            self.shell.transmit(source, self._frame(source, channel, Credit(due)))
            due = 0
        self.uncredited[channel] = due

    def _read(self, name: TaskId) -> None:
        task = self.tasks[name]
        now = self.shell.now_ms()
        records = task.read_source(now)
        self.shell.worked(records)
        due = task.next_due_ms()
        if due is None:
            del self.awake[name]
            self._note_all_read()
        elif due > now or not records:
            del self.awake[name]
            delay = max(due - now, self.job.settings.linger_ms)
            self.shell.set_alarm(SourceAlarm(self.epoch, name), delay)

    def _note_all_read(self) -> None:
        sources = [task for task in self.tasks.values() if task.plan.ingress is not None]
        if not self.all_read and all(task.next_due_ms() is None for task in sources):
            self.all_read = True
            self.shell.report(InputRead(self.epoch))

    def _replay(self, channel: Channel) -> None:
        payload = self.tasks[channel.source].outbox[channel.id].popleft()
        self._dispatch(channel, payload)
        if isinstance(payload, Message):
            self.shell.note(channel.source, self.epoch, "replayed", {"message": payload})

    # From the coordinator.

    def order(self, order: Order) -> None:
        """The coordinator ordered something."""
        if isinstance(order, Stop):
            self.stopped = True
        elif isinstance(order, Restore):
            if order.epoch > self.epoch:
                self._restore(order)
        elif order.epoch == self.epoch:
            self._obey(order)

    def _obey(self, order: Go | Replaced | Instruct | Probe | HoldSources | Prune) -> None:
        match order:
            case Go():
                self._go()
            case Replaced(_, slot, incarnation):
                self._meet(slot, incarnation)
            case Instruct(_, tasks, command):
                for task in tasks:
                    self.tasks[task].handle(CommandArrived(command))
            case Probe(_, wave):
                self._answer(wave)
            case HoldSources(_, hold):
                self.hold = hold
            case Prune(_, through):
                for channel, seq in through.items():
                    source = self.tasks[self.job.topology.by_id[channel].source]
                    source.log.prune(channel, through=seq)
            case _:
                assert_never(order)

    def _answer(self, wave: int) -> None:
        busy = bool(self.waiting) or any(any(t.outbox.values()) for t in self.tasks.values())
        seqs = {c: seq for task in self.tasks.values() for c, seq in task.sent.items()}
        counters = Counters(self.epoch, wave, dict(self.sent), dict(self.taken), seqs, busy)
        self.shell.report(counters)

    # Rollback.

    def _restore(self, order: Restore) -> None:
        for task in self.tasks.values():
            task.writer.forget()
        self.epoch = order.epoch
        self.peers = dict(order.incarnations)
        self.running = False
        self.tasks = {}
        self._clear()
        self.restoration = Restoration(self, order)
        self.restoration.begin()

    def wire(self, tasks: dict[TaskId, Task], order: Restore) -> None:
        """Everything was loaded: connect the tasks."""
        self.restoration = None
        self.tasks = tasks
        for task in tasks.values():
            for channel in task.inputs.values():
                self.inbox[channel.id] = deque()
                if order.alone:
                    self.joining.add(channel.id)
            for channel in task.outputs:
                if not channel.feedback:
                    self.credit[channel.id] = self.job.settings.credit

    def acknowledge(self) -> None:
        """The tasks are as they were at the line, and what is replayed is ready."""
        self.shell.note(self.name, self.epoch, "restored", {"incarnation": self.incarnation})
        self.shell.report(Restored(self.epoch))

    def inject(self, channel: ChannelId, messages: Iterable[Message]) -> None:
        """Channel state of a snapshot goes first; it was paid for in an earlier life."""
        inbox = self.inbox[channel]
        inbox.extend(replace(message, epoch=self.epoch) for message in messages)
        self.injected[channel] = len(inbox)
        self.waiting[channel] = None

    def _go(self) -> None:
        self.running = True
        for task in tuple(self.tasks.values()):
            task.handle(Started())
            if task.plan.ingress is not None:
                self.awake[task.life.task] = None
        for channel, inbox in self.inbox.items():  # frames may have come before this order
            task = self.tasks[self.job.topology.by_id[channel].target]
            for payload in tuple(inbox):
                if isinstance(payload, Marker):
                    task.handle(MarkerSighted(channel, payload))

    def _meet(self, slot: SlotId, incarnation: Incarnation) -> None:
        self.peers[slot] = incarnation
        slot_by_task = self.job.slot_by_task
        for task in self.tasks.values():
            for channel in task.inputs.values():
                if slot_by_task[channel.source] == slot:
                    self.inbox[channel.id].clear()
                    self.waiting.pop(channel.id, None)
                    self.taken[channel.id] = self.uncredited[channel.id] = 0
                    self.injected[channel.id] = 0
                    self.joining.add(channel.id)
            for channel in task.outputs:
                if slot_by_task[channel.target] == slot:
                    self.sent[channel.id] = 0
                    if not channel.feedback:
                        self.credit[channel.id] = self.job.settings.credit
        self.shell.report(Restored(self.epoch))

    # From alarms and storage.

    def alarm(self, alarm: Alarm) -> None:
        """An alarm went off."""
        match alarm:
            case SourceAlarm(epoch, task):
                if epoch == self.epoch and self.running:
                    self.awake[task] = None
            case TimerAlarm(epoch, task, timer, generation):
                if task is None or epoch != self.epoch or not self.running:
                    return
                if self.timers.get((task, timer)) == generation:
                    del self.timers[task, timer]
                    self.tasks[task].handle(TimerFired(timer))
            case RetryAlarm(ticket):
                if ticket.epoch != self.epoch:
                    return
                if ticket.kind == "fetch" and self.restoration is not None:
                    self.restoration.retry(ticket)
                elif ticket.task in self.tasks:
                    self.tasks[ticket.task].writer.retry(ticket)
            case _:
                raise ProtocolViolation(f"{self.name} never set {alarm}")

    def done(self, ticket: Ticket) -> None:
        """A call to storage has succeeded."""
        if ticket.epoch == self.epoch and ticket.task in self.tasks:
            self.tasks[ticket.task].writer.done(ticket)

    def failed(self, ticket: Ticket) -> None:
        """A call to storage has failed."""
        if ticket.epoch != self.epoch:
            return
        if ticket.kind == "fetch":
            if self.restoration is not None:
                self.shell.set_alarm(RetryAlarm(ticket), self.job.settings.retry_ms)
        elif ticket.task in self.tasks:
            self.tasks[ticket.task].writer.failed(ticket)

    def fetched(self, ticket: Ticket, data: bytes | None) -> None:
        """An object was loaded; None if it is damaged or missing."""
        if ticket.epoch == self.epoch and self.restoration is not None:
            self.restoration.fetched(ticket, data)
