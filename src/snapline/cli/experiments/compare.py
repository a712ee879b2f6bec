"""`snapline compare`: two runs, or two columns of runs in pairs, figure by figure."""

from collections.abc import Mapping, Sequence
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
    from snapline.rundir.directory import RunDirectory

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

Fail, with exit code 1, if anything became worse by more than 10 %:
[cyan]snapline compare a1,a2,a3,a4,a5,a6 b1,b2,b3,b4,b5,b6 --threshold 10%[/cyan]"""

OURS: Final = ("id", "version", "origin_s", "forked_from")
"""What differs between any two runs, and is no setting."""

FirstArgument = Annotated[
    str, typer.Argument(metavar="RUN[,RUN...]", help="The runs that are compared with, by name.")
]
SecondArgument = Annotated[
    str, typer.Argument(metavar="RUN[,RUN...]", help="The runs that are compared with them.")
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

    left, right = _opened(runs, first), _opened(runs, second)
    if len(left) != len(right):
        raise UsageError(
            f"{plural(len(left), 'run')} and {plural(len(right), 'run')} are no pairs: name as many of one "
            "setting as of the other, in the order in which they were made"
        )
    if threshold is not None and len(left) < SURE_PAIRS:
        raise UsageError(
            f"--threshold needs {SURE_PAIRS} pairs of runs, and there {_is(len(left))}: fewer cannot be "
            "sure of anything"
        )
    measured = [_metrics(each) for each in left], [_metrics(each) for each in right]
    found = list(compare(*measured, margin=margin))
    if not found:
        raise UsageError("these runs have no figure in common that could be compared")
    worse = [each for each in found if threshold is not None and each.is_worse_by(threshold)]
    _doubt([*left, *right])
    if as_json:
        print_json(_to_json(left, right, found, worse))
    else:
        _print(left, right, found, worse)
    return 1 if worse else 0


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


def _opened(runs: Path, names: str) -> "list[RunDirectory]":
    from snapline.rundir.directory import RunDirectory

    return [RunDirectory.open(runs, name.strip()) for name in names.split(",")]


def _metrics(directory: "RunDirectory") -> Mapping[str, Any]:
    result = directory.result()
    if result is None:
        why = directory.why_not_over() or "it is not over"
        raise UsageError(f"{directory.name} has no figures: {why}")
    metrics = result.get("metrics")
    return metrics if isinstance(metrics, Mapping) else {}


def _doubt(directories: "Sequence[RunDirectory]") -> None:
    """Warn of runs whose output is not proved right: their figures are those of something else."""
    for directory in directories:
        result = directory.result()
        if result is not None and result.get("kept") != "yes":
            messages().print(
                f"[yellow]note:[/] {escape(directory.name)} has not kept its promise, or nobody knows: its "
                "figures may be those of a job that did less",
                soft_wrap=True,
            )


# What is shown.


def _print(
    left: "Sequence[RunDirectory]",
    right: "Sequence[RunDirectory]",
    found: "Sequence[Compared]",
    worse: "Sequence[Compared]",
) -> None:
    from snapline.experiments.comparison import expected_by_chance

    out = results()
    for name, (one, other) in _settings(left, right).items():
        out.print(f"[bold]{escape(name)}[/]  {escape(one)} -> {escape(other)}", soft_wrap=True)
    table = Table("figure", box=None, padding=(0, 2, 0, 0))
    for title in ("first", "second", "ratio", "interval"):
        table.add_column(title, justify="right")
    table.add_column("second against first")
    for each in found:
        table.add_row(*_row(each))
    out.print(table)
    out.print(
        f"{plural(found[0].ratio.pairs, 'pair')} of runs; {_certainty(found)}", soft_wrap=True
    )
    chance = expected_by_chance(found)
    if chance:
        out.print(
            f"of {plural(len(found), 'figure')}, {chance:.2g} would differ by chance alone",
            soft_wrap=True,
        )
    for each in worse:
        out.print(f"[red]worse:[/] {each.figure.name} is {each.words}", soft_wrap=True)


def _certainty(found: "Sequence[Compared]") -> str:
    level = min(each.ratio.level for each in found)
    if level <= 0:
        return "no interval, because one pair says nothing about chance"
    return f"intervals of {level:.1%}".replace("%", " %")


def _row(compared: "Compared") -> tuple[str, ...]:
    ratio, unit = compared.ratio, compared.figure.unit
    interval = f"{ratio.low:.3f} to {ratio.high:.3f}" if ratio.level > 0 else ""
    return (
        compared.figure.name,
        f"{compared.first:,.4g} {unit}"
        if compared.first < 1e4
        else f"{compared.first:,.0f} {unit}",
        f"{compared.second:,.4g} {unit}"
        if compared.second < 1e4
        else f"{compared.second:,.0f} {unit}",
        f"{ratio.estimate:.3f}",
        interval,
        compared.words if ratio.level > 0 else "",
    )


def _settings(
    left: "Sequence[RunDirectory]", right: "Sequence[RunDirectory]"
) -> dict[str, tuple[Any, Any]]:
    """The settings in which the first runs of both columns differ."""
    from snapline.experiments.comparison import differing

    found = differing(left[0].spec(), right[0].spec())
    return {name: values for name, values in found.items() if name not in OURS}


def _to_json(
    left: "Sequence[RunDirectory]",
    right: "Sequence[RunDirectory]",
    found: "Sequence[Compared]",
    worse: "Sequence[Compared]",
) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "first": [each.name for each in left],
        "second": [each.name for each in right],
        "settings": {name: list(values) for name, values in _settings(left, right).items()},
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
