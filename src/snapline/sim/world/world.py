"""The simulated world: a heap of planned actions, one thread, one seed.

Ties are broken by the order in which actions were planned, and nothing iterates over a set, so a seed
gives one history, whatever the hash seed of the interpreter.
"""

import heapq
import random
from collections.abc import Callable, Mapping

from snapline.core.messages import Marker
from snapline.engine.control import Credit, Frame
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.coordinator.holding import STOPPED
from snapline.engine.coordinator.ledger import Decision
from snapline.engine.job import Job
from snapline.errors import StorageError
from snapline.ids import Incarnation, Micros, SlotId, TaskId
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.journal.fault_happenings import (
    CoordinatorKilled,
    CoordinatorResumed,
    ProcessKilled,
    ProcessPaused,
)
from snapline.journal.happenings import Happening, JobStopped
from snapline.sim.world.coordinator import CoordinatorProcess
from snapline.sim.world.costs import Costs
from snapline.sim.world.machine import Machine
from snapline.sim.world.network import Control, Link
from snapline.sim.world.observer import WorldObserver
from snapline.sim.world.process import Boss, SimSlotProcess
from snapline.sim.world.storage import SimStorage
from snapline.sim.world.weather import FaultsUnderWay, SlotLife
from snapline.storage.api import Extent


class World:
    """All processes, links and storage of one run."""

    def __init__(
        self, job: Job, costs: Costs, observer: WorldObserver, *, keep_journal: bool = False
    ) -> None:
        self.job = job
        self.costs = costs
        self.observer = observer
        self.now_us: Micros = 0
        self.heap: list[tuple[Micros, int, Callable[[], None]]] = []
        self.planned = 0  #: how many actions so far; breaks ties
        self.machine = Machine(self, costs.cores)
        self.network_rng = random.Random(f"{job.seed}:network")
        self.storage = self.new_storage()
        self.processes: dict[SlotLife, SimSlotProcess] = {}
        self.links: dict[tuple[SlotId, Incarnation, SlotId, Incarnation], Link[Frame]] = {}
        self.controls: dict[SlotLife, Control] = {}
        self.weather = FaultsUnderWay()
        self.entries: list[Entry] | None = [] if keep_journal else None
        self.finished = False
        self.problem: str | None = None
        self.watch: Callable[[Entry], None] | None = None  #: lets the injector see the journal
        self.coordinators = 0
        self.rivals = 0  #: coordinators that ran the job to its end beside another one
        self.coordinator = self._new_coordinator(None)

    # Time.

    def at(self, at_us: Micros, action: Callable[[], None]) -> None:
        """Run an action at a virtual time."""
        self.planned += 1
        heapq.heappush(self.heap, (at_us, self.planned, action))

    def run(self, until_us: Micros) -> None:
        """Run the planned actions, in order of time, until the job is over or time is up."""
        heap = self.heap
        while heap and not self.finished:
            at_us, _, action = heapq.heappop(heap)
            if at_us > until_us:
                return
            self.now_us = at_us
            action()

    def journal(self, entry: Entry) -> None:
        """Write an entry into the journal, and show it to observer and injector."""
        if self.entries is not None:
            self.entries.append(entry)
        self.observer.see(entry)
        if self.watch is not None:
            self.watch(entry)

    def note(self, actor: str, what: Happening) -> None:
        """Write down what happened to an actor."""
        self.journal(Happened(self.now_us, actor, self.coordinator.engine.epoch, what))

    # The coordinator.

    def new_boss(self, life: int) -> CoordinatorProcess:
        """The process of a coordinator, which knows nothing yet."""
        return CoordinatorProcess(self, life)

    def _new_coordinator(self, past: Decision | None) -> CoordinatorProcess:
        self.coordinators += 1
        process = self.new_boss(self.coordinators)
        process.engine = Coordinator(self.job, process, f"life {self.coordinators}", past)
        self.at(self.now_us, lambda: process.call(process.engine.start))
        return process

    def kill_coordinator(self, fault: str) -> None:
        """Kill the coordinator; its slots go on until their lease lapses."""
        self.coordinator.alive = False
        self.note(COORDINATOR, CoordinatorKilled(fault))
        self._lapse_leases(self.coordinator)

    def resume_coordinator(self, fault: str | None = None) -> None:
        """Let another coordinator take over from the durable decisions, if they are whole."""
        if self.finished:
            return
        try:
            past = self.storage.resume(self.job.deployment.fingerprint)
        except StorageError as error:
            problem = f"the run cannot be resumed: {error}"
            self.note(COORDINATOR, JobStopped(problem))
            self.finish(problem)
            return
        self.observer.resuming(past)
        self.coordinator = self._new_coordinator(past)
        self.note(COORDINATOR, CoordinatorResumed(fault))

    def stop_run(self) -> None:
        """Ask for a stop with a last line; once it has stopped, the run is resumed."""
        boss = self.coordinator
        boss.call(boss.engine.stop)

    def let_leave(self, slot: SlotId) -> None:
        """Ask for a slot to leave as soon as a line holds all that was taken in."""
        boss = self.coordinator
        lives = boss.engine.members.incarnations
        boss.call(lambda: boss.engine.leave(slot, lives.get(slot, 0)))

    def _stopped(self) -> None:
        """End all processes of a run that has stopped, and resume it after a while."""
        if not self.coordinator.engine.ended:
            return  # a zombie has stopped, and the run goes on under another
        self.observer.stopping()
        self.coordinator.alive = False
        self.leave(self.coordinator)
        self.at(self.now_us + self.costs.lease_us, self.resume_coordinator)

    def _lapse_leases(self, boss: CoordinatorProcess) -> None:
        def lapse() -> None:
            if not boss.alive or boss.paused:
                self.leave(boss)

        self.at(self.now_us + self.costs.lease_us, lapse)

    def leave(self, boss: CoordinatorProcess) -> None:
        """End the slots of a coordinator that is gone; one that was only paused hears of it later."""
        for process in tuple(self.processes.values()):
            if process.boss is boss and process.alive:
                self.exit(process)
                self._notice(process)

    def _notice(self, process: SimSlotProcess) -> None:
        """Let the coordinator of a process notice soon that its connection broke."""
        self.at(self.now_us + self.costs.detect_us, lambda: self.report_lost(process))

    def pause_coordinator(self, fault: str) -> CoordinatorProcess:
        """Pause the coordinator, and return it; its slots go on until their lease lapses."""
        self.coordinator.paused = True
        self.note(COORDINATOR, ProcessPaused(fault))
        self._lapse_leases(self.coordinator)
        return self.coordinator

    # Slots.

    def new_process(self, slot: SlotId, incarnation: Incarnation, boss: Boss) -> SimSlotProcess:
        """A process for a life of a slot, which has not registered yet."""
        return SimSlotProcess(self, slot, incarnation, boss)

    def launch_us(self, incarnation: Incarnation) -> Micros:
        """How long it takes until a process that is started now registers: drawn around its cost."""
        return int(self.costs.launch_us * (0.5 + self.network_rng.random()))

    def current(self, slot: SlotId) -> SimSlotProcess | None:
        """The newest life of a slot; a zombie coordinator may have launched others."""
        lives = [p for (s, _), p in self.processes.items() if s == slot]
        return max(lives, key=lambda process: process.incarnation, default=None)

    def kill(self, process: SimSlotProcess, fault: str) -> None:
        """Kill a process, as SIGKILL does; its connection breaks, so it is noticed soon."""
        if not process.alive:
            return
        self.note(f"slot/{process.slot}", ProcessKilled(fault, process.incarnation))
        self.exit(process)
        self._notice(process)

    def exit(self, process: SimSlotProcess) -> None:
        """End a process; what it had not made durable is lost."""
        process.alive = False
        process.paused = False
        process.backlog = []
        own = (process.slot, process.incarnation)
        for link in [link for key, link in self.links.items() if key[:2] == own]:
            link.sever()
        if own in self.controls:
            self.controls[own].up.sever()
        for life in process.lives:
            self.storage.logs.crash(life)
            # Where output is public as written, readers have seen all that was.
            if not self.job.protocol.publishes_at_once:
                self.storage.outlet.crash(life)

    def report_lost(self, process: SimSlotProcess) -> None:
        """Tell its coordinator that a process is gone, or that it ended before it registered."""
        boss = process.boss
        if process.registered:
            boss.call(lambda: boss.engine.lost(process.slot, process.incarnation))
            # Where only lines count, zombies stay: they are the hardest test, and can do no harm.
            if process.alive and self.job.protocol.publishes_at_once:
                self.at(self.now_us + self.costs.lease_us, lambda: self._lapse(process))
        elif not process.alive:
            boss.call(lambda: boss.did_not_start(process, "it ended"))

    def _lapse(self, process: SimSlotProcess) -> None:
        """End a slot that was given up: its lease is not renewed; one that is paused sees that later."""
        if process.paused:
            self.at(self.now_us + self.costs.detect_us, lambda: self._lapse(process))
        elif process.alive:
            self.exit(process)

    def suspect(self, process: SimSlotProcess, silent: Callable[[], bool]) -> None:
        """Give a slot up if it is still silent after the time-out."""

        def judge() -> None:
            if process.alive and silent():
                self.report_lost(process)

        self.at(self.now_us + self.costs.timeout_us, judge)

    # Links and storage.

    def dice(self, name: str) -> random.Random:
        """The random numbers of a connection: here all connections draw from one sequence."""
        return self.network_rng

    def new_storage(self) -> SimStorage:
        """All that will survive a process."""
        return SimStorage(self, self.costs, random.Random(f"{self.job.seed}:storage"))

    def busy_us(self, frame: Frame) -> Micros:
        """How long a frame occupies its link."""
        payload = frame.payload
        if isinstance(payload, Marker | Credit):
            return self.costs.link_busy_us // 4 + 1
        size = payload.batch.nbytes + len(payload.header)
        return (
            self.costs.link_busy_us + int(self.costs.link_byte_us * self.costs.dilution * size) + 1
        )

    def link(self, source: SimSlotProcess, slot: SlotId, incarnation: Incarnation) -> Link[Frame]:
        """The connection from one life of a slot to another's."""
        key = (source.slot, source.incarnation, slot, incarnation)
        if key not in self.links:
            self.links[key] = self._connect(source, slot, incarnation)
        return self.links[key]

    def _connect(
        self, source: SimSlotProcess, slot: SlotId, incarnation: Incarnation
    ) -> Link[Frame]:
        ends = (source.life, (slot, incarnation))

        def deliver(frame: Frame) -> None:
            target = self.processes.get((slot, incarnation))
            if target is not None:
                target.receive(source.slot, frame)

        return Link(
            self,
            self.dice(f"{source.life} to {(slot, incarnation)}"),
            self.costs.link_us,
            deliver,
            lambda: sum(self.weather.extra_us(end, self.now_us) for end in ends),
            lambda: self.weather.cut.get(frozenset(ends), 0),
        )

    def disconnect(self, one: SlotLife, other: SlotLife) -> None:
        """Break the connections between two lives for good."""
        for source, target in ((one, other), (other, one)):
            self.link(self.processes[source], *target).disconnect()

    def control(self, process: SimSlotProcess) -> Control:
        """The connection between a slot and its coordinator."""
        key = process.life
        if key not in self.controls:

            def make(way: str) -> Link[Callable[[], None]]:
                return Link(
                    self,
                    self.dice(f"{key} {way}"),
                    self.costs.control_us,
                    lambda action: action(),
                    lambda: self.weather.extra_us(key, self.now_us),
                    lambda: self.weather.alone.get(key, 0),
                )

            self.controls[key] = Control(make("up"), make("down"))
        return self.controls[key]

    # Output and end.

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Write a manifest; False if its number is taken by another."""
        self.observer.publishing(number, extents)
        return self.storage.outlet.publish(number, extents)

    def finish(self, problem: str | None) -> None:
        """End the run; `problem` says why, if it ended early. One that only stopped is resumed."""
        if problem == STOPPED:
            self._stopped()
            return
        self.finished = True
        self.problem = problem
