"""`snapline calibrate`: measures what work costs on this machine, and writes it into a profile."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from snapline.cli.experiments.search_progress import minutes
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import JsonOption, local_file
from snapline.errors import UsageError
from snapline.workload import WORKLOADS

if TYPE_CHECKING:
    from snapline.scale.profile import PredictionCheck, Profile

HELP = """Measure what work costs on this machine, for simulated runs with figures.

Short real runs, with slots as plain processes and without Spark, count messages, records, bytes, markers \
and snapshots, and how much CPU time slots used; the costs are fitted to that. The store, connections and \
the start of a process are measured by themselves. All of it goes into a profile, a file that \
[cyan]snapline simulate --figures --profile FILE[/] uses. Let the machine do nothing else meanwhile.

With [cyan]--check[/], predictions are then compared with real runs on 4 and 10 slots. Without it, every \
predicted figure is marked as not validated. docs/scale.md has the definitions."""

EXAMPLES = """[bold]Examples[/bold]

Measure this machine, which takes about three minutes:
[cyan]snapline calibrate --to profile.json[/cyan]

... and compare predictions with real runs, which takes about ten more:
[cyan]snapline calibrate --to profile.json --check[/cyan]

Compare again with a profile that is there:
[cyan]snapline calibrate --to profile.json --check --keep-costs[/cyan]"""

ToOption = Annotated[
    Path,
    typer.Option("--to", metavar="FILE", callback=local_file, help="The file for the profile."),
]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        metavar=" ",
        help="Compare predictions with real runs on 4 and 10 slots, and write the errors into the profile.",
    ),
]
KeepCostsOption = Annotated[
    bool,
    typer.Option(
        "--keep-costs",
        metavar=" ",
        help="Measure no costs: take those of the profile that is there. Only with --check.",
    ),
]
CalibratedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="W",
        help="A workload whose runs are measured, by its name in [cyan]snapline list workloads[/]. The "
        "option can be given several times. [dim]\\[default: q12][/]",
    ),
]
RUN_S = 9.0
CHECKED, CHECKED_SLOTS = ("q12", "q3"), (4, 10)


def calibrate_command(
    to: ToOption = Path("profile.json"),
    workload: CalibratedOption = None,
    check: CheckOption = False,
    keep_costs: KeepCostsOption = False,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline calibrate`."""
    chosen = tuple(workload or ("q12",))
    for name in chosen:
        if name not in WORKLOADS:
            raise UsageError(
                f"--workload: there is no workload {name!r}: see 'snapline list workloads'"
            )
    if keep_costs and not check:
        raise UsageError("--keep-costs leaves nothing to do without --check")
    _refuse_unwritable(to)
    with interruptible():
        raise typer.Exit(_calibrate(to, chosen, check, keep_costs, as_json))


def _refuse_unwritable(to: Path) -> None:
    """Raise UsageError now if the file cannot be written when all is measured."""
    folder = to.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--to {to}: there is no directory {folder} in which files can be written")


def _calibrate(
    to: Path, workloads: tuple[str, ...], check: bool, keep_costs: bool, as_json: bool
) -> int:
    from snapline.scale.calibrate import calibrate, planned
    from snapline.scale.profile import read_profile, write_profile

    begun_s = time.monotonic()
    if keep_costs:
        profile = read_profile(to)
    else:
        _say(f"about {minutes(len(planned()) * len(workloads) * RUN_S)}; other work disturbs it")
        profile = calibrate(workloads, _progress)
        to.write_text(write_profile(profile))
    if check:
        profile = profile.with_checks(_compare(profile))
        to.write_text(write_profile(profile))
    if as_json:
        print_json({"version": JSON_VERSION, "profile": str(to), **_facts(profile)})
    else:
        _print(to, profile, round(time.monotonic() - begun_s))
    return 0


def _compare(profile: "Profile") -> "tuple[PredictionCheck, ...]":
    from snapline.protocols.aligned import ALIGNED
    from snapline.protocols.hmnr import HMNR
    from snapline.protocols.uncoordinated import UNCOORDINATED
    from snapline.scale.checks import Comparing, compare

    protocols = (ALIGNED.name, UNCOORDINATED.name, HMNR.name)
    asked = Comparing(CHECKED, protocols, CHECKED_SLOTS)
    checks = []
    for check in compare(asked, profile, len(os.sched_getaffinity(0)), _say):
        checks.append(check)
        _say(f"  {check}")
    return tuple(checks)


def _progress(what: str, step: int, of: int) -> None:
    _say(f"{step} of {of}: {what}")


def _say(text: str) -> None:
    messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


def _facts(profile: "Profile") -> dict[str, object]:
    return {
        "costs_us": dict(profile.costs_us),
        "generate_us": dict(profile.generate_us),
        "worst_residual": round(profile.fit.worst, 4),
        "checks": [
            {
                "what": check.what.value,
                "workload": check.workload,
                "protocol": check.protocol,
                "slots": check.slots,
                "batch": check.batch,
                "predicted": check.predicted,
                "measured": check.measured,
                "error": round(check.error, 4),
                "holds": check.holds,
            }
            for check in profile.checks
        ],
    }


def _print(to: Path, profile: "Profile", took_s: int) -> None:
    out = results()
    table = Table("cost", "microseconds", box=None, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"
    for name, us in profile.costs_us.items():
        table.add_row(escape(name.removesuffix("_us")), f"{us:,.4g}")
    out.print(table)
    runs = len(profile.fit.residuals)
    out.print(
        f"the costs explain the CPU time of {runs} runs to {profile.fit.worst:.0%} at worst; it took "
        f"{minutes(took_s)}"
    )
    if profile.checks:
        out.print(check_table(profile.checks))
    else:
        out.print("no prediction was compared with real runs: [cyan]--check[/] does that")
    out.print(f"profile: [cyan]{escape(str(to))}[/]", soft_wrap=True)


def check_table(checks: "tuple[PredictionCheck, ...]") -> Table:
    """Predictions beside what was measured."""
    table = Table(
        *(
            "what",
            "workload",
            "protocol",
            "slots",
            "records a message",
            "predicted",
            "measured",
            "error",
            "within the bar",
        ),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for check in checks:
        table.add_row(
            *(check.what.value, escape(check.workload), escape(check.protocol), f"{check.slots}"),
            "any" if check.batch is None else f"{check.batch}",
            *(f"{check.predicted:,.4g}", f"{check.measured:,.4g}", f"{check.error:+.1%}"),
            "[green]yes[/]" if check.holds else "[red]no[/]",
        )
    return table
