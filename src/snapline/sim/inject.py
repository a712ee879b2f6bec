"""Does faults to the simulated world: one case per kind; no other part of it knows the kinds.

A fault strikes the life that a slot has at that moment, and does nothing to its next life. Each is
written down with its statement when it begins, and when it ends. The schedule knows when faults
strike, and which of them have struck.
"""

import random
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import assert_never

from snapline.chaos.faults import (
    At,
    BeforeEffect,
    Cut,
    Damage,
    DamageRecord,
    Delay,
    During,
    Fault,
    Kill,
    KillCoordinator,
    KillDriver,
    KillExecutor,
    LaunchFailing,
    LaunchSlow,
    Partition,
    Pause,
    PauseCoordinator,
    PauseDriver,
    StoreFailing,
    StoreOutage,
    StoreSlow,
)
from snapline.chaos.schedule import Schedule, Spans, when
from snapline.core.messages import CheckpointMeta
from snapline.engine.slot.checkpoints import key_of, stored_groups
from snapline.errors import StorageError
from snapline.ids import Micros, Millis, SlotId
from snapline.journal.entry import COORDINATOR, STORE, Entry
from snapline.journal.fault_happenings import (
    ConnectionCut,
    FaultEnded,
    FaultOver,
    LaunchTroubled,
    ProcessContinued,
    ProcessPaused,
    RecordSpoiled,
    Slowed,
    SnapshotDamaged,
    StoreAway,
    StoreBack,
    StoreUnreliable,
)
from snapline.journal.moments import Moments
from snapline.sim.world.process import SimSlotProcess
from snapline.sim.world.weather import Starting
from snapline.sim.world.world import World

RESUME_MS: Millis = 50
"""How long it takes to start a driver again."""

SOONEST_US: Micros = 1_000
SPANS: Spans = {"recovery": 40_000, "round": 40_000}
"""How long after a phase began a fault that waits for it strikes: at least, and at most."""


class SimInjector:
    """Plans the faults of a run, and does them to its world."""

    def __init__(self, world: World, faults: Sequence[Fault], seed: int) -> None:
        self.world = world
        self.rng = random.Random(f"{seed}:inject")
        self.schedule = Schedule(faults, self.rng, SPANS, SOONEST_US)
        self.moments = Moments()
        self.lost_record = False  #: whether a fault has removed a decision or a manifest
        if self.schedule.waits:
            world.watch = self.watch

    def plan(self) -> None:
        """Plan the faults that have a time or an effect; `watch` plans those of a phase."""
        for fault in self.schedule.faults:
            match when(fault):
                case At(ms):
                    self.world.at(ms * 1000, partial(self._strike, fault))
                case BeforeEffect(n):
                    assert isinstance(fault, Kill)
                    self.world.at(0, partial(self._arm, fault, fault.slots[0], n))
                case During():
                    pass  # `watch` sees when its phase begins

    def watch(self, entry: Entry) -> None:
        """See whether a recovery or a round begins, and break what was to be broken in it."""
        for moment in self.moments.see(entry):
            if due := self.schedule.happened(moment):
                at_us = self.world.now_us + due.delay_us
                self.world.at(at_us, partial(self._strike, due.fault))

    def _hit(self, fault: Fault) -> None:
        self.schedule.finds(fault, self.world.now_us // 1000)

    def _strike(self, fault: Fault) -> None:
        """Do a fault to the world, now that its moment has come."""
        self.schedule.begins(fault, self.world.now_us // 1000)
        match fault:
            case Kill(slots, _, for_ms):
                self._kill(slots, str(fault))
                self._keep_away(slots, for_ms)
            case KillExecutor(slot):  # here every slot has an executor of its own
                self._kill((slot,), str(fault))
            case Pause():
                self._pause(fault)
            case Cut(slot, other):
                self._cut((slot,), (other,), fault)
            case Partition(slots, others):
                self._cut(slots, others, fault)
            case Delay():
                self._delay(fault)
            case KillCoordinator():
                self._kill_coordinator(fault)
            case KillDriver():
                self._kill_driver(fault)
            case PauseCoordinator() | PauseDriver():
                self._pause_coordinator(fault)
            case StoreOutage() | StoreSlow() | StoreFailing():
                self._trouble_store(fault)
            case Damage():
                self._damage(fault)
            case DamageRecord():
                self._damage_record(fault)
            case LaunchFailing() | LaunchSlow():
                self._trouble_starting(fault)
            case _:
                assert_never(fault)

    def _until(self, for_ms: Millis) -> Micros:
        return self.world.now_us + for_ms * 1000

    def _heal(self, actor: str, at_us: Micros, over: FaultOver) -> None:
        """Write down when a fault is over."""
        self.world.at(at_us, lambda: self.world.note(actor, over))

    # Slots.

    def _kill(self, slots: tuple[SlotId, ...], fault: str) -> None:
        for slot in slots:
            if process := self.world.current(slot):
                self.world.kill(process, fault)

    def _keep_away(self, slots: tuple[SlotId, ...], for_ms: Millis) -> None:
        """Let nothing take the places of slots for so long."""
        away = self.world.weather.away
        for slot in slots:
            away[slot] = max(away.get(slot, 0), self._until(for_ms))

    def _arm(self, fault: Kill, slot: SlotId, step: int) -> None:
        if process := self.world.current(slot):
            process.kill_before, process.kill_fault = step, str(fault)
            process.on_kill = partial(self._hit, fault)
        else:  # not launched yet
            self.world.at(self.world.now_us + 1_000, partial(self._arm, fault, slot, step))

    def _trouble_starting(self, fault: LaunchFailing | LaunchSlow) -> None:
        delay_us = fault.delay_ms * 1000 if isinstance(fault, LaunchSlow) else None
        until = self._until(fault.for_ms)
        trouble = Starting(delay_us, until, partial(self._hit, fault))
        self.world.weather.start[fault.slot] = trouble
        actor = f"slot/{fault.slot}"
        self.world.note(actor, LaunchTroubled(str(fault)))
        self._heal(actor, until, FaultEnded(str(fault)))

    def _living(self, slot: SlotId) -> SimSlotProcess | None:
        process = self.world.current(slot)
        return process if process is not None and process.alive else None

    def _connected(self, slot: SlotId) -> SimSlotProcess | None:
        """The process of a slot, if it has registered: before, it has no connection."""
        process = self._living(slot)
        return process if process is not None and process.registered else None

    def _pause(self, fault: Pause) -> None:
        process = self._living(fault.slot)
        if process is None or process.paused:
            return
        process.paused = True
        actor, life = f"slot/{fault.slot}", process.incarnation
        self.world.note(actor, ProcessPaused(str(fault), life))
        self.world.suspect(process, lambda: process.paused)

        def go_on() -> None:
            if process.alive:
                self.world.note(actor, ProcessContinued(str(fault), life))
                process.resume()

        self.world.at(self._until(fault.for_ms), go_on)

    # The network.

    def _cut(
        self,
        slots: tuple[SlotId, ...],
        others: tuple[SlotId | None, ...],
        fault: Cut | Partition,
    ) -> None:
        """Cut slots off from others.

        Without a duration their connections break, and they are given up soon. With one, nothing
        passes for so long, and they are given up if it lasts longer than the time-out.
        """
        until = self._until(fault.for_ms)
        known = [self._connected(other) for other in others if other is not None]
        for slot in slots:
            process = self._connected(slot)
            if process is None:
                continue
            self.world.note(f"slot/{slot}", ConnectionCut(str(fault), others))
            living = [peer for peer in known if peer is not None]
            if not fault.for_ms:
                self._break(process, living, alone=None in others)
                continue
            if None in others:
                self.world.weather.alone[process.life] = until
            for peer in living:
                self.world.weather.cut[frozenset((process.life, peer.life))] = until
            self.world.suspect(process, lambda: self.world.now_us < until)
        if fault.for_ms:
            self._heal(f"slot/{slots[0]}", until, FaultEnded(str(fault)))

    def _break(self, process: SimSlotProcess, others: list[SimSlotProcess], *, alone: bool) -> None:
        """Break connections: the slot is given up soon, and exits if it lost its coordinator."""
        for other in others:
            self.world.disconnect(process.life, other.life)
        if alone:
            self.world.exit(process)
        self.world.at(
            self.world.now_us + self.world.costs.detect_us, lambda: self.world.report_lost(process)
        )

    def _delay(self, fault: Delay) -> None:
        process = self._connected(fault.slot)
        if process is None:
            return
        extra, until = fault.delay_ms * 1000, self._until(fault.for_ms)
        self.world.weather.delay_us[process.life] = (extra, until)
        actor = f"slot/{fault.slot}"
        self.world.note(actor, Slowed(str(fault), fault.delay_ms))
        self._heal(actor, until, FaultEnded(str(fault)))
        if extra > self.world.costs.timeout_us:  # all that it says comes too late
            self.world.suspect(process, lambda: True)

    # The coordinator.

    def _kill_coordinator(self, fault: KillCoordinator) -> None:
        self.world.kill_coordinator(str(fault))
        resume = self.world.resume_coordinator
        self.world.at(self._until(fault.for_ms), lambda: resume(str(fault)))

    def _kill_driver(self, fault: KillDriver) -> None:
        boss = self.world.coordinator
        if not boss.alive:
            return
        self.world.kill_coordinator(str(fault))
        self.world.at(
            self.world.now_us + self.world.costs.detect_us, lambda: self.world.leave(boss)
        )
        resume = self.world.resume_coordinator
        self.world.at(self._until(RESUME_MS), lambda: resume(str(fault)))

    def _pause_coordinator(self, fault: PauseCoordinator | PauseDriver) -> None:
        if not self.world.coordinator.alive:
            return
        zombie = self.world.pause_coordinator(str(fault))
        self.world.at(self.world.now_us + fault.for_ms * 500, self.world.resume_coordinator)
        self.world.at(self._until(fault.for_ms), zombie.resume)
        self._heal(COORDINATOR, self._until(fault.for_ms), ProcessContinued(str(fault)))

    # The store.

    def _trouble_store(self, fault: StoreOutage | StoreSlow | StoreFailing) -> None:
        storage, until = self.world.storage, self._until(fault.for_ms)
        match fault:
            case StoreOutage(_, for_ms):
                storage.outage_until_us = until
                self.world.note(STORE, StoreAway(str(fault), for_ms))
            case StoreSlow(delay_ms):
                storage.slow_us, storage.slow_until_us = delay_ms * 1000, until
                self.world.note(STORE, Slowed(str(fault), delay_ms))
            case StoreFailing(percent):
                storage.failing, storage.failing_until_us = percent / 100, until
                self.world.note(STORE, StoreUnreliable(str(fault), percent))
        over = StoreBack if isinstance(fault, StoreOutage) else FaultEnded
        self._heal(STORE, until, over(str(fault)))

    def _damage(self, fault: Damage) -> None:
        world = self.world
        known = world.coordinator.engine.registry.metas
        hosted = world.job.hosted[fault.slot]
        newest = [max(known[task].items())[1] for task in hosted if known[task]]
        if newest:
            self._hit(fault)
            meta = self.rng.choice(newest)
            world.storage.store.damage(self._damaged_object(meta))
            world.note(meta.task, SnapshotDamaged(str(fault), meta.checkpoint))

    def _damaged_object(self, meta: CheckpointMeta) -> str:
        """The snapshot of a checkpoint, or one of the groups that it refers to."""
        registry, store = self.world.coordinator.engine.registry, self.world.storage.store
        if meta.groups and self.rng.random() < 0.5:
            with suppress(StorageError):  # it may be damaged already
                chain = registry.chain(meta.task, meta.checkpoint)
                return self.rng.choice(stored_groups(store, chain)).key
        return key_of(meta)

    def _damage_record(self, fault: DamageRecord) -> None:
        storage, lost = self.world.storage, fault.lost
        if lost and self.lost_record:
            return  # after two losses nothing may be left that shows either
        self.lost_record |= lost
        if fault.record == "manifest":
            number = storage.outlet.spoil(lost=lost)
        else:
            number = storage.spoil_decision(lost=lost)
        if number is not None:
            self._hit(fault)
            spoiled = RecordSpoiled(str(fault), f"{fault.record} {number}", lost)
            self.world.note(STORE, spoiled)
