"""Runs a dataflow at a rate, and says whether it kept pace: what a search for the capacity tries.

Every try is a run of its own, with fresh slots and an empty directory. One that is hopelessly behind is
ended early, and one that has kept pace is judged like any run: a rate counts only if the output is right.
A try that has not kept pace is not judged, because that would change nothing, and takes long where there
are many records. What a run leaves is removed, unless its output is wrong.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from snapline.errors import SnaplineError, UsageError
from snapline.experiments.rates.capacity import Capacity, CapacitySearch, SearchForm, Trial
from snapline.experiments.rates.pace import (
    BY_FAR_S,
    Window,
    is_behind,
    is_hopeless,
    objections,
    window_of,
)
from snapline.journal.entry import Happened
from snapline.metrics.second import Second
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory, remove_run
from snapline.rundir.spec import Spec
from snapline.runs.finished import Run
from snapline.runs.run import PreparedRun, conclude, drive_prepared, prepare
from snapline.runtime.driver.driver import Driver, Timeouts
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.launch.processes import WARM_PROGRAM, ProcessSlots
from snapline.spark.slot_jobs import own_session
from snapline.workload import WORKLOADS

FULL_SPEED = Window(2, 4)
"""When a run at full speed, where all records are due at once, is timed; it is ended after that."""

SHARE = 0.7
"""The search begins at this share of the rate at full speed."""

RECORDS = 200_000_000
"""How many records a run at full speed has: more than any takes in until it is ended."""

PATIENT = Timeouts(silence_s=10.0, lease_s=25.0, register_s=300.0, restore_s=60.0)
"""For slots that are plain processes, perhaps many more than there are cores: nobody is given up for being
slow. A process that dies is noticed at once all the same, because its connection breaks."""

HOPELESS = "its backlog held more than three seconds of input"


class OutputWrong(SnaplineError):
    """A run put out what it should not have: its capacity means nothing."""


class ProbeTeller(Protocol):
    """Is told how a search for a capacity goes on."""

    def begins(self, rate: int | None, window: Window, left: int | None) -> None:
        """A run at a rate (None: at full speed) is about to start.

        About so many tries are left, this one included; None: nobody knows yet.
        """
        ...

    def second(self, second: Second, window: Window) -> None:
        """A second of a run is over."""
        ...

    def judging(self, records: int) -> AbstractContextManager[None]:
        """A run that took in so many records is judged while the context is open."""
        ...

    def tried(self, trial: Trial) -> None:
        """A rate was tried."""
        ...


class Untold:
    """A teller that keeps everything to itself."""

    def begins(self, rate: int | None, window: Window, left: int | None) -> None:
        """Do nothing."""

    def second(self, second: Second, window: Window) -> None:
        """Do nothing."""

    def judging(self, records: int) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def tried(self, trial: Trial) -> None:
        """Do nothing."""


@dataclass(slots=True)
class PaceWatcher:
    """Collects the seconds of a run, and ends it early when enough was seen."""

    enough: Callable[[Second], bool]
    tell: Callable[[Second], None]
    seconds: list[Second] = field(default_factory=list)
    segments: dict[int, float] = field(default_factory=dict)  # of a log, on average, by second
    cut: bool = False  # whether it has ended the run
    driver: Driver | None = None

    def event(self, happened: Happened) -> None:
        """Do nothing: the seconds tell enough."""

    def second(self, second: Second) -> None:
        """Keep a second; end the run if nothing more can be learnt from it."""
        self.seconds.append(second)
        self.tell(second)
        if self.driver is None:
            return
        found = segments_per_log(self.driver.directory)
        if found is not None:
            self.segments[second.at_s] = found
        if not self.cut and self.enough(second):
            self.cut = True
            self.driver.loop.post(self.driver.interrupt)


def segments_per_log(directory: RunDirectory) -> float | None:
    """How many files the message log of a task has, on average; None if nobody logs."""
    names = [path.name for path in (directory.path / "logs").glob("*.log")]
    tasks = {name.partition(".e")[0] for name in names}
    return len(names) / len(tasks) if tasks else None


def warm_slots() -> ProcessSlots:
    """Slots that have compiled kernels from the start on, as those of a Spark session of our own.

    Otherwise each would load them once it has computed for five seconds: at a high rate during the
    warm-up, at a middling one while it is measured, and at a low one never.
    """
    return ProcessSlots(program=WARM_PROGRAM)


class Prober:
    """Tries rates with one dataflow, in one Spark session, or as plain processes without Spark."""

    def __init__(
        self,
        spec: Spec,
        session: SparkSession | None,  # None: slots are plain processes
        runs: Path,
        least_s: int,
        teller: ProbeTeller | None = None,
        launch: Callable[[], Launcher] = warm_slots,
    ) -> None:
        self.spec = spec
        self.session = session
        self.window = window_of(spec.interval_ms, least_s)
        self._runs = runs
        self._teller = teller or Untold()
        self._launch = launch

    def start(self) -> int:
        """A rate that is likely to be near the capacity: a share of that at full speed."""
        self._teller.begins(None, FULL_SPEED, None)
        watcher = self._watcher(FULL_SPEED, lambda second: second.at_s + 1 >= FULL_SPEED.end_s)
        _, driver = self._drive(replace(self.spec, rate="max", records=RECORDS), watcher)
        remove_run(self._runs, driver.directory.name)
        seconds = [s for s in watcher.seconds if FULL_SPEED.holds(s)] or watcher.seconds
        read = sum(second.read for second in seconds) / max(1, len(seconds))
        return max(1, round(SHARE * read))

    def attempt(self, rate: int, left: int = 1) -> Trial:
        """One run at a rate; about so many tries are left, this one included."""
        begun_s = time.monotonic()
        self._teller.begins(rate, self.window, left)

        def hopeless(second: Second) -> bool:
            return second.at_s >= self.window.warm_up_s and is_hopeless(second, rate)

        watcher = self._watcher(self.window, hopeless)
        duration_ms = 1000 * (self.window.end_s + 1)
        spec = replace(self.spec, rate=rate, duration_ms=duration_ms)
        prepared, driver = self._drive(spec, watcher)
        found = tuple(self._objections(rate, watcher, driver.problem))
        measured = [second for second in watcher.seconds if self.window.holds(second)]
        by_far = bool(measured) and is_behind(measured[-1], rate, BY_FAR_S)
        generator = None
        if not found:
            with self._teller.judging(rate * duration_ms // 1000):
                finished = conclude(prepared, driver)
            found, generator = tuple(_doubts(finished)), generator_share(finished.metrics)
        remove_run(self._runs, driver.directory.name)
        took_s = round(time.monotonic() - begun_s, 1)
        trial = Trial(rate, found, by_far, took_s, generator)
        self._teller.tried(trial)
        return trial

    def _watcher(self, window: Window, enough: Callable[[Second], bool]) -> PaceWatcher:
        return PaceWatcher(enough, lambda second: self._teller.second(second, window))

    def _drive(self, spec: Spec, watcher: PaceWatcher) -> tuple[PreparedRun, Driver]:
        def begun(driver: Driver) -> None:
            watcher.driver = driver

        prepared = prepare(spec, self.session, runs=self._runs)
        if self.session is not None:
            return drive_prepared(prepared, None, watcher, begun)
        return drive_prepared(replace(prepared, launcher=self._launch()), PATIENT, watcher, begun)

    def _objections(self, rate: int, watcher: PaceWatcher, problem: str | None) -> Iterator[str]:
        """Why a run has not kept pace."""
        if watcher.cut:
            yield HOPELESS
            return
        if problem is not None:
            yield f"it ended early: {problem}"
        saves = PROTOCOLS[self.spec.protocol].saves
        interval_ms = self.spec.interval_ms if saves else None
        yield from objections(watcher.seconds, rate, interval_ms, self.window, watcher.segments)


def _doubts(finished: Run) -> Iterator[str]:
    """Why a run that kept pace does not count. Raises OutputWrong."""
    verdict, protocol = finished.verdict, PROTOCOLS[finished.spec.protocol]
    if verdict.kept == "no":
        rate = finished.spec.rate
        raise OutputWrong(f"{finished.name}, at {rate} records/s: {verdict.because}")
    if aborted := finished.figures.checkpoints.aborted_rounds:
        yield f"{aborted} rounds of checkpoints were given up"
    if verdict.kept != "yes" and protocol.saves:
        yield f"nobody knows whether its output is right: {verdict.because}"


def generator_share(metrics: Mapping[str, Any]) -> float | None:
    """The share of the CPU time of slots that making the input took; None if the figures do not say it."""
    resources = metrics.get("resources") or {}
    made_s, used_s = resources.get("generator_cpu_s"), resources.get("cpu_s", {})
    slots_s = sum(each for name, each in used_s.items() if name.startswith("slot/"))
    return round(float(made_s) / slots_s, 3) if made_s is not None and slots_s else None


class RateTrials(Protocol):
    """Tries rates: with Snapline's own engine (`Prober`), or with another system (`SystemProber`)."""

    def start(self) -> int:
        """The rate at which the search begins."""
        ...

    def attempt(self, rate: int, left: int = 1) -> Trial:
        """One run at a rate; about so many tries are left, this one included."""
        ...


def find_capacity(prober: RateTrials, form: SearchForm) -> Capacity:
    """Search for the capacity of what a prober runs."""
    search: CapacitySearch = CapacitySearch(lambda rate: prober.attempt(rate, search.left()), form)
    return search.run(prober.start())


def check_probing(spec: Spec, runs: Path) -> None:
    """Raise UsageError if a dataflow cannot be tried at rates; nothing is started or written."""
    if spec.flow not in WORKLOADS:
        raise UsageError(
            f"{spec.flow} brings its own rates: the capacity of a workload can be found"
        )
    prepare(spec, runs=runs)


@contextmanager
def probing(spec: Spec, runs: Path, least_s: int, teller: ProbeTeller) -> Iterator[Prober]:
    """A prober with a Spark session of its own."""
    session = own_session(spec.slots, spec.spares)
    try:
        yield Prober(spec, session, runs, least_s, teller)
    finally:
        session.stop()
