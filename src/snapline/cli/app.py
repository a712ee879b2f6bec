"""The command line: parses options, calls what does the work, exits. `cli/terminal` makes what is printed.

Exit codes: 0 every promise was kept, 1 one was broken (or the sweep proved nothing), 2 bad input, or a
dataflow whose own code fails, 3 unknown or a failure of the machinery, 130 interrupted (143: by SIGTERM).
"""

import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from snapline.cli import explore, generate, simulate
from snapline.cli import runs as run_list
from snapline.cli import validate as validation
from snapline.cli.advice import advise
from snapline.cli.experiments import calibrate, capacity, compare, findings, sweep
from snapline.cli.listing import LIST_EXAMPLES, LIST_HELP, list_command
from snapline.cli.pages import report
from snapline.cli.run import DOCTOR_EXAMPLES, diagnose, show_checkpoints, start_run
from snapline.cli.terminal import checkpoints_page, run_options, validate_options
from snapline.cli.terminal.console import (
    NOTHING_SAID,
    escape_lines,
    interruptible,
    messages,
    results,
)
from snapline.cli.terminal.given import given_options, refuse_given
from snapline.cli.terminal.logs import CommandVerboseOption, VerboseOption, log_to_stderr
from snapline.cli.terminal.options import (
    AllowVacuousOption,
    GuaranteeOption,
    HotMovesOption,
    HotOption,
    InputsOption,
    JsonOption,
    OptionOption,
    ProtocolOption,
    RunsOption,
    SaveOption,
    SetOption,
    SizeOption,
)
from snapline.errors import FlowFailed, SnaplineError, UsageError
from snapline.protocols import DEFAULT
from snapline.rundir.spec import LOOPBACK, OWN
from snapline.runs.interrupt import Interrupted, Interruption

BAD_INPUT, UNKNOWN = 2, 3

app = typer.Typer(
    name="snapline",
    help="""Run streaming dataflows under a fault-tolerance protocol of your choice, break them on \
purpose, and see whether the protocol kept its promise.

A protocol saves the state of a dataflow from time to time, so that it can go on after a failure, and \
promises how often each record counts in the output: exactly once, for example. The words of these pages \
are explained in docs/glossary.md.""",
    epilog="""[bold]Examples[/bold]

Break every protocol in a simulator, which needs no Spark:
[cyan]snapline simulate[/cyan]

Run a workload on Spark, and kill a process of it after eight seconds:
[cyan]snapline run q12 --faults "kill slot=1 at=8s"[/cyan]

See what a command does, with examples:
[cyan]snapline run --help[/cyan]

Exit codes: 0 kept, 1 broken, 2 bad input, 3 unknown, 130 interrupted.""",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        results().print(f"snapline {version('snapline')}")
        raise typer.Exit


@app.callback()
def all_commands(
    verbose: VerboseOption = 0,
    print_version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=" ",
            is_eager=True,
            callback=_print_version,
            help="Print the version of Snapline.",
        ),
    ] = False,
) -> None:
    """What stands before the name of a command."""
    log_to_stderr(verbose)


app.command("simulate", help=simulate.HELP, epilog=simulate.EXAMPLES)(simulate.simulate_command)


@app.command("explore", help=explore.HELP, epilog=explore.EXAMPLES)
def explore_command(
    protocol: ProtocolOption = None,
    graph: explore.GraphOption = None,
    records: explore.SmallRecordsOption = None,
    budget: explore.BudgetOption = None,
    repeat: explore.RepeatOption = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline explore`."""
    asked = protocol, graph, records, budget
    raise typer.Exit(explore.explore(*asked, repeat=repeat, as_json=as_json))


@app.command("run", help=run_options.HELP, epilog=run_options.EXAMPLES)
def run_command(
    context: typer.Context,
    flow: run_options.FlowArgument = None,
    system: run_options.SystemOption = OWN,
    protocol: run_options.ProtocolOption = DEFAULT,
    guarantee: GuaranteeOption = None,
    slots: run_options.SlotsOption = None,
    rate: run_options.RateOption = "2000",
    records: run_options.RecordsOption = 1_000_000,
    duration: run_options.DurationOption = "20s",
    interval: run_options.IntervalOption = "5s",
    faults: run_options.FaultsOption = "",
    chaos: run_options.ChaosOption = None,
    spares: run_options.SparesOption = 0,
    seed: run_options.SeedOption = 1,
    size: SizeOption = "full",
    hot: HotOption = 0,
    hot_moves: HotMovesOption = "0ms",
    settings: SetOption = None,
    options: OptionOption = None,
    pools: run_options.PoolOption = None,
    save: SaveOption = None,
    inputs: InputsOption = None,
    source: run_options.InputOption = None,
    reference: run_options.ReferenceOption = False,
    publish_lag: run_options.PublishLagOption = 0,
    retain: run_options.RetainOption = None,
    warm_up: run_options.WarmUpOption = "0ms",
    full_journal: run_options.FullJournalOption = False,
    allow_vacuous: AllowVacuousOption = False,
    shared: run_options.SharedOption = False,
    listen: run_options.ListenOption = LOOPBACK,
    heartbeat: run_options.HeartbeatOption = "200ms",
    silence: run_options.SilenceOption = "2s",
    oversubscribe: run_options.OversubscribeOption = False,
    ui: run_options.UiOption = False,
    report: run_options.ReportOption = None,
    live: run_options.LiveOption = False,
    restart_failures: run_options.RestartFailuresOption = 10,
    restart_window: run_options.RestartWindowOption = "60s",
    resume: run_options.ResumeOption = None,
    fork: run_options.ForkOption = None,
    line: run_options.LineOption = None,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline run`. What it is asked to do is taken from the context, as far as it was given."""
    with interruptible():
        raise typer.Exit(start_run(given_options(context), context.params))


@app.command("validate", help=validate_options.HELP, epilog=validate_options.EXAMPLES)
def validate_command(
    context: typer.Context,
    name: validate_options.NameArgument = None,
    source: validate_options.InputOption = None,
    output: validate_options.OutputOption = None,
    late: validate_options.LateOption = None,
    window: validate_options.WindowOption = None,
    promise: validate_options.PromiseOption = None,
    max_late: validate_options.MaxLateOption = None,
    until: validate_options.UntilOption = None,
    ignore_open: validate_options.IgnoreOpenOption = False,
    lateness: validate_options.LatenessOption = None,
    id_column: validate_options.IdOption = None,
    time_column: validate_options.TimeOption = None,
    resource_column: validate_options.ResourceOption = None,
    columns: validate_options.ColumnOption = None,
    engine: validate_options.EngineOption = validate_options.AUTO,
    uncommitted: validate_options.UncommittedOption = False,
    reference: validate_options.ReferenceOption = False,
    follow: validate_options.FollowOption = False,
    junit: validate_options.JUnitOption = None,
    flow: validate_options.FlowOption = None,
    allow_vacuous: validate_options.AllowVacuousOption = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline validate`."""
    if source is not None or output is not None:
        refuse_given(given_options(context), validation.IDLE_WITHOUT_A_RUN)
    asked = validation.Asked(
        *(name, source, output, late, window, promise, engine, uncommitted, reference),
        *(follow, junit, runs, flow, allow_vacuous),
        *(max_late, until, ignore_open, lateness, columns or ()),
        {"id": id_column, "time": time_column, "resource": resource_column},
    )
    with interruptible():
        raise typer.Exit(validation.validate(asked, as_json))


@app.command("runs", help=run_list.HELP, epilog=run_list.EXAMPLES)
def runs_command(
    context: typer.Context,
    action: run_list.ActionArgument = "list",
    name: run_list.NameArgument = None,
    sink: run_list.SinkOption = None,
    uncommitted: run_list.UncommittedOption = False,
    limit: run_list.LimitOption = 20,
    form: run_list.FormatOption = "table",
    to: run_list.ToOption = None,
    older: run_list.OlderOption = None,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline runs`."""
    refuse_given(given_options(context), run_list.idle(action, to, as_json))
    wanted = run_list.Wanted(sink, uncommitted, limit, form, to, older)
    raise typer.Exit(run_list.manage_runs(action, name, runs, wanted, as_json=as_json))


@app.command("checkpoints", help=checkpoints_page.HELP, epilog=checkpoints_page.EXAMPLES)
def checkpoints_command(
    name: checkpoints_page.NameArgument,
    verify: checkpoints_page.VerifyOption = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline checkpoints`."""
    with interruptible():
        raise typer.Exit(show_checkpoints(name, runs, verify, as_json))


@app.command("generate", help=generate.HELP, epilog=generate.EXAMPLES)
def generate_command(
    workload: generate.WorkloadArgument,
    to: generate.ToOption,
    form: generate.FormatOption = "log",
    rate: generate.RateOption = 2_000,
    duration: generate.DurationOption = "20s",
    seed: generate.SeedOption = 1,
    size: SizeOption = "full",
    hot: HotOption = 0,
    hot_moves: HotMovesOption = "0ms",
    settings: SetOption = None,
    slots: generate.PartitionsOption = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline generate`."""
    params = generate.params_of(
        workload, rate, duration, seed, slots, size, hot, hot_moves, settings or ()
    )
    with interruptible():
        raise typer.Exit(generate.generate_input(workload, to, form, params, as_json))


app.command("calibrate", help=calibrate.HELP, epilog=calibrate.EXAMPLES)(
    calibrate.calibrate_command
)
app.command("capacity", help=capacity.HELP, epilog=capacity.EXAMPLES)(capacity.capacity_command)
app.command("sweep", help=sweep.HELP, epilog=sweep.EXAMPLES)(sweep.sweep_command)
app.command("findings", help=findings.HELP, epilog=findings.EXAMPLES)(findings.findings_command)
app.command("compare", help=compare.HELP, epilog=compare.EXAMPLES)(compare.compare_command)
app.add_typer(advise.group, name="advise")
app.command("report", help=report.HELP, epilog=report.EXAMPLES)(report.report_command)


@app.command("doctor", epilog=DOCTOR_EXAMPLES)
def doctor_command(
    try_spark: Annotated[
        bool,
        typer.Option(
            "--try-spark",
            metavar=" ",
            help="Start Spark and run a tiny job on it, too. This takes some seconds.",
        ),
    ] = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """Check whether this machine can run Snapline on Spark, and say what to mend if it cannot.

    The exit code is 0 if everything is there, and 3 if something is missing.
    """
    raise typer.Exit(diagnose(runs, try_spark, as_json))


app.command("list", help=LIST_HELP, epilog=LIST_EXAMPLES)(list_command)


def main() -> None:
    """Run the `snapline` command; turn what it raises into a message and an exit code."""
    try:
        with Interruption(patient=False):
            app()
    except Interrupted as interrupted:
        messages().print(NOTHING_SAID)
        sys.exit(128 + interrupted.number)
    except UsageError as error:
        messages().print("[red]bad input:[/red]", escape_lines(error), soft_wrap=True)
        sys.exit(BAD_INPUT)
    except FlowFailed as error:
        messages().print("[red]the dataflow failed:[/red]", escape_lines(error), soft_wrap=True)
        sys.exit(BAD_INPUT)
    except SnaplineError as error:
        messages().print("[red]failed:[/red]", escape_lines(error), soft_wrap=True)
        sys.exit(UNKNOWN)
    except Exception:
        messages().print(escape_lines(traceback.format_exc()), soft_wrap=True)
        messages().print("[red]failed:[/red] this is a bug of Snapline; the run says nothing")
        sys.exit(UNKNOWN)
