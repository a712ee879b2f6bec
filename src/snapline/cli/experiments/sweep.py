"""`snapline sweep`: an experiment of many runs, described by a file."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.cli.experiments.compare import ratio_columns
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import JsonOption, local_path
from snapline.durations import write_duration
from snapline.errors import SnaplineError
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.capacity import Trial
    from snapline.experiments.comparison import Compared
    from snapline.experiments.sweep import Plan
    from snapline.experiments.sweep_file import SweepCell, SweepColumn
    from snapline.runtime.driver.timeline import Watcher

HELP = """Make all runs of an experiment that a file describes, and compare them.

The file says what all runs have in common, what varies, and how many turns there are. In every turn each \
combination runs once, in an order of its own, and the first one twice: how far it is from itself is the \
noise of this machine. A sweep that was interrupted, or killed, goes on where it was when it is started \
again. docs/sweeps.md describes the file."""

EXAMPLES = """[bold]Examples[/bold]

See which runs an experiment has, and how long they take:
[cyan]snapline sweep price.toml --dry-run[/cyan]

Make them; the results are in sweeps/price:
[cyan]snapline sweep price.toml[/cyan]

Compare two of its columns, figure by figure:
[cyan]snapline compare sweeps/price:protocol=none sweeps/price:protocol=aligned[/cyan]"""

START_S = 6.0
"""What a run takes beside its input, until one was measured: to start its slots, and to judge it."""

TRIALS = 14
"""How many rates a search for a capacity tries, about."""

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.toml", callback=local_path, help="The file that describes the experiment."
    ),
]
ToOption = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="DIR",
        callback=local_path,
        help="Where results and runs are kept. Without it, a directory below [cyan]sweeps[/] with the name "
        "of the file.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", metavar=" ", help="Only show the runs, and about how long they take."
    ),
]


def sweep_command(
    file: FileArgument,
    to: ToOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline sweep`."""
    with interruptible():
        raise typer.Exit(_sweep(file, to or Path("sweeps") / file.stem, dry_run, as_json))


def _sweep(file: Path, path: Path, dry_run: bool, as_json: bool) -> int:
    from snapline.experiments.sweep import Plan, carry_out, check_sweep
    from snapline.experiments.sweep_directory import TABLE, SweepDirectory
    from snapline.experiments.sweep_file import read_sweep
    from snapline.experiments.sweep_table import write_table

    sweep = read_sweep(file)
    check_sweep(sweep, path)
    plan = Plan(sweep, SweepDirectory(path))
    if dry_run:
        _show(plan, as_json)
        return 0
    with plan.directory.claimed(file.read_text(encoding="utf-8")):
        whole = carry_out(plan, SweepProgress(plan))
        done = list(plan.done.values())
        if done:
            write_table(done, path / TABLE)
    if as_json:
        print_json(_to_json(plan, done))
    else:
        _print(plan, done)
    return 0 if whole and all(each["kept"] == "yes" for each in done) else 3


def _left_s(plan: "Plan", done: Mapping[str, Mapping[str, Any]]) -> float:
    """About how long the runs that are missing take: as those of the same column did, or their input."""
    took: dict[str, float] = {}
    for key, cell in plan.keys.items():
        if key in done:
            took[cell.column.label] = done[key]["elapsed_s"]
    return sum(
        took.get(cell.column.label, START_S + cell.column.spec.duration_ms / 1000)
        for key, cell in plan.keys.items()
        if key not in done
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class SweepProgress:
    """Tells in plain lines how a sweep goes on: which run, what it said, and how long the rest takes."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._done = dict(plan.done)
        self._total = len(plan.keys)
        self._said(f"{len(self._done)} of {plural(self._total, 'run')} done")

    def searching(self, column: "SweepColumn") -> None:
        """Say whose capacity is found."""
        self._said(f"finding the capacity for {column.label}")

    def tried(self, trial: "Trial") -> None:
        """Say how a rate did."""
        told = "sustained" if trial.sustained else f"not sustained: {'; '.join(trial.because)}"
        self._said(f"  {trial.rate:,} records/s {told}")

    def begins(self, cell: "SweepCell", attempt: int) -> "Watcher":
        """Say which run begins."""
        from snapline.runtime.driver.timeline import Unwatched

        again = f", try {attempt}: others used the machine" if attempt > 1 else ""
        self._said(f"turn {cell.turn}: {cell.column.label}{again}")
        return Unwatched()

    def measured(self, cell: "SweepCell", result: dict[str, Any]) -> None:
        """Say how a run went."""
        from snapline.experiments.sweep import FOREIGN_MAX
        from snapline.experiments.sweep_directory import code_digest

        self._done[cell.key(code_digest())] = result
        told = f"{result['kept']} in {result['elapsed_s']:.0f} s"
        if result["foreign"] > FOREIGN_MAX:
            told += f", while others used {result['foreign']:.0%} of the machine"
        left = _minutes(_left_s(self._plan, self._done))
        self._said(f"  {told}; {len(self._done)} of {self._total} done, about {left} left")

    def failed(self, cell: "SweepCell", error: SnaplineError) -> None:
        """Say that a run failed; it is tried again when the sweep is started again."""
        self._said(f"  {cell.column.label} failed: {error}")

    def _said(self, text: str) -> None:
        messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


# What is shown.


def _show(plan: "Plan", as_json: bool) -> None:
    """Print what a sweep has to do."""
    from snapline.experiments.pace import window_of

    done, sweep = plan.done, plan.sweep
    left_s = _left_s(plan, done)
    if as_json:
        print_json(
            {
                "version": JSON_VERSION,
                "turns": sweep.turns,
                "columns": [column.label for column in sweep.columns],
                "runs": len(plan.keys),
                "done": len(done),
                "left_s": round(left_s, 1),
            }
        )
        return
    out = results()
    table = Table("column", "runs", "done", "input each", box=None, padding=(0, 2, 0, 0))
    for column in sweep.columns:
        ready = sum(key in done for key, cell in plan.keys.items() if cell.column == column)
        paced = column.spec.rate != "max"
        each = (
            write_duration(column.spec.duration_ms) if paced else f"{column.spec.records:,} records"
        )
        table.add_row(escape(column.label), str(sweep.turns), str(ready), each)
    out.print(table)
    out.print(
        f"{plural(len(plan.keys), 'run')} in {plural(sweep.turns, 'turn')}, {len(done)} done; about "
        f"{_minutes(left_s)} left"
    )
    if searched := {column.unhurried for column in sweep.columns if column.share is not None}:
        each = _minutes(TRIALS * (START_S + max(window_of(s.interval_ms).end_s for s in searched)))
        found = plural(len(searched), "capacity", "capacities")
        out.print(f"{found} have to be found, unless they are known: about {each} each")


def _print(plan: "Plan", done: Sequence[Mapping[str, Any]]) -> None:
    """Print each figure: every column against the first one."""
    from snapline.experiments.sweep_table import against_first, floors

    out, sweep = results(), plan.sweep
    columns = [column for column in sweep.columns if not column.again]
    first, noise = columns[0], floors(done)
    compared = dict(
        zip(
            [column.label for column in columns[1:]],
            (found for _, found in against_first(done, [column.varied for column in columns])),
            strict=True,
        )
    )
    for name in dict.fromkeys(each.figure.name for found in compared.values() for each in found):
        _print_figure(name, first.label, noise.get(name), compared)
    wrong = [each for each in done if each["kept"] != "yes"]
    for each in wrong:
        out.print(
            f"[yellow]{escape(each['run'])}[/] has not kept its promise, or nobody knows: "
            f"{escape(each['because'])}",
            soft_wrap=True,
        )
    out.print(f"{len(done)} of {plural(len(plan.keys), 'run')}: {escape(plan.directory.path)}")


def _print_figure(
    name: str, first: str, noise: float | None, compared: "Mapping[str, Sequence[Compared]]"
) -> None:
    out = results()
    floor = f"; noise floor {noise - 1:.1%}".replace("%", " %") if noise is not None else ""
    out.print(f"[bold]{name}[/], against {escape(first)}{floor}")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for label, found in compared.items():
        for each in found:
            if each.figure.name == name:
                table.add_row(escape(label), *ratio_columns(each))
    out.print(table)


def _to_json(plan: "Plan", done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "directory": str(plan.directory.path),
        "runs": len(plan.keys),
        "cells": list(done),
    }
