"""`snapline capacity`: the highest rate that a workload sustains under a protocol, on this machine."""

import time
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
)
from snapline.errors import UsageError
from snapline.protocols import DEFAULT
from snapline.wording import plural
from snapline.workload.common.settings import split_settings

if TYPE_CHECKING:
    from snapline.experiments.capacity import Capacity, SearchForm, Trial
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

Let the answer be confirmed by a run of a minute, and print it for programs:
[cyan]snapline capacity q12 --full --json[/cyan]"""

FULL_S = 60
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
    flow: WorkloadArgument,
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
    from snapline.experiments.capacity import BRIEF, USUAL
    from snapline.rundir.spec import spec_from

    if brief and full:
        raise UsageError("--brief and --full exclude each other: search quickly, or thoroughly")
    given = {
        "flow": flow,
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
    with interruptible():
        raise typer.Exit(_capacity(spec, runs, form, full, as_json))


def _capacity(spec: "Spec", runs: Path, form: "SearchForm", full: bool, as_json: bool) -> int:
    from snapline.experiments.capacity import expected_tries
    from snapline.experiments.pace import window_of
    from snapline.experiments.probing import (
        OutputWrong,
        Prober,
        check_probing,
        find_capacity,
        probing,
    )

    check_probing(spec, runs)
    begun_s, progress = time.monotonic(), SearchProgress(_say)
    each_s = window_of(spec.interval_ms, form.window_s).end_s + START_S
    about = minutes((1 + expected_tries(form)) * each_s)
    _say(f"{spec.flow} under {spec.protocol}: about {about} in all; starting Spark")
    with probing(spec, runs, form.window_s, progress) as prober:
        try:
            found = find_capacity(prober, form)
            confirmed = None
            if full and found.low:
                confirmed = Prober(spec, prober.session, runs, FULL_S, progress).attempt(found.low)
        except OutputWrong as wrong:
            messages().print(f"[red]broken:[/] {escape(wrong)}", soft_wrap=True)
            return BROKEN
    took_s = round(time.monotonic() - begun_s)
    if as_json:
        print_json(_to_json(spec, found, confirmed, form, took_s))
    else:
        _print(spec, found, confirmed, took_s)
    return 0


def _say(text: str) -> None:
    messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


def _print(spec: "Spec", found: "Capacity", confirmed: "Trial | None", took_s: int) -> None:
    out = results()
    where = f"{escape(spec.flow)} under {escape(spec.protocol)}, {plural(spec.slots, 'slot')}"
    runs = f"{plural(len(found.trials), 'run')} in {minutes(took_s)}"
    if found.low:
        out.print(
            f"{where}: [bold]{found.estimate:,} records/s[/], between {found.low:,} (sustained) and "
            f"{found.high:,} (not sustained); {runs}",
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
        "protocol": spec.protocol,
        "slots": spec.slots,
        "interval_ms": spec.interval_ms,
        "options": dict(spec.options),
        "search": {"step": form.step, "tries": form.tries, "window_s": form.window_s},
        "capacity": found.estimate,
        "sustained": found.low,
        "not_sustained": found.high,
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
