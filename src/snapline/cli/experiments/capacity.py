"""`snapline capacity`: the highest rate that a workload sustains under a protocol, on this machine."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.arguments import option
from snapline.cli.experiments.search_progress import START_S, SearchProgress, minutes, outcome
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    interruptible,
    messages,
    print_json,
    results,
)
from snapline.cli.terminal.given import given_options, refuse_ours
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import (
    HotOption,
    JsonOption,
    OptionOption,
    RunsOption,
    SetOption,
    SizeOption,
)
from snapline.cli.terminal.run_options import (
    IntervalOption,
    OversubscribeOption,
    ProtocolOption,
    SlotsOption,
    SystemOption,
)
from snapline.errors import UsageError
from snapline.protocols import DEFAULT
from snapline.rundir.spec import OWN
from snapline.wording import plural
from snapline.workload.common.settings import split_settings

if TYPE_CHECKING:
    from snapline.experiments.rates.capacity import Capacity, SearchForm, Trial
    from snapline.experiments.rates.probing import RateTrials
    from snapline.rundir.spec import Spec

HELP = """Find the highest rate that a workload sustains on this machine.

Rates are tried, each in a run of its own. A rate is sustainable if the output of its run is right, and it \
keeps pace with it: all that is due is read, backlog and latency do not grow, and lines keep coming. The \
search ends when a rate that is sustained and one that is not are at most 5 % apart, and each was tried \
three times. docs/sweeps.md has the definition."""

EXAMPLES = """[bold]Examples[/bold]

Find the capacity of a workload under the default protocol:
[cyan]snapline capacity q12[/cyan]

... in a few minutes only, with small messages, as many systems have them:
[cyan]snapline capacity q12 --brief --option batch=100[/cyan]

... under another one, with a checkpoint every second:
[cyan]snapline capacity q3 --protocol uncoordinated --interval 1s[/cyan]

Find that of another system, on as many cores:
[cyan]snapline capacity q12 --system structured-streaming --brief[/cyan]

Let the answer be confirmed by a run of a minute, and print it for programs:
[cyan]snapline capacity q12 --full --json[/cyan]"""

FULL_S = 60
SYSTEM_START_S = 30.0
"""What a run of another system takes beside its input: to start it, to let it end, and to judge it."""

BROKEN = 1

WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="The workload, such as [cyan]q12[/]; [cyan]snapline list workloads[/] shows them.",
    ),
]
FullOption = Annotated[
    bool,
    typer.Option(
        "--full",
        metavar=" ",
        help="Try the rate that was found once more, for a minute, at the end.",
    ),
]
BriefOption = Annotated[
    bool,
    typer.Option(
        "--brief",
        metavar=" ",
        help="Search for some minutes only: until rates are 10 % apart, each held for 8 s and tried once.",
    ),
]


def capacity_command(
    context: typer.Context,
    flow: WorkloadArgument,
    system: SystemOption = OWN,
    protocol: ProtocolOption = DEFAULT,
    slots: SlotsOption = None,
    interval: IntervalOption = "5s",
    size: SizeOption = "full",
    hot: HotOption = 0,
    settings: SetOption = None,
    options: OptionOption = None,
    oversubscribe: OversubscribeOption = False,
    brief: BriefOption = False,
    full: FullOption = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline capacity`."""
    from snapline.experiments.rates.capacity import BRIEF, USUAL
    from snapline.rundir.spec import spec_from

    if brief and full:
        raise UsageError("--brief and --full exclude each other: search quickly, or thoroughly")
    refuse_ours(system, given_options(context))
    given = {
        "flow": flow,
        "system": system,
        "protocol": protocol,
        "slots": slots,
        "interval": interval,
        "size": size,
        "hot": hot,
        "settings": split_settings(settings or ()),
        "options": split_settings(options or (), "an option", "batch=500"),
        "oversubscribe": oversubscribe,
    }
    spec, form = spec_from(given, option), BRIEF if brief else USUAL
    search = _own_search if system == OWN else _system_search
    with interruptible():
        raise typer.Exit(_capacity(search(spec, runs, form), spec, form, full, as_json))


@dataclass(frozen=True, slots=True)
class RateSearch:
    """What is searched with: a prober for the search, and one that holds the rate that it found."""

    each_s: float  # about how long a try takes
    probers: AbstractContextManager[tuple["RateTrials", "RateTrials"]]


def _own_search(spec: "Spec", runs: Path, form: "SearchForm") -> RateSearch:
    from snapline.experiments.rates.pace import window_of
    from snapline.experiments.rates.probing import Prober, check_probing, probing

    check_probing(spec, runs)
    progress = SearchProgress(_say)

    @contextmanager
    def probers() -> Iterator[tuple["RateTrials", "RateTrials"]]:
        with probing(spec, runs, form.window_s, progress) as prober:
            yield prober, Prober(spec, prober.session, runs, FULL_S, progress)

    return RateSearch(window_of(spec.interval_ms, form.window_s).end_s + START_S, probers())


def _system_search(spec: "Spec", runs: Path, form: "SearchForm") -> RateSearch:
    from snapline.experiments.rates.system_probing import SystemProber
    from snapline.rundir.place import check_place
    from snapline.spark.cores import check_own_cores
    from snapline.systems.registry import system_of
    from snapline.systems.run import check_spec

    check_spec(spec, system_of(spec.system))
    check_own_cores(spec)
    check_place(runs)
    progress = SearchProgress(_say)

    def prober(least_s: int) -> SystemProber:
        return SystemProber(spec, lambda: system_of(spec.system), runs, least_s, progress)

    once = prober(form.window_s)
    return RateSearch(once.window.end_s + SYSTEM_START_S, nullcontext((once, prober(FULL_S))))


def _capacity(
    search: RateSearch, spec: "Spec", form: "SearchForm", full: bool, as_json: bool
) -> int:
    from snapline.experiments.rates.capacity import expected_tries
    from snapline.experiments.rates.probing import OutputWrong, find_capacity

    begun_s = time.monotonic()
    about = minutes((1 + expected_tries(form)) * search.each_s)
    _say(f"{_what(spec)}: about {about} in all; starting Spark")
    with search.probers as (prober, confirming):
        try:
            found = find_capacity(prober, form)
            confirmed = confirming.attempt(found.low) if full and found.low else None
        except OutputWrong as wrong:
            messages().print(f"[red]broken:[/] {escape(wrong)}", soft_wrap=True)
            return BROKEN
    took_s = round(time.monotonic() - begun_s)
    if as_json:
        print_json(_to_json(spec, found, confirmed, form, took_s))
    else:
        _print(spec, found, confirmed, took_s)
    return 0


def _what(spec: "Spec") -> str:
    """What is tried: a workload under a protocol, or on another system."""
    how = f"under {spec.protocol}" if spec.system == OWN else f"on {spec.system}"
    return f"{spec.flow} {how}"


def _say(text: str) -> None:
    messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


def _print(spec: "Spec", found: "Capacity", confirmed: "Trial | None", took_s: int) -> None:
    out = results()
    slots = plural(spec.slots, "slot" if spec.system == OWN else "core")
    where = f"{escape(_what(spec))}, {slots}"
    runs = f"{plural(len(found.trials), 'run')} in {minutes(took_s)}"
    if found.low:
        out.print(
            f"{where}: [bold]{found.estimate:,} records/s[/], between {found.low:,} (sustained) and "
            f"{found.high:,} (not sustained); {runs}",
            soft_wrap=True,
        )
        if (span := found.span) != (found.low, found.high):
            out.print(
                f"tries contradict each other: it may lie anywhere from {span[0]:,} to {span[1]:,}",
                soft_wrap=True,
            )
    else:
        out.print(f"{where}: not even {found.high:,} records/s are sustained; {runs}")
    table = Table("records/s", "sustained", "why not", box=None, padding=(0, 2, 0, 2))
    table.columns[0].justify = "right"
    for rate in sorted({trial.rate for trial in found.trials}):
        tries = [trial for trial in found.trials if trial.rate == rate]
        why = "; ".join(dict.fromkeys(each for trial in tries for each in trial.because))
        kept = f"{sum(trial.sustained for trial in tries)} of {len(tries)}"
        table.add_row(f"{rate:,}", kept, escape(why))
    out.print(table)
    shares = [t.generator for t in found.trials if t.rate == found.low and t.generator is not None]
    if shares:
        made = f"{fmean(shares):.0%}".replace("%", " %")
        out.print(
            f"at {found.low:,} records/s, making the input took {made} of the CPU time of slots"
        )
    if confirmed is not None:
        told = f"{found.low:,} records/s for a minute: {outcome(confirmed)}"
        out.print(escape(told), soft_wrap=True)


def _to_json(
    spec: "Spec", found: "Capacity", confirmed: "Trial | None", form: "SearchForm", took_s: int
) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "flow": spec.flow,
        "system": spec.system,
        "protocol": spec.protocol if spec.system == OWN else None,
        "slots": spec.slots,
        "interval_ms": spec.interval_ms if spec.system == OWN else None,
        "options": dict(spec.options),
        "search": {"step": form.step, "tries": form.tries, "window_s": form.window_s},
        "capacity": found.estimate,
        "sustained": found.low,
        "not_sustained": found.high,
        "span": list(found.span),
        "confirmed": None if confirmed is None else confirmed.sustained,
        "runs": len(found.trials),
        "took_s": took_s,
        "trials": [
            {
                "rate": trial.rate,
                "sustained": trial.sustained,
                "because": list(trial.because),
                "took_s": trial.took_s,
                "generator_share": trial.generator,
            }
            for trial in found.trials
        ],
    }
