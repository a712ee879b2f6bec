"""Carries out a sweep: run after run, in one Spark session, until every cell has a result.

A sweep whose launcher is `processes` needs no Spark: slots are plain processes then, and all else is the
same. Where rates are shares of a capacity, the capacities are found first (`probing`), and kept.

A cell is measured again, twice at most, if others used more than a tenth of the machine meanwhile; the
quietest try counts, and its result says how quiet it was.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from snapline.chaos.faults import parse
from snapline.chaos.targets import check as check_faults
from snapline.errors import SnaplineError, UsageError
from snapline.experiments.machine.foreign_load import LoadWatch
from snapline.experiments.rates.probing import PATIENT, Prober, ProbeTeller, find_capacity
from snapline.experiments.sweep_directory import (
    CAPACITIES,
    SweepDirectory,
    code_digest,
    environment,
)
from snapline.experiments.sweep_file import SIMULATED, SPARK, Sweep, SweepCell, SweepColumn
from snapline.rundir.directory import remove_run
from snapline.rundir.program import build_job, find_program, with_pool_sizes
from snapline.rundir.spec import Spec
from snapline.runs.finished import Run
from snapline.runs.run import carry_out as carry_out_run
from snapline.runs.run import prepare, run
from snapline.runs.supervise import kills_driver
from snapline.runtime.driver.timeline import Watcher
from snapline.runtime.launch.processes import ProcessSlots
from snapline.spark.slot_jobs import own_session

FOREIGN_MAX = 0.10
"""The share of the machine that others may use before a cell is measured again.

An idle virtual machine already shows about 3 %, which its host takes.
"""

TRIES_MAX = 3


class Simulator(Protocol):
    """Simulates the cells of a sweep whose launcher is `simulated`; `scale` has one."""

    @property
    def profile(self) -> str:
        """A digest of the costs: results of others do not count."""
        ...

    def result(self, cell: SweepCell, place: Path) -> dict[str, Any]:
        """Simulate a cell."""
        ...


NEEDS_PROFILE = "it is simulated: say --profile FILE ('snapline calibrate --to FILE' makes one)"


class NothingSustained(SnaplineError):
    """No rate is sustained, so there is no capacity of which a rate could be a share."""


class SweepTeller(Protocol):
    """Is told how a sweep goes on."""

    def searching(self, column: SweepColumn) -> ProbeTeller:
        """The capacity for a column is about to be found; returns who is told how that goes on."""
        ...

    def begins(self, cell: SweepCell, attempt: int) -> Watcher:
        """A cell is about to run; returns who watches that run."""
        ...

    def measured(self, cell: SweepCell, result: dict[str, Any]) -> None:
        """A cell has its result."""
        ...

    def failed(self, cell: SweepCell, error: SnaplineError) -> None:
        """A run has failed without a result; the sweep goes on with the next cell."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sweep has to do: its cells with their keys, and those that have a result already."""

    sweep: Sweep
    directory: SweepDirectory
    code: str | None = None  # the digest of the code that measured; None: that of this code

    @property
    def keys(self) -> dict[str, SweepCell]:
        """The key of every cell, in the order in which they run."""
        return {cell.key(self.code or code_digest()): cell for cell in self.sweep.cells}

    @property
    def done(self) -> dict[str, dict[str, Any]]:
        """The results that are there, by key."""
        found = {key: self.directory.read(key) for key in self.keys}
        return {key: result for key, result in found.items() if result is not None}

    @property
    def unknown(self) -> list[SweepColumn]:
        """A column for every capacity of which a rate is a share, and which was not found yet."""
        found: dict[str, SweepColumn] = {}
        for column in self.sweep.columns:
            if column.share is not None:
                found.setdefault(column.capacity_key(code_digest()), column)
        known = self.directory.read
        return [column for key, column in found.items() if known(key, CAPACITIES) is None]


def check_sweep(sweep: Sweep, runs: Path) -> None:
    """Raise UsageError if any run of a sweep could not be made; nothing is started or written."""
    for column in sweep.columns:
        try:
            if kills_driver(column.spec.faults):
                raise UsageError("a fault that kills the driver would end the sweep: leave it out")
            if column.launcher == SIMULATED:
                _check_simulated(column.spec)
                continue
            prepare(column.spec, runs=runs)
        except UsageError as error:
            raise UsageError(f"{column.label}: {error}") from error


def _check_simulated(spec: Spec) -> None:
    """Raise UsageError if a run cannot be simulated: whether it can does not depend on its many slots."""
    check_faults(parse(spec.faults), spec.all_slots)
    few = replace(spec, slots=min(spec.slots, 2), faults="")
    program = find_program(few)
    build_job(with_pool_sizes(few, program.flow), program)


def carry_out(plan: Plan, teller: SweepTeller, simulator: Simulator | None = None) -> bool:
    """Run every cell that has no result yet, and return whether all have one now.

    The directory of the plan must be claimed. Raises UsageError if there is nobody who could simulate.
    """
    if plan.sweep.launcher == SIMULATED:
        return _simulate(plan, teller, simulator)
    done = plan.done
    missing = {key: cell for key, cell in plan.keys.items() if key not in done}
    if not missing:
        return True
    specs = [cell.column.spec for cell in missing.values()]
    session = None
    if plan.sweep.launcher == SPARK:
        session = own_session(max(spec.slots + spec.spares for spec in specs))
    whole = True
    try:
        for key, cell in missing.items():
            try:
                spec = _at_its_rate(cell, plan.directory, session, teller)
                result = _quietest(cell, spec, plan.directory, session, teller)
            except UsageError:
                raise
            except SnaplineError as error:
                teller.failed(cell, error)
                whole = False
            else:
                plan.directory.write(key, result)
                teller.measured(cell, result)
    finally:
        if session is not None:
            session.stop()
    return whole


def _simulate(plan: Plan, teller: SweepTeller, simulator: Simulator | None) -> bool:
    """The same for simulated cells; results of another profile are replaced."""
    if simulator is None:
        raise UsageError(f"launcher = {SIMULATED!r}: {NEEDS_PROFILE}")
    for key, cell in plan.keys.items():
        there = plan.directory.read(key)
        if there is not None and there["simulated"]["profile"] == simulator.profile:
            continue
        teller.begins(cell, 1)
        result = simulator.result(cell, plan.directory.path)
        plan.directory.write(key, result)
        teller.measured(cell, result)
    return True


def _at_its_rate(
    cell: SweepCell,
    directory: SweepDirectory,
    session: SparkSession | None,
    teller: SweepTeller,
) -> Spec:
    """What a cell runs; its capacity is found if its rate is a share of that, and nobody knows it yet."""
    column = cell.column
    if column.share is None:
        return cell.spec
    key = column.capacity_key(code_digest())
    known = directory.read(key, CAPACITIES)
    if known is None:
        form, told = column.search, teller.searching(column)
        prober = Prober(column.unhurried, session, directory.runs, form.window_s, told)
        found = find_capacity(prober, form)
        known = {
            "sustained": found.low,
            "not_sustained": found.high,
            "spec": prober.spec.said(),
            "launcher": column.launcher,
            "trials": [[each.rate, each.sustained, *each.because] for each in found.trials],
            "environment": environment(directory.path, session),
        }
        directory.write(key, known, CAPACITIES)
    if not known["sustained"]:
        raise NothingSustained(f"not even {known['not_sustained']:,} records/s are sustained")
    return replace(cell.spec, rate=max(1, round(column.share * known["sustained"])))


def _quietest(
    cell: SweepCell,
    spec: Spec,
    directory: SweepDirectory,
    session: SparkSession | None,
    teller: SweepTeller,
) -> dict[str, Any]:
    """Measure a cell until nobody disturbs it, or often enough; the runs of other tries are removed."""
    tries: list[dict[str, Any]] = []
    for attempt in range(1, TRIES_MAX + 1):
        tries.append(_measured(cell, spec, attempt, directory.runs, session, teller.begins))
        if tries[-1]["foreign"] <= FOREIGN_MAX:
            break
    spent_s = round(sum(each["elapsed_s"] for each in tries), 3)
    tries.sort(key=lambda each: float(each["foreign"]))
    for other in tries[1:]:
        with suppress(SnaplineError):
            remove_run(directory.runs, other["run"])
    return {**tries[0], "spent_s": spent_s}


def _measured(
    cell: SweepCell,
    spec: Spec,
    attempt: int,
    runs: Path,
    session: SparkSession | None,
    begins: Callable[[SweepCell, int], Watcher],
) -> dict[str, Any]:
    begun_s = time.time()
    with LoadWatch() as load:
        finished = _finished(spec, session, runs, begins(cell, attempt))
    return {
        "turn": cell.turn,
        "again": cell.column.again,
        "varied": dict(cell.column.varied),
        "spec": spec.said(),
        "launcher": cell.column.launcher,
        "run": finished.name,
        "kept": finished.verdict.kept,
        "because": finished.verdict.because,
        "metrics": finished.metrics,
        "losses": finished.losses,
        "foreign": round(load.foreign, 4),
        "attempt": attempt,
        "begun_s": round(begun_s, 3),
        "elapsed_s": round(time.time() - begun_s, 3),
        "environment": environment(runs, session),
    }


def _finished(spec: Spec, session: SparkSession | None, runs: Path, watcher: Watcher) -> Run:
    """Make one run to its end, and have it judged: in a session of Spark, or without one."""
    if session is not None:
        return run(spec, session, runs=runs, watcher=watcher)
    prepared = replace(prepare(spec, runs=runs), launcher=ProcessSlots())
    return carry_out_run(prepared, PATIENT, watcher)
