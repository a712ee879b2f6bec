"""`snapline report`: one offline HTML file about runs."""

import re
from pathlib import Path
from typing import Annotated

import typer

from snapline.cli.pages.live import open_page, serve_page
from snapline.cli.terminal.console import escape, interruptible, results
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import RunsOption, written_file
from snapline.errors import UsageError
from snapline.wording import size

HELP = """Make a page about runs: one HTML file that shows and explains them, and can be sent to anybody.

The page needs nothing beside it and fetches nothing. Of runs it has the verdict with its witnesses, \
rates, backlog and latency with the faults, each failure step by step, the checkpoint graph with the \
recovery line, the history of checkpoints, bytes by kind, every slot, a space-time diagram, and all \
numbers. With --against it compares two runs, or two columns of runs in pairs. Of a sweep it compares the \
columns; of a paper's sweep it shows the scoreboard, with the paper and ours on the same axes."""

EXAMPLES = """[bold]Examples[/bold]

Explain the last run:
[cyan]snapline report last[/cyan]

Explain two runs on one page, and open it:
[cyan]snapline report q12-aligned-calm-reed q12-hmnr-warm-wren --to both.html --open[/cyan]

Compare a run with another:
[cyan]snapline report q12-hmnr-warm-wren --against q12-aligned-calm-reed[/cyan]

Watch a run, or a sweep, in a browser while it goes on:
[cyan]snapline report last --live --open[/cyan]
[cyan]snapline report sweeps/price --live --open[/cyan]

Compare the columns of a sweep, or show what became of a paper's claims:
[cyan]snapline report sweeps/checkmate[/cyan]"""

NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...|SWEEP",
        help="The names of runs, or [cyan]last[/] for the newest; or the directory of a sweep.",
        show_default=False,
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        help="Compare with this: a run, runs with commas between them, or SWEEP:COLUMN, as "
        "[cyan]snapline compare[/] takes them.",
    ),
]
ToOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=written_file,
        help="The file to write, which may exist. Usually it is called after the first run.",
    ),
]
OpenOption = Annotated[
    bool, typer.Option("--open", metavar=" ", help="Open the page in a browser when it is written.")
]


LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        metavar=" ",
        help="Serve the page on this machine while the run or sweep goes on, until Ctrl-C, and say where.",
    ),
]


def report_command(
    names: NamesArgument,
    against: AgainstOption = None,
    to: ToOption = None,
    runs: RunsOption = Path("runs"),
    open_it: OpenOption = False,
    live: LiveOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline report`."""
    with interruptible():
        if live:
            raise typer.Exit(_live(names, against, to, runs, open_it))
        name, page = _page(list(dict.fromkeys(names)), against, runs)
        path = to or Path(f"{name}.html")
        write_page(path, page)
        told = f"page: [cyan]{escape(str(path))}[/] ({size(len(page.encode()))})"
        results().print(told, soft_wrap=True)
        if open_it:
            open_page(path.resolve().as_uri())


def _live(names: list[str], against: str | None, to: Path | None, runs: Path, open_it: bool) -> int:
    """Serve one page; refuse what a page that is served cannot have. Raises UsageError."""
    if len(names) > 1 or against is not None or to is not None:
        raise UsageError("--live shows one run or sweep, and writes no file: leave the rest out")
    return serve_page(names[0], runs, open_it)


def _page(names: list[str], other: str | None, runs: Path) -> tuple[str, str]:
    """The page that is asked for, and what its file is called. Raises UsageError."""
    from snapline.experiments.sweep_directory import is_sweep

    sweeps = [name for name in names if is_sweep(Path(name))]
    if (other is not None or sweeps) and len(names) > 1:
        raise UsageError("a comparison and a sweep have a page of their own: name one")
    if other is not None:
        from snapline.cli.pages.compared import compared_with
        from snapline.report.page.comparison import comparison_page

        page = comparison_page(compared_with(runs, names[0], other))
        return f"{_file_name(names[0])}-against-{_file_name(other)}", page
    if sweeps:
        return _file_name(names[0]), _page_of_sweep(Path(names[0]))
    return _page_of_runs(names, runs)


def _file_name(text: str) -> str:
    """A name of runs or columns as part of a file's name."""
    first = text.partition(",")[0]
    return re.sub(r"[^\w.-]+", "-", Path(first).name).strip("-.") or "report"


def _page_of_runs(names: list[str], runs: Path) -> tuple[str, str]:
    from snapline.report.page.run_page import run_page
    from snapline.rundir.directory import RunDirectory
    from snapline.runs.finished import reported

    directories = [RunDirectory.open(runs, name) for name in names]
    return directories[0].name, run_page([reported(directory) for directory in directories])


def _page_of_sweep(path: Path) -> str:
    from snapline.cli.pages.compared import of_sweep
    from snapline.cli.pages.papers import board_of, paper_of
    from snapline.experiments.sweep_directory import SweepDirectory
    from snapline.report.page.comparison import comparison_page
    from snapline.report.page.paper import paper_page

    paper = paper_of(path)
    if paper is None:
        return comparison_page(of_sweep(SweepDirectory(path)))
    return paper_page(board_of(paper, path))


def write_page(path: Path, page: str) -> None:
    """Write a page where the user said. Raises UsageError if that cannot be done."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
