"""How a sweep goes on, in a file of its directory, so that any process can show it: `progress.json`.

The file says which runs there are, which of them is made now, and which have failed; what was measured is
in the results. It is written whole whenever a run begins or ends, and nothing depends on it: a sweep that
is started again goes by its results alone. Whether the process that wrote it still works at the sweep is
found out from the process itself, because one that was killed could not say that it ended.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from snapline.errors import SnaplineError
from snapline.experiments.rates.capacity import expected_tries
from snapline.experiments.rates.pace import window_of
from snapline.experiments.sweep_directory import code_digest
from snapline.experiments.sweep_file import SIMULATED, SweepCell, SweepColumn
from snapline.rundir.presence import process_state
from snapline.storage.files.places import write_whole

if TYPE_CHECKING:
    from snapline.experiments.rates.probing import ProbeTeller
    from snapline.experiments.sweep import Plan, SweepTeller
    from snapline.runtime.driver.driver import Driver
    from snapline.runtime.driver.timeline import Watcher

FILE = "progress.json"
VERSION = 1

RUN_S = 5.0
"""What a run takes beside its input: to start its slots, to end, and to be judged (measured: 1 to 9 s)."""
SIMULATED_S = 0.3
"""About how long a simulated run takes for each of its slots."""
SLOT_S = 0.7
"""What each slot beyond the second adds to that, on two cores."""
SIMULATED_S = 0.3
"""About how long a simulated run takes for each of its slots."""
FULL_SPEED_S = 6.0
"""How long a search for a capacity runs at full speed, to know where to begin."""


def run_s(column: SweepColumn, full_speed_s: float | None = None) -> float:
    """About how long a run takes; `full_speed_s` is how long one lasts whose input is all due at once."""
    if column.launcher == SIMULATED:
        return SIMULATED_S * column.spec.slots
    paced = column.spec.rate != "max" or full_speed_s is None
    return _beside_s(column) + (column.spec.duration_ms / 1000 if paced else full_speed_s or 0.0)


def search_s(column: SweepColumn) -> float:
    """About how long it takes to find a capacity: at full speed, then by the expected tries."""
    window = window_of(column.spec.interval_ms, column.search.window_s)
    each_s = _beside_s(column) + window.end_s + 1
    return _beside_s(column) + FULL_SPEED_S + expected_tries(column.search) * each_s


def _beside_s(column: SweepColumn) -> float:
    return RUN_S + SLOT_S * max(0, column.spec.slots - 2)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run that a sweep makes: a column in a turn."""

    key: str
    group: str  # the form of a paper's figure; empty in a sweep that has only one
    label: str  # of its column
    turn: int
    about_s: float  # how long it takes, as long as nobody knows better


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """A column of a group, with what varies in it."""

    group: str
    label: str
    varied: Mapping[str, Any]
    again: bool


@dataclass(frozen=True, slots=True)
class AtWork:
    """What a sweep does now: a run, or a search for the capacity of a column."""

    label: str
    since_s: float  # as of the clock on the wall
    key: str | None = None  # of the run; None: a capacity is being found
    attempt: int = 1
    run: str | None = None  # its name, once it has one


@dataclass(frozen=True, slots=True)
class SweepState:
    """All that `progress.json` says."""

    begun_s: float
    process: tuple[int, str]  # who works at it: its number, and when it was started
    runs: Sequence[PlannedRun]
    columns: Sequence[PlannedColumn]
    searches: Mapping[
        str, float
    ]  # capacities to be found, by their keys, and about how long each takes
    at_work: AtWork | None = None
    failed: Mapping[str, str] = field(default_factory=dict)  # why, by the key of the run
    ended_s: float | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether the process that wrote this still works at the sweep."""
        found = None if self.ended_s is not None else process_state(self.process[0])
        return found is not None and found[0] == self.process[1] and found[1] not in "ZX"

    def left_s(self, took_s: Mapping[str, float], now_s: float) -> float:
        """About how long the rest takes, if the runs with these keys are done and took so long."""
        spent_s = 0.0 if self.at_work is None else now_s - self.at_work.since_s
        return left_s(self.runs, took_s, self.searches.values(), spent_s)


def left_s(
    runs: Iterable[PlannedRun],
    took_s: Mapping[str, float],
    searches: Iterable[float] = (),
    spent_s: float = 0.0,
) -> float:
    """About how long the rest takes: as long as the last run of its column did, or as its input lasts.

    `spent_s` is how long the present run or search has been going on: of what comes next it is taken off,
    but a run that takes longer than it should makes the others no shorter.
    """
    known: dict[tuple[str, str], float] = {}
    waiting: dict[str, PlannedRun] = {}
    for each in runs:
        if each.key in took_s:
            known[each.group, each.label] = took_s[each.key]
        else:
            waiting[each.key] = each
    rest = [*searches]
    rest += [known.get((each.group, each.label), each.about_s) for each in waiting.values()]
    return sum(rest) - min([spent_s, *rest[:1]])


def times_of(done: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """How long each of these results took, with all tries that it needed, by key."""
    return {key: each.get("spent_s", each["elapsed_s"]) for key, each in done.items()}


def planned_runs(
    plans: "Mapping[str, Plan]", full_speed_s: Mapping[str, float] = MappingProxyType({})
) -> list[PlannedRun]:
    """All runs of the plans of some groups, in the order in which they are made.

    Several groups may have a run in common, which is made once. `full_speed_s` says by group how long runs
    last whose input is all due at once, where somebody knows.
    """
    return [
        PlannedRun(
            key, group, cell.column.label, cell.turn, run_s(cell.column, full_speed_s.get(group))
        )
        for group, plan in plans.items()
        for key, cell in plan.keys.items()
    ]


def searches_of(plans: "Iterable[Plan]") -> dict[str, float]:
    """The capacities that have yet to be found, by their keys, and about how long each takes."""
    return {
        column.capacity_key(code_digest()): search_s(column)
        for plan in plans
        for column in plan.unknown
    }


class KeptProgress:
    """Keeps `progress.json` while a sweep goes on."""

    def __init__(
        self,
        path: Path,
        plans: "Mapping[str, Plan]",
        full_speed_s: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._path = path / FILE
        pid = os.getpid()
        started, _ = process_state(pid) or ("", "")
        columns = [
            PlannedColumn(group, column.label, dict(column.varied), column.again)
            for group, plan in plans.items()
            for column in plan.sweep.columns
        ]
        runs = planned_runs(plans, full_speed_s)
        searches = searches_of(plans.values())
        self.state = SweepState(time.time(), (pid, started), runs, columns, searches)
        self._write()

    def told(self, teller: "SweepTeller") -> "SweepTeller":
        """The same teller, told the same; what it is told is also written down."""
        return _WrittenDown(self, teller)

    def changes(self, **news: Any) -> None:
        """Write down what has changed."""
        self.state = replace(self.state, **news)
        self._write()

    def __enter__(self) -> "KeptProgress":
        return self

    def __exit__(self, *_: object) -> None:
        """Write down that the sweep is over, or was given up."""
        self.changes(at_work=None, ended_s=time.time())

    def _write(self) -> None:
        with suppress(OSError):  # whoever looks misses something; the sweep itself must go on
            write_whole(self._path, json.dumps(_to_json(self.state)))


class _WrittenDown:
    """A teller that has what it is told written down, and passes it on."""

    def __init__(self, file: KeptProgress, teller: "SweepTeller") -> None:
        self._file, self._teller = file, teller

    def searching(self, column: SweepColumn) -> "ProbeTeller":
        self._file.changes(at_work=AtWork(column.label, time.time()))
        return self._teller.searching(column)

    def begins(self, cell: SweepCell, attempt: int) -> "Watcher":
        from snapline.runs.listener import Beginning

        now = AtWork(cell.column.label, time.time(), cell.key(code_digest()), attempt)
        self._file.changes(at_work=now, searches=self._searches_without(cell.column))
        return Beginning(self._named, self._teller.begins(cell, attempt))

    def _named(self, driver: "Driver") -> None:
        if (now := self._file.state.at_work) is not None:
            self._file.changes(at_work=replace(now, run=driver.directory.name))

    def measured(self, cell: SweepCell, result: dict[str, Any]) -> None:
        self._file.changes(at_work=None)
        self._teller.measured(cell, result)

    def failed(self, cell: SweepCell, error: SnaplineError) -> None:
        failed = {**self._file.state.failed, cell.key(code_digest()): str(error)}
        searches = self._searches_without(cell.column)
        self._file.changes(at_work=None, failed=failed, searches=searches)
        self._teller.failed(cell, error)

    def _searches_without(self, column: SweepColumn) -> dict[str, float]:
        """The capacities that have yet to be found when a run of this column was begun or given up."""
        found = column.capacity_key(code_digest())
        return {key: about for key, about in self._file.state.searches.items() if key != found}


def _to_json(state: SweepState) -> dict[str, Any]:
    now = state.at_work
    return {
        "version": VERSION,
        "begun_s": state.begun_s,
        "ended_s": state.ended_s,
        "process": list(state.process),
        "columns": [[c.group, c.label, dict(c.varied), c.again] for c in state.columns],
        "runs": [[r.key, r.group, r.label, r.turn, r.about_s] for r in state.runs],
        "searches": dict(state.searches),
        "at_work": None if now is None else [now.label, now.since_s, now.key, now.attempt, now.run],
        "failed": dict(state.failed),
    }


def read_state(path: Path) -> SweepState | None:
    """How the sweep in a directory goes on; None if nobody wrote that down, or it cannot be read."""
    try:
        said = json.loads((path / FILE).read_text())
        if said["version"] != VERSION:
            return None
        pid, started = said["process"]
        return SweepState(
            float(said["begun_s"]),
            (int(pid), str(started)),
            [PlannedRun(*each) for each in said["runs"]],
            [PlannedColumn(*each) for each in said["columns"]],
            {str(key): float(about) for key, about in said["searches"].items()},
            None if said["at_work"] is None else AtWork(*said["at_work"]),
            dict(said["failed"]),
            said["ended_s"],
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
