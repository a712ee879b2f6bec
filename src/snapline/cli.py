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
