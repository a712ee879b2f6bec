"""`snapline sweep PAPER`: the figures and tables of a paper as experiments, and their scoreboard."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.cli.experiments.live_sweep import shown_live
from snapline.cli.experiments.search_progress import minutes
from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.errors import UsageError
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.papers.catalogue import Paper, PaperFigure
    from snapline.experiments.papers.scoreboard import Scoreboard, ScoreRow
    from snapline.experiments.papers.undertaking import Undertaking
    from snapline.experiments.sweep import Plan, Simulator, SweepTeller

STYLES = {
    "holds": "green",
    "indicated": "cyan",
    "does not hold": "yellow",
    "cannot be tested here": "dim",
}


FigureOption = Annotated[
    str | None,
    typer.Option(
        metavar="FIGURE",
        help="Of a paper, make only the runs of this figure or table, as fig7 or tab2.",
    ),
]
FullOption = Annotated[
    bool,
    typer.Option(
        "--full",
        metavar=" ",
        help="Of a paper, make the runs of the full form of each figure, which may take a night.",
    ),
]


@dataclass(frozen=True, slots=True)
class PaperAsked:
    """What was asked for: figures of a paper, in their short or their full form."""

    paper: "Paper"
    figures: "list[PaperFigure]"
    full: bool


@dataclass(frozen=True, slots=True)
class SweepShown:
    """How a sweep is shown."""

    dry_run: bool  # only say what it would do
    as_json: bool
    live: bool  # in a browser, while it goes on


def paper_asked(name: Path, figure: str | None, full: bool) -> PaperAsked | None:
    """The figures that a name asks for; None if it names a file without figures. Raises UsageError."""
    from snapline.experiments.papers.catalogue import find_experiments, read_own

    if name.suffix != ".toml" and not name.is_file():
        return PaperAsked(*find_experiments(str(name), figure), full)
    own = read_own(name)
    if own is not None:
        return PaperAsked(own, own.wanted(figure), full)
    if figure is not None or full:
        option = "--full" if figure is None else "--figure"
        raise UsageError(f"{option} is for papers, and there are no figures in {name}")
    return None


def sweep_paper(
    asked: PaperAsked,
    to: Path | None,
    shown: SweepShown,
    teller: "Callable[[Plan], SweepTeller]",
    simulator: "Simulator | None" = None,
) -> int:
    """Make the runs of a paper's figures, and print what became of its claims; returns the exit code."""
    from snapline.experiments.papers.undertaking import Undertaking
    from snapline.experiments.sweep_directory import SweepDirectory

    path = to or Path("sweeps") / Path(asked.paper.name).stem
    directory = SweepDirectory(path)
    undertaking = Undertaking(
        asked.paper, asked.figures, asked.full, directory, simulator=simulator
    )
    _say_left_out(undertaking)
    undertaking.check(path)
    if shown.dry_run:
        _show(undertaking, shown.as_json)
        return 0
    return _measure(undertaking, shown, teller)


def _say_left_out(undertaking: "Undertaking") -> None:
    """Name the figures that nobody simulates because no profile was given."""
    if undertaking.simulator is None:
        forms = [(each.id, each.form(undertaking.full)) for each in undertaking.figures]
        if names := [id for id, form in forms if form is not None and form.simulated]:
            told = f"left out: {', '.join(names)}, which are simulated (--profile FILE)"
            messages().print(escape(told), soft_wrap=True)


def _measure(
    undertaking: "Undertaking", shown: SweepShown, teller: "Callable[[Plan], SweepTeller]"
) -> int:
    from snapline.experiments.papers.scoreboard import as_document, as_markdown
    from snapline.experiments.sweep_directory import TABLE
    from snapline.experiments.sweep_progress import KeptProgress
    from snapline.experiments.sweep_table import write_table
    from snapline.storage.files.places import write_whole

    def begins(form: str, plan: "Plan") -> "SweepTeller":
        wanted = [each.id for each in undertaking.figures if undertaking.reads(each, form)]
        messages().print(f"[bold]{escape(', '.join(wanted))}[/]", soft_wrap=True)
        return progress.told(teller(plan))

    path = undertaking.directory.path
    speeds = {name: form.each_s for name, form in undertaking.forms.items()}
    begin = partial(KeptProgress, path, undertaking.plans, speeds)
    with undertaking.directory.claimed(undertaking.paper.text):
        with shown_live(path, live=shown.live, begin=begin) as progress:
            whole = undertaking.carry_out(begins)
        found = [result for form in undertaking.results.values() for result in form]
        if found:
            write_table(found, path / TABLE)
        board = undertaking.scoreboard()
        write_whole(path / _board_file(undertaking), as_markdown(board))
    if shown.as_json:
        print_json({"version": JSON_VERSION, "directory": str(path), **as_document(board)})
    else:
        _print(board, undertaking)
    return 0 if whole and undertaking.proved else 3


def _board_file(undertaking: "Undertaking") -> str:
    return "scoreboard-full.md" if undertaking.full else "scoreboard.md"


# What is shown.


def _show(undertaking: "Undertaking", as_json: bool) -> None:
    """Print which runs there are, for which figures, and about how long they take."""
    plans = undertaking.plans
    rows = [_form_row(undertaking, form, plan) for form, plan in plans.items()]
    absent = {figure.id: figure.lacking for figure in undertaking.figures if figure.lacking}
    left_s = undertaking.left_s(plans)
    if as_json:
        document = {"forms": rows, "left_out": absent, "left_s": round(left_s, 1)}
        print_json({"version": JSON_VERSION, **document})
        return
    out = results()
    table = Table(
        "form", "figures", "turns", "runs", "done", "alone", box=None, padding=(0, 2, 0, 0)
    )
    for row in rows:
        numbers = [str(row[name]) for name in ("turns", "runs", "done")]
        read = escape(", ".join(row["figures"]))
        table.add_row(escape(row["form"]), read, *numbers, minutes(row["left_s"]))
        for label in row["columns"]:
            table.add_row("", f"  [dim]{escape(label)}[/]")
    out.print(table)
    for id, why in absent.items():
        out.print(f"{escape(id)} is left out: {escape(why)}", soft_wrap=True)
    runs, done = (sum(row[name] for row in rows) for name in ("runs", "done"))
    told = f"{plural(runs, 'run')}, {done} done; about {minutes(left_s)} left in all"
    out.print(f"{told}: what forms share is made once", soft_wrap=True)


def _form_row(undertaking: "Undertaking", form: str, plan: "Plan") -> dict[str, Any]:
    return {
        "form": form,
        "figures": [each.id for each in undertaking.figures if undertaking.reads(each, form)],
        "columns": [column.label for column in plan.sweep.columns],
        "turns": plan.sweep.turns,
        "runs": len(plan.keys),
        "done": len(plan.done),
        "capacities": len(plan.unknown),
        "left_s": round(undertaking.left_s({form: plan}), 1),
    }


def _print(board: "Scoreboard", undertaking: "Undertaking") -> None:
    """Print the scoreboard: a few lines for each figure, and then one for each."""
    out, paper = results(), board.paper
    out.print(f"[bold]{escape(paper.title)}[/] ({escape(paper.authors)}, {paper.year})")
    for row in board.rows:
        _print_row(row)
    table = Table("figure", "verdict", "command", box=None, padding=(0, 2, 0, 0))
    for row in board.rows:
        table.add_row(escape(row.figure.id), _verdict(row), escape(row.command))
    out.print()
    out.print(table)
    out.print(f"{board.last_line}.", soft_wrap=True)
    out.print(
        f"The same as a page: {escape(undertaking.directory.path / _board_file(undertaking))}",
        soft_wrap=True,
    )


def _print_row(row: "ScoreRow") -> None:
    from snapline.experiments.papers.scoreboard import ours

    out, figure = results(), row.figure
    title = f"[bold]{escape(figure.id)}[/] {escape(figure.title)}"
    out.print(f"\n{title}: {_verdict(row)}", soft_wrap=True)
    out.print(f"  {figure.source}: {escape(figure.finding)}", soft_wrap=True)
    for told in ours(row):
        out.print(f"  ours: {escape(told)}", soft_wrap=True)
    if row.why:
        out.print(f"  {escape(row.why)}", soft_wrap=True)


def _verdict(row: "ScoreRow") -> str:
    return f"[{STYLES[row.standing.value]}]{row.standing.value}[/]"
