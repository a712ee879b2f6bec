"""`snapline capacity`: the highest rate that a workload sustains under a protocol, on this machine."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snapline.arguments import option
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
from snapline.protocols import DEFAULT
from snapline.wording import plural
from snapline.workload.common.settings import split_settings

if TYPE_CHECKING:
    from snapline.experiments.capacity import Capacity, Trial
    from snapline.rundir.spec import Spec

HELP = """Find the highest rate that a workload sustains on this machine.

Rates are tried, each in a run of its own that is judged like any other. A rate is sustainable if a run \
keeps pace with it: all that is due is read, backlog and latency do not grow, and lines keep coming. The \
search ends when a rate that is sustained and one that is not are at most 5 % apart, and each was tried \
three times. docs/sweeps.md has the definition."""

EXAMPLES = """[bold]Examples[/bold]

Find the capacity of a workload under the default protocol:
[cyan]snapline capacity q12[/cyan]

... under another one, with a checkpoint every second:
[cyan]snapline capacity q3 --protocol uncoordinated --interval 1s[/cyan]

Let the answer be confirmed by a run of a minute, and print it for programs:
[cyan]snapline capacity q12 --full --json[/cyan]"""

BRIEF_S, FULL_S = 15, 60
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
    full: FullOption = False,
    runs: RunsOption = Path("runs"),
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline capacity`."""
    from snapline.rundir.spec import spec_from

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
    with interruptible():
        raise typer.Exit(_capacity(spec_from(given, option), runs, full, as_json))


def _capacity(spec: "Spec", runs: Path, full: bool, as_json: bool) -> int:
    from snapline.experiments.capacity import CapacitySearch
    from snapline.experiments.probing import OutputWrong, Prober, probing

    with probing(spec, runs, BRIEF_S) as prober:
        window = prober.window
        _say(f"{spec.flow} under {spec.protocol}: each try takes about {window.end_s + 5} s")
        try:
            _say("at full speed, to know where to begin")
            start = prober.start()
            search = CapacitySearch(lambda rate: _told(prober, rate))
            found = search.run(start)
            confirmed = None
            if full and found.low:
                _say(f"{found.low:,} records/s for a minute")
                confirmed = _told(Prober(spec, prober.session, runs, FULL_S), found.low)
        except OutputWrong as wrong:
            messages().print(f"[red]broken:[/] {escape(wrong)}", soft_wrap=True)
            return BROKEN
    if as_json:
        print_json(_to_json(spec, found, confirmed))
    else:
        _print(spec, found, confirmed)
    return 0


def _told(prober: Any, rate: int) -> "Trial":
    """Try a rate, and say how that went."""
    trial: Trial = prober.attempt(rate)
    told = "sustained" if trial.sustained else f"not sustained: {'; '.join(trial.because)}"
    _say(f"{rate:>12,} records/s  {told}")
    return trial


def _say(text: str) -> None:
    messages().print(escape(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)


def _print(spec: "Spec", found: "Capacity", confirmed: "Trial | None") -> None:
    out = results()
    where = f"{escape(spec.flow)} under {escape(spec.protocol)}, {plural(spec.slots, 'slot')}"
    if not found.low:
        out.print(f"{where}: not even {found.high:,} records/s are sustained")
        return
    out.print(
        f"{where}: [bold]{found.estimate:,} records/s[/], between {found.low:,} (sustained) and "
        f"{found.high:,} (not sustained); {plural(len(found.trials), 'run')}",
        soft_wrap=True,
    )
    if confirmed is not None:
        told = (
            "confirmed" if confirmed.sustained else f"not confirmed: {'; '.join(confirmed.because)}"
        )
        out.print(f"{found.low:,} records/s for a minute: {escape(told)}", soft_wrap=True)


def _to_json(spec: "Spec", found: "Capacity", confirmed: "Trial | None") -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "flow": spec.flow,
        "protocol": spec.protocol,
        "slots": spec.slots,
        "interval_ms": spec.interval_ms,
        "capacity": found.estimate,
        "sustained": found.low,
        "not_sustained": found.high,
        "confirmed": None if confirmed is None else confirmed.sustained,
        "trials": [
            {"rate": t.rate, "sustained": t.sustained, "because": list(t.because)}
            for t in found.trials
        ],
    }
