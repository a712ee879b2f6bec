"""`snapline findings`: keeps the results of finished sweeps, and writes the page of findings from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import (
    JsonOption,
    default,
    local_directory,
    local_path,
    written_file,
)
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.papers.findings import Found
    from snapline.experiments.papers.kept import KeptForm

HELP = """Say which findings of the papers hold, from the results that are kept, and keep more of them.

[cyan]snapline sweep PAPER[/] measures the figures of a paper; its directory holds the runs, and is large. \
[cyan]snapline findings SWEEP[/] copies the results out of it into small files below [cyan]results[/], for \
good: settings, machine, code, and each run with its verdict and figures. The page of findings is made of \
these files alone, so whoever has them can make it again. results/README.md describes the files."""

EXAMPLES = """[bold]Examples[/bold]

Measure a paper, and keep its results:
[cyan]snapline sweep checkmate[/cyan]
[cyan]snapline findings sweeps/checkmate[/cyan]

Write the page of findings from all results that are kept:
[cyan]snapline findings --to docs/findings.md[/cyan]

Read it, or what became of each figure as JSON:
[cyan]snapline findings[/cyan]
[cyan]snapline findings --json[/cyan]"""


def _local_paths(param: typer.CallbackParam, value: list[Path] | None) -> list[Path | None]:
    return [local_path(param, each) for each in value or ()]


SweepsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SWEEP",
        callback=_local_paths,
        help="Directories of finished sweeps of papers, whose results are kept from now on.",
    ),
]
ResultsOption = Annotated[
    Path,
    typer.Option(
        "--results",
        metavar="DIR",
        callback=local_directory,
        help="The directory in which results are kept." + default("results"),
        show_default=False,
    ),
]
ToOption = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        callback=written_file,
        help="The file for the page. Without it, the page is printed, unless sweeps are given.",
    ),
]


def findings_command(
    sweeps: SweepsArgument = None,
    kept_in: ResultsOption = Path("results"),
    to: ToOption = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline findings`."""
    from snapline.experiments.papers.findings import as_page, findings
    from snapline.experiments.papers.kept import keep, paper_of_sweep
    from snapline.experiments.sweep_directory import SweepDirectory
    from snapline.storage.files.places import write_whole

    for path in sweeps or ():
        for each in keep(paper_of_sweep(path), SweepDirectory(path), kept_in):
            _say(kept_in, each)
    found = findings(kept_in)
    if to is not None:
        write_whole(to, as_page(found))
        messages().print(escape(f"the page of findings: {to}"), soft_wrap=True)
    if as_json:
        print_json(_to_json(found))
    elif to is None and not sweeps:
        results().print(as_page(found), markup=False, highlight=False, soft_wrap=True, end="")


def _say(kept_in: Path, kept: "KeptForm") -> None:
    runs = plural(len(kept.runs), "run")
    some = f" of {kept.planned}" if len(kept.runs) < kept.planned else ""
    path = kept_in / kept.paper / f"{kept.form}.json"
    messages().print(escape(f"{path}: {runs}{some}"), soft_wrap=True)


def _to_json(found: "list[Found]") -> dict[str, Any]:
    from snapline.experiments.papers.scoreboard import as_document

    return {"version": JSON_VERSION, "papers": [as_document(each.board) for each in found]}
