"""Faults, done to a real run by real means, at their time or while something is under way.

Processes get signals. A slot makes its own network slow, or cuts it, when the driver tells it to
(weather.py). The store is away while its directory is renamed, and slow or failing while a file beside it
says so: no process is told, every call finds out by itself. Damage changes the bytes of a stored file. The
coordinator lives in the driver: what is done to one is done to the other. Every fault is written down with
its statement when it begins, and when it ends.
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
    peers,
    start_ms,
)
from snapline.core import effects
from snapline.engine.slot.checkpoints import key_of
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId
from snapline.journal.entry import COORDINATOR, Entry, Handled, Happened
from snapline.metrics.figures import is_line
from snapline.runtime.driver.driver import Driver
from snapline.runtime.wire import control_messages as words

NO_EXECUTOR = (
    "this Spark has no executor of its own: its slots work for the driver's Java; use a cluster, such as "
    "the master local-cluster[2,2,1024], or 'kill slot='"
)


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
    """Plans faults in a driver's loop."""

    def __init__(self, driver: Driver, faults: tuple[Fault, ...], seed: int) -> None:
        self.driver = driver
        self.rng = random.Random(f"{seed}:inject")
        self.waiting: list[Kill | KillDriver] = []  #: kills that wait for a recovery or a round
        self.away_until_ms: Millis = 0  #: when the store is to come back
        self.paused: set[int] = set()  #: processes that stand still
        self.faults = faults
        self.lines = 0  #: committed so far
        driver.watch = self.watch

    def begin(self) -> None:
        """Input is due from now on: so are the faults."""
        for fault in self.faults:
            at_ms = start_ms(fault)
            if at_ms is not None:
                self._later(at_ms, partial(self._strike, fault))
            elif isinstance(fault, Kill | KillDriver):
                self.waiting.append(fault)

    def _strike(self, fault: Fault) -> None:
        if self.driver.tenure.is_over(self.driver.engine.decider.number):
            return  # it has stood still, and the run is not its own to break any more
        match fault:
            case Kill(slots):
                self._signal(slots, signal.SIGKILL, fault=str(fault))
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
            case StoreOutage(_, for_ms):
                self._take_store_away(for_ms, fault=str(fault))
            case StoreSlow() | StoreFailing():
                self._trouble_store(fault)
            case Damage():
                self._damage(fault)
            case DamageRecord() | LaunchFailing() | LaunchSlow():
                raise AssertionError(f"'{fault}' should have been refused")
            case _:
                assert_never(fault)

    def _later(self, at_ms: Millis, action: Callable[[], None]) -> None:
        self.driver.loop.after(max(0.0, (at_ms - self.driver.now_ms()) / 1000), action)

    def _note(self, actor: str, what: str, **detail: object) -> None:
        self.driver.note(actor, self.driver.engine.epoch, what, detail)

    def _heal(self, actor: str, for_ms: Millis, fault: Fault) -> None:
        """Write down when a fault is over."""
        heal = partial(self._note, actor, "healed", fault=str(fault))
        self.driver.loop.after(for_ms / 1000, heal)

    # Processes.

    def _signal(self, slots: tuple[SlotId, ...], how: signal.Signals, **why: str) -> None:
        for slot in slots:
            self.driver.kill(slot, how, **why)

    def _pause(self, fault: Pause) -> None:
        pid = self.driver.pid(fault.slot)
        self.driver.kill(fault.slot, signal.SIGSTOP, fault=str(fault))
        if pid is not None:
            self.paused.add(pid)
            self.driver.loop.after(fault.for_ms / 1000, partial(self._go_on, fault, pid))

    def _go_on(self, fault: Pause, pid: int) -> None:
        self.paused.discard(pid)
        self.driver.wake(pid)
        self._note(f"slot/{fault.slot}", "continued", fault=str(fault))

    def _kill_executor(self, fault: KillExecutor) -> None:
        actor, pid = f"slot/{fault.slot}", self.driver.pid(fault.slot)
        if pid is None:
            self._note(actor, "missed", signal=int(signal.SIGKILL), fault=str(fault))
        elif (executor := executor_of(pid)) is None:
            self.driver.finish(f"'{fault}' cannot be done: {NO_EXECUTOR}")
        else:
            self.driver.strike(*self.driver.job.slots)  # any slot may have run on that executor
            os.kill(executor, signal.SIGKILL)
            detail = {"pid": executor, "signal": int(signal.SIGKILL), "fault": str(fault)}
            self._note(actor, "killed", **detail)

    def _kill_driver(self, fault: KillDriver | KillCoordinator) -> None:
        """Die, here and now; whoever resumes the run finds this written down."""
        self._note(COORDINATOR, "coordinator-killed", fault=str(fault))
        self.driver.journal_file.flush()
        for pid in self.paused:
            self.driver.wake(pid)  # nobody else would
        os.kill(os.getpid(), signal.SIGKILL)

    def _pause_driver(self, fault: PauseCoordinator | PauseDriver) -> None:
        """The loop stands still; nobody takes over, because a real run has one driver."""
        self.driver.strike(*self.driver.job.slots)  # their leases may lapse
        self._note(COORDINATOR, "paused", fault=str(fault))
        self.driver.journal_file.flush()
        time.sleep(fault.for_ms / 1000)
        self._note(COORDINATOR, "continued", fault=str(fault))

    # The network.

    def _delay(self, fault: Delay) -> None:
        actor = f"slot/{fault.slot}"
        if self._tell(fault.slot, words.Slow(fault.delay_ms, fault.for_ms), fault):
            self._note(actor, "slowed", delay_ms=fault.delay_ms, fault=str(fault))
            self._heal(actor, fault.for_ms, fault)

    def _cut(
        self, slots: Sequence[SlotId], others: Sequence[SlotId | None], fault: Cut | Partition
    ) -> None:
        known = [self.driver.member(other) for other in others if other is not None]
        lives = dict(member.life for member in known if member is not None and member.life)
        patience_ms = int(self.driver.timeouts.silence_s * 1000)
        self.driver.strike(*slots, *lives)
        cut = words.CutLink(lives, None in others, fault.for_ms, patience_ms)
        other = others[0] if len(others) == 1 and others[0] is not None else peers(others)
        for slot in slots:
            if self._tell(slot, cut, fault):
                self._note(f"slot/{slot}", "cut", other=other, fault=str(fault))
        if fault.for_ms:
            self._heal(f"slot/{slots[0]}", fault.for_ms, fault)

    def _tell(self, slot: SlotId, word: words.Slow | words.CutLink, fault: Fault) -> bool:
        member = self.driver.member(slot)
        if member is None:
            self._note(f"slot/{slot}", "missed", fault=str(fault))
            return False
        self.driver.strike(slot)
        member.connection.send(self.driver.wire.pack(word))
        return True

    # The store.

    def _take_store_away(self, for_ms: Millis, **why: str) -> None:
        now_ms = self.driver.now_ms()
        if now_ms >= self.away_until_ms:
            self.driver.directory.take_store_away(self.driver.tenure.author)
        self.away_until_ms = max(self.away_until_ms, now_ms + for_ms)
        self._note("store", "outage", for_ms=for_ms, **why)
        self._later(self.away_until_ms, partial(self._bring_store_back, **why))

    def _bring_store_back(self, **why: str) -> None:
        if self.driver.now_ms() < self.away_until_ms:
            return  # another outage has begun meanwhile
        if self.driver.directory.bring_store_back(self.driver.tenure.author):
            self._note("store", "back", **why)

    def _trouble_store(self, fault: StoreSlow | StoreFailing) -> None:
        trouble = self.driver.directory.trouble
        match fault:
            case StoreSlow(delay_ms, _, for_ms):
                trouble.slow(delay_ms, for_ms)
                self._note("store", "slowed", delay_ms=delay_ms, fault=str(fault))
            case StoreFailing(percent, _, for_ms):
                trouble.fail(percent, for_ms)
                self._note("store", "failing", percent=percent, fault=str(fault))
        self._heal("store", fault.for_ms, fault)

    def _damage(self, fault: Damage) -> None:
        """Of the snapshots that count, damage the newest of one task."""
        known, hosted = self.driver.engine.registry.metas, self.driver.job.hosted[fault.slot]
        newest = [known[task][max(known[task])] for task in hosted if known[task]]
        if newest:
            meta = self.rng.choice(newest)
            self.driver.storage.store.damage(key_of(meta))
            self._note(meta.task, "damaged", checkpoint=meta.checkpoint, fault=str(fault))

    # While something is under way.

    def watch(self, entry: Entry) -> None:
        """See whether a recovery or a round begins, and kill whoever was to die in it.

        A round counts from the first committed line on: before that there is nothing to lose.
        """
        if isinstance(entry, Happened):
            self.lines += is_line(entry)
            if entry.what == "lost":
                self._trigger("recovery")
        elif isinstance(entry, Handled) and self.lines:
            for effect in entry.effects:
                match effect:
                    case effects.Order(_, command) if command.begins is not None:
                        self._trigger("round")
                    case _:
                        pass

    def _trigger(self, what: str) -> None:
        due = [fault for fault in self.waiting if str(fault.when) == f"on={what}"]
        for fault in due[:1]:
            self.waiting.remove(fault)
            longest_s = 0.5 if what == "recovery" else 0.02
            self.driver.loop.after(self.rng.uniform(0, longest_s), partial(self._strike, fault))


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
