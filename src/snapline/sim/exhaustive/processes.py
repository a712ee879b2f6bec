"""The processes of a stepped world: what they ask for waits in lanes, until a step takes it.

A call to storage succeeds when its step is taken, and comes to nothing if its process dies before. Of a
file that is synced only what was appended before the call becomes durable. Garbage is deleted at once,
which is the worst that can happen to whoever still needs it.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from snapline.core.messages import Message
from snapline.engine.control import Counters, Frame, Order, Report, Stop
from snapline.engine.coordinator.sweep import sweep_snapshots
from snapline.engine.shell import Alarm, NextRead, SourceAlarm, Ticket, TimerAlarm
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import Epoch, Incarnation, Micros, Millis, SlotId, TaskId
from snapline.journal.entry import COORDINATOR
from snapline.sim.exhaustive.lanes import Item, Lane, Past
from snapline.sim.exhaustive.small import NOW_MS
from snapline.sim.world.coordinator import CoordinatorPlace, CoordinatorProcess
from snapline.sim.world.process import Boss, SimSlotProcess, void
from snapline.storage.api import Egress, Extent, MessageLog
from snapline.storage.codec import Pieces


class SteppedPlace(CoordinatorPlace, Protocol):
    """What the processes ask of a stepped world."""

    lanes: dict[Lane, deque[Item]]
    past: Past
    acting: str  #: the part of the world whose step it is
    steps: int

    def put(self, lane: Lane, item: Item) -> None:
        """Let something wait in a lane, behind what waits there already."""
        ...

    def sends(self, lane: str) -> None:
        """Note that somebody sends through a lane: the order in which they do counts."""
        ...

    def launch(self, boss: Boss, slot: SlotId, incarnation: Incarnation) -> None:
        """Start a process for a slot; its registration is a step of its own."""
        ...


def _label(ticket: Ticket) -> str:
    return f"{ticket.kind} {ticket.task or ''}@{ticket.number}".replace(" @", "@")


def _timer(alarm: Alarm) -> str:
    if isinstance(alarm, TimerAlarm):
        return f"{type(alarm.timer).__name__}@{alarm.task or COORDINATOR}"
    return type(alarm).__name__


class SteppedSlot(SimSlotProcess):
    """One life of a slot, whose calls wait in lanes."""

    world: SteppedPlace

    def __init__(
        self,
        world: SteppedPlace,
        slot: SlotId,
        incarnation: Incarnation,
        boss: Boss,
    ) -> None:
        super().__init__(world, slot, incarnation, boss)
        self.actor = f"slot/{slot}.{incarnation}"
        self.chosen = 0  #: which of the ready inputs the next step takes

    def after_call(self) -> None:
        """Do nothing: every step is chosen by the search."""

    def now_ms(self) -> Millis:
        """A fixed time, at which all input is due."""
        return NOW_MS

    def now_us(self) -> Micros:
        """The number of steps taken: without time, the journal is numbered by steps."""
        return self.world.steps

    def at_hand(self, alarm: SourceAlarm, wanted: NextRead) -> bool:
        """Say yes: no input is slow to read in simulation."""
        return True

    def choose(self, count: int) -> int:
        """Take the input that the search has chosen."""
        return self.chosen

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Put the alarm into a lane: it may go off at any step from now on."""
        self.world.put(
            Lane("timer", self.actor, _timer(alarm)),
            Item(lambda: self.call(lambda: self.engine.alarm(alarm)), alarm),
        )

    def delete(self, key: str) -> None:
        """Delete an object at once."""
        self.world.storage.delete(key)

    def transmit(self, slot: SlotId, frame: Frame) -> None:
        """Put a frame behind what is under way on its link."""
        queue = self._link(slot, frame)
        queue.append(self._frame(slot, frame))

    def overtake(self, slot: SlotId, frame: Frame) -> Sequence[Message]:
        """Send a marker ahead of its channel; only the first frame of a link has left already."""
        queue = self._link(slot, frame)
        self.world.past.goes_through(self.world.acting, len(queue))
        passed = [k for k in range(1, len(queue)) if queue[k].payload.channel == frame.channel]
        waiting = [queue[k].payload.payload for k in passed]
        queue.insert(passed[0] if passed else len(queue), self._frame(slot, frame))
        return [payload for payload in waiting if isinstance(payload, Message)]

    def _link(self, slot: SlotId, frame: Frame) -> deque[Item]:
        lane = Lane("link", f"slot/{slot}.{frame.life[2]}", self.actor)
        self.world.sends(str(lane))
        self.world.past.waits(str(lane), 1)
        return self.world.lanes.setdefault(lane, deque())

    def _frame(self, slot: SlotId, frame: Frame) -> Item:
        world, key = self.world, (slot, frame.life[2])

        def deliver() -> None:
            target = world.processes.get(key)
            if target is not None:
                target.call(lambda: target.engine.receive(self.slot, frame))

        return Item(deliver, frame)

    def report(self, report: Report) -> None:
        """Send a report over the control connection."""
        boss, lane = self.boss, Lane("report", COORDINATOR, self.actor)
        self.world.sends(str(lane))
        if isinstance(report, Counters):  # it tells of all tasks, so what they went through counts
            for task in self.engine.tasks:
                self.world.past.goes_through(str(lane), self.world.past.parts.get(task, 0))
        deliver = lambda: boss.engine.report(self.slot, self.incarnation, report)  # noqa: E731
        self.world.put(lane, Item(lambda: boss.call(deliver), report))

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        """Make an object at once; it is stored when its step is taken."""
        made = data()
        self._ask(ticket, lambda: void(self.world.storage.store.put(key, made)))

    def sync(self, ticket: Ticket, file: MessageLog | Egress) -> None:
        """Make durable, when the step is taken, what was appended until now."""
        self._ask(ticket, file.start_sync().finish)

    def _ask(self, ticket: Ticket, act: Callable[[], None]) -> None:
        def finish() -> None:
            act()
            self.call(lambda: self.engine.done(ticket))

        self.world.put(Lane("store", self.actor, _label(ticket)), Item(finish, ticket))

    def fetch(self, ticket: Ticket, key: str, digest: str) -> None:
        """Load an object when its step is taken."""

        def finish() -> None:
            data: bytes | None
            try:
                data = self.world.storage.store.get(key, digest)
            except (ObjectDamaged, ObjectMissing):
                data = None
            self.call(lambda: self.engine.fetched(ticket, data))

        self.world.put(Lane("store", self.actor, _label(ticket)), Item(finish, ticket))


class SteppedCoordinator(CoordinatorProcess):
    """The coordinator, whose calls wait in lanes."""

    world: SteppedPlace

    def now_ms(self) -> Millis:
        """A fixed time, at which all input is due."""
        return NOW_MS

    def now_us(self) -> Micros:
        """The number of steps taken: without time, the journal is numbered by steps."""
        return self.world.steps

    def send(self, slot: SlotId, incarnation: Incarnation, order: Order) -> None:
        """Send an order over the control connection, if the process lives."""
        process = self.world.processes.get((slot, incarnation))
        if process is not None and process.alive:
            deliver = lambda: process.call(lambda: process.engine.order(order))  # noqa: E731
            lane = Lane("order", f"slot/{slot}.{incarnation}")
            self.world.put(lane, Item(deliver, order))

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Put the alarm into a lane: it may go off at any step from now on."""
        self.world.put(
            Lane("timer", COORDINATOR, _timer(alarm)),
            Item(lambda: self.call(lambda: self.engine.alarm(alarm)), alarm),
        )

    def delete(self, key: str) -> None:
        """Delete an object at once."""
        self.world.storage.delete(key)

    def sweep(
        self, before: Epoch, snapshots: Collection[str], files: Collection[str] | None
    ) -> None:
        """Delete what past epochs left, at once."""
        sweep_snapshots(self.world.storage.store, before, snapshots)
        if files is not None:
            self.world.storage.outlet.sweep(before, files, written=True)

    def decide(self, ticket: Ticket, key: str, data: bytes) -> None:
        """Store a decision; its number is free, because there is no other coordinator."""
        storage = self.world.storage
        self._ask(ticket, lambda: storage.decide(ticket.number, key, data))

    def compact(self, through: int) -> None:
        """Keep old manifests as they are."""

    def launch(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Start a process; its registration is a step of its own."""
        self.world.launch(self, slot, incarnation)

    def dismiss(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Tell a process to stop for good; no search lets a slot leave."""
        self.send(slot, incarnation, Stop())

    def publish(self, ticket: Ticket, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Publish a manifest when its step is taken."""
        self._ask(ticket, lambda: void(self.world.publish(number, extents)))

    def _ask(self, ticket: Ticket, act: Callable[[], None]) -> None:
        def finish() -> None:
            act()
            self.call(lambda: self.engine.done(ticket))

        self.world.put(Lane("store", COORDINATOR, _label(ticket)), Item(finish, ticket))
