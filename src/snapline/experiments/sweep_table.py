"""What the runs of a sweep say: one table of all figures, and each column against the first.

Runs are pairs if they belong to the same turn, and agree in all that is not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from snapline.errors import UsageError
from snapline.experiments.comparison import FIGURES, Compared, compare, value_of
from snapline.protocols import PROTOCOLS
from snapline.storage.files.places import whole_file

Result: TypeAlias = Mapping[str, Any]
"""The result of a cell, as `sweep_directory` keeps it."""


def is_proved(result: Result) -> bool:
    """Whether a run did what it promised.

    One that takes no checkpoints promises nothing, and nobody can prove it; but it must not be wrong.
    """
    if (simulated := result.get("simulated")) is not None:
        return bool(
            simulated["problem"] is None
        )  # nobody judges it: it only has to come to its end
    saves = PROTOCOLS[result["spec"]["protocol"]].saves
    return result["kept"] == "yes" or (not saves and result["kept"] != "no")


def write_table(results: Sequence[Result], path: Path) -> None:
    """Write all results as one Parquet file: a row for each run, a column for each setting and figure."""
    rows = [_row(each) for each in sorted(results, key=lambda each: each["begun_s"])]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    with whole_file(path) as file:
        parquet.write_table(pa.table(columns), file)


def _row(result: Result) -> dict[str, Any]:
    varied = {name: _plain(value) for name, value in result["varied"].items()}
    about = {name: result[name] for name in ("turn", "again", "run", "kept", "foreign", "begun_s")}
    figures = {each.name: value_of(result["metrics"], each) for each in FIGURES}
    return {**about, **varied, **figures}


def _plain(value: Any) -> str:
    """A setting as a text: a column of a table has one type, and a rate may be a number or `max`."""
    return value if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class Selection:
    """Some columns of a sweep: those in which the named settings have these values."""

    results: tuple[Result, ...]
    named: Mapping[str, str]

    def by_pair(self) -> dict[tuple[Any, ...], Result]:
        """The results by all that is not named: those of two selections with the same key are a pair.

        Raises UsageError if a key has several results.
        """
        found: dict[tuple[Any, ...], Result] = {}
        for result in self.results:
            others = {n: _plain(v) for n, v in result["varied"].items() if n not in self.named}
            key = (result["turn"], *sorted(others.items()))
            if key in found:
                raise UsageError(
                    "this sweep has several results of one turn and column: its file or the code was "
                    "changed meanwhile, so measure it anew into another directory"
                )
            found[key] = result
        return found


def select(results: Sequence[Result], text: str) -> Selection:
    """Select columns by settings written as `protocol=aligned hot=20`; an empty text selects all.

    Raises UsageError if nothing is selected. The second run of the first column is left out.
    """
    named = dict(_pair(part) for part in text.split())
    own = [result for result in results if not result["again"]]
    known = dict.fromkeys(name for result in own for name in result["varied"])
    for name in named:
        if name not in known:
            raise UsageError(f"{name} does not vary in this sweep: {', '.join(known)} does")
    found = [
        result
        for result in own
        if all(_plain(result["varied"].get(name)) == value for name, value in named.items())
    ]
    if not found:
        raise UsageError(f"this sweep has no run with {text}")
    return Selection(tuple(found), named)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"a column is written as protocol=aligned, not {text!r}")
    return name, value


def pairs(first: Selection, second: Selection) -> tuple[list[Result], list[Result]]:
    """The runs of two selections that are pairs, in the order of their turns. Raises UsageError."""
    left, right = first.by_pair(), second.by_pair()
    keys = sorted(key for key in left if key in right)
    if not keys:
        raise UsageError(
            "no run of the first is of the same turn and settings as one of the second"
        )
    return [left[key] for key in keys], [right[key] for key in keys]


def floors(results: Sequence[Result]) -> dict[str, float]:
    """The noise floor of each figure: how far the first column is from itself, run twice in each turn."""
    again = next((result["varied"] for result in results if result["again"]), None)
    if again is None:
        return {}
    found = _against(results, again, again, second_again=True)
    return {each.figure.name: each.ratio.spread for each in found}


def against_first(
    results: Sequence[Result], columns: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], list[Compared]]]:
    """Each column compared with the first one; a column is what varies in it."""
    known = floors(results)
    for varied in columns[1:]:
        yield varied, list(_against(results, columns[0], varied, known=known))


def _against(
    results: Sequence[Result],
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    second_again: bool = False,
    known: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[Compared]:
    left = _of_column(results, first, again=False)
    right = _of_column(results, second, again=second_again)
    if turns := sorted(turn for turn in left if turn in right):
        mine = [left[turn]["metrics"] for turn in turns]
        others = [right[turn]["metrics"] for turn in turns]
        yield from compare(mine, others, floors=known)


def _of_column(
    results: Sequence[Result], varied: Mapping[str, Any], *, again: bool
) -> dict[int, Result]:
    wanted = {name: _plain(value) for name, value in varied.items()}
    return {
        result["turn"]: result
        for result in results
        if result["again"] == again
        and {name: _plain(value) for name, value in result["varied"].items()} == wanted
    }
