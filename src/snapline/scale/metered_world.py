"""A simulated world whose slots are measured: nobody checks invariants, and figures come out at its end.

The timeline is the driver's own, so seconds, failures and figures are made by the same code as in a real
run. Input is due from the moment at which the world begins: the first processes of slots start at once,
and what a start costs shows only where a slot is lost.

Every connection, and every process that calls the store, has random numbers of its own. So two runs that
differ a little can be compared: one checkpoint more does not change what all others draw from then on.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from snapline.core.messages import Message
from snapline.engine.control import Order
from snapline.engine.coordinator.ledger import Decision
from snapline.engine.job import Job
from snapline.engine.shell import Ticket
from snapline.ids import Epoch, Incarnation, Micros, SlotId, TaskId
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.journal.happenings import Happening, OutputPublished
from snapline.metrics.figures import Figures, is_line
from snapline.metrics.second import Usage, Used, Volume
from snapline.runtime.driver.timeline import Timeline, published_times
from snapline.runtime.wire.codec import Wire
from snapline.runtime.wire.control_messages import Lease, Pulse
from snapline.scale.metered_slot import BEAT_US, MeteredSlot
from snapline.sim.world.coordinator import CoordinatorProcess
from snapline.sim.world.costs import Costs
from snapline.sim.world.process import Boss, SimSlotProcess
from snapline.sim.world.storage import Caller, SimStorage
from snapline.sim.world.world import World
from snapline.storage.api import Extent

_DILUTED = ("payload", "headers", "log", "output")
"""Bytes that follow from messages and rows alone; a slot counts all other bytes as they would be."""


class _Unwatched:
    """An observer that only counts lines: invariants are checked in other worlds."""

    def __init__(self) -> None:
        self.commits = 0

    def see(self, entry: Entry) -> None:
        """Count lines."""
        if isinstance(entry, Happened):
            self.commits += is_line(entry)

    def sending(self, message: Message) -> None:
        """Do nothing."""

    def wrote(self) -> None:
        """Do nothing."""

    def publishing(self, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Do nothing."""

    def resuming(self, past: Decision | None) -> None:
        """Do nothing."""

    def finishing(self, author: str) -> None:
        """Do nothing."""

    def stopping(self) -> None:
        """Do nothing."""

    def deleting(self, key: str) -> None:
        """Do nothing."""


class MeteredBoss(CoordinatorProcess):
    """One life of the coordinator whose orders are counted."""

    world: "MeteredWorld"

    def send(self, slot: SlotId, incarnation: Incarnation, order: Order) -> None:
        """Send an order, and count its bytes."""
        self.world.told_bytes += self.world.wire.pack(order).size
        super().send(slot, incarnation, order)

    def decide(self, ticket: Ticket, key: str, data: bytes) -> None:
        """Store a decision, and count the request."""
        self.world.driver_usage.puts += 1
        self.world.driver_usage.put_bytes += len(data)
        super().decide(ticket, key, data)


class MeteredStorage(SimStorage):
    """A storage in which every process that calls has random numbers of its own."""

    def __init__(self, world: "MeteredWorld") -> None:
        super().__init__(world, world.costs, world.dice("storage"))
        self._world = world
        self._dice: dict[str, random.Random] = {}

    def dice(self, caller: Caller) -> random.Random:
        """The random numbers for the calls of a process, by its name."""
        match caller:
            case SimSlotProcess():
                name = f"storage of {caller.life}"
            case CoordinatorProcess():
                name = f"storage of coordinator {caller.life}"
            case _:
                return self.rng
        return self._dice.setdefault(name, self._world.dice(name))


class MeteredWorld(World):
    """A world that gives the figures of a run."""

    def __init__(
        self, job: Job, costs: Costs, *, generate_us: float = 0.0, warm_up_us: Micros = 0
    ) -> None:
        self.wire = Wire.of(job)
        self.generate_us = generate_us  #: CPU time to make one record
        self.sizes: dict[str, int] = {}  #: for how many bytes each stored object stands, by its key
        self.told_bytes = 0  #: by the coordinator, since its last heartbeat
        self.driver_usage = Usage()
        self.timeline = Timeline(warm_up_us=warm_up_us)
        self.timeline.attach(_Recorder(self))
        super().__init__(job, costs, _Unwatched())
        self.at(BEAT_US, self._beat)

    def new_process(self, slot: SlotId, incarnation: Incarnation, boss: Boss) -> SimSlotProcess:
        """A process that is measured."""
        return MeteredSlot(self, slot, incarnation, boss)

    def new_storage(self) -> SimStorage:
        """A storage whose callers do not draw from each other's random numbers."""
        return MeteredStorage(self)

    def dice(self, name: str) -> random.Random:
        """Random numbers that depend on seed and name alone."""
        return random.Random(f"{self.job.seed}:{name}")

    def new_boss(self, life: int) -> CoordinatorProcess:
        """A coordinator whose orders are counted."""
        return MeteredBoss(self, life)

    def launch_us(self, incarnation: Incarnation) -> Micros:
        """How long a start takes; the first life of a slot is there when input begins to be due."""
        return self.costs.launch_us if incarnation > 1 else 0

    def journal(self, entry: Entry) -> None:
        """Show an entry of the coordinator to all who follow the run."""
        super().journal(entry)
        self.timeline.see(entry)

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Publish a manifest, and write it down as a driver does."""
        accepted = super().publish(number, extents)
        rows = {task: (extent.start, extent.stop) for task, extent in extents.items()}
        self.note(COORDINATOR, OutputPublished(number, rows))
        return accepted

    def _living(self) -> list[MeteredSlot]:
        lives = [p for p in self.processes.values() if p.alive and p.registered and not p.paused]
        return [process for process in lives if isinstance(process, MeteredSlot)]

    def _beat(self, *, last: bool = False) -> None:
        living = self._living()
        for process in living:
            self.timeline.pulse(process.slot, _whole(process.beat(last=last), self.costs.dilution))
        beats_us = int(self.costs.driver_beat_us * len(living))
        self.machine.occupy(beats_us, lambda: None)
        self.told_bytes += self.wire.pack(Lease(0)).size * len(living)
        self.timeline.spent(self.told_bytes, Used(beats_us, 0, self.driver_usage))
        self.told_bytes, self.driver_usage = 0, Usage()
        if not last:
            self.at(self.now_us + BEAT_US, self._beat)

    def figures(self) -> Figures:
        """The figures of the run, which has ended."""
        self._beat(last=True)
        self.timeline.close()
        sinks = [task for tasks in self.job.deployment.sinks.values() for task in tasks]
        times = published_times(self.storage.output, sinks)
        found = self.timeline.figures(times, self.job.options.interval_ms)
        return found


class _Recorder(NamedTuple):
    """Lets the timeline write into the journal of a world."""

    world: MeteredWorld

    def now_us(self) -> Micros:
        """The virtual time."""
        return self.world.now_us

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write down what happened to an actor."""
        self.world.journal(Happened(self.world.now_us, actor, epoch, what))


def _whole(pulse: Pulse, dilution: int) -> Pulse:
    """What a slot would have said if every message it handled had been as many as it stands for."""
    if dilution == 1:
        return pulse
    counts = pulse.volume.as_dict()
    more = {name: n * (dilution if name in _DILUTED else 1) for name, n in counts.items()}
    read, written, backlog = (dilution * n for n in (pulse.read, pulse.written, pulse.backlog))
    return replace(pulse, read=read, written=written, backlog=backlog, volume=Volume(**more))
