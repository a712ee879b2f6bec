"""`snapline advise protocol`: which protocol and interval fit, predicted before anything runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.arguments import nearest, option, written_rate
from snapline.cli.experiments.predicted import CoresOption
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.given import refuse_for_own_sources
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import GLOSSARY, JsonOption, default, local_file
from snapline.durations import millis, write_duration
from snapline.errors import UsageError

if TYPE_CHECKING:
    from snapline.scale.advice.behaviour import Advice
    from snapline.scale.advice.weigh import Between, Choice, Needs
    from snapline.scale.profile import Profile

HELP = (
    """Say which protocol and which checkpoint interval fit what is asked of a dataflow.

Each protocol that gives exactly-once output is simulated with the costs of a profile: without failures at \
two intervals, and under kills. From that follow overhead, recovery, the 99th percentile of latency and \
bytes at any interval, each with the ends between which it is expected. A target is met if the upper end \
is. The answer names what decides the interval, or says that nothing fits, and why. The exit code is 0 if \
something fits, else 1. docs/scale.md has the formulas. """
    + GLOSSARY
)

EXAMPLES = """[bold]Examples[/bold]

Recover within 5 s, write 99 % of the rows within 200 ms, if a slot dies once an hour:
[cyan]snapline advise protocol q12 --rto 5s --p99 200ms --mtbf 1h[/cyan]

... with the costs of this machine, instead of round numbers:
[cyan]snapline calibrate --to profile.json --check[/cyan]
[cyan]snapline advise protocol q3 --rate 20000 --slots 4 --rto 5s --profile profile.json[/cyan]

Let readers see rows within two seconds; consider one protocol only, for programs:
[cyan]snapline advise protocol q12 --p99 2s --latency published --protocol aligned --json[/cyan]"""

ROUGH_TOLD = (
    "not calibrated on this machine: the costs are round numbers ('snapline calibrate --to FILE' measures "
    "them, --profile FILE uses them)"
)
NOTHING_FITS = 1

FlowArgument = Annotated[
    str,
    typer.Argument(
        metavar="FLOW",
        help="The workload, such as [cyan]q12[/], or a dataflow in a file of your own, as in "
        "[cyan]my_flow.py:flow[/].",
    ),
]
RtoOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The longest recovery: from a failure until backlog and latency are as before."
        + default("no target"),
    ),
]
P99Option = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The highest 99th percentile of latency, as --latency counts it."
        + default("no target"),
    ),
]
MtbfOption = Annotated[
    str, typer.Option(metavar="TIME", help="The mean time between two failures of the job.")
]
LatencyOption = Annotated[
    str,
    typer.Option(
        metavar="written|published",
        help="Whether --p99 is about rows that are written, or that readers see: these wait for a line.",
    ),
]
RateOption = Annotated[
    str, typer.Option(metavar="R", help="How many records per second a workload gets.")
]
SlotsOption = Annotated[int, typer.Option(metavar="N", help="How many slots share the work.")]
ProtocolsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="P",
        help="Consider only this protocol; again and again for several." + default("all that can"),
    ),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_file,
        help="What work costs on a machine, as [cyan]snapline calibrate[/] has measured it."
        + default("round numbers of no machine"),
    ),
]


def protocol_command(
    context: typer.Context,
    flow: FlowArgument,
    rto: RtoOption = None,
    p99: P99Option = None,
    mtbf: MtbfOption = "1h",
    latency: LatencyOption = "written",
    rate: RateOption = "2000",
    slots: SlotsOption = 2,
    cores: CoresOption = None,
    protocols: ProtocolsOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline advise protocol`."""
    from snapline.rundir.spec import spec_from
    from snapline.scale.advice.behaviour import advise, candidates
    from snapline.scale.advice.rough import ROUGH
    from snapline.scale.profile import read_profile

    refuse_for_own_sources(context, flow)
    needs = _needs(rto, p99, mtbf, latency)
    costs = ROUGH if profile is None else read_profile(profile)
    spec = spec_from({"flow": flow, "rate": written_rate(rate, "--rate"), "slots": slots}, option)
    if spec.rate == "max":
        raise UsageError("--rate max: an advice is about a job that keeps up, so give a number")
    able, refused = candidates(spec)
    names = _wanted(protocols, able, refused)
    with interruptible():
        found = advise(spec, needs, costs, names, cores=cores, tell=_tell)
    if as_json:
        print_json(_to_json(found, needs, refused, costs is not ROUGH))
    else:
        _print(found, needs, None if profile is None else costs)
    raise typer.Exit(0 if found.choices[0].feasible else NOTHING_FITS)


def _needs(rto: str | None, p99: str | None, mtbf: str, latency: str) -> "Needs":
    from snapline.scale.advice.weigh import Latency, Needs

    if latency not in list(Latency):
        raise UsageError(f"--latency {latency!r}: {nearest(latency, list(Latency))}")
    return Needs(
        millis(mtbf, "--mtbf", least_ms=1_000) / 1000,
        None if rto is None else millis(rto, "--rto", least_ms=1) / 1000,
        None if p99 is None else float(millis(p99, "--p99", least_ms=1)),
        Latency(latency),
    )


def _wanted(names: list[str] | None, able: list[str], refused: Mapping[str, str]) -> list[str]:
    for name in names or ():
        if name in refused:
            raise UsageError(f"--protocol {name}: {refused[name]}")
        if name not in able:
            near = nearest(name, able)
            raise UsageError(
                f"--protocol {name!r} is none that gives exactly-once output here: {near}"
            )
    return list(dict.fromkeys(names)) if names else able


def _tell(what: str, run: int, of: int) -> None:
    messages().print(escape(f"simulating {run} of {of}: {what}"), soft_wrap=True)


def _print(found: "Advice", needs: "Needs", profile: "Profile | None") -> None:
    out, best = results(), found.choices[0]
    offer = best.offer
    every = _interval(offer.interval_s)
    if best.feasible:
        out.print(f"[bold green]{escape(offer.protocol)}[/], a checkpoint every [bold]{every}[/]")
        out.print(f"what decides the interval: {escape(best.binding)}", soft_wrap=True)
    else:
        out.print(f"[bold yellow]infeasible[/]: {escape(best.binding)}", soft_wrap=True)
        out.print(f"closest: {escape(offer.protocol)} every {every}")
    _print_next(found)
    table = Table(
        *("protocol", "interval", "overhead", "recovery", f"p99 {needs.latency}", "bytes/record"),
        "fits",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for each in found.choices:
        table.add_row(*_row(each))
    out.print(table)
    for what, (mark, why) in found.marks.items():
        out.print(f"{what}: [bold]{mark.value}[/] ({escape(why)})", soft_wrap=True)
    for name, why in found.refused.items():
        out.print(f"{escape(name)} is left out: {escape(why)}", soft_wrap=True)
    told = ROUGH_TOLD if profile is None else f"calibrated on {profile.environment.get('cpu')}"
    out.print(f"predicted by the scale model, [bold]{escape(told)}[/]", soft_wrap=True)


def _print_next(found: "Advice") -> None:
    """Name the protocol that comes next, and whether it is surely worse."""
    fitting = [each.offer for each in found.choices if each.feasible]
    if len(fitting) > 1:
        best, other = fitting[:2]
        sure = best.overhead.high < other.overhead.low
        told = f"runner-up: {other.protocol} every {_interval(other.interval_s)}"
        doubt = "" if sure else ", not surely worse: what is predicted of the two overlaps"
        results().print(escape(f"{told}{doubt}"), soft_wrap=True)


def _row(choice: "Choice") -> list[str]:
    offer = choice.offer
    return [
        escape(offer.protocol),
        _interval(offer.interval_s),
        _between(offer.overhead.times(100), "%"),
        _between(offer.recovery_s, "s"),
        "-" if offer.p99_ms is None else _between(offer.p99_ms, "ms"),
        _between(offer.bytes_per_record, "B"),
        "yes" if choice.feasible else escape(f"no: {choice.binding}"),
    ]


def _interval(seconds: float) -> str:
    return write_duration(int(round(seconds * 1000, -1 if seconds < 10 else -3)))


def _between(value: "Between", unit: str) -> str:
    ends = f"{_number(value.low)} to {_number(value.high)}"
    return f"{_number(value.value)} {unit} ({ends})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.2g}"


def _to_json(
    found: "Advice", needs: "Needs", refused: Mapping[str, str], calibrated: bool
) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "needs": {
            "mtbf_s": needs.mtbf_s,
            "rto_s": needs.rto_s,
            "p99_ms": needs.p99_ms,
            "latency": needs.latency.value,
        },
        "feasible": found.choices[0].feasible,
        "choices": [_choice(each) for each in found.choices],
        "left_out": {**refused, **found.refused},
        "calibrated": calibrated,
        "marks": {name: mark.value for name, (mark, _) in found.marks.items()},
        "because": {name: why for name, (_, why) in found.marks.items()},
    }


def _choice(choice: "Choice") -> dict[str, Any]:
    offer = choice.offer
    ends = ("overhead", "recovery_s", "p99_ms", "bytes_per_record")
    return {
        "protocol": offer.protocol,
        "interval_s": round(offer.interval_s, 3),
        "feasible": choice.feasible,
        "binding": choice.binding,
        "young_s": round(choice.young_s, 3),
        **{name: _ends(getattr(offer, name)) for name in ends},
    }


def _ends(value: "Between | None") -> dict[str, float | None] | None:
    if value is None:
        return None
    named = {"value": value.value, "low": value.low, "high": value.high}
    return {name: None if each == float("inf") else round(each, 4) for name, each in named.items()}
