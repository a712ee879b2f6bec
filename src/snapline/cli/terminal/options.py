"""The options that several commands share, and those of `simulate`, with what `--help` says of each."""

from pathlib import Path
from typing import Annotated

import typer

from snapline import arguments
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError


def local_path(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Check an option that names a file or a directory: a URL of another machine is refused."""
    return None if value is None else arguments.path(value, param.opts[0])


def local_file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Check an option that names a file: a directory is refused before anything has run."""
    path = local_path(param, value)
    if path is not None and path.is_dir():
        raise UsageError(f"{param.opts[0]} {path} is a directory: name a file")
    return path


def written_file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Check an option that names a file to write: its directory has to be there before anything runs."""
    path = local_file(param, value)
    if path is not None and not path.resolve().parent.is_dir():
        raise UsageError(f"{param.opts[0]} {path}: there is no directory {path.parent}")
    return path


def local_directory(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Check an option that names a directory: a file is refused before anything has run."""
    path = local_path(param, value)
    if path is not None and path.is_file():
        raise UsageError(f"{param.opts[0]} {path} is a file: name a directory")
    return path


SEED_MAX = (1 << 63) - 1  # the largest signed number of 64 bits
Number = int | None
Text = str | None


def default(words: str) -> str:
    """The end of a help text: what holds if the option is left out, as typer writes it where it knows."""
    return f" [dim]\\[default: {words}][/]"


GLOSSARY = "The words of this page are explained in docs/glossary.md."
"""The last sentence of a help page with words of our own, such as slot, line or published."""

ProtocolOption = Annotated[
    Text,
    typer.Option(
        metavar="P|all",
        help="The protocol to run, by its name in [cyan]snapline list protocols[/], or all of them."
        + default("all"),
    ),
]
WorkloadOption = Annotated[
    Text,
    typer.Option(
        metavar="W|all",
        help="The workload to run, by its name in [cyan]snapline list workloads[/], or all of them."
        + default("counting"),
    ),
]
SeedsOption = Annotated[
    Number,
    typer.Option(
        min=1,
        max=1_000_000,
        metavar="N",
        help="Make one run with each of the seeds 1 to N." + default("20"),
    ),
]
SeedOption = Annotated[
    Number,
    typer.Option(
        min=0,
        max=SEED_MAX,
        metavar="K",
        help="Make one run with this seed only, and print what happened in it, step by step.",
    ),
]
SlotsOption = Annotated[
    Number,
    typer.Option(
        min=1,
        max=100,
        metavar="N",
        help="How many slots (simulated processes) share the work." + default("3"),
    ),
]
RecordsOption = Annotated[
    Number,
    typer.Option(
        min=1,
        max=10_000_000,
        metavar="N",
        help="How many records each source reads on each slot." + default("60"),
    ),
]
GuaranteeOption = Annotated[
    Guarantee | None,
    typer.Option(
        metavar="G",
        help="Hold the run to this promise: [cyan]exactly-once[/], [cyan]at-least-once[/], "
        "[cyan]at-most-once[/] or [cyan]nothing[/]." + default("the first that the protocol makes"),
    ),
]
FaultsOption = Annotated[
    Text,
    typer.Option(
        metavar="TEXT",
        help="The faults, written as [cyan]snapline list faults[/] shows them, or [cyan]@FILE[/] for a "
        "file with them. An empty text means no faults at all." + default("drawn from the seed"),
    ),
]
DiagramOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.svg|FILE.html",
        callback=local_file,
        help="Draw the run, with its slots and messages over time, into this file; if it ends in .html, "
        "make a page about the run. It needs one protocol, one workload and one seed.",
    ),
]
RepeatOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_file,
        help="Repeat the run of a file that an earlier [cyan]snapline simulate[/] wrote about a broken "
        "promise.",
    ),
]
SaveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--save",
        metavar="OPERATOR=TIME|yes|no",
        help="How often an operator is saved, such as [cyan]model=1s[/], whatever the dataflow says; "
        "[cyan]model=no[/] never saves it. Only for protocols that heed it. The option can be given "
        "several times.",
    ),
]
InputsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--inputs",
        metavar="OPERATOR=drop|wait|keep",
        help="What becomes of messages to an operator while its slot is away, such as [cyan]model=keep[/]; "
        "[cyan]model=wait:1000[/] holds 1,000 messages of each channel back before their senders wait. "
        "Only for protocols that heed it. The option can be given several times.",
    ),
]
SimulatedSizeOption = Annotated[
    Text,
    typer.Option(
        "--size",
        metavar="full|small",
        help="How many keys the workload has and how long its windows are: [cyan]full[/], as in the "
        "papers, or [cyan]small[/]." + default("small"),
    ),
]
SimulatedHotOption = Annotated[
    Number,
    typer.Option(
        "--hot",
        metavar="PERCENT",
        help="Make 0 to 100 percent of the records name the same key." + default("0"),
    ),
]
SimulatedHotMovesOption = Annotated[
    Text,
    typer.Option(
        "--hot-moves",
        metavar="TIME",
        help="Choose another key for --hot each time this time has passed, such as [cyan]500ms[/]."
        + default("the key stays"),
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a setting that only this workload has, as [cyan]snapline list workloads[/] shows it. "
        "The option can be given several times.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Change an option of the engine or the protocol, such as [cyan]batch=500[/] or "
        "[cyan]align_timeout=50ms[/]; [cyan]snapline list options[/] shows them all. The option can be "
        "given several times.",
    ),
]
JobsOption = Annotated[
    Number,
    typer.Option(
        min=1,
        max=1_000,
        metavar="N",
        help="How many processes simulate at the same time." + default("one for each core"),
    ),
]
AllowVacuousOption = Annotated[
    bool,
    typer.Option(
        "--allow-vacuous",
        metavar=" ",
        help="Answer [cyan]kept[/] also where a fault never struck or nothing came out, instead of "
        "[cyan]unknown[/].",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar=" ",
        help="Print one JSON document for programs instead of text for people.",
    ),
]
RunsOption = Annotated[
    Path,
    typer.Option(
        metavar="DIR", callback=local_directory, help="The directory in which all runs are stored."
    ),
]
SizeOption = Annotated[
    str,
    typer.Option(
        metavar="full|small",
        help="How many keys a workload has and how long its windows are: [cyan]full[/], as in the papers, "
        "or [cyan]small[/].",
    ),
]
HotOption = Annotated[
    int,
    typer.Option(
        metavar="PERCENT",
        help="Make 0 to 100 percent of a workload's records name the same key.",
    ),
]
HotMovesOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Choose another key for --hot each time this time has passed; [cyan]0ms[/] means never.",
    ),
]
