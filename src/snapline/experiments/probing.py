"""Runs a dataflow at a rate, and says whether it kept pace: what a search for the capacity tries.

Every try is a run of its own, with fresh slots and an empty directory, and is judged like any run. One that
is hopelessly behind is ended early. What a run leaves is removed, unless its output is wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from snapline.errors import SnaplineError, UsageError
from snapline.experiments.capacity import Trial
from snapline.experiments.pace import Window, is_hopeless, objections, window_of
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobFinished, JobRunning
from snapline.metrics.second import SECOND_US, Second
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import remove_run
from snapline.rundir.spec import Spec
from snapline.runs.run import conclude, drive_prepared, prepare
from snapline.runtime.driver.driver import Driver
from snapline.spark.slot_jobs import own_session
from snapline.workload import WORKLOADS

GROWN = 4
"""How many times as many records a run at full speed gets if it was over too soon to be timed."""

FULL_SPEED_S = 3.0
"""How long a run at full speed takes at least, so that its rate means something."""

SHARE = 0.7
"""The search begins at this share of the rate at full speed, where all records are due at once."""

RECORDS = 200_000, 200_000_000


class OutputWrong(SnaplineError):
    """A run put out what it should not have: its capacity means nothing."""


@dataclass(slots=True)
class PaceWatcher:
    """Collects the seconds of a run, and ends it when it is hopelessly behind."""

    rate: int | None  # None: all records are due at once
    window: Window
    seconds: list[Second] = field(default_factory=list)
    began_us: int | None = None
    ended_us: int | None = None
    hopeless: bool = False
    driver: Driver | None = None

    def event(self, happened: Happened) -> None:
        """Note when the job ran, and when it was over."""
        if isinstance(happened.what, JobRunning) and self.began_us is None:
            self.began_us = happened.at_us
        elif isinstance(happened.what, JobFinished):
            self.ended_us = happened.at_us

    def second(self, second: Second) -> None:
        """Keep a second; end a run that will not catch up."""
        self.seconds.append(second)
        late = second.at_s >= self.window.warm_up_s
        if self.rate is not None and late and not self.hopeless and is_hopeless(second, self.rate):
            self.hopeless = True
            if self.driver is not None:
                self.driver.loop.post(self.driver.interrupt)


class Prober:
    """Tries rates with one dataflow, in one Spark session."""

    def __init__(self, spec: Spec, session: SparkSession, runs: Path, least_s: int) -> None:
        self.spec = spec
        self.session = session
        self._runs = runs
        self.window = window_of(spec.interval_ms, least_s)

    def start(self) -> int:
        """A rate that is likely to be near the capacity: a share of that at full speed."""
        records, most = RECORDS
        while True:
            spec = replace(self.spec, rate="max", records=records)
            watcher = PaceWatcher(None, self.window)
            self._run(spec, watcher)
            took_s = _between_s(watcher)
            if took_s >= FULL_SPEED_S or records >= most:
                return max(1, round(SHARE * records / max(took_s, 1e-3)))
            records *= GROWN

    def attempt(self, rate: int) -> Trial:
        """One run at a rate."""
        duration_ms = 1000 * (self.window.end_s + 1)
        watcher = PaceWatcher(rate, self.window)
        wrong = self._run(replace(self.spec, rate=rate, duration_ms=duration_ms), watcher)
        if watcher.hopeless:
            return Trial(rate, ("its backlog held more than three seconds of input",))
        takes = PROTOCOLS[self.spec.protocol].checkpoints
        interval_ms = self.spec.interval_ms if takes else None
        found = objections(watcher.seconds, rate, interval_ms, self.window)
        return Trial(rate, (*found, *wrong))

    def _run(self, spec: Spec, watcher: PaceWatcher) -> tuple[str, ...]:
        """Make a run; returns what is wrong with its output, or why it was not right all the time."""

        def begun(driver: Driver) -> None:
            watcher.driver = driver

        prepared = prepare(spec, self.session, runs=self._runs)
        prepared, driver = drive_prepared(prepared, None, watcher, begun)
        name = driver.directory.name
        if watcher.hopeless:
            remove_run(self._runs, name)
            return ()
        finished = conclude(prepared, driver)
        if finished.verdict.kept == "no":
            raise OutputWrong(f"{name}, at {spec.rate} records/s: {finished.verdict.because}")
        remove_run(self._runs, name)
        aborted = finished.figures.checkpoints.aborted_rounds
        wrong = (f"{aborted} rounds of checkpoints were given up",) if aborted else ()
        proved = finished.verdict.kept == "yes" or not PROTOCOLS[spec.protocol].checkpoints
        return wrong if proved else (*wrong, f"nobody knows: {finished.verdict.because}")


def _between_s(watcher: PaceWatcher) -> float:
    began_us, ended_us = watcher.began_us or 0, watcher.ended_us or 0
    return max(0.0, (ended_us - began_us) / SECOND_US)


@contextmanager
def probing(spec: Spec, runs: Path, least_s: int) -> Iterator[Prober]:
    """A prober with a Spark session of its own. Raises UsageError if the dataflow cannot be tried."""
    if spec.flow not in WORKLOADS:
        raise UsageError(
            f"{spec.flow} brings its own rates: the capacity of a workload can be found"
        )
    prepare(spec, runs=runs)  # bad input is refused before Spark is started
    session = own_session(spec.slots, spec.spares)
    try:
        yield Prober(spec, session, runs, least_s)
    finally:
        session.stop()
