"""One task: an operator, its protocol, and the counters of its channels.

The task performs what its protocol asks. Order is the contract here: a message is numbered, stamped and
logged BEFORE it is sent; a snapshot is captured when its effect is performed, with the counters of that
moment; a marker leaves behind all earlier output.
"""

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import assert_never

from snapline.batch import Batch, concat
from snapline.core.effects import (
    Abandon,
    Block,
    CancelTimer,
    Continue,
    Deliver,
    Forward,
    Halt,
    Record,
    Seal,
    SetTimer,
    Snapshot,
    TaskEffect,
    Unblock,
)
from snapline.core.events import MessageArrived, Paused, Progressed, TaskEvent
from snapline.core.messages import BEFORE_TIME, END_OF_TIME, SILENT, CheckpointMeta, Marker, Message
from snapline.core.protocol import TaskProtocol
from snapline.core.topology import Channel
from snapline.dataflow.chain import Chain
from snapline.dataflow.deploy import TaskPlan
from snapline.dataflow.operators.guard import Guard
from snapline.dataflow.operators.operator import OUT, Capture, Operator
from snapline.engine.control import TaskPaused
from snapline.engine.groups.index import StoredGroup
from snapline.engine.job import Job
from snapline.engine.slot.checkpoints import CheckpointWriter
from snapline.engine.slot.failures import numbers_of, read_range, routed
from snapline.engine.slot.host import Host
from snapline.engine.slot.outbox import Outbox, SentBefore
from snapline.engine.slot.watermarks import Watermarks
from snapline.engine.stale.forgetting import ARRIVALS, Arrivals, expire
from snapline.engine.stale.recollection import recollections
from snapline.errors import OperatorFailed
from snapline.ids import ChannelId, Millis, Seq, checkpoint_label, operator_of
from snapline.journal.entry import Handled, Stamped
from snapline.storage.api import Egress, Life, MessageLog, Prefetched

WATERMARKS = "@watermarks"
"""The engine's own part of a snapshot, beside those of the operator."""

OWN_PARTS = (WATERMARKS, ARRIVALS)
NOTHING = Batch({}, 0)


class Task:
    """One parallel instance of an operator, in one life."""

    def __init__(
        self, job: Job, plan: TaskPlan, life: Life, protocol: TaskProtocol, host: Host
    ) -> None:
        shell = host.shell
        self.job = job
        self.plan = plan
        self.life = life
        self.protocol = protocol
        self.host = host
        self.operator: Operator = plan.operator()
        self.operator.by_group(job.settings.group_rows)
        self.groups: Sequence[StoredGroup] = ()  #: from which it was restored
        name = operator_of(plan.task)
        self.guard = Guard(name, self.operator)
        #: the operators that it consists of: the first reads, the last puts out
        self.names = self.operator.names if isinstance(self.operator, Chain) else (name,)
        #: whether its input lies somewhere slow, and has to be fetched before it is read
        self.fetches = isinstance(plan.ingress, Prefetched)
        #: whether the protocol answers every message with its `Deliver`, and nobody wants to see that
        self.only_delivers = (
            type(protocol).on_message is TaskProtocol.on_message and not shell.journals_messages
        )
        self.follows, self.windows_told = protocol.wants_progress, 0  #: see `progress`
        self.inputs = {channel.id: channel for channel in job.topology.inputs[plan.task]}
        self.by_port: dict[str, list[ChannelId]] = {}
        for channel in self.inputs.values():
            self.by_port.setdefault(channel.port, []).append(channel.id)
        self.outputs = job.topology.outputs[plan.task]
        self.received: dict[ChannelId, Seq] = dict.fromkeys(self.inputs, 0)
        self.sent: dict[ChannelId, Seq] = {channel.id: 0 for channel in self.outputs}
        self.offsets: dict[int, int] = dict.fromkeys(plan.partitions, 0)
        self.watermarks = Watermarks(job.topology.inputs[plan.task], job.timed)
        #: the last watermark sent on each output that carries time
        self.told: dict[ChannelId, Millis] = {
            c.id: BEFORE_TIME for c in self.outputs if c.id in job.timed
        }
        #: whether it restarted alone, and does not know yet which time it is for the others
        self.may_be_stale = False
        self.blocked: set[ChannelId] = set()  #: inputs that the protocol asked not to read
        self.halted = False
        #: messages to send again, per output; nothing else leaves on it before they are gone
        self.outbox: dict[ChannelId, Outbox] = {}
        self.sent_before: dict[ChannelId, SentBefore] = {}  #: if it restarted alone
        self.log: MessageLog = shell.open_log(life)
        self.egress: Egress | None = None  # opened at the restored position
        self.writer: CheckpointWriter
        self.recollections = recollections(job.recalled, self.outputs)  #: of what it has sent
        self.arrivals = Arrivals(job.recalled, self.inputs.values(), shell.now_ms())

    def open(self, position: int) -> None:
        """Open the egress of a sink behind what earlier lives have written."""
        shell, settings = self.host.shell, self.job.settings
        if self.plan.sink is not None:
            self.egress = shell.open_egress(self.life, position)
        every, retry_ms, compress = settings.full_every, settings.retry_ms, settings.compress
        self.writer = CheckpointWriter(
            self.life, shell, self.log, self.egress, every, retry_ms, compress, self.groups
        )

    @property
    def is_source(self) -> bool:
        """Whether it reads input from outside of the job."""
        return self.plan.ingress is not None

    @property
    def rows(self) -> int:
        """How many rows it and its earlier lives have written."""
        return self.egress.position if self.egress is not None else 0

    def may_take(self, dry: Set[ChannelId]) -> bool:
        """Whether it may take an input, where no message can be sent on the `dry` channels."""
        if self.halted or (self.outbox and any(self.outbox.values())):
            return False
        return not dry or dry.isdisjoint(self.sent)  # whose keys are the outputs

    def beside(self, channel: ChannelId) -> list[ChannelId]:
        """The other inputs of the same port from which it may take something."""
        others = self.by_port[self.inputs[channel].port]
        return [c for c in others if c != channel and c not in self.blocked]

    def take(self, message: Message) -> None:
        """Give a message to the protocol."""
        self.handle(MessageArrived(message))

    def accept(self, message: Message) -> bool:
        """Give a message to the protocol if it would answer only `Deliver`; the caller then delivers it.

        Several that were accepted may be delivered at once, as if the operator had kept them until it
        had the last. A message with more effects, such as a forced checkpoint, is not given to it.
        """
        if self.only_delivers:
            return True
        if not self.host.shell.journals_messages and self.protocol.learns_nothing(message):
            return True
        if not self.protocol.only_delivers(message):
            return False
        (effect,) = self._ask(MessageArrived(message))
        self.host.shell.performing(effect)
        return True

    def handle(self, event: TaskEvent) -> None:
        """Give an event to the protocol and perform what it answers, in order."""
        shell = self.host.shell
        for effect in self._ask(event):
            shell.performing(effect)
            self.perform(effect)

    def _ask(self, event: TaskEvent) -> Sequence[TaskEffect]:
        effects = self.protocol.handle(event)
        shell, life = self.host.shell, self.life
        unsaid = isinstance(event, MessageArrived) or (
            isinstance(event, Progressed) and not effects
        )
        if shell.journals_messages or not unsaid:
            shell.journal(
                Handled(shell.now_us(), life.task, life.epoch, life.incarnation, event, effects)
            )
        return effects

    def perform(self, effect: TaskEffect) -> None:
        """Perform one effect that the protocol asks for."""
        match effect:
            case Deliver(message):
                self.deliver(message)
            case Snapshot():
                self.writer.take(self, effect)
                if self.sent_before:
                    self.sent_before = {c: b for c, b in self.sent_before.items() if b.goes_on()}
            case Block(channel):
                self.blocked.add(channel)
            case Unblock(channel):
                self.blocked.remove(channel)
            case Forward(marker, overtake):
                self.forward(marker, overtake=overtake)
            case Record(channel):
                self.writer.record(effect, self.received[channel], self.host.queued(channel))
            case Seal(checkpoint):
                self.writer.seal(checkpoint)
            case Abandon(checkpoint):
                self.writer.abandon(checkpoint)
            case SetTimer(timer, delay_ms):
                self.host.set_timer(self.life, timer, delay_ms)
            case CancelTimer(timer):
                self.host.cancel_timer(self.life, timer)
            case Halt():
                self.halted = True
                counters = Paused(self.life.task, dict(self.sent), dict(self.received))
                self.host.shell.report(TaskPaused(self.life.epoch, counters))
            case Continue():
                self.halted = False
            case _:
                assert_never(effect)

    # Data.

    def deliver(self, *messages: Message) -> None:
        """Run the operator on messages of one port. Its watermark rises behind the last of them."""
        outputs: list[tuple[str, Batch]] = []
        batches = [m.batch for m in messages if m.batch.length]
        if batches:
            port = self.inputs[messages[0].channel].port
            try:
                outputs += self.guard.process(port, concat(batches))
            except OperatorFailed as failed:
                failed.where = numbers_of(messages)
                raise
        rose = False
        for message in messages:
            self.received[message.channel] = message.seq
            rose |= self.watermarks.advance(message.channel, message.watermark)
        if self.arrivals.rows:
            self.arrivals.count(messages)
        self._put_out(outputs, rose)

    def _put_out(self, outputs: list[tuple[str, Batch]], rose: bool) -> None:
        """Send or write what the operator has put out, and what it puts out if the watermark rose."""
        low = self.watermarks.low
        if rose and self.operator.uses_time:
            try:
                if self.may_be_stale:
                    self.may_be_stale = False
                    policy, shell = self.job.policies[self.life.task], self.host.shell
                    outputs += expire(self.guard, policy, self.life, shell, low)
                outputs += self.guard.on_watermark(low)
            except OperatorFailed as failed:
                failed.where = f"the watermark {low}"
                raise
        if self.egress is None:
            said = self.watermarks.said
            woke = said not in SILENT and any(mark in SILENT for mark in self.told.values())
            self.emit(outputs, low if rose or woke else None)
            if said in SILENT:
                self._tell_silence(said)
            return
        for name, batch in outputs:
            if name == OUT and batch.length:
                self.egress.append(batch)
                self.host.shell.wrote(batch)

    def read_source(self, now_ms: Millis) -> int:
        """Read what is due in the ingress, send what comes of it, and return the number of records."""
        ingress = self.plan.ingress
        assert ingress is not None
        outputs: list[tuple[str, Batch]] = []
        records = 0
        for partition, offset in self.offsets.items():
            due = ingress.due_through(partition, now_ms)
            if due > offset:
                stop = min(due, offset + self.job.settings.batch_limit(due - offset))
                outputs += read_range(ingress, self.guard, self.names[0], partition, offset, stop)
                self.offsets[partition] = stop
                records += stop - offset
        marks = [ingress.watermark(partition, offset) for partition, offset in self.offsets.items()]
        self._put_out(outputs, self.watermarks.look(marks))
        self.host.shell.ingested(records)
        return records

    def emit(self, outputs: Sequence[tuple[str, Batch]], watermark: Millis | None) -> None:
        """Route batches to outputs. The watermark holds after the last message on each channel."""
        told, parts = self.told, routed(outputs, self.plan.routes, self.sent, self.names[-1])
        if watermark is None:
            for channel, batch in parts:
                self.send(channel, batch, told.get(channel.id))
            return
        last = {channel.id: i for i, (channel, _) in enumerate(parts)}
        for i, (channel, batch) in enumerate(parts):
            # What closes a window is older than the watermark that closed it, so only the
            # last message of this pass on a channel may carry the new one.
            fresh = channel.id in told and last[channel.id] == i
            self.send(channel, batch, watermark if fresh else told.get(channel.id))
        if len(last) == len(self.outputs):
            return
        old = watermark - self.job.settings.watermark_ms
        for channel in self.outputs:
            if channel.id in told and channel.id not in last:
                known = told[channel.id]
                if known <= old or known in SILENT or watermark == END_OF_TIME:
                    self.send(channel, NOTHING, watermark)

    def _tell_silence(self, said: Millis) -> None:
        """Tell every receiver that does not know it yet not to wait for this task's watermark."""
        for channel in self.outputs:
            if self.told.get(channel.id, said) != said:
                self.send(channel, NOTHING, said)

    def catch_up(self) -> None:
        """Let time go on, if it waited only for inputs whose senders are lost."""
        self._put_out([], self.watermarks.rises())

    def tell_again(self, channel: Channel) -> None:
        """Send the watermark again to a receiver that restarts alone and knows none."""
        if channel.id in self.told and self.watermarks.said != BEFORE_TIME:
            self.send(channel, NOTHING, self.watermarks.said)

    def send(self, channel: Channel, batch: Batch, watermark: Millis | None) -> None:
        """Number, stamp, log and send one message, in this order."""
        if self.sent_before and channel.id in self.sent_before:
            batch = self.sent_before[channel.id].without(batch)
            if not batch.length and watermark is None:
                return
        seq = self.sent[channel.id] + 1
        self.sent[channel.id] = seq
        if watermark is not None:
            self.told[channel.id] = watermark
        stamp = self.protocol.stamp(channel)
        message = Message(channel.id, seq, self.life.epoch, batch, stamp.header, watermark)
        shell, life = self.host.shell, self.life
        if shell.journals_messages:
            shell.journal(
                Stamped(
                    shell.now_us(), life.task, life.epoch, life.incarnation,
                    channel.id, seq, stamp, batch.length,
                )
            )  # fmt: skip
        if channel.id in self.recollections:
            self.recollections[channel.id].add(seq, batch)
        # BEFORE it is sent: a message that was seen but not logged is lost.
        logged = self.log.append(message) if stamp.log else 0
        shell.performing(message)
        self.host.send(channel, message)  # AFTER it was logged
        shell.sent(message, logged=logged)

    def forward(self, marker: Marker, *, overtake: bool) -> None:
        """Send a marker on every output."""
        for channel in self.outputs:
            if not overtake:
                self.host.send(channel, marker)
            elif passed := self.host.overtake(channel, marker):
                self.writer.overtook(channel.id, passed)
        self.host.shell.marked(len(self.outputs))

    # State.

    def capture(self, *, full: bool) -> Capture:
        """The operator's state, with the engine's own part of it."""
        try:
            capture = self.guard.capture(full=full)
        except OperatorFailed as failed:
            failed.where = "its own state, which was to be saved"
            raise
        own = {WATERMARKS: self.watermarks.capture(), **self.arrivals.capture()}
        return replace(capture, parts={**capture.parts, **own})

    def meta(self, effect: Snapshot) -> CheckpointMeta:
        """The metadata of a checkpoint, with the counters of this moment."""
        life = self.life
        return CheckpointMeta(
            life.task,
            effect.checkpoint,
            dict(self.sent),
            dict(self.received),
            life.epoch,
            life.incarnation,
            offsets=dict(self.offsets),
            position=self.rows,
            watermark=self.watermarks.low,
            forced=effect.forced,
            taken_ms=self.host.shell.now_ms(),
        )

    def restore(self, captures: Sequence[Capture], meta: CheckpointMeta) -> None:
        """Take back a snapshot: a full capture with its deltas, and the counters of the last."""
        own = captures[-1].parts[WATERMARKS]
        self.watermarks.restore(own)
        self.arrivals.restore(captures[-1].parts.get(ARRIVALS), meta.taken_ms)
        states = [
            replace(c, parts={n: part for n, part in c.parts.items() if n not in OWN_PARTS})
            for c in captures
        ]
        try:
            self.guard.restore(states)
        except OperatorFailed as failed:
            failed.where = f"its state of checkpoint {checkpoint_label(meta.checkpoint)}"
            raise
        self.sent.update(meta.sent)
        self.received.update(meta.received)
        self.offsets.update(meta.offsets)
        # True of every output, told or not: whatever is older was sent before the snapshot.
        self.told = dict.fromkeys(self.told, self.watermarks.said)
