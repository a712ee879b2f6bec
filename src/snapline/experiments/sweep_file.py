"""Reads a sweep file, and says which runs it asks for.

turns = 6
seed = 1
launcher = "processes"       slots are plain processes, without Spark; left out: Spark jobs; or
                             "simulated": the scale model, with the costs of a profile

[base]                       what all runs have in common: the arguments of a run, by the names of `sl.run`
flow = "q12"
rate = 20_000
duration = "20s"
faults = "kill slot=1 at=8s..+interval"      at a time that each turn draws: see `drawn_times`

[matrix]                     what varies: every combination is a *column* of the experiment
protocol = ["none", "aligned", "uncoordinated"]
hot = [0, 20]

[[exclude]]                  columns with all of these values are left out
protocol = "none"
hot = 20

[capacity]                   how thoroughly capacities are searched for
step = "10%"
tries = 1
window = "8s"

[simulated]                  of simulated runs: the cores that all slots share (left out: one each), and
cores = 2                    how many records each simulated one stands for
dilute = 10

`rate = "80% of capacity"` gives each column a share of what its own flow, protocol, slots and options
sustain, without skew and faults. Each of these capacities is found once for the whole sweep.

Each column runs once in each *turn*, in an order that is drawn anew for every turn: what the machine does
meanwhile strikes all columns alike, and runs of one turn are pairs. The first column runs twice in every
turn. How far it is from itself is the *noise floor* of the sweep: a smaller difference means nothing.
"""

import hashlib
import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from snapline.arguments import named, nearest, one_of, refused, texts, whole
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.experiments.drawn_times import at_last, drawn, has_ranges
from snapline.experiments.rates.capacity import USUAL, SearchForm
from snapline.rundir.spec import FOREVER, OWN, RULES, Spec, spec_from
from snapline.workload import WORKLOADS

Settings: TypeAlias = Mapping[str, Any]

TURNS_MAX = 1_000
CELLS_MAX = 10_000
SEED_MAX = (1 << 63) - 1
TRIES_MAX = 20
WINDOW_MS = 4_000, 3_600_000
AGAIN = "again"
"""What the second run of the first column is called."""

SPARK, PROCESSES, SIMULATED = LAUNCHERS = ("spark", "processes", "simulated")
"""How slots are started: as jobs of one Spark session, as plain processes, or not at all."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?% of capacity")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_PARTS = ("turns", "seed", "launcher", "base", "matrix", "exclude", "capacity", "simulated")
_OF_SEARCHES = ("step", "tries", "window")
_PLAIN = (
    *("hot", "hot_ms", "faults", "drawn", "spares", "publish_lag", "seed", "retain_ms"),
    *("rate", "records", "duration_ms", "reference", "allow_vacuous"),
)
"""What a run that finds a capacity has as everybody has it: it is no part of what is asked."""
_NOT_SWEPT = ("listen", "shared", "journal", "system", "chaos")
"""Arguments of a run that a sweep has no use for, or that are not supported in one."""


@dataclass(frozen=True, slots=True)
class SweepColumn:
    """One combination of the matrix: what distinguishes its runs from those of other columns."""

    varied: Settings
    spec: Spec  # its rate is to be found out if there is a share
    again: bool = False  # the first column, a second time
    share: float | None = None  # of the capacity, which is its rate
    ranges: str | None = None  # its faults, if each turn draws their times; `spec` has the latest
    launcher: str = SPARK
    search: SearchForm = USUAL  # for its capacity
    cores: int | None = None  # of a simulated run: what all slots share; None: one each
    dilution: int = 1  # of a simulated run: how many records each one stands for

    @property
    def label(self) -> str:
        """The column in words: `protocol=aligned hot=20`."""
        said = " ".join(f"{name}={_shown(value)}" for name, value in self.varied.items())
        return f"{said or 'base'}{f' ({AGAIN})' if self.again else ''}"

    @property
    def unhurried(self) -> Spec:
        """What is run to find the capacity: without skew and faults, and as long as the search wants."""
        usual = Spec(self.spec.flow)
        return replace(self.spec, **{name: getattr(usual, name) for name in _PLAIN})

    def capacity_key(self, code: str) -> str:
        """The name of the capacity that this column shares with all others that run the same."""
        return _digest([self.unhurried.said(), asdict(self.search), self.launcher, code])


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One run of a sweep: a column in a turn."""

    column: SweepColumn
    turn: int  # counted from 1
    faults: str | None = None  # those of this turn, if their times are drawn

    @property
    def spec(self) -> Spec:
        """What is run; its rate is to be found out if the column has a share.

        Simulated runs of equal seeds are equal, so each turn has its own.
        """
        spec = self.column.spec
        if self.column.launcher == SIMULATED:
            spec = replace(spec, seed=spec.seed + self.turn - 1)
        return spec if self.faults is None else replace(spec, faults=self.faults)

    def key(self, code: str) -> str:
        """The name of the cell's result. `code` is the digest of what runs: other code, other cell."""
        column = self.column
        rate = None if column.share is None else [column.share, asdict(column.search)]
        asked = [self.spec.said(), rate, column.launcher, column.again, self.turn, code]
        if column.launcher == SIMULATED:
            asked += [column.cores, column.dilution]
        return _digest(asked)


@dataclass(frozen=True, slots=True)
class Sweep:
    """An experiment: its columns, and how often each of them runs."""

    columns: tuple[SweepColumn, ...]
    turns: int
    seed: int

    @property
    def launcher(self) -> str:
        """How the slots of all runs are started."""
        return self.columns[0].launcher

    @property
    def cells(self) -> list[SweepCell]:
        """All runs, in the order in which they are made."""
        found = []
        for turn in range(1, self.turns + 1):
            order = list(self.columns)
            random.Random(f"{self.seed}/{turn}").shuffle(order)
            found += [self._cell(column, turn) for column in order]
        return found

    def _cell(self, column: SweepColumn, turn: int) -> SweepCell:
        if column.ranges is None:
            return SweepCell(column, turn)
        interval_ms = column.spec.interval_ms
        return SweepCell(column, turn, drawn(column.ranges, interval_ms, self.seed, turn))


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file. Raises UsageError, which names the file and what is wrong in it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from error
    try:
        return sweep_of(content)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def sweep_of(content: Settings) -> Sweep:
    """Make a sweep of what its file says. Raises UsageError."""
    for name in content:
        if name not in _PARTS:
            raise UsageError(f"there is no {name!r} in a sweep: {nearest(name, _PARTS)}")
    launcher = one_of("launcher", LAUNCHERS)(content.get("launcher", SPARK), "launcher")
    base, matrix = _known(content, "base"), _known(content, "matrix")
    if launcher != SPARK:  # they share cores, and may be many: whoever wants that says so by it
        base = {"oversubscribe": True, **base} if "oversubscribe" not in matrix else base
    for name in matrix:
        if name in base:
            raise UsageError(f"{name} is in [base] and in [matrix]: leave it out of one of them")
        if not isinstance(matrix[name], list) or not matrix[name]:
            raise UsageError(f"[matrix] {name} is a list of values, not {matrix[name]!r}")
    search = _search(content)
    found = _columns(base, matrix, _excluded(content, matrix))
    columns = [replace(column, launcher=launcher, search=search) for column in found]
    columns = _simulated(content, columns, launcher)
    if not columns:
        raise UsageError("[[exclude]] leaves no column")
    if launcher != SIMULATED:  # which has no noise
        columns.insert(1, replace(columns[0], again=True))
    turns = whole(1, TURNS_MAX)(content.get("turns", 1), "turns")
    if turns * len(columns) > CELLS_MAX:
        raise UsageError(f"{turns * len(columns):,} runs are too many: at most {CELLS_MAX:,}")
    return Sweep(tuple(columns), turns, whole(0, SEED_MAX)(content.get("seed", 1), "seed"))


def _simulated(
    content: Settings, columns: Sequence[SweepColumn], launcher: str
) -> list[SweepColumn]:
    """The columns with what is said about simulated runs, if they are."""
    said = named(content.get("simulated", {}), "[simulated]")
    for name in said:
        if name not in ("cores", "dilute"):
            near = nearest(name, ("cores", "dilute"))
            raise UsageError(f"there is no {name!r} in [simulated]: {near}")
    if launcher != SIMULATED:
        if said:
            raise UsageError(f"[simulated] is for launcher = {SIMULATED!r}")
        return list(columns)
    if any(column.share is not None for column in columns):
        raise UsageError("rate: a share of the capacity is not found in simulated runs")
    cores = whole(1, 10_000)(said["cores"], "[simulated] cores") if "cores" in said else None
    dilution = whole(1, 10_000)(said.get("dilute", 1), "[simulated] dilute")
    return [replace(column, cores=cores, dilution=dilution) for column in columns]


def _known(content: Settings, part: str) -> Settings:
    """A table of the file whose names are arguments of a run."""
    known = [name for name in RULES if name not in _NOT_SWEPT]
    found = named(content.get(part, {}), f"[{part}]")
    for name in found:
        if name not in known:
            raise UsageError(f"[{part}] {name} is no argument of a run: {nearest(name, known)}")
    return found


def _excluded(content: Settings, matrix: Settings) -> Sequence[Settings]:
    excluded = content.get("exclude", [])
    if not isinstance(excluded, list) or not all(isinstance(each, dict) for each in excluded):
        raise UsageError("exclude is a list of tables: write [[exclude]] above each of them")
    for each in excluded:
        for name in each:
            if name not in matrix:
                raise UsageError(f"[[exclude]] {name}: only what is in [matrix] varies")
    return excluded


def _search(content: Settings) -> SearchForm:
    """How thoroughly capacities are searched for; what is not said is as `snapline capacity` has it."""
    said = named(content.get("capacity", {}), "[capacity]")
    for name in said:
        if name not in _OF_SEARCHES:
            raise UsageError(f"there is no {name!r} in [capacity]: {nearest(name, _OF_SEARCHES)}")
    step, name = said.get("step", "5%"), "[capacity] step"
    percent = _PERCENT.fullmatch(step) if isinstance(step, str) else None
    if percent is None or not 1 <= float(percent[1]) <= 100:
        raise refused(name, "a percentage from 1% to 100%", step)
    tries = whole(1, TRIES_MAX)(said.get("tries", USUAL.tries), "[capacity] tries")
    least_ms, most_ms = WINDOW_MS
    window = said.get("window", f"{USUAL.window_s}s")
    window_ms = millis(window, "[capacity] window", least_ms=least_ms, most_ms=most_ms)
    return SearchForm(1 + float(percent[1]) / 100, tries, round(window_ms / 1000))


def _columns(
    base: Settings, matrix: Mapping[str, Sequence[Any]], excluded: Sequence[Settings]
) -> Iterator[SweepColumn]:
    if "flow" not in base and "flow" not in matrix:
        raise UsageError('say what to run: flow = "q12" in [base], or several in [matrix]')
    for values in product(*matrix.values()):
        varied = dict(zip(matrix, values, strict=True))
        if any(all(varied[name] == value for name, value in each.items()) for each in excluded):
            continue
        yield _column(varied, {**base, **varied})


def _column(varied: Settings, given: dict[str, Any]) -> SweepColumn:
    share = _share(given)
    if share is not None:
        del given["rate"]
    faults = texts(given.get("faults", ""), "faults")
    ranges = faults if isinstance(faults, str) else "; ".join(faults)
    if has_ranges(ranges):
        interval_ms = spec_from({**given, "faults": ""}, str).interval_ms
        given["faults"] = at_last(ranges, interval_ms)
    spec = spec_from(given, str)
    if spec.endless:
        raise UsageError(f"duration = {FOREVER!r}: the runs of a sweep come to an end")
    if spec.system != OWN:
        raise UsageError(f"system = {spec.system!r}: a sweep runs {OWN}")
    return SweepColumn(varied, spec, share=share, ranges=ranges if has_ranges(ranges) else None)


def _share(given: Settings) -> float | None:
    """The share of the capacity that is asked for as a rate; None if it is no share."""
    rate = given.get("rate")
    found = _SHARE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None:
        return None
    share = float(found[1]) / 100
    if not 0 < share <= 2:
        raise UsageError(f"rate = {rate!r}: it is more than 0 % and at most 200 % of the capacity")
    if given.get("flow") not in WORKLOADS:
        raise UsageError(f"rate = {rate!r}: only workloads have a capacity")
    return share


def _digest(content: Sequence[Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:20]


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)
