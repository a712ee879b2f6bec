"""`snapline compare`: two runs, or two columns of runs in pairs, figure by figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import JsonOption, RunsOption
from snapline.errors import UsageError
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.comparison import Compared

HELP = """Compare the figures of two runs, or of two columns of runs in pairs.

Each figure of the second run is divided by that of the first. One pair says nothing about chance: give \
several runs of each setting, taken in turns, and the ratio gets an interval. From six pairs on a \
difference is claimed with 95 % certainty; before that it is [cyan]indicated[/] at most. What is \
[cyan]not distinguishable[/] may still differ, by less than these runs can show; with --margin you learn \
whether two settings are [cyan]alike[/]. docs/measurement.md defines the figures."""

EXAMPLES = """[bold]Examples[/bold]

Compare two runs:
[cyan]snapline compare q12-aligned-1 q12-hmnr-1[/cyan]

Compare two settings by pairs of runs: the first of each, the second of each, and so on:
[cyan]snapline compare a1,a2,a3,a4,a5,a6 b1,b2,b3,b4,b5,b6[/cyan]

Compare two columns of a sweep:
[cyan]snapline compare "sweeps/price:protocol=none hot=20" "sweeps/price:protocol=aligned hot=20"[/cyan]

Fail, with exit code 1, if anything became worse by more than 10 %:
[cyan]snapline compare a1,a2,a3,a4,a5,a6 b1,b2,b3,b4,b5,b6 --threshold 10%[/cyan]"""

OURS: Final = ("id", "version", "origin_s", "forked_from")
"""What differs between any two runs, and is no setting."""

FirstArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN[,RUN...]|SWEEP[:COLUMN]",
        help="What is compared with: runs by name, or the directory of a sweep, and a column of it.",
    ),
]
SecondArgument = Annotated[
    str, typer.Argument(metavar="RUN[,RUN...]|SWEEP[:COLUMN]", help="What is compared with it.")
]
MarginOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Two settings whose ratio surely lies within this margin are [cyan]alike[/].",
    ),
]
ThresholdOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Exit with 1 if a figure became worse by surely more than this. It takes six pairs.",
    ),
]


def compare_command(
    first: FirstArgument,
    second: SecondArgument,
    margin: MarginOption = None,
    threshold: ThresholdOption = None,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline compare`."""
    with interruptible():
        within = _ratio(margin, "--margin")
        beyond = _ratio(threshold, "--threshold")
        raise typer.Exit(_compare(runs, first, second, within, beyond, as_json=as_json))


def _compare(
    runs: Path,
    first: str,
    second: str,
    margin: float | None,
    threshold: float | None,
    *,
    as_json: bool,
) -> int:
    from snapline.experiments.comparison import SURE_PAIRS, compare

    left, right, noise = measured_columns(runs, first, second)
    if threshold is not None and len(left) < SURE_PAIRS:
        raise UsageError(
            f"--threshold needs {SURE_PAIRS} pairs of runs, and there {_is(len(left))}: fewer cannot be "
            "sure of anything"
        )
    measured = [each.metrics for each in left], [each.metrics for each in right]
    found = list(compare(*measured, margin=margin, floors=noise))
    if not found:
        raise UsageError("these runs have no figure in common that could be compared")
    worse = [each for each in found if threshold is not None and each.is_worse_by(threshold)]
    _doubt([*left, *right])
    if as_json:
        print_json(_to_json(left, right, found, worse))
    else:
        _print(left, right, found, worse)
    return 1 if worse else 0


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What is compared of a run, wherever it was read."""

    name: str
    kept: str
    settings: Mapping[str, Any]
    metrics: Mapping[str, Any]


def measured_columns(
    runs: Path, first: str, second: str
) -> tuple[list[MeasuredRun], list[MeasuredRun], dict[str, float]]:
    """The runs that are compared, in pairs, and the noise floors that are known. Raises UsageError."""
    sweeps = [_sweep_of(text) for text in (first, second)]
    if sweeps[0] is not None and sweeps[1] is not None:
        return _of_sweeps(*sweeps[0], *sweeps[1])
    if sweeps[0] is not None or sweeps[1] is not None:
        raise UsageError(
            "a sweep is compared with a sweep, and a run with a run: name two of a kind"
        )
    left, right = _of_runs(runs, first), _of_runs(runs, second)
    if len(left) != len(right):
        raise UsageError(
            f"{plural(len(left), 'run')} and {plural(len(right), 'run')} are no pairs: name as many of one "
            "setting as of the other, in the order in which they were made"
        )
    return left, right, {}


def _sweep_of(text: str) -> tuple[Path, str] | None:
    """The directory of a sweep and the columns of it that are meant; None if this names no sweep."""
    from snapline.experiments.sweep_directory import is_sweep

    path, _, columns = text.partition(":")
    return (Path(path), columns) if is_sweep(Path(path)) else None


def _of_sweeps(
    first: Path, left: str, second: Path, right: str
) -> tuple[list[MeasuredRun], list[MeasuredRun], dict[str, float]]:
    from snapline.experiments.sweep_directory import SweepDirectory
    from snapline.experiments.sweep_table import floors, pairs, select

    mine, others = (SweepDirectory(path).results() for path in (first, second))
    found = pairs(select(mine, left), select(others, right))
    columns = [
        [MeasuredRun(r["run"], r["kept"], r["spec"], r["metrics"]) for r in column]
        for column in found
    ]
    return columns[0], columns[1], floors(mine)


def _of_runs(runs: Path, names: str) -> list[MeasuredRun]:
    from snapline.rundir.directory import RunDirectory

    found = []
    for name in names.split(","):
        directory = RunDirectory.open(runs, name.strip())
        result = directory.result()
        if result is None:
            why = directory.why_not_over() or "it is not over"
            raise UsageError(f"{directory.name} has no figures: {why}")
        metrics = result.get("metrics")
        known = metrics if isinstance(metrics, Mapping) else {}
        kept = str(result.get("kept"))
        found.append(MeasuredRun(directory.name, kept, directory.spec(), known))
    return found


def _is(number: int) -> str:
    return f"is {number}" if number == 1 else f"are {number}"


def _ratio(text: str | None, option: str) -> float | None:
    """Read a margin, such as `5%`, as a ratio. Raises UsageError."""
    if text is None:
        return None
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 < percent <= 1000:
        raise UsageError(f"{option} is a number of percent above 0, written as 5%, not {text!r}")
    return 1 + percent / 100


def _doubt(compared: Sequence[MeasuredRun]) -> None:
    """Warn of runs whose output is not proved right: their figures are those of something else."""
    for each in compared:
        if each.kept != "yes":
            messages().print(
                f"[yellow]note:[/] {escape(each.name)} has not kept its promise, or nobody knows: its "
                "figures may be those of a job that did less",
                soft_wrap=True,
            )


# What is shown.


def _print(
    left: Sequence[MeasuredRun],
    right: Sequence[MeasuredRun],
    found: "Sequence[Compared]",
    worse: "Sequence[Compared]",
) -> None:
    from snapline.experiments.comparison import expected_by_chance

    out = results()
    for name, (one, other) in differing_settings(left, right).items():
        out.print(f"[bold]{escape(name)}[/]  {escape(one)} -> {escape(other)}", soft_wrap=True)
    table = Table("figure", box=None, padding=(0, 2, 0, 0))
    for title in ("first", "second", "ratio", "interval"):
        table.add_column(title, justify="right")
    table.add_column("second against first")
    for each in found:
        table.add_row(*_row(each))
    out.print(table)
    out.print(f"{plural(found[0].ratio.pairs, 'pair')} of runs; {certainty(found)}", soft_wrap=True)
    chance = expected_by_chance(found)
    if chance:
        out.print(
            f"of {plural(len(found), 'figure')}, {chance:.2g} would differ by chance alone",
            soft_wrap=True,
        )
    for each in worse:
        out.print(f"[red]worse:[/] {each.figure.name} is {each.words}", soft_wrap=True)


def certainty(found: "Sequence[Compared]") -> str:
    """Say what the number of pairs allows to say."""
    level = min(each.ratio.level for each in found)
    if level <= 0:
        return "no interval, because one pair says nothing about chance"
    return f"intervals of {level:.1%}".replace("%", " %")


def _row(compared: "Compared") -> tuple[str, ...]:
    return compared.figure.name, *ratio_columns(compared)


def ratio_columns(compared: "Compared") -> tuple[str, ...]:
    """A comparison as columns of a table: both values, their ratio, its interval, and the words."""
    ratio, unit = compared.ratio, compared.figure.unit
    is_chance = ratio.level <= 0
    return (
        f"{_number(compared.first)} {unit}",
        f"{_number(compared.second)} {unit}",
        f"{ratio.estimate:.3f}",
        "" if is_chance else f"{ratio.low:.3f} to {ratio.high:.3f}",
        "" if is_chance else compared.words,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def differing_settings(
    left: Sequence[MeasuredRun], right: Sequence[MeasuredRun]
) -> dict[str, tuple[Any, Any]]:
    """The settings in which the first runs of both columns differ."""
    from snapline.experiments.comparison import differing

    found = differing(left[0].settings, right[0].settings)
    return {name: values for name, values in found.items() if name not in OURS}


def _to_json(
    left: Sequence[MeasuredRun],
    right: Sequence[MeasuredRun],
    found: "Sequence[Compared]",
    worse: "Sequence[Compared]",
) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "first": [each.name for each in left],
        "second": [each.name for each in right],
        "settings": {
            name: list(values) for name, values in differing_settings(left, right).items()
        },
        "figures": {
            each.figure.name: {
                "unit": each.figure.unit,
                "first": each.first,
                "second": each.second,
                "pairs": each.ratio.pairs,
                "ratio": each.ratio.estimate,
                "interval": [each.ratio.low, each.ratio.high],
                "level": each.ratio.level,
                "p": each.ratio.p,
                "answer": each.answer.difference.value,
                "sure": each.answer.is_sure,
                "worse": each in worse,
            }
            for each in found
        },
    }
