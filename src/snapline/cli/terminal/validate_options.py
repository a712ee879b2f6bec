"""The options of `snapline validate`, with their help."""

from pathlib import Path
from typing import Annotated, Final

import typer

from snapline.cli.terminal.options import local_file, local_path
from snapline.core.policy import Guarantee

AUTO: Final = "auto"

EXAMPLES = """[bold]Examples[/bold]

The last run once more, from its files:
[cyan]snapline validate last[/cyan]

All that it ever wrote, published or not:
[cyan]snapline validate last --uncommitted[/cyan]

A run that is going on (sst, mst), until it is over:
[cyan]snapline validate last --follow[/cyan]

What another system took in and put out, as Parquet (columns: docs/validate.md):
[cyan]snapline validate --input in/ --output out/ --late late/ --window 10s[/cyan]

Columns with names of their own, ids that are strings, at most 1 % late:
[cyan]snapline validate --input in/ --output out/ --window 1m --id uuid --time ts --resource page
  --column output.window=start --column ids=uuids --max-late 1%[/cyan]

A job that goes on: windows up to some time, or those that the input has closed:
[cyan]snapline validate --input in/ --output out/ --window 10s --until 2026-03-01T12:00:00Z[/cyan]
[cyan]snapline validate --input in/ --output out/ --window 10s --ignore-open --lateness 5s[/cyan]

Hold it to at least once only, and write a report that a build server reads:
[cyan]snapline validate --input in/ --output out/ --window 10s --promise at-least-once --junit r.xml[/cyan]

Exit codes: 0 kept, 1 broken, 2 bad input, 3 unknown."""

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN|last]", help="A run that is over; with --follow one that goes on."
    ),
]
InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="DIR",
        callback=local_path,
        help="What went in: Parquet with id, time, resource.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        callback=local_path,
        help="What came out: Parquet with resource, window, count, ids.",
    ),
]
LateOption = Annotated[
    Path | None,
    typer.Option(
        "--late",
        metavar="DIR",
        callback=local_path,
        help="What was left out as late: Parquet with id.",
    ),
]
WindowOption = Annotated[
    str | None, typer.Option("--window", metavar="D", help="The size of the windows, as in 10s.")
]
PromiseOption = Annotated[
    Guarantee | None,
    typer.Option(
        metavar="G",
        help="What decides: [cyan]exactly-once[/], [cyan]at-least-once[/] or [cyan]at-most-once[/].  "
        "[dim]default: what the run has promised, else exactly-once[/]",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="E",
        help="Where --input and --output are judged: [cyan]process[/], [cyan]spark[/], or "
        "[cyan]auto[/], by their size.",
    ),
]
UncommittedOption = Annotated[
    bool,
    typer.Option("--uncommitted", metavar=" ", help="RUN: all that it wrote, published or not."),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference", metavar=" ", help="RUN: compare with runs of the flow without failures."
    ),
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow", metavar=" ", help="RUN: judge it while it runs (workloads with lineage)."
    ),
]
FlowOption = Annotated[
    str | None,
    typer.Option(
        "--flow",
        metavar="FILE:NAME",
        help="RUN: the dataflow of your own that it ran; its file is executed only if you say so.",
    ),
]
AllowVacuousOption = Annotated[
    bool,
    typer.Option(
        "--allow-vacuous",
        metavar=" ",
        help="RUN: answer yes also where a fault never struck, or where nothing came out.",
    ),
]
JUnitOption = Annotated[
    Path | None,
    typer.Option(
        "--junit", metavar="FILE", callback=local_file, help="Write a report as JUnit XML, too."
    ),
]
MaxLateOption = Annotated[
    str | None,
    typer.Option(
        "--max-late", metavar="SHARE", help="More late events than this, as in 5% or 0.05, is a no."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Judge only windows that end then or before: an event time in ms, or as in "
        "[cyan]2026-03-01T12:00:00Z[/].",
    ),
]
IgnoreOpenOption = Annotated[
    bool,
    typer.Option(
        "--ignore-open",
        metavar=" ",
        help="Do not judge windows that are still open at the end of the input.",
    ),
]
LatenessOption = Annotated[
    str | None,
    typer.Option(
        "--lateness",
        metavar="D",
        help="How far beyond its end a window is closed: the delay of the watermark, and what is allowed "
        "to be late.  [dim]default: 0s[/]",
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="The column of the ids, in --input and --late."),
]
TimeOption = Annotated[
    str | None, typer.Option("--time", metavar="COL", help="The column of event times.")
]
ResourceOption = Annotated[
    str | None,
    typer.Option(
        "--resource", metavar="COL", help="The column that is counted by, in --input and --output."
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="[TABLE.]NAME=COL",
        help="What any other column is called, as in [cyan]ids=uuids[/] or "
        "[cyan]output.window=start[/]. Several times.",
    ),
]
