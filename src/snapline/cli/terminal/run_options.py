"""The options of `snapline run`, with what `--help` says of each."""

from pathlib import Path
from typing import Annotated

import typer

from snapline.cli.terminal.options import (
    GLOSSARY,
    Number,
    Text,
    default,
    local_directory,
    written_file,
)

HELP = f"""Run a streaming dataflow on Spark, break it on purpose, and judge what came out.

The dataflow is a built-in workload, or one of your own. Its work is shared by slots: long-running \
processes that save their state by the protocol that you choose. Faults kill them, pause them, cut them \
off or damage what they have stored, all for real. In the end the output is compared with what it must be, \
and the answer is kept, broken or unknown. Everything is stored in a directory of its own below runs/.

{GLOSSARY} Exit codes: 0 kept, 1 broken, 2 bad input or a dataflow that fails by itself, 3 unknown, \
130 interrupted."""

EXAMPLES = """[bold]Examples[/bold]

Run a workload for twenty seconds, and kill one of its slots after eight:
[cyan]snapline run q12 --faults "kill slot=1 at=8s"[/cyan]

Run a dataflow of your own, and judge it by a run of the same input without failures:
[cyan]snapline run my_flow.py:flow --reference --faults "kill slot=0 at=8s"[/cyan]

Let everything break at random for ten minutes:
[cyan]snapline run q12 --chaos "seed=7 intensity=high" --duration 10m[/cyan]

Read the faults from a file:
[cyan]snapline run q12 --faults @plan.txt[/cyan]

Let a fifth of the bids come from one bidder, and from another one every five seconds:
[cyan]snapline run q12 --hot 20 --hot-moves 5s[/cyan]

Run a workload whose output names the events behind it, with events that come late:
[cyan]snapline run sst --set disorder=3s --set resources=100 --faults "kill slot=1 at=8s"[/cyan]

Choose another protocol, and kill a slot again while it recovers:
[cyan]snapline run q3 --protocol hmnr --faults "kill slot=1 at=8s; kill slot=0 on=recovery"[/cyan]

Make batches smaller, and let markers wait before they overtake data:
[cyan]snapline run q3 --protocol unaligned --option batch=500 --option align_timeout=50ms[/cyan]

Put another system to the test, and kill its driver during a checkpoint:
[cyan]snapline run sst --system structured-streaming --faults "kill driver on=round"[/cyan]

Run without an end: Ctrl-C stops it with a last line, and --resume goes on from there:
[cyan]snapline run q12 --duration forever[/cyan]

Go on with a run whose driver was killed:
[cyan]snapline run --resume last[/cyan]

Keep eight lines, and begin a new run at one of them, as [cyan]snapline checkpoints[/cyan] shows them:
[cyan]snapline run q12 --option kept_lines=8[/cyan]
[cyan]snapline run --fork last --line 12[/cyan]"""

FlowArgument = Annotated[
    Text,
    typer.Argument(
        metavar="FLOW",
        help="The workload to run, as in [cyan]snapline list workloads[/], or a dataflow in a file of your "
        "own, as in [cyan]my_flow.py:flow[/].",
    ),
]
SystemOption = Annotated[
    str,
    typer.Option(
        metavar="S",
        help="The system that runs the workload: Snapline's own engine, or another system that is put to "
        "the test, with its options, as in [cyan]structured-streaming sink=at-least-once[/]; "
        "[cyan]snapline list systems[/] shows them.",
    ),
]
ProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="P",
        help="The protocol that saves and restores the state, as in [cyan]snapline list protocols[/].",
    ),
]
SlotsOption = Annotated[
    Number,
    typer.Option(
        min=1,
        metavar="N",
        help="How many slots (processes of one core each) share the work."
        + default("one for each core"),
    ),
]
RateOption = Annotated[
    str,
    typer.Option(
        metavar="R|max",
        help="How many records per second a workload gets, from 1 to 1,000,000,000; [cyan]max[/] makes "
        "all of them due at once.",
    ),
]
RecordsOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="How many records a workload gets in all; only with --rate max."
    ),
]
DurationOption = Annotated[
    str,
    typer.Option(
        metavar="TIME|forever",
        help="For how long input comes, such as [cyan]500ms[/], [cyan]20s[/] or [cyan]2m[/]; "
        "[cyan]forever[/] goes on until Ctrl-C, which ends it with a last line. "
        "DataFrames and Parquet files are read to their end, unless it is given.",
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="How much time passes between two checkpoints; not with [cyan]--protocol none[/], which takes "
        "none.",
    ),
]
FaultsOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        show_default=False,
        help="The faults, written as [cyan]snapline list faults[/] shows them, or [cyan]@FILE[/] for a "
        "file with them." + default("no faults"),
    ),
]
ChaosOption = Annotated[
    Text,
    typer.Option(
        metavar="TEXT",
        help="Draw faults at random for the whole run: [cyan]seed=7[/] kills and pauses slots, "
        "[cyan]seed=7 intensity=low[/] mostly slows them down, [cyan]seed=7 intensity=high[/] breaks "
        "everything that can break." + default("no faults"),
    ),
]
SparesOption = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="How many processes wait beside the slots, so that a lost slot is replaced at once.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="K",
        help="The seed from which a workload's input is made, and all else that is drawn at random; "
        "--chaos has its own.",
    ),
]
InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="DIR",
        callback=local_directory,
        help="Read the input that [cyan]snapline generate[/] has written into this directory."
        + default("input is made during the run"),
    ),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference",
        metavar=" ",
        help="Judge the output by a run of the same input without failures. A dataflow of your own needs "
        "it to get another answer than unknown.",
    ),
]
PublishLagOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=15,
        metavar="N",
        help="Publish the output of a line only when N more lines are committed. With 1, a damaged "
        "snapshot of the newest line loses nothing; more than 1 needs [cyan]--option kept_lines=N+1[/]. "
        "Not with [cyan]--protocol none[/], which has no lines.",
    ),
]
RetainOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="For how long published output is kept; what is older is deleted while the run goes on. At "
        "least four times [cyan]--interval[/]." + default("for ever"),
    ),
]
PoolOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="NAME=SLOTS",
        help="How many slots a pool of the dataflow has, such as [cyan]model=2[/], besides those of "
        "[cyan]--slots[/]; one unless it is given. An operator of this name gets so many slots of its own. "
        "The option can be given several times.",
    ),
]
WarmUpOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Leave out of rates, latencies, bytes and checkpoint times what is measured in this time at "
        "the beginning; at most [cyan]--duration[/]. Totals are of the whole run.",
    ),
]
FullJournalOption = Annotated[
    bool,
    typer.Option(
        "--full-journal",
        metavar=" ",
        help="Write every message into the journal of the run, too, without its records.",
    ),
]
SharedOption = Annotated[
    bool,
    typer.Option(
        "--shared",
        metavar=" ",
        help="Let the umask decide who may read and write the run directory, instead of you alone. It is "
        "needed where Spark's executors belong to another user.",
    ),
]
ListenOption = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="The address of this machine at which Spark's executors reach it."
    ),
]
HeartbeatOption = Annotated[
    str, typer.Option(metavar="TIME", help="How often each slot says that it lives.")
]
SilenceOption = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="For how long a slot may say nothing before it is given up as lost."
    ),
]
OversubscribeOption = Annotated[
    bool,
    typer.Option(
        "--oversubscribe",
        metavar=" ",
        help="Allow more than 16 slots for each core of this machine, slow as they are.",
    ),
]
UiOption = Annotated[
    bool,
    typer.Option(
        "--ui",
        metavar=" ",
        help="Keep the pages of the Spark that is started for this run, for this machine only, and say "
        "where they are.",
    ),
]
LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        metavar=" ",
        help="Show the run in a browser while it goes on: say where its page is, for this machine only.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        callback=written_file,
        help="Write a page about the run into this file when it is over, as [cyan]snapline report[/] does.",
    ),
]
RestartFailuresOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Give the run up after this many failures of processes in a row, from 1 to 1,000,000.",
    ),
]
RestartWindowOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Failures count as being in a row unless a line was committed, or all slots ran for this "
        "long, between them.",
    ),
]
ResumeOption = Annotated[
    Text,
    typer.Option(
        metavar="RUN|last",
        help="Go on with this run, which was interrupted, as it was described when it began.",
    ),
]
ForkOption = Annotated[
    Text,
    typer.Option(
        metavar="RUN|last",
        help="Begin a new run at a line of this one, which must be over and is not changed. The new run "
        "has all that was published until then, and goes on as this one began, without faults.",
    ),
]
LineOption = Annotated[
    Number,
    typer.Option(
        min=1,
        metavar="N",
        help="The line at which [cyan]--fork[/] begins, as [cyan]snapline checkpoints RUN[/] shows them.",
    ),
]
