"""`snapline report`: one offline HTML file about runs."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from snapline.cli.terminal.console import escape, interruptible, messages, results
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import RunsOption, written_file
from snapline.errors import UsageError
from snapline.wording import size

HELP = """Make a page about runs: one HTML file that shows and explains them, and can be sent to anybody.

The page needs nothing beside it and fetches nothing. It has the verdict with its witnesses, rates, \
backlog and latency with the faults, each failure step by step, the checkpoint graph with the recovery \
line, the history of checkpoints, bytes by kind, every slot, a space-time diagram, and all numbers."""

EXAMPLES = """[bold]Examples[/bold]

Explain the last run:
[cyan]snapline report last[/cyan]

Explain two runs on one page, and open it:
[cyan]snapline report q12-aligned-calm-reed q12-hmnr-warm-wren --to both.html --open[/cyan]"""

NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="The names of runs, or [cyan]last[/] for the newest.",
        show_default=False,
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


def report_command(
    names: NamesArgument,
    to: ToOption = None,
    runs: RunsOption = Path("runs"),
    open_it: OpenOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline report`."""
    with interruptible():
        raise typer.Exit(make_report(names, to, runs, open_it))


def make_report(names: list[str], to: Path | None, runs: Path, open_it: bool) -> int:
    """Write the page, say where it is, and return the exit code."""
    from snapline.report.page.run_page import run_page
    from snapline.rundir.directory import RunDirectory
    from snapline.runs.finished import reported

    directories = [RunDirectory.open(runs, name) for name in dict.fromkeys(names)]
    page = run_page([reported(directory) for directory in directories])
    path = to or Path(f"{directories[0].name}.html")
    write_page(path, page)
    results().print(
        f"page: [cyan]{escape(str(path))}[/] ({size(len(page.encode()))})", soft_wrap=True
    )
    if open_it and not webbrowser.open(path.resolve().as_uri()):
        messages().print("no browser could be started: open the file yourself")
    return 0


def write_page(path: Path, page: str) -> None:
    """Write a page where the user said. Raises UsageError if that cannot be done."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
