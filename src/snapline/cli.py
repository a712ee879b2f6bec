"""The command line: parse, call, exit code. What is printed is made in the modules `cli_*`.

Exit codes: 0 every promise was kept, 1 one was broken (or the sweep proved nothing), 2 bad input,
3 unknown or a failure of the machinery, 130 interrupted.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from snapline.cli_list import Kind, print_catalogue
from snapline.cli_request import (
    Request,
    checked,
    chosen_protocols,
    chosen_seeds,
    chosen_workloads,
)
from snapline.cli_run import diagnose, millis, run_on_spark
from snapline.cli_runs import manage_runs
from snapline.cli_simulate import run_again, run_one, run_sweep
from snapline.cli_tables import messages
from snapline.core.policy import Guarantee
from snapline.errors import SnaplineError, UsageError

BAD_INPUT, UNKNOWN, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="snapline",
    help="Run streaming dataflows under the checkpointing protocol you choose, break them on purpose, "
    "and see whether the protocol kept its promise.",
    epilog="Start with [bold]snapline simulate[/bold]. Exit codes: 0 kept, 1 broken, 2 bad input, "
    "3 unknown, 130 interrupted.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

SIMULATE_HELP = """Run dataflows in a simulator that breaks them, and judge what came out.

Slots crash, pause and are cut off; the store fails, and damages what it holds. Time is virtual \
and every run is a pure function of its seed. A protocol has kept its promise when no named \
invariant broke on the way and the published output is what an independent oracle expects."""

SIMULATE_EXAMPLES = """[bold]Examples[/bold]

Every protocol on the smallest workload, 20 seeds each:
[cyan]snapline simulate[/cyan]

One protocol, many crash schedules:
[cyan]snapline simulate --protocol hmnr --workload q8 --seeds 200[/cyan]

One run, told and drawn:
[cyan]snapline simulate --protocol aligned --workload q3 --seed 7 --diagram run.svg[/cyan]

Break what you choose, when you choose:
[cyan]snapline simulate --protocol bcs --seed 1 --faults "kill slot=1 at=800ms"[/cyan]

A failure that was found, once more:
[cyan]snapline simulate --repeat snapline-failure-hmnr-q8-42.json[/cyan]"""

Number = int | None
Text = str | None
ProtocolOption = Annotated[
    Text, typer.Option(metavar="P|all", help="Which protocol.  [dim]default: all[/]")
]
WorkloadOption = Annotated[
    Text, typer.Option(metavar="W|all", help="Which workload.  [dim]default: counting[/]")
]
SeedsOption = Annotated[
    Number, typer.Option(min=1, metavar="N", help="Run the seeds 1 to N.  [dim]default: 20[/]")
]
SeedOption = Annotated[
    Number, typer.Option(min=0, metavar="K", help="Run this seed only, and tell its story.")
]
SlotsOption = Annotated[
    Number, typer.Option(min=1, metavar="N", help="Simulated processes.  [dim]default: 3[/]")
]
RecordsOption = Annotated[
    Number,
    typer.Option(min=1, metavar="N", help="Records per slot and source.  [dim]default: 60[/]"),
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
        help="What goes wrong, as [cyan]snapline list faults[/] shows it; an empty text: nothing.  "
        "[dim]default: drawn from the seed[/]",
    ),
]
DiagramOption = Annotated[
    Path | None, typer.Option(metavar="F.svg", help="Draw the run in space and time; one run only.")
]
RepeatOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Run a failure again from its file.")
]
JobsOption = Annotated[
    Number, typer.Option(min=1, metavar="N", help="Processes.  [dim]default: all cores[/]")
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar=" ", help="Print one JSON document instead.")
]


@app.command("simulate", help=SIMULATE_HELP, epilog=SIMULATE_EXAMPLES)
def simulate_command(
    protocol: ProtocolOption = None,
    workload: WorkloadOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = None,
    slots: SlotsOption = None,
    records: RecordsOption = None,
    guarantee: GuaranteeOption = None,
    faults: FaultsOption = None,
    diagram: DiagramOption = None,
    repeat: RepeatOption = None,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """`snapline simulate`."""
    if repeat is not None:
        given = (protocol, workload, seeds, seed, slots, records, guarantee, faults)
        if any(option is not None for option in given):
            raise UsageError("--repeat brings its own run: leave the options that describe one out")
        with interruptible():
            raise typer.Exit(run_again(repeat, diagram, as_json))
    request = Request(
        chosen_protocols(protocol),
        chosen_workloads(workload),
        chosen_seeds(seeds, seed, one=diagram is not None),
        slots,
        records,
        guarantee,
        faults,
    )
    checked(request, diagram)
    with interruptible():
        if request.alone:
            raise typer.Exit(run_one(request, diagram, as_json))
        raise typer.Exit(run_sweep(request, jobs, as_json))


RUN_EXAMPLES = """[bold]Examples[/bold]

A run of twenty seconds on Spark, with a slot killed for real:
[cyan]snapline run q12 --faults "kill slot=1 at=8s"[/cyan]

Another protocol, killed again while it recovers:
[cyan]snapline run q3 --protocol hmnr --faults "kill slot=1 at=5s; kill slot=0 on=recovery"[/cyan]

Go on after the driver was killed:
[cyan]snapline run --resume last[/cyan]"""

RunsOption = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")]


@app.command("run", epilog=RUN_EXAMPLES)
def run_command(
    flow: Annotated[Text, typer.Argument(metavar="[FLOW]", help="A workload, such as q12.")] = None,
    protocol: Annotated[str, typer.Option(metavar="P", help="Which protocol.")] = "aligned",
    guarantee: GuaranteeOption = None,
    slots: SlotsOption = None,
    rate: Annotated[int, typer.Option(min=1, metavar="R", help="Records per second.")] = 2_000,
    duration: Annotated[str, typer.Option(metavar="D", help="How long input comes.")] = "20s",
    interval: Annotated[str, typer.Option(metavar="I", help="Between checkpoints.")] = "5s",
    faults: Annotated[str, typer.Option(help="What goes wrong: kills and pauses.")] = "",
    spares: Annotated[int, typer.Option(min=0, metavar="N", help="Processes that wait.")] = 0,
    seed: Annotated[int, typer.Option(min=0, metavar="K", help="Of the input.")] = 1,
    resume: Annotated[Text, typer.Option(metavar="RUN", help="Go on with this run.")] = None,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
) -> None:
    """Run a workload on Spark, kill its processes for real, and judge what came out."""
    from snapline.runtime.run import default_slots
    from snapline.runtime.spec import Spec

    if (flow is None) == (resume is None):
        raise UsageError("say what to run: a workload (see 'snapline list'), or --resume RUN")
    spec = None
    if flow is not None:
        spec = Spec(
            flow,
            protocol,
            guarantee.value if guarantee is not None else None,
            slots or default_slots(),
            rate,
            millis(duration, "--duration"),
            millis(interval, "--interval"),
            faults,
            spares,
            seed,
        )
    with interruptible():
        raise typer.Exit(run_on_spark(spec, resume, runs, as_json))


@app.command("runs")
def runs_command(
    action: Annotated[str, typer.Argument(help="list, show or rm.")] = "list",
    name: Annotated[Text, typer.Argument(metavar="[RUN|last]", help="Which run.")] = None,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
) -> None:
    """List the runs there are, show one, or remove one."""
    raise typer.Exit(manage_runs(action, name, runs, as_json))


@app.command("doctor")
def doctor_command(
    try_spark: Annotated[
        bool, typer.Option("--try-spark", metavar=" ", help="Run a tiny job, too: takes seconds.")
    ] = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
) -> None:
    """See whether this machine can run Snapline on Spark, and what to mend if not."""
    raise typer.Exit(diagnose(runs, try_spark, as_json))


@app.command("list", epilog="[cyan]snapline list protocols[/cyan]  only one of the lists")
def list_command(
    kind: Annotated[
        Kind | None, typer.Argument(help="Which list; all of them if left out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the protocols, workloads, faults and systems that there are."""
    print_catalogue(kind, as_json)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends a command with a word and its own exit code, not with a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        messages().print("interrupted: what ran until then says nothing")
        raise typer.Exit(INTERRUPTED) from None


def main() -> None:
    """The `snapline` command."""
    try:
        app()
    except UsageError as error:
        messages().print("[red]bad input:[/red]", escape(str(error)), soft_wrap=True)
        sys.exit(BAD_INPUT)
    except SnaplineError as error:
        messages().print("[red]failed:[/red]", escape(str(error)), soft_wrap=True)
        sys.exit(UNKNOWN)
    except Exception:
        traceback.print_exc()
        messages().print("[red]failed:[/red] this is a bug of Snapline; the run says nothing")
        sys.exit(UNKNOWN)
