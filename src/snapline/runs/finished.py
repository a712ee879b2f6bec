"""A run that is over: its verdict, its figures, and all that it left, as DataFrames."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from snapline.batch import Batch, concat
from snapline.chaos.strikes import Strike
from snapline.dataflow.graph import Dataflow
from snapline.errors import UsageError
from snapline.ids import TaskId, task_id
from snapline.journal.codec import json_of
from snapline.journal.entry import Happened
from snapline.judge.run_directory import Judgement
from snapline.judge.verdict import Verdict
from snapline.metrics.figures import Figures
from snapline.metrics.json_form import from_json, to_json
from snapline.metrics.seconds_table import SecondRow
from snapline.protocols import PROTOCOLS
from snapline.report.page.run_page import run_card, run_page
from snapline.report.run.reading import read_run
from snapline.report.run.reported import ReportedRun
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import public_view, sinks_of
from snapline.rundir.results import FILE, VERSION, check_version, settle
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.runs import readings, tables
from snapline.runtime.driver.timeline import published_times
from snapline.storage.api import rows_of
from snapline.workload.common.base import Problem


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over, with all that can be asked about it."""

    directory: RunDirectory
    spec: Spec
    verdict: Verdict
    figures: Figures
    rows: Mapping[str, int]  # how many rows of output are public, per sink
    spark: SparkSession | None = field(repr=False, default=None)  # the caller's session
    flow: Dataflow | None = field(repr=False, default=None)  # None if it is not known
    faults: tuple[Strike, ...] = ()  # every fault of the plan, and whether it struck

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.directory.name

    @property
    def metrics(self) -> dict[str, Any]:
        """The figures by name, as plain values: what `result.json` has under `metrics`.

        `metrics["lost"]` is `figures.lost`; `metrics.figures.Figures` explains them all.
        """
        plain: dict[str, Any] = to_json(self.figures)
        return plain

    @property
    def losses(self) -> dict[str, int] | None:
        """What a run lost that may lose something, as `result.json` has it; None: nobody may."""
        result = self.directory.result()
        return None if result is None else result["losses"]

    def output(self, sink: str | None = None, *, uncommitted: bool = False) -> DataFrame:
        """The public output of a sink, or all that was ever written to it."""
        name = self._sink(sink)
        if uncommitted or PROTOCOLS[self.spec.protocol].publishes_at_once:
            return tables.output(self._session, self.directory, name, "uncommitted")
        return tables.output(self._session, self.directory, name)

    def batch(self, sink: str | None = None) -> Batch:
        """The public output of a sink, in memory, without Spark."""
        tasks = [task_id(self._sink(sink), index) for index in range(self.spec.all_slots)]
        return read_output(self.directory, self.spec.protocol, tasks)

    def state(self, operator: str | None = None, part: str | None = None) -> DataFrame:
        """The state of an operator at the last committed line; without a name, a list of all state."""
        return tables.state(self._session, self.directory, operator, part, flow=self.flow)

    def channel_log(self) -> DataFrame:
        """The messages that the senders' logs still hold, without their records."""
        return tables.channel_log(self._session, self.directory)

    def checkpoints(self) -> DataFrame:
        """Every checkpoint that was stored: task, size, how its time was spent, and what became of it.

        The columns are those of `snapline.metrics.checkpointing.history.flat`.
        """
        return tables.checkpoints(self._session, self.directory)

    def journal(self) -> DataFrame:
        """All entries of the journals, of all processes."""
        return tables.journal(self._session, self.directory)

    def seconds(self) -> DataFrame:
        """What was measured, one row for each second and slot; where the slot is null, of all slots."""
        return tables.seconds(self._session, self.directory)

    def second_rows(self) -> list[SecondRow]:
        """The rows of `seconds`, without Spark."""
        return list(readings.measured_seconds(self.directory))

    def page(self) -> str:
        """A page about the run: one HTML document, which needs nothing beside it (docs/report.md)."""
        return run_page([reported(self.directory)])

    def plot(self) -> "RunCard":
        """The verdict, the main figures and the latency of the run, as a notebook shows them."""
        return RunCard(run_card(reported(self.directory)))

    def _repr_html_(self) -> str:
        return self.plot().html

    def _sink(self, sink: str | None) -> str:
        sinks = ", ".join(self.rows)
        if sink is None and len(self.rows) != 1:
            raise UsageError(f"which sink? there are {sinks}")
        if sink is not None and sink not in self.rows:
            raise UsageError(f"there is no sink {sink!r}: there is {sinks}")
        return sink or next(iter(self.rows))

    @property
    def _session(self) -> SparkSession:
        session = self.spark or SparkSession.getActiveSession()
        if session is None:
            raise UsageError(
                "a DataFrame needs a Spark session: pass one to run() or open_run(), or use batch()"
            )
        return session


@dataclass(frozen=True, slots=True)
class RunCard:
    """A run on a card. A notebook shows it; elsewhere its `html` can be written into a file."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def write_result(
    directory: RunDirectory,
    judgement: Judgement,
    figures: object,
    problem: str | None,
    author: str | None = None,
    *,
    events: Sequence[Happened] = (),
) -> None:
    """Write down that a run is over, and how it went: what `open_run` reads.

    `figures` is a frozen dataclass: `Figures`, or those of another system. `problem` says why the run did
    not come to its end: a resume may go on from there. `author` is that of the decisions of its driver,
    where it has a ledger. `events` is what happened to another system, which has no journal. Raises Deposed
    if another driver has taken the run over.
    """
    verdict = judgement.verdict
    settle(
        directory,
        {
            "version": VERSION,
            "run": directory.digest("run.json"),
            "kept": verdict.kept,
            "because": verdict.because,
            "guarantees": dict(verdict.guarantees),
            "problems": [asdict(found) for found in verdict.problems],
            "problem": problem,
            "losses": None if judgement.losses is None else judgement.losses.figures,
            "faults": [asdict(strike) for strike in judgement.strikes],
            "metrics": to_json(figures),
            "rows": dict(judgement.rows),
            "environment": environment(),
            "events": [json_of(happened) for happened in events],
        },
        author,
    )


def environment() -> dict[str, Any]:
    """The versions and the machine with which a run was driven, for whoever reads its result later."""
    names = ("snapline", "numpy", "numba", "pyarrow", "pyspark")
    versions = {name: _version(name) for name in names}
    cores = len(os.sched_getaffinity(0))
    return {
        **versions,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": cores,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def open_run(
    runs: Path, name: str, spark: SparkSession | None = None, flow: Dataflow | None = None
) -> Run:
    """Open a run that is over; UsageError if there is no such run, or if it is not over."""
    directory = RunDirectory.open(runs, name)
    spec = spec_of(directory)
    if spec.system != OWN:
        where = directory.path / "output"
        raise UsageError(f"{directory.name} is a run of {spec.system}: its output is in {where}")
    result = directory.result()
    if result is None:
        why = f" ({why})" if (why := directory.why_not_over()) else ""
        again = f"'snapline run --resume {directory.name}'"
        raise UsageError(f"{directory.name} is not over{why}: {again}")
    check_version(directory, result)
    problems = tuple(Problem(**problem) for problem in result["problems"])
    verdict = Verdict(result["kept"], result["because"], problems, result["guarantees"])
    faults = tuple(Strike(**strike) for strike in result["faults"])
    try:
        figures = from_json(Figures, result["metrics"])
    except ValueError as error:
        raise UsageError(f"{directory.path / FILE} is damaged: {error}") from error
    return Run(directory, spec, verdict, figures, result["rows"], spark, flow, faults)


def read_output(directory: RunDirectory, protocol: str, tasks: Sequence[TaskId]) -> Batch:
    """The public output of one sink: where nothing is ever committed, all that was written."""
    batches = list(rows_of(directory.output, tasks, public_view(protocol)))
    return concat(batches) if batches else Batch({}, 0)


def reported(directory: RunDirectory) -> ReportedRun:
    """What a page shows of a run: as far as it went, if it is not over. Raises UsageError."""
    if directory.spec().get("system", OWN) != OWN:
        return read_run(directory, {})  # its output is not ours, and has no times
    tasks = [task for tasks in sinks_of(directory).values() for task in tasks]
    return read_run(directory, published_times(directory.output, tasks))
