"""Faults that wait until a run is ready for them, so that they strike on a machine of any speed.

A script is a list of steps. A step waits until the one before it has struck and its own moment has come;
then it does to the run what a statement such as `kill slot=1` would, through the product's own injector.
A kill at a time of the clock finds nobody when the slot is still on its way back; a step does not. The
input of the run does not end before the last step has struck.
"""

import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from run_helpers import commits
from spark_slots import parent_of

from held_input import Hold
from snapline.chaos.faults import KillExecutor, StoreOutage
from snapline.core import effects, events
from snapline.ids import Millis, SlotId
from snapline.journal.entry import Entry, Handled, Happened
from snapline.journal.fault_happenings import StoreAway
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.recovery.replay import replay_ranges
from snapline.rundir.program import build_job
from snapline.runs import drive as drive_module
from snapline.runs import run as run_module
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.driver.inject import RunInjector, executor_of

PATIENT = Timeouts(silence_s=60, lease_s=150, restore_s=150, register_s=180)
"""A slow machine is not a dead one: only a broken connection is a loss."""

Moment = Callable[[Driver, Entry], bool]
Deed = Callable[[RunInjector], None]


def committed(driver: Driver, entry: Entry) -> bool:
    """A line was committed."""
    return isinstance(entry, Happened) and commits(entry)


def replayable(driver: Driver, entry: Entry) -> bool:
    """A line was committed, and messages were under way across it."""
    line = driver.engine.decider.line_metas()
    return committed(driver, entry) and bool(replay_ranges(driver.job.topology, line))


def lost(driver: Driver, entry: Entry) -> bool:
    """A recovery begins."""
    return isinstance(entry, Happened) and isinstance(entry.what, SlotLost)


def running(driver: Driver, entry: Entry) -> bool:
    """A recovery is over, or the run has begun."""
    return isinstance(entry, Happened) and isinstance(entry.what, JobRunning)


def outage(driver: Driver, entry: Entry) -> bool:
    """The store is away."""
    return isinstance(entry, Happened) and isinstance(entry.what, StoreAway)


def checkpointing(driver: Driver, entry: Entry) -> bool:
    """A round has been ordered; or, where there are no rounds, one task's checkpoint is stored."""
    if not isinstance(entry, Handled):
        return False
    return isinstance(entry.event, events.SnapshotStored) or any(
        isinstance(effect, effects.Order) and effect.command.begins is not None
        for effect in entry.effects
    )


def driver_of(injector: RunInjector) -> Driver:
    """The driver behind the port through which an injector breaks its run."""
    driver = injector.run._run
    assert isinstance(driver, Driver)
    return driver


def kill(*slots: SlotId) -> Deed:
    """SIGKILL, all at once; to slots that live."""

    def deed(injector: RunInjector) -> None:
        assert all(injector.run.processes.pid(slot) is not None for slot in slots), "nobody to kill"
        for slot in slots:
            injector.run.processes.kill(slot)

    return deed


def kill_executor(slot: SlotId) -> Deed:
    """SIGKILL to the Java that a slot's process works for."""

    def deed(injector: RunInjector) -> None:
        pid = injector.run.processes.pid(slot)
        assert pid is not None
        assert executor_of(pid) == parent_of(parent_of(pid))
        injector._strike(KillExecutor(slot, 0))

    return deed


def stop_until_lost(slot: SlotId, zombie_ms: Millis) -> Deed:
    """SIGSTOP beyond the time-out: SIGCONT so long after the slot has been given up."""

    def deed(injector: RunInjector) -> None:
        driver, pid = driver_of(injector), injector.run.processes.pid(slot)
        assert pid is not None
        watch = driver.watch

        def wait(entry: Entry) -> None:
            watch(entry)
            if lost(driver, entry) and entry.what.slot == slot:
                driver.watch = watch
                driver.loop.after(zombie_ms / 1000, lambda: driver.killer.wake(pid))

        driver.watch = wait
        driver.killer.kill(slot, signal.SIGSTOP)

    return deed


def store_away(for_ms: Millis) -> Deed:
    """Every call to the store fails for so long."""
    return lambda injector: injector._take_store_away(StoreOutage(0, for_ms))


def hold_input(monkeypatch, hold: Hold) -> None:
    """Let the input of the next run be held."""
    monkeypatch.setattr(run_module, "build_job", lambda *what: hold.held(build_job(*what)))


@dataclass(frozen=True)
class Step:
    """What to do, and the moment for which it waits."""

    moment: Moment
    deed: Deed


@dataclass
class Script:
    """Does its steps to the one run that begins with it."""

    steps: list[Step]
    hold: Hold
    struck: list[Step] = field(default_factory=list)
    left: deque[Step] = field(init=False)
    up: bool = False  #: whether all slots run

    def __post_init__(self) -> None:
        self.left = deque(self.steps)

    def install(self, monkeypatch) -> None:
        """Let the next run be broken by this script."""
        script = self

        class Scripted(RunInjector):
            def watch(self, entry: Entry) -> None:
                super().watch(entry)
                script.see(self, entry)

        monkeypatch.setattr(drive_module, "RunInjector", Scripted)
        hold_input(monkeypatch, self.hold)

    def see(self, injector: RunInjector, entry: Entry) -> None:
        """Strike if this is the moment; in the driver's loop, when it is done with what it does."""
        driver = driver_of(injector)
        if running(driver, entry):
            self.up = True
        elif lost(driver, entry):
            self.up = False
        if not self.left:
            return
        step = self.left[0]
        if (self.up or step.moment is lost) and step.moment(driver, entry):
            self.left.popleft()
            driver.loop.post(partial(self._strike, injector, step))

    def _strike(self, injector: RunInjector, step: Step) -> None:
        step.deed(injector)
        self.struck.append(step)
        if not self.left:
            self.hold.let_go()
