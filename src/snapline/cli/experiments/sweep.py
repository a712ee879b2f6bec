"""`snapline sweep`: an experiment of many runs, described by a file."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.cli.experiments.compare import ratio_columns
from snapline.cli.experiments.failure_table import print_failures
from snapline.cli.experiments.live_sweep import shown_live
from snapline.cli.experiments.papers import (
    FigureOption,
    FullOption,
    SweepShown,
    paper_asked,
    sweep_paper,
)
from snapline.cli.experiments.search_progress import MAIN_FIGURES, SearchProgress, minutes
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import JsonOption, local_file, local_path
from snapline.durations import write_duration
from snapline.errors import SnaplineError
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.comparison import Compared
    from snapline.experiments.sweep import Plan
    from snapline.experiments.sweep_file import SweepCell, SweepColumn
    from snapline.runtime.driver.timeline import Watcher
    from snapline.scale.simulated_cells import CellSimulator

HELP = """Make all runs of an experiment that a file describes, and compare them.

The file says what all runs have in common, what varies, and how many turns there are. In every turn each \
combination runs once, in an order of its own, and the first one twice: how far it is from itself is the \
noise of this machine. A sweep that was interrupted, or killed, goes on where it was when it is started \
again. docs/sweeps.md describes the file.

The name of a paper instead of a file makes the runs of its figures, and says which of its claims hold: \
docs/experiments.md. [cyan]snapline list experiments[/] shows them."""

EXAMPLES = """[bold]Examples[/bold]

See which runs an experiment has, and how long they take:
[cyan]snapline sweep price.toml --dry-run[/cyan]

Make them; the results are in sweeps/price:
[cyan]snapline sweep price.toml[/cyan]

Make them, and watch in a browser how it goes on:
[cyan]snapline sweep price.toml --live[/cyan]

Compare two of its columns, figure by figure:
[cyan]snapline compare sweeps/price:protocol=none sweeps/price:protocol=aligned[/cyan]

See what one figure of a paper takes, and measure it:
[cyan]snapline sweep checkmate-fig11 --dry-run[/cyan]
[cyan]snapline sweep checkmate-fig11[/cyan]

Simulate what needs more workers than this machine has cores:
[cyan]snapline sweep checkmate-fig11-scale --profile profile.json[/cyan]"""

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.toml|PAPER[-FIGURE]",
        callback=local_path,
        help="The file that describes the experiment, or the name of a paper.",
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
ProfileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_file,
        help="What work costs, as [cyan]snapline calibrate[/] has measured it: for runs that are "
        "simulated, as those of papers with 5 to 100 workers. Without it they are left out.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", metavar=" ", help="Only show the runs, and about how long they take."
    ),
]
LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        metavar=" ",
        help="Show the sweep in a browser while it goes on, on this machine only, and say where.",
    ),
]


def sweep_command(
    file: FileArgument,
    to: ToOption = None,
    figure: FigureOption = None,
    full: FullOption = False,
    profile: ProfileOption = None,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline sweep`."""
    simulator, how = simulator_of(profile), SweepShown(dry_run, as_json, live)
    with interruptible():
        if (asked := paper_asked(file, figure, full)) is not None:
            raise typer.Exit(sweep_paper(asked, to, how, SweepProgress, simulator))
        raise typer.Exit(_sweep(file, to or Path("sweeps") / file.stem, how, simulator))


def simulator_of(profile: Path | None) -> "CellSimulator | None":
    """Who simulates with the costs of a profile; None without one. Raises UsageError."""
    if profile is None:
        return None
    from snapline.scale.profile import read_profile
    from snapline.scale.simulated_cells import CellSimulator

    return CellSimulator(read_profile(profile))


def _sweep(file: Path, path: Path, how: SweepShown, simulator: "CellSimulator | None") -> int:
    from snapline.experiments.sweep import Plan, carry_out, check_sweep
    from snapline.experiments.sweep_directory import TABLE, SweepDirectory
    from snapline.experiments.sweep_file import read_sweep
    from snapline.experiments.sweep_progress import KeptProgress
    from snapline.experiments.sweep_table import is_proved, write_table

    sweep = read_sweep(file)
    check_sweep(sweep, path)
    plan = Plan(sweep, SweepDirectory(path))
    if how.dry_run:
        _show(plan, how.as_json)
        return 0
    with plan.directory.claimed(file.read_text(encoding="utf-8")):
        begin = partial(KeptProgress, path, {"": plan})
        with shown_live(path, live=how.live, begin=begin) as progress:
            whole = carry_out(plan, progress.told(SweepProgress(plan)), simulator)
        done = list(plan.done.values())
        if done:
            write_table(done, path / TABLE)
    if how.as_json:
        print_json(_to_json(plan, done))
    else:
        _print(plan, done)
    return 0 if whole and all(map(is_proved, done)) else 3


def _left_s(plan: "Plan", done: Mapping[str, Mapping[str, Any]]) -> float:
    """About how long the rest takes: runs as those of the same column did, or their input; and searches."""
    from snapline.experiments.sweep_progress import left_s, planned_runs, searches_of, times_of

    return left_s(planned_runs({"": plan}), times_of(done), searches_of([plan]).values())


class SweepProgress:
    """Tells in plain lines how a sweep goes on: which run, what it said, and how long the rest takes."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._keys = plan.keys
        self._done = dict(plan.done)
        left = minutes(_left_s(plan, self._done))
        self._said(f"{len(self._done)} of {plural(len(self._keys), 'run')} done, about {left} left")

    def searching(self, column: "SweepColumn") -> SearchProgress:
        """Say whose capacity is found."""
        self._said(f"finding the capacity for {column.label}")
        return SearchProgress(lambda text: self._said(f"  {text}"))

    def begins(self, cell: "SweepCell", attempt: int) -> "Watcher":
        """Say which run begins."""
        from snapline.runtime.driver.timeline import Unwatched

        again = f", try {attempt}: others used the machine" if attempt > 1 else ""
        drawn = "" if cell.faults is None else f" ({cell.faults})"
        self._said(f"turn {cell.turn}: {cell.column.label}{drawn}{again}")
        return Unwatched()

    def measured(self, cell: "SweepCell", result: dict[str, Any]) -> None:
        """Say how a run went; at the end of a turn, what all runs say so far."""
        from snapline.experiments.sweep import FOREIGN_MAX
        from snapline.experiments.sweep_directory import code_digest

        self._done[cell.key(code_digest())] = result
        how = "simulated" if "simulated" in result else result["kept"]
        told = f"{how} in {result['elapsed_s']:.0f} s"
        if result["foreign"] > FOREIGN_MAX:
            told += f", while others used {result['foreign']:.0%} of the machine"
        left = minutes(_left_s(self._plan, self._done))
        self._said(f"  {told}; {len(self._done)} of {len(self._keys)} done, about {left} left")
        if all(key in self._done for key, each in self._keys.items() if each.turn == cell.turn):
            self._so_far(cell.turn)

    def failed(self, cell: "SweepCell", error: SnaplineError) -> None:
        """Say that a run failed; it is tried again when the sweep is started again."""
        self._said(f"  {cell.column.label} failed: {error}")

    def _so_far(self, turn: int) -> None:
        """Say the main figures of every column, against the first."""
        from snapline.experiments.sweep_table import against_first

        columns = [column for column in self._plan.sweep.columns if not column.again]
        compared = against_first(list(self._done.values()), [each.varied for each in columns])
        for column, (_, found) in zip(columns[1:], compared, strict=True):
            shown = [each for each in found if each.figure.name in MAIN_FIGURES]
            ratios = ", ".join(f"{each.figure.name} x {each.ratio.estimate:.2f}" for each in shown)
            so_far = f"so far, after turn {turn}: {column.label} against {columns[0].label}"
            self._said(f"{so_far}: {ratios or 'nothing can be compared'}")

    def _said(self, text: str) -> None:
        messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


# What is shown.


def _show(plan: "Plan", as_json: bool) -> None:
    """Print what a sweep has to do."""
    done, sweep, unknown = plan.done, plan.sweep, plan.unknown
    left_s = _left_s(plan, done)
    if as_json:
        print_json(
            {
                "version": JSON_VERSION,
                "turns": sweep.turns,
                "launcher": sweep.launcher,
                "columns": [column.label for column in sweep.columns],
                "runs": len(plan.keys),
                "done": len(done),
                "capacities": len(unknown),
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
    if unknown:
        labels = ", ".join(column.label for column in unknown)
        found = plural(len(unknown), "capacity has", "capacities have")
        out.print(f"{found} to be found first: {escape(labels)}", soft_wrap=True)
    out.print(
        f"{plural(len(plan.keys), 'run')} in {plural(sweep.turns, 'turn')}, {len(done)} done; about "
        f"{minutes(left_s)} left in all"
    )


def _print(plan: "Plan", done: Sequence[Mapping[str, Any]]) -> None:
    """Print each figure: every column against the first one."""
    from snapline.experiments.sweep_table import against_first, floors, is_proved

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
    print_failures(done, {column.label: column.varied for column in columns})
    wrong = [each for each in done if not is_proved(each)]
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
