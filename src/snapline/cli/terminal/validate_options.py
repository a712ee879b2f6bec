"""The options of `snapline validate`, with what `--help` says of each."""

from pathlib import Path
from typing import Annotated, Final

import typer

from snapline.cli.terminal.options import GLOSSARY, default, local_file, local_path
from snapline.core.guarantee import Guarantee

AUTO: Final = "auto"

HELP = f"""Judge output without running anything: that of a stored run, or that of another system.

The output must be what is computed from the input alone, whatever failed meanwhile. Where it names the \
events behind it, each event must be in the right window, once and only once; what is lost, repeated, \
misplaced or late is counted and explained by an example. Of another system the command needs only what \
went in and what came out, as Parquet files (docs/validate.md says which columns).

{GLOSSARY} Exit codes: 0 kept, 1 broken, 2 bad input, 3 unknown, 130 interrupted."""

EXAMPLES = """[bold]Examples[/bold]

Judge the last run once more, from its files:
[cyan]snapline validate last[/cyan]

Judge all that it ever wrote, published or not:
[cyan]snapline validate last --uncommitted[/cyan]

Judge a run of sst or mst while it goes on, until it is over:
[cyan]snapline validate last --follow[/cyan]

Judge what another system took in and put out:
[cyan]snapline validate --input in/ --output out/ --late late/ --window 10s[/cyan]

Name the columns if they are called otherwise, and allow 1 % of the events to be late:
[cyan]snapline validate --input in/ --output out/ --window 1m --id uuid --time ts --resource page
  --column output.window=start --column ids=uuids --max-late 1%[/cyan]

Judge a job that goes on: windows up to some time, or those that the input has closed:
[cyan]snapline validate --input in/ --output out/ --window 10s --until 2026-03-01T12:00:00Z[/cyan]
[cyan]snapline validate --input in/ --output out/ --window 10s --ignore-open --lateness 5s[/cyan]

Ask only that nothing is lost, and write a report that a build server reads:
[cyan]snapline validate --input in/ --output out/ --window 10s --promise at-least-once --junit r.xml[/]"""

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|last",
        help="The run of Snapline to judge, by its name, or [cyan]last[/] for the newest. It must be over "
        "unless --follow is given. Leave it out to judge another system.",
    ),
]
InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="DIR",
        callback=local_path,
        help="Of another system: what went in, as Parquet with the columns id, time and resource.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        callback=local_path,
        help="Of another system: what came out, as Parquet with the columns resource, window, count and "
        "ids.",
    ),
]
LateOption = Annotated[
    Path | None,
    typer.Option(
        "--late",
        metavar="DIR",
        callback=local_path,
        help="Of another system: the events that it left out because they were late, as Parquet with the "
        "column id." + default("none were left out"),
    ),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="TIME",
        help="Of another system: how long the windows of the output are, such as [cyan]10s[/].",
    ),
]
PromiseOption = Annotated[
    Guarantee | None,
    typer.Option(
        metavar="G",
        help="The promise that decides the answer: [cyan]exactly-once[/], [cyan]at-least-once[/] or "
        "[cyan]at-most-once[/]." + default("what the run has promised, or else exactly-once"),
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="auto|process|spark",
        help="Of another system: judge in this [cyan]process[/], on [cyan]spark[/], or, with "
        "[cyan]auto[/], where it is faster for so many events.",
    ),
]
UncommittedOption = Annotated[
    bool,
    typer.Option(
        "--uncommitted",
        metavar=" ",
        help="Of a RUN: judge all that it wrote, published or not.",
    ),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference",
        metavar=" ",
        help="Of a RUN: compare it with a run of the same input without failures.",
    ),
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow",
        metavar=" ",
        help="Of a RUN of sst or mst: judge it while it goes on, until it is over.",
    ),
]
FlowOption = Annotated[
    str | None,
    typer.Option(
        "--flow",
        metavar="FILE:NAME",
        help="Of a RUN: the dataflow of your own that it ran. Its file is executed only if you name it "
        "here.",
    ),
]
AllowVacuousOption = Annotated[
    bool,
    typer.Option(
        "--allow-vacuous",
        metavar=" ",
        help="Of a RUN: answer [cyan]kept[/] also where a fault never struck or nothing came out, instead "
        "of [cyan]unknown[/].",
    ),
]
JUnitOption = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        callback=local_file,
        help="Write a report as JUnit XML, which build servers read, into this file, too.",
    ),
]
MaxLateOption = Annotated[
    str | None,
    typer.Option(
        "--max-late",
        metavar="SHARE",
        help="Answer [cyan]broken[/] if more than this share of the events is late, such as [cyan]5%[/] or "
        "[cyan]0.05[/]." + default("any share is allowed"),
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Of another system: judge only windows that end at this event time or before, in milliseconds "
        "since 1970 or as in [cyan]2026-03-01T12:00:00Z[/]." + default("all windows"),
    ),
]
IgnoreOpenOption = Annotated[
    bool,
    typer.Option(
        "--ignore-open",
        metavar=" ",
        help="Of another system: do not judge windows that are still open at the end of the input.",
    ),
]
LatenessOption = Annotated[
    str | None,
    typer.Option(
        "--lateness",
        metavar="TIME",
        help="How long after its end a window is closed: the delay of the "
        "watermark and the lateness that the system allows." + default("0s"),
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COL",
        help="The name of the column of ids in --input and --late." + default("id"),
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="The name of the column of event times in --input." + default("time"),
    ),
]
ResourceOption = Annotated[
    str | None,
    typer.Option(
        "--resource",
        metavar="COL",
        help="The name of the column by which events are counted, in --input and --output."
        + default("resource"),
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="[TABLE.]NAME=COL",
        help="The name of any other column, as in [cyan]ids=uuids[/] or [cyan]output.window=start[/]. The "
        "option can be given several times.",
    ),
]
