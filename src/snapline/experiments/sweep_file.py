"""Reads a sweep file, and says which runs it asks for.

turns = 6
seed = 1

[base]                       what all runs have in common: the arguments of a run, by the names of `sl.run`
flow = "q12"
rate = 20_000
duration = "20s"

[matrix]                     what varies: every combination is a *column* of the experiment
protocol = ["none", "aligned", "uncoordinated"]
hot = [0, 20]

[[exclude]]                  columns with all of these values are left out
protocol = "none"
hot = 20

`rate = "80% of capacity"` gives each column a share of what its own flow, protocol and slots sustain,
without skew and faults. Each of these capacities is found once for the whole sweep.

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
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from snapline.arguments import named, nearest, whole
from snapline.errors import UsageError
from snapline.rundir.spec import FOREVER, OWN, RULES, Spec, spec_from
from snapline.workload import WORKLOADS

Settings: TypeAlias = Mapping[str, Any]

TURNS_MAX = 1_000
CELLS_MAX = 10_000
SEED_MAX = (1 << 63) - 1
AGAIN = "again"
"""What the second run of the first column is called."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?% of capacity")
_PARTS = ("turns", "seed", "base", "matrix", "exclude")
_NOT_SWEPT = ("listen", "shared", "journal", "system", "chaos")
"""Arguments of a run that a sweep has no use for, or that are not supported in one."""


@dataclass(frozen=True, slots=True)
class SweepColumn:
    """One combination of the matrix: what distinguishes its runs from those of other columns."""

    varied: Settings
    spec: Spec  # its rate is to be found out if there is a share
    again: bool = False  # the first column, a second time
    share: float | None = None  # of the capacity, which is its rate

    @property
    def label(self) -> str:
        """The column in words: `protocol=aligned hot=20`."""
        said = " ".join(f"{name}={_shown(value)}" for name, value in self.varied.items())
        return f"{said or 'base'}{f' ({AGAIN})' if self.again else ''}"

    @property
    def unhurried(self) -> Spec:
        """What is run to find the capacity: without skew, and without faults."""
        return replace(
            self.spec, hot=0, hot_ms=0, faults="", drawn=False, spares=0, publish_lag=0, seed=1
        )


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One run of a sweep: a column in a turn."""

    column: SweepColumn
    turn: int  # counted from 1

    def key(self, code: str) -> str:
        """The name of the cell's result. `code` is the digest of what runs: other code, other cell."""
        column = self.column
        content = [column.spec.said(), column.share, column.again, self.turn, code]
        canonical = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(canonical.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class Sweep:
    """An experiment: its columns, and how often each of them runs."""

    columns: tuple[SweepColumn, ...]
    turns: int
    seed: int

    @property
    def cells(self) -> list[SweepCell]:
        """All runs, in the order in which they are made."""
        found = []
        for turn in range(1, self.turns + 1):
            order = list(self.columns)
            random.Random(f"{self.seed}/{turn}").shuffle(order)
            found += [SweepCell(column, turn) for column in order]
        return found


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
    base, matrix = _known(content, "base"), _known(content, "matrix")
    for name in matrix:
        if name in base:
            raise UsageError(f"{name} is in [base] and in [matrix]: leave it out of one of them")
        if not isinstance(matrix[name], list) or not matrix[name]:
            raise UsageError(f"[matrix] {name} is a list of values, not {matrix[name]!r}")
    excluded = content.get("exclude", [])
    if not isinstance(excluded, list) or not all(isinstance(each, dict) for each in excluded):
        raise UsageError("exclude is a list of tables: write [[exclude]] above each of them")
    for each in excluded:
        for name in each:
            if name not in matrix:
                raise UsageError(f"[[exclude]] {name}: only what is in [matrix] varies")
    columns = list(_columns(base, matrix, excluded))
    if not columns:
        raise UsageError("[[exclude]] leaves no column")
    first = columns[0]
    columns.insert(1, replace(first, again=True))
    turns = whole(1, TURNS_MAX)(content.get("turns", 1), "turns")
    if turns * len(columns) > CELLS_MAX:
        raise UsageError(f"{turns * len(columns):,} runs are too many: at most {CELLS_MAX:,}")
    return Sweep(tuple(columns), turns, whole(0, SEED_MAX)(content.get("seed", 1), "seed"))


def _known(content: Settings, part: str) -> Settings:
    """A table of the file whose names are arguments of a run."""
    known = [name for name in RULES if name not in _NOT_SWEPT]
    found = named(content.get(part, {}), f"[{part}]")
    for name in found:
        if name not in known:
            raise UsageError(f"[{part}] {name} is no argument of a run: {nearest(name, known)}")
    return found


def _columns(
    base: Settings, matrix: Mapping[str, Sequence[Any]], excluded: Sequence[Settings]
) -> Iterator[SweepColumn]:
    if "flow" not in base and "flow" not in matrix:
        raise UsageError('say what to run: flow = "q12" in [base], or several in [matrix]')
    for values in product(*matrix.values()):
        varied = dict(zip(matrix, values, strict=True))
        if any(all(varied[name] == value for name, value in each.items()) for each in excluded):
            continue
        given = {**base, **varied}
        share = _share(given)
        spec = spec_from({n: v for n, v in given.items() if n != "rate" or share is None}, str)
        if spec.endless:
            raise UsageError(f"duration = {FOREVER!r}: the runs of a sweep come to an end")
        if spec.system != OWN:
            raise UsageError(f"system = {spec.system!r}: a sweep runs {OWN}")
        yield SweepColumn(varied, spec, share=share)


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


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)
