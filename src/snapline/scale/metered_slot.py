"""A simulated slot that is measured as a real one is, and works as a real one does.

What it counts goes through the meter of the runtime, so a figure means the same in both worlds. Three
things differ from a slot that explores schedules. It takes ready inputs in turn, and gathers messages that
wait behind each other. It hears nobody while its CPU is busy. And it lets due records gather for longer
while it has little rest (`runtime/slot/linger.py`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from snapline.batch import Batch
from snapline.core.effects import Snapshot, TaskEffect
from snapline.core.messages import Marker, Message
from snapline.engine.control import Frame, Report, Stored
from snapline.engine.shell import Alarm, Ticket
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.task import OWN_PARTS
from snapline.ids import CheckpointNo, Incarnation, Micros, Millis, SlotId, TaskId
from snapline.journal.entry import Entry
from snapline.metrics.second import Usage, Used
from snapline.runtime.slot.linger import Linger
from snapline.runtime.slot.meter import Meter
from snapline.runtime.wire.codec import MARKER_BYTES, Wire
from snapline.runtime.wire.control_messages import Heartbeat, Pulse
from snapline.sim.world.process import Boss, SimSlotProcess, SlotPlace
from snapline.storage.api import Egress, MessageLog
from snapline.storage.codec import Pieces, decode_snapshot

BEAT_US: Micros = 200_000
"""How often a slot says that it lives, and what it has done."""


class MeteredPlace(SlotPlace, Protocol):
    """What a metered slot asks of its world, besides."""

    @property
    def wire(self) -> Wire:
        """Knows how large everything is that goes over a connection."""
        ...

    @property
    def sizes(self) -> dict[str, int]:
        """For how many bytes each stored object stands, by its key."""
        ...

    @property
    def generate_us(self) -> float:
        """CPU time to make one record."""
        ...


@dataclass(slots=True)
class SaidInSimulation:
    """What a simulated process has said so far."""

    control_bytes: int = 0
    metadata_bytes: int = 0


@dataclass(slots=True)
class UsedInSimulation:
    """What a simulated process has used since it last told."""

    cpu_us: float = 0.0
    made_us: float = 0.0  # of `cpu_us`: to make records
    usage: Usage = field(default_factory=Usage)

    def since(self, inputs: Iterable[object], *, last: bool = False) -> Used | None:
        """Tell it, each time; nobody knows the memory of a simulated process."""
        self.usage.generator_us = round(self.made_us)
        told = Used(round(self.cpu_us), 0, self.usage)
        self.cpu_us, self.made_us, self.usage = 0.0, 0.0, Usage()
        return told


class MeteredSlot(SimSlotProcess):
    """One life of a slot whose work has costs and is counted."""

    world: MeteredPlace

    def __init__(
        self, world: MeteredPlace, slot: SlotId, incarnation: Incarnation, boss: Boss
    ) -> None:
        super().__init__(world, slot, incarnation, boss)
        self.journals_messages = False
        self.gathers = True
        self.said = SaidInSimulation()
        self.used = UsedInSimulation()
        self.meter = Meter(self.said, self.used)
        self.dilution = world.costs.dilution
        self.linger = Linger(world.job.settings.linger_ms // self.dilution)
        self.turn = 0
        self.beats = 0
        self.waiting: list[Callable[[], None]] = []  #: what came while the CPU was busy
        self.active_since_us: Micros | None = None  #: None: it rests
        self.active_us: Micros = 0  #: since the last heartbeat
        self.wakes = 0  #: how often it had rested and found something to do

    # When it works.

    def call(self, action: Callable[[], None]) -> None:
        """Take an input; later, if the CPU is busy."""
        busy = bool(self.waiting) or self.world.now_us < self.busy_until_us
        if not (self.alive and busy) or self.paused:
            super().call(action)
            return
        self.waiting.append(action)
        if len(self.waiting) == 1:
            self.world.at(self.busy_until_us, self._listen)

    def _listen(self) -> None:
        """Take what came while the CPU was busy, unless it is busy again."""
        if self.waiting and self.world.now_us < self.busy_until_us:
            self.world.at(self.busy_until_us, self._listen)
            return
        heard, self.waiting = self.waiting, []
        for action in heard:
            super().call(action)

    def after_call(self) -> None:
        """Take the next input as soon as the CPU is free."""
        super().after_call()
        if self.stepping and self.active_since_us is None:
            self.active_since_us = self.world.now_us
            self.wakes += 1
            self.spent_us += self.dilution * self.world.costs.wake_us

    def _work(self) -> Micros:
        self._listen()
        spent_us = super()._work()
        self.used.cpu_us += spent_us
        if not self.stepping and not spent_us:
            self._rest()
        return spent_us

    def _rest(self) -> None:
        if self.active_since_us is not None:
            self.active_us += self.world.now_us - self.active_since_us
            self.active_since_us = None

    def beat(self, *, last: bool = False) -> Pulse:
        """Say what was done since the last heartbeat, and adapt the linger to how busy the slot was."""
        busy = self.active_since_us is not None
        self._rest()
        self.active_since_us = self.world.now_us if busy else None
        self.engine.linger_ms = self.dilution * self.linger.follow(self.active_us / BEAT_US)
        self.active_us = 0
        self.spent_us += self.world.costs.beat_us
        self.beats += 1
        self.said.control_bytes += self.world.wire.pack(Heartbeat(self.beats)).size
        pulse = self.meter.pulse(self.engine, self.now_ms(), self.wakes, last=last)
        self.said.control_bytes += self.world.wire.pack(pulse).size
        return pulse

    def _present_us(self) -> Micros:
        """The time, with what the step under way has taken so far."""
        return self.world.now_us + int(self.spent_us)

    # The shell.

    def journal(self, entry: Entry) -> None:
        """Note what an entry tells of checkpoints; nobody reads the journals of these slots."""
        self.meter.clock.see(entry)

    def performing(self, act: TaskEffect | Message) -> None:
        """Note when a snapshot begins."""
        super().performing(act)
        if isinstance(act, Snapshot):
            self.meter.clock.taking(self._present_us())

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Call the engine later."""
        due_us = 1000 * (self.now_ms() + delay_ms)

        def ring() -> None:
            self.meter.clock.due_us = due_us
            self.engine.alarm(alarm)

        self.world.at(self.world.now_us + max(delay_ms, 0) * 1000, lambda: self.call(ring))

    def ingested(self, records: int) -> None:
        """Count records that a source read."""
        super().ingested(records)
        self.used.made_us += self.dilution * self.world.generate_us * records
        self.meter.ingested(records, self._present_us())

    def worked(self, records: int) -> None:
        """Pay for an input that was taken; what it led to is paid for by itself."""
        self.spent_us += self.dilution * self.world.costs.step_us
        self.meter.stepped()

    def sent(self, message: Message, *, logged: int) -> None:
        """Count a message that a task sent."""
        super().sent(message, logged=logged)
        self.meter.sent(message, logged=logged)

    def wrote(self, batch: Batch) -> None:
        """Count records that a sink wrote."""
        super().wrote(batch)
        self.meter.wrote(batch, self._present_us())

    def marked(self, channels: int) -> None:
        """Count markers that a task sent."""
        super().marked(channels)
        self.meter.marked(channels)

    def captured(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """Note when a task has captured its state."""
        super().captured(task, checkpoint)
        self.meter.clock.captured(task, checkpoint, self._present_us())

    def choose(self, count: int) -> int:
        """Pick the ready inputs in turn."""
        self.turn += 1
        return self.turn % count

    def transmit(self, slot: SlotId, frame: Frame) -> None:
        """Send over the link, and count the frame."""
        self._count_frame(frame)
        super().transmit(slot, frame)

    def overtake(self, slot: SlotId, frame: Frame) -> "list[Message]":
        """Send a marker ahead of what waits, and count it."""
        self._count_frame(frame)
        return list(super().overtake(slot, frame))

    def _count_frame(self, frame: Frame) -> None:
        payload = frame.payload
        if isinstance(payload, Message):
            self.meter.transmitted(self.dilution * self.world.wire.pack(frame).size)
        elif isinstance(payload, Marker):
            self.meter.transmitted(MARKER_BYTES)
        else:  # credit, whose frame is as large
            self.meter.transmitted(self.dilution * MARKER_BYTES)
            self.said.control_bytes += self.dilution * MARKER_BYTES

    def report(self, report: Report) -> None:
        """Send a report to the coordinator, and count its bytes."""
        if isinstance(report, Stored):
            meta = report.meta
            meta = replace(meta, bytes=self.world.sizes.get(key_of(meta), meta.bytes))
            moments = self.meter.stored(meta, self._present_us())
            report = replace(report, meta=meta, moments=moments)
            self.said.metadata_bytes += self.world.wire.pack(report).size
        else:
            self.said.control_bytes += self.world.wire.pack(report).size
        super().report(report)

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        """Store an object in the background, and count the request."""
        super().store(ticket, key, data)
        self.used.usage.puts += 1
        self.used.usage.put_bytes += self.world.sizes[key]

    def stored_bytes(self, key: str, made: Pieces) -> int:
        """The size of a snapshot; of a diluted run, with all the state that it stands for."""
        size = made.size
        if self.dilution > 1:
            size += (self.dilution - 1) * _diluted_bytes(bytes(made))
        self.world.sizes[key] = size
        return size

    def loaded_bytes(self, key: str, data: bytes) -> int:
        """The size with which a snapshot was stored."""
        return self.world.sizes.get(key, len(data))

    def sync(self, ticket: Ticket, file: MessageLog | Egress) -> None:
        """Make a file durable in the background, and count syncs of logs."""
        super().sync(ticket, file)
        self.used.usage.log_syncs += ticket.kind == "log"

    def fetch(self, ticket: Ticket, key: str, digest: str) -> None:
        """Load an object in the background, and count the request."""
        super().fetch(ticket, key, digest)
        self.used.usage.gets += 1


def _diluted_bytes(data: bytes) -> int:
    """The bytes of a snapshot that follow from records: state and recorded messages, without counters."""
    found = decode_snapshot(data)
    state = sum(part.nbytes for name, part in found.parts.items() if name not in OWN_PARTS)
    return state + sum(message.batch.nbytes for message in found.messages)
