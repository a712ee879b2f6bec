"""The options of the command line, with what `--help` says about each."""

from pathlib import Path
from typing import Annotated

import typer

from snapline import arguments
from snapline.core.policy import Guarantee
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


def local_directory(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Check an option that names a directory: a file is refused before anything has run."""
    path = local_path(param, value)
    if path is not None and path.is_file():
        raise UsageError(f"{param.opts[0]} {path} is a file: name a directory")
    return path


SEED_MAX = (1 << 63) - 1  # the largest signed number of 64 bits
Number = int | None
Text = str | None
ProtocolOption = Annotated[
    Text, typer.Option(metavar="P|all", help="Which protocol.  [dim]default: all[/]")
]
WorkloadOption = Annotated[
    Text, typer.Option(metavar="W|all", help="Which workload.  [dim]default: counting[/]")
]
SeedsOption = Annotated[
    Number,
    typer.Option(
        min=1, max=1_000_000, metavar="N", help="Run the seeds 1 to N.  [dim]default: 20[/]"
    ),
]
SeedOption = Annotated[
    Number,
    typer.Option(min=0, max=SEED_MAX, metavar="K", help="Run this seed only, and tell its story."),
]
SlotsOption = Annotated[
    Number,
    typer.Option(min=1, max=100, metavar="N", help="Simulated processes.  [dim]default: 3[/]"),
]
RecordsOption = Annotated[
    Number,
    typer.Option(
        min=1, max=10_000_000, metavar="N", help="Records per slot and source.  [dim]default: 60[/]"
    ),
]
GuaranteeOption = Annotated[
    Guarantee | None,
    typer.Option(
        metavar="G",
        help="Hold it to [cyan]exactly-once[/], [cyan]at-least-once[/], [cyan]at-most-once[/] or "
        "[cyan]nothing[/].  [dim]default: its first promise[/]",
    ),
]
FaultsOption = Annotated[
    Text,
    typer.Option(
        metavar="TEXT",
        help="What goes wrong, as [cyan]snapline list faults[/] shows it, or [cyan]@FILE[/] with it; an "
        "empty text: nothing.  "
        "[dim]default: drawn from the seed[/]",
    ),
]
DiagramOption = Annotated[
    Path | None,
    typer.Option(
        metavar="F.svg",
        callback=local_file,
        help="Draw the run in space and time; one run only.",
    ),
]
RepeatOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=local_file, help="Run a failure again from its file."),
]
SimulatedSizeOption = Annotated[
    Text,
    typer.Option(
        "--size",
        metavar="S",
        help="[cyan]full[/] as in the papers, or [cyan]small[/].  [dim]default: small[/]",
    ),
]
SimulatedHotOption = Annotated[
    Number,
    typer.Option("--hot", metavar="PERCENT", help="So many of the records name one hot key."),
]
SimulatedHotMovesOption = Annotated[
    Text,
    typer.Option(
        "--hot-moves", metavar="D", help="After how long another key becomes the hot one."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="What only this workload knows, as [cyan]snapline list workloads[/] shows it; again for "
        "each.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Of engine and protocol, such as [cyan]batch=500[/] or [cyan]align_timeout=50ms[/]: see "
        "[cyan]snapline list options[/]; again for each.",
    ),
]
JobsOption = Annotated[
    Number,
    typer.Option(min=1, max=1_000, metavar="N", help="Processes.  [dim]default: all cores[/]"),
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar=" ", help="Print one JSON document instead.")
]
RunsOption = Annotated[
    Path,
    typer.Option(metavar="DIR", callback=local_directory, help="The directory of all runs."),
]

# Options of real runs.

FlowArgument = Annotated[
    Text, typer.Argument(metavar="[FLOW]", help="A workload, or [cyan]my_flow.py:flow[/].")
]
SystemOption = Annotated[
    str,
    typer.Option(
        metavar="S",
        help="Another system to put to the test, with its options: "
        "[cyan]structured-streaming sink=at-least-once[/]. See [cyan]snapline list systems[/].",
    ),
]
OneProtocolOption = Annotated[str, typer.Option(metavar="P", help="Which protocol.")]
RealSlotsOption = Annotated[
    Number,
    typer.Option(min=1, metavar="N", help="Processes, one core each.  [dim]default: all cores[/]"),
]
RateOption = Annotated[
    str, typer.Option(metavar="R|max", help="Records per second, for workloads.")
]
RecordsAtOnceOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="How many records there are at rate max.")
]
DurationOption = Annotated[str, typer.Option(metavar="D", help="How long input comes.")]
IntervalOption = Annotated[str, typer.Option(metavar="I", help="Between checkpoints.")]
RealFaultsOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        help="What goes wrong, as [cyan]snapline list faults[/] shows it, or [cyan]@FILE[/] with it.",
    ),
]
ChaosOption = Annotated[
    Text,
    typer.Option(
        metavar="TEXT",
        help="Faults at random, all the time: [cyan]seed=7[/] kills and pauses slots, with "
        "[cyan]intensity=low[/] little is slow, with [cyan]intensity=high[/] everything breaks.",
    ),
]
SparesOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Processes that wait, to replace a lost slot at once."),
]
InputSeedOption = Annotated[int, typer.Option(min=0, metavar="K", help="Of generated input.")]
SizeOption = Annotated[
    str,
    typer.Option(
        metavar="S", help="Of a workload: [cyan]full[/] as in the papers, or [cyan]small[/]."
    ),
]
HotOption = Annotated[
    int,
    typer.Option(
        metavar="PERCENT", help="So many of a workload's records name one hot key, such as 20."
    ),
]
HotMovesOption = Annotated[
    str,
    typer.Option(
        metavar="D", help="After how long another key becomes the hot one; [cyan]0ms[/]: never."
    ),
]
InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="DIR",
        callback=local_directory,
        help="Input that [cyan]snapline generate[/] has written.",
    ),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference", metavar=" ", help="Judge by runs of the same input without failures."
    ),
]
PublishLagOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=15,
        metavar="N",
        help="The output of a line waits for so many lines more; with 1, damage to a snapshot costs "
        "nothing.",
    ),
]
AllowVacuousOption = Annotated[
    bool,
    typer.Option(
        "--allow-vacuous",
        metavar=" ",
        help="Answer [cyan]kept[/] also where a fault never struck, or where nothing came out.",
    ),
]
FullJournalOption = Annotated[
    bool, typer.Option("--full-journal", metavar=" ", help="Write every message down, too.")
]
SharedOption = Annotated[
    bool,
    typer.Option(
        "--shared",
        metavar=" ",
        help="The umask decides who may read the run, instead of you alone: for executors of another user.",
    ),
]
ListenOption = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Where Spark's executors reach this machine, on a cluster."
    ),
]
HeartbeatOption = Annotated[
    str, typer.Option(metavar="D", help="How often slots say that they live.")
]
SilenceOption = Annotated[
    str, typer.Option(metavar="D", help="How long one may be silent before it is given up.")
]
OversubscribeOption = Annotated[
    bool,
    typer.Option(
        "--oversubscribe",
        metavar=" ",
        help="Allow more than 16 slots for each core of this machine.",
    ),
]
RestartFailuresOption = Annotated[
    int,
    typer.Option(
        metavar="N", help="Give the run up after this many failures of processes in a row."
    ),
]
RestartWindowOption = Annotated[
    str,
    typer.Option(
        metavar="D",
        help="They are in a row unless a line was committed, or all slots ran for this long, in between.",
    ),
]
ResumeOption = Annotated[
    Text, typer.Option(metavar="RUN", help="Go on with this run: a name, or [cyan]last[/].")
]
