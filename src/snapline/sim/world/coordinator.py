"""The simulated process of a coordinator: one life of it, with its shell."""

from collections.abc import Collection, Mapping
from typing import Protocol

from snapline.engine.control import Order
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.coordinator.ledger import is_superseded
from snapline.engine.coordinator.sweep import sweep_snapshots
from snapline.engine.shell import Alarm, Ticket
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import Epoch, Incarnation, Millis, SlotId, TaskId
from snapline.journal.entry import COORDINATOR
from snapline.journal.happenings import CoordinatorDeposed, JobStopped
from snapline.sim.world.launching import LaunchPlace, SimLaunches
from snapline.sim.world.process import Process, SimSlotProcess
from snapline.storage.api import Extent


class CoordinatorPlace(LaunchPlace, Protocol):
    """What the process of a coordinator asks of the world."""

    @property
    def coordinator(self) -> "CoordinatorProcess":
        """The newest coordinator; an older one that still runs is a zombie."""
        ...

    rivals: int  # coordinators that ran the job to its end beside another one

    def resume_coordinator(self) -> None:
        """Let another coordinator take over from the durable decisions."""
        ...

    def leave(self, boss: "CoordinatorProcess") -> None:
        """End the slots of a coordinator that is gone."""
        ...

    def exit(self, process: SimSlotProcess) -> None:
        """End a process; what it had not made durable is lost."""
        ...

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Write a manifest; False if its number is taken by another."""
        ...

    def finish(self, problem: str | None) -> None:
        """End the run."""
        ...


class CoordinatorProcess(Process):
    """One life of the coordinator, with its shell."""

    world: CoordinatorPlace

    def __init__(self, world: CoordinatorPlace, life: int) -> None:
        super().__init__(world)
        self.life = life
        self.launches = SimLaunches(world, self)
        self.engine: Coordinator  # set by the world, which knows the past

    def send(self, slot: SlotId, incarnation: Incarnation, order: Order) -> None:
        """Send an order over the control connection."""
        process = self.world.processes.get((slot, incarnation))
        if process is not None:
            deliver = process.engine.order
            self.world.control(process).down.send(lambda: process.call(lambda: deliver(order)), 1)

    def launch(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Start processes until one registers."""
        self.launches.start(slot, incarnation)

    def dismiss(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Let the process of a life end as soon as it hears of it."""
        process = self.world.processes.get((slot, incarnation))
        if process is not None:
            end = lambda: process.call(lambda: self.world.exit(process))  # noqa: E731
            self.world.control(process).down.send(end, 1)

    def did_not_start(self, process: SimSlotProcess, why: str) -> None:
        """Start another process for a life whose process will not register."""
        self.launches.failed(process, why)

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Call the engine later."""
        at_us = self.world.now_us + delay_ms * 1000
        self.world.at(at_us, lambda: self.call(lambda: self.engine.alarm(alarm)))

    def decide(self, ticket: Ticket, key: str, data: bytes) -> None:
        """Store a decision in the background, unless its number is taken."""
        storage = self.world.storage

        def answer() -> None:
            try:
                found = storage.store.get(key)
            except (ObjectDamaged, ObjectMissing):
                found = b""  # the author cannot be read; a resume will find the damage
            if is_superseded(storage.store, ticket.number):
                found = b""  # the number was free because it was collected
            if found == data:
                self.call(lambda: self.engine.done(ticket))
            else:
                self.call(lambda: self.engine.conflict(ticket, found))

        self.world.storage.call(
            self.world.costs.store_us,
            self,
            lambda: storage.decide(ticket.number, key, data),
            answer,
            lambda: self.call(lambda: self.engine.failed(ticket)),
        )

    def publish(self, ticket: Ticket, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Publish a manifest in the background."""
        accepted: list[bool] = []

        def answer() -> None:
            if accepted[-1]:
                self.call(lambda: self.engine.done(ticket))
            else:
                self.call(lambda: self.engine.conflict(ticket, b""))

        self.world.storage.call(
            self.world.costs.store_us,
            self,
            lambda: accepted.append(self.world.publish(number, extents)),
            answer,
            lambda: self.call(lambda: self.engine.failed(ticket)),
            an_object=False,
        )

    def sweep(
        self, before: Epoch, snapshots: Collection[str], files: Collection[str] | None
    ) -> None:
        """Delete what past epochs left, a little later, or when a paused process goes on."""

        def act() -> None:
            storage = self.world.storage
            there = storage.store.keys()
            sweep_snapshots(storage.store, before, snapshots)
            for key in there:
                if not storage.store.has(key):
                    self.world.observer.deleting(key)
            if files is not None:
                storage.outlet.sweep(before, files, written=True)

        self.world.at(self.world.now_us + 1_000, lambda: self.call(act))

    def compact(self, through: int) -> None:
        """Keep old manifests as they are: they lie in memory."""

    def finish(self, problem: str | None) -> None:
        """End the run, or step down if another coordinator has decided something since."""
        if self.world.storage.may_end(self.engine.decider.author):
            self.world.observer.finishing(self.engine.decider.author)
            self.world.finish(problem)
        else:
            self.note(COORDINATOR, self.engine.epoch, CoordinatorDeposed())
            self.world.rivals += 1
            self.deposed()

    def give_up(self, problem: str) -> None:
        """End a job that cannot go on for a reason outside of the engine: slots do not start."""
        self.note(COORDINATOR, self.engine.epoch, JobStopped(problem))
        self.finish(problem)

    def deposed(self) -> None:
        """Step down, and its slots with it; if it was the newest one, resume the run, as its user would."""
        self.world.leave(self)
        if self is self.world.coordinator:
            self.alive = False
            self.world.resume_coordinator()
