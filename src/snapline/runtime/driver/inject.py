"""Does faults to a real run, by real means, when the schedule says so.

Processes get signals. A slot makes its own network slow, or cuts it, when the driver tells it to (see
`slot.network_faults`). The store is away while its directory is renamed, and slow or failing while a file
beside it says so: no process is told, every call finds out by itself. Damage changes the bytes of a stored
file. The coordinator lives in the driver: what is done to one is done to the other. Every fault is written
down with its statement when it begins, and when it ends.
"""

import os
import random
import re
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import assert_never

from pyspark.sql import SparkSession

from snapline.chaos.faults import (
    At,
    BeforeEffect,
    Cut,
    Damage,
    DamageRecord,
    Delay,
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
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId
from snapline.journal.entry import COORDINATOR, STORE, Entry
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    FaultEnded,
    FaultMissed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
    SnapshotDamaged,
    StoreAway,
    StoreBack,
    StoreUnreliable,
)
from snapline.journal.moments import Moments
from snapline.runtime.driver.fault_port import FaultPort
from snapline.runtime.wire import control_messages

NO_EXECUTOR = (
    "this Spark has no executor of its own: its slots work for the driver's Java; use a cluster, such as "
    "the master local-cluster[2,2,1024], or 'kill slot='"
)

SPANS: Spans = {"recovery": 500_000, "round": 20_000}
"""How long, at most, after a phase began a fault that waits for it strikes."""


def check_possible(faults: tuple[Fault, ...]) -> None:
    """Refuse what only the simulator can do."""
    for fault in faults:
        if isinstance(fault, Kill) and isinstance(fault.when, BeforeEffect):
            raise UsageError(
                "in a real run a slot dies at a time (at=), or while a recovery or a round is under way "
                f"(on=), but not before a certain effect: '{fault}'; 'snapline simulate' can do it"
            )
        if isinstance(fault, DamageRecord | LaunchFailing | LaunchSlow):
            raise UsageError(
                f"a real run cannot do this yet: '{fault}'; 'snapline simulate' can, and "
                "'snapline list faults' shows what works where"
            )


def check_executors(faults: tuple[Fault, ...], spark: SparkSession | None) -> None:
    """Refuse to kill an executor where there is none: on a local master, or without a session."""
    master = "local" if spark is None else str(spark.sparkContext.master)
    local = re.match(r"local(\[|$)", master)
    for fault in faults:
        if isinstance(fault, KillExecutor) and local:
            raise UsageError(f"'{fault}' cannot be done: {NO_EXECUTOR}")


class RunInjector:
    """Does faults to a real run, when the schedule says so."""

    def __init__(self, run: FaultPort, faults: Sequence[Fault], seed: int) -> None:
        self.run = run
        self.rng = random.Random(f"{seed}:inject")
        self.schedule = Schedule(faults, self.rng, SPANS)
        self.moments = Moments()
        self.away_until_ms: Millis = 0  #: when the store is to come back
        self.paused: set[int] = set()  #: the ids of processes that stand still
        run.watch(self.watch)

    def begin(self) -> None:
        """Plan the faults that have a time: it counts from now, the moment input is due."""
        for fault in self.schedule.faults:
            at = when(fault)
            if isinstance(at, At):
                self._later(at.ms, partial(self._strike, fault))

    def watch(self, entry: Entry) -> None:
        """See whether a recovery or a round begins, and break what was to be broken in it."""
        for moment in self.moments.see(entry):
            if due := self.schedule.happened(moment):
                self.run.after(due.delay_us / 1e6, partial(self._strike, due.fault))

    def _strike(self, fault: Fault) -> None:
        if self.run.is_replaced():
            return  # this driver stood still, and another took over
        match fault:
            case Kill(slots, _, for_ms):
                for slot in slots:
                    self.run.keep_away(slot, for_ms)
                    self.run.processes.kill(slot, signal.SIGKILL, str(fault))
            case KillExecutor():
                self._kill_executor(fault)
            case KillDriver() | KillCoordinator():
                self._kill_driver(fault)
            case Pause():
                self._pause(fault)
            case PauseCoordinator() | PauseDriver():
                self._pause_driver(fault)
            case Cut(slot, other):
                self._cut((slot,), (other,), fault)
            case Partition(slots, others):
                self._cut(slots, others, fault)
            case Delay():
                self._delay(fault)
            case StoreOutage():
                self._take_store_away(fault)
            case StoreSlow() | StoreFailing():
                self._trouble_store(fault)
            case Damage():
                self._damage(fault)
            case DamageRecord() | LaunchFailing() | LaunchSlow():
                raise AssertionError(f"'{fault}' should have been refused")
            case _:
                assert_never(fault)

    def _later(self, at_ms: Millis, action: Callable[[], None]) -> None:
        self.run.after(max(0.0, (at_ms - self.run.now_ms()) / 1000), action)

    def _heal(self, actor: str, for_ms: Millis, fault: Fault) -> None:
        """Write down when a fault is over."""
        heal = partial(self.run.note, actor, FaultEnded(str(fault)))
        self.run.after(for_ms / 1000, heal)

    # Processes.

    def _pause(self, fault: Pause) -> None:
        pid = self.run.processes.pid(fault.slot)
        self.run.processes.kill(fault.slot, signal.SIGSTOP, str(fault))
        if pid is not None:
            self.paused.add(pid)
            self.run.after(fault.for_ms / 1000, partial(self._go_on, fault, pid))

    def _go_on(self, fault: Pause, pid: int) -> None:
        self.paused.discard(pid)
        self.run.processes.wake(pid)
        self.run.note(f"slot/{fault.slot}", ProcessContinued(str(fault)))

    def _kill_executor(self, fault: KillExecutor) -> None:
        actor, pid = f"slot/{fault.slot}", self.run.processes.pid(fault.slot)
        if pid is None:
            self.run.note(actor, FaultMissed(str(fault)))
        elif (executor := executor_of(pid)) is None:
            self.run.give_up(f"'{fault}' cannot be done: {NO_EXECUTOR}")
        else:
            self.run.strike_all()  # any slot may have run on that executor
            os.kill(executor, signal.SIGKILL)
            self.run.note(actor, ProcessKilled(str(fault), pids=(executor,)))

    def _kill_driver(self, fault: KillDriver | KillCoordinator) -> None:
        """Kill this process at once; whoever resumes the run finds it in the journal."""
        self.run.note(COORDINATOR, CoordinatorKilled(str(fault)))
        self.run.flush()
        for pid in self.paused:
            self.run.processes.wake(pid)  # otherwise it would stand still for ever
        os.kill(os.getpid(), signal.SIGKILL)

    def _pause_driver(self, fault: PauseCoordinator | PauseDriver) -> None:
        """Let the loop stand still; nobody takes over, because a real run has one driver."""
        self.run.strike_all()  # their leases may lapse
        self.run.note(COORDINATOR, ProcessPaused(str(fault)))
        self.run.flush()
        time.sleep(fault.for_ms / 1000)
        self.run.note(COORDINATOR, ProcessContinued(str(fault)))

    # The network.

    def _delay(self, fault: Delay) -> None:
        actor = f"slot/{fault.slot}"
        if self._tell(fault.slot, control_messages.Slow(fault.delay_ms, fault.for_ms), fault):
            self.run.note(actor, Slowed(str(fault), fault.delay_ms))
            self._heal(actor, fault.for_ms, fault)

    def _cut(
        self, slots: Sequence[SlotId], others: Sequence[SlotId | None], fault: Cut | Partition
    ) -> None:
        lives = self.run.lives(other for other in others if other is not None)
        self.run.processes.strike(*slots, *lives)
        cut = control_messages.CutLink(lives, None in others, fault.for_ms, self.run.patience_ms)
        for slot in slots:
            if self._tell(slot, cut, fault):
                self.run.note(f"slot/{slot}", ConnectionCut(str(fault), tuple(others)))
        if fault.for_ms:
            self._heal(f"slot/{slots[0]}", fault.for_ms, fault)

    def _tell(
        self, slot: SlotId, message: control_messages.Slow | control_messages.CutLink, fault: Fault
    ) -> bool:
        told = self.run.tell(slot, message)
        if not told:
            self.run.note(f"slot/{slot}", FaultMissed(str(fault)))
        return told

    # The store.

    def _take_store_away(self, fault: StoreOutage) -> None:
        now_ms = self.run.now_ms()
        if now_ms >= self.away_until_ms:
            self.run.take_store_away()
        self.away_until_ms = max(self.away_until_ms, now_ms + fault.for_ms)
        self.run.note(STORE, StoreAway(str(fault), fault.for_ms))
        self._later(self.away_until_ms, partial(self._bring_store_back, fault))

    def _bring_store_back(self, fault: StoreOutage) -> None:
        if self.run.now_ms() < self.away_until_ms:
            return  # another outage has begun meanwhile
        if self.run.bring_store_back():
            self.run.note(STORE, StoreBack(str(fault)))

    def _trouble_store(self, fault: StoreSlow | StoreFailing) -> None:
        trouble = self.run.trouble
        match fault:
            case StoreSlow(delay_ms, _, for_ms):
                trouble.slow(delay_ms, for_ms)
                self.run.note(STORE, Slowed(str(fault), delay_ms))
            case StoreFailing(percent, _, for_ms):
                trouble.fail(percent, for_ms)
                self.run.note(STORE, StoreUnreliable(str(fault), percent))
        self._heal(STORE, fault.for_ms, fault)

    def _damage(self, fault: Damage) -> None:
        """Damage the newest snapshot that counts of one task of the slot, drawn at random."""
        if newest := self.run.newest_snapshots(fault.slot):
            meta = self.rng.choice(newest)
            self.run.damage(meta)
            self.run.note(meta.task, SnapshotDamaged(str(fault), meta.checkpoint))


def executor_of(pid: int) -> int | None:
    """The executor for which a slot's process works: the nearest of its ancestors that is one."""
    while pid > 1 and pid != os.getpid():
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
            if "CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
        except OSError:
            return None
        pid = int(status.rpartition(")")[2].split()[1])
    return None
