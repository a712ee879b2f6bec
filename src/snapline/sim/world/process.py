"""Simulated processes: one life of a slot or of the coordinator, and the shell that each one has.

A process that is paused takes nothing; all that reaches it waits, and it goes on where it stood, knowing
nothing of the pause. A process that was killed never does anything again. A crash can come before any
effect: the shell counts them and raises in the middle of whatever the process is doing.
"""

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from snapline.batch import Batch
from snapline.core.effects import TaskEffect
from snapline.core.messages import Message
from snapline.engine.control import Credit, Frame, Report
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.job import Job
from snapline.engine.shell import Alarm, NextRead, SourceAlarm, Ticket
from snapline.engine.slot.slot import Slot
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import CheckpointNo, Epoch, Incarnation, Micros, Millis, SlotId, TaskId
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import Happening
from snapline.sim.world.clock import SimClock
from snapline.sim.world.costs import Costs
from snapline.sim.world.machine import Machine
from snapline.sim.world.network import Control, Link
from snapline.sim.world.observer import WorldObserver
from snapline.sim.world.storage import SimStorage
from snapline.sim.world.weather import SlotLife
from snapline.storage.api import Egress, Life, MessageLog
from snapline.storage.codec import Pieces
from snapline.storage.discards.port import Discards


class Killed(Exception):
    """Raised in the middle of what a process does, to let it die there."""


class Place(SimClock, Protocol):
    """What every process asks of the world in which it lives."""

    @property
    def job(self) -> Job:
        """The job that is run."""
        ...

    @property
    def costs(self) -> Costs:
        """How long things take."""
        ...

    @property
    def machine(self) -> Machine:
        """The cores that all processes of slots share."""
        ...

    @property
    def storage(self) -> SimStorage:
        """All that survives a process."""
        ...

    @property
    def observer(self) -> WorldObserver:
        """Whoever watches this world."""
        ...

    def journal(self, entry: Entry) -> None:
        """Write an entry into the journal, and show it to the observer."""
        ...


class SlotPlace(Place, Protocol):
    """What the process of a slot asks of the world, besides."""

    def kill(self, process: "SimSlotProcess", fault: str) -> None:
        """End a process at once, as SIGKILL does."""
        ...

    def link(self, source: "SimSlotProcess", slot: SlotId, incarnation: Incarnation) -> Link[Frame]:
        """The connection from one life of a slot to another's."""
        ...

    def busy_us(self, frame: Frame) -> Micros:
        """How long a frame occupies its link."""
        ...

    def control(self, process: "SimSlotProcess") -> Control:
        """The connection between a slot and its coordinator."""
        ...


class Process:
    """What every process has: it can be paused, and it can die."""

    def __init__(self, world: Place) -> None:
        self.world = world
        self.alive = True
        self.paused = False
        self.backlog: list[Callable[[], None]] = []  #: what came while it was paused

    def call(self, action: Callable[[], None]) -> None:
        """Let the process take an input, unless it is dead; later, if it is paused."""
        if self.paused:
            self.backlog.append(action)
        elif self.alive:
            try:
                action()
            except Killed:
                return
            self.after_call()

    def after_call(self) -> None:
        """Do nothing after an input was taken; a slot plans its next step here."""

    def resume(self) -> None:
        """Go on after a pause."""
        self.paused = False
        backlog, self.backlog = self.backlog, []
        for action in backlog:
            self.call(action)
        self.after_call()

    # The part of the shell that slots and the coordinator share.

    def now_ms(self) -> Millis:
        """The virtual time in milliseconds."""
        return self.world.now_us // 1000

    def now_us(self) -> Micros:
        """The virtual time in microseconds."""
        return self.world.now_us

    def rng(self, name: str) -> random.Random:
        """Random numbers that depend on the name alone."""
        return random.Random(name)

    def journal(self, entry: Entry) -> None:
        """Write an entry into the journal, and show it to the observer."""
        self.world.journal(entry)

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write down what happened to an actor."""
        self.world.journal(Happened(self.world.now_us, actor, epoch, what))

    def delete(self, key: str) -> None:
        """Delete an object, a little later; what a paused process was about to delete waits with it."""

        def act() -> None:
            self.world.observer.deleting(key)
            self.world.storage.delete(key)

        self.world.at(self.world.now_us + 1_000, lambda: self.call(act))


class Boss(Protocol):
    """What is asked of the process of a coordinator, by its slots and by whoever starts them."""

    @property
    def engine(self) -> Coordinator:
        """The coordinator."""
        ...

    def call(self, action: Callable[[], None]) -> None:
        """Let the process take an input, unless it is dead; later, if it is paused."""
        ...

    def did_not_start(self, process: "SimSlotProcess", why: str) -> None:
        """Hear that a process will not register."""
        ...

    def give_up(self, problem: str) -> None:
        """End a job that cannot go on."""
        ...


class SimSlotProcess(Process):
    """One life of a slot, with its shell."""

    journals_messages = True  #: the monitor makes its own account of them
    gathers = False  #: one message at a time: there are more interleavings to explore
    world: SlotPlace

    def __init__(
        self, world: SlotPlace, slot: SlotId, incarnation: Incarnation, boss: Boss
    ) -> None:
        super().__init__(world)
        self.slot = slot
        self.incarnation = incarnation
        self.boss = boss  #: the coordinator that launched it, and the only one it knows
        self.busy_until_us: Micros = 0
        self.spent_us: float = 0  #: CPU time of the step under way, and owed since the last one
        self.stepping = False  #: a step is scheduled
        self.acts = 0  #: effects performed and messages sent so far
        self.kill_before: int | None = None  #: the number of the act before which it is to die
        self.kill_fault = ""  #: the statement of the fault that kills it then
        self.on_kill: Callable[[], None] = lambda: None  #: tells the injector that the fault struck
        self.registered = False  #: whether its coordinator knows it
        self.failed = False  #: whether its coordinator gave up waiting for it to register
        self.lives: list[Life] = []  #: whose files it opened
        self.choices = random.Random(f"{world.job.seed}:choices:{slot}:{incarnation}")
        self.engine = Slot(slot, incarnation, world.job, self)

    @property
    def life(self) -> SlotLife:
        """The slot and the incarnation, which name this life."""
        return self.slot, self.incarnation

    def after_call(self) -> None:
        """Take the next input as soon as the CPU is free."""
        if self.alive and not self.paused and not self.stepping and self.engine.running:
            self.stepping = True
            self.world.at(max(self.world.now_us, self.busy_until_us), self._step)

    def _step(self) -> None:
        self.stepping = False
        if self.alive and not self.paused:
            self.stepping = True  # until a core is free
            self.world.machine.run(self._work)

    def _work(self) -> Micros:
        """Take one input, and return for how long that keeps the CPU busy."""
        self.stepping = False
        if not self.alive or self.paused:
            return 0
        try:
            worked = self.engine.step()
        except Killed:
            return 0
        spent_us, self.spent_us = int(self.spent_us), 0
        if worked or spent_us:
            self.busy_until_us = self.world.now_us + max(1, spent_us)
            self.after_call()
        return spent_us

    def receive(self, source: SlotId, frame: Frame) -> None:
        """Take a frame from the link with another slot."""
        costs, payload = self.world.costs, frame.payload
        self.spent_us += costs.framing_us(payload)
        if isinstance(payload, Message):
            self.spent_us += costs.taking_us(payload)
        self.call(lambda: self.engine.receive(source, frame))

    # The shell.

    def performing(self, act: TaskEffect | Message) -> None:
        """Count effects and messages; die before the one that a fault has chosen."""
        self.acts += 1
        if self.acts == self.kill_before:
            self.on_kill()
            self.world.kill(self, self.kill_fault)
            raise Killed
        if isinstance(act, Message):
            self.world.observer.sending(act)

    def worked(self, records: int) -> None:
        """Add the CPU time for a batch to the step under way."""
        costs = self.world.costs
        self.spent_us += costs.batch_us + costs.record_us * records

    def ingested(self, records: int) -> None:
        """Add the CPU time for records that a source read."""
        costs = self.world.costs
        self.spent_us += costs.dilution * costs.read_us * records

    def sent(self, message: Message, *, logged: int) -> None:
        """Add the CPU time for a message; to take it is paid for here, too, if it stays in this slot."""
        costs, engine = self.world.costs, self.engine
        self.spent_us += costs.sending_us(message, logged)
        if engine.slot_by_task[engine.by_id[message.channel].target] == self.slot:
            self.spent_us += costs.taking_us(message)

    def wrote(self, batch: Batch) -> None:
        """Add the CPU time for output, and tell the observer, which notes when the first came."""
        costs = self.world.costs
        self.spent_us += costs.dilution * costs.write_us * batch.length
        self.world.observer.wrote()

    def marked(self, channels: int) -> None:
        """Add the CPU time for the markers of a task."""
        self.spent_us += self.world.costs.marker_us * channels

    def captured(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """Add the CPU time that a capture takes at all; `store` adds that for its bytes."""
        self.spent_us += self.world.costs.capture_us

    def at_hand(self, alarm: SourceAlarm, wanted: NextRead) -> bool:
        """Say yes: no input is slow to read in simulation."""
        return True

    def choose(self, count: int) -> int:
        """Draw one of the ready inputs at random: every order is allowed."""
        return self.choices.randrange(count)

    def transmit(self, slot: SlotId, frame: Frame) -> None:
        """Send over the link to the life that the frame is meant for."""
        link = self.world.link(self, slot, frame.life[2])
        self.spent_us += self.world.costs.framing_us(frame.payload)
        link.send(frame, self.world.busy_us(frame), int(self.spent_us))

    def overtake(self, slot: SlotId, frame: Frame) -> Sequence[Message]:
        """Send a marker ahead of what waits on its channel; return the messages that it passed."""
        link = self.world.link(self, slot, frame.life[2])
        self.spent_us += self.world.costs.framing_us(frame.payload)
        passed = link.overtake(
            frame,
            self.world.busy_us(frame),
            lambda other: other.channel == frame.channel and not isinstance(other.payload, Credit),
            int(self.spent_us),
        )
        return [other.payload for other in passed if isinstance(other.payload, Message)]

    def report(self, report: Report) -> None:
        """Send a report over the control connection."""
        boss = self.boss
        self.world.control(self).up.send(
            lambda: boss.call(lambda: boss.engine.report(self.slot, self.incarnation, report)), 1
        )

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Call the engine later."""
        at_us = self.world.now_us + max(delay_ms, 0) * 1000
        self.world.at(at_us, lambda: self.call(lambda: self.engine.alarm(alarm)))

    def open_log(self, life: Life) -> MessageLog:
        """The log of a task in this life."""
        self.lives.append(life)
        return self.world.storage.logs.open(life)

    def open_discards(self, life: Life) -> Discards:
        """Where a task in this life writes down what it discards."""
        return self.world.storage.discards.open(life)

    def open_egress(self, life: Life, position: int) -> Egress:
        """The egress of a sink task in this life."""
        return self.world.storage.outlet.open(life, position)

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        """Make an object at once, and store it in the background."""
        storage, costs, made = self.world.storage, self.world.costs, data()
        size = self.stored_bytes(key, made)
        self.spent_us += costs.capture_byte_us * size
        storage.call(
            costs.store_us + int(costs.store_byte_us * size),
            self,
            lambda: void(storage.store.put(key, made)),
            lambda: self.call(lambda: self.engine.done(ticket)),
            lambda: self.call(lambda: self.engine.failed(ticket)),
        )

    def stored_bytes(self, key: str, made: Pieces) -> int:
        """For how many bytes the store is paid."""
        return made.size

    def loaded_bytes(self, key: str, data: bytes) -> int:
        """For how many bytes it is paid when an object is loaded again."""
        return len(data)

    def sync(self, ticket: Ticket, file: MessageLog | Egress) -> None:
        """Make a file durable in the background; a dead process makes nothing durable."""
        self.world.storage.call(
            self.world.costs.sync_us,
            self,
            lambda: file.sync() if self.alive else None,
            lambda: self.call(lambda: self.engine.done(ticket)),
            lambda: self.call(lambda: self.engine.failed(ticket)),
            an_object=False,
        )

    def fetch(self, ticket: Ticket, key: str, digest: str) -> None:
        """Load an object in the background."""

        def answer() -> None:
            data: bytes | None
            try:
                data = self.world.storage.store.get(key, digest)
            except (ObjectDamaged, ObjectMissing):
                data = None
            loaded = 0 if data is None else self.loaded_bytes(key, data)
            restoring_us = int(self.world.costs.restore_byte_us * loaded)
            self.world.machine.occupy(
                restoring_us, lambda: self.call(lambda: self.engine.fetched(ticket, data))
            )

        self.world.storage.call(
            self.world.costs.store_us,
            self,
            lambda: None,
            answer,
            lambda: self.call(lambda: self.engine.failed(ticket)),
        )


def void(_: object) -> None:
    """Drop a result."""
