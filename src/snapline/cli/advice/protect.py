"""`snapline advise protect`: which operators of a dataflow to save, from simulated kills."""

import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.arguments import option, written_rate
from snapline.cli.experiments.search_progress import minutes
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
from snapline.cli.terminal.options import JsonOption, SetOption, SizeOption, local_file
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.wording import plural
from snapline.wording import size as in_bytes
from snapline.workload import WORKLOADS
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.settings import split_settings

if TYPE_CHECKING:
    from snapline.rundir.program import KnownAnswer
    from snapline.rundir.spec import Spec
    from snapline.scale.advice.kills import KillTrials
    from snapline.scale.advice.protect import Budget, Estimate, ProtectAdvice

PROTOCOL = "partial"
"""The protocol under which each operator is saved, or is not."""

HELP = """Say which operators of a dataflow to save, within a budget, so that a failure does the least harm.

In the simulator the slots of each pool are killed at random moments, with each operator saved and not \
saved, under the same kills. The benefit of saving an operator is by how much less the answer is off then \
(its deviation: docs/measurement.md); the cost is the time in which slots are blocked by captures, and the \
bytes of checkpoints. The operator with the most benefit for its cost is chosen, then the next one beside \
it, as long as one is affordable. Every benefit has an interval that is right nine times in ten; what the \
kills cannot tell is called so, and more --kills tell more.

Nothing is run for real. docs/partial.md says what saving means."""

EXAMPLES = """[bold]Examples[/bold]

Which operators of a workload to save, if captures may take 3 % of the time:
[cyan]snapline advise protect q6 --budget 3%[/cyan]

... at most 200 kB of checkpoints a second, saved every 500 ms, and with more kills to be surer:
[cyan]snapline advise protect q6 --budget 3% --bytes 200kB --interval 500ms --kills 40[/cyan]

Of a dataflow of your own, by how far the counts in the output "counts" are off:
[cyan]snapline advise protect my_flow.py:flow --answer "counts.count by machine,window"[/cyan]

With what work costs on this machine:
[cyan]snapline advise protect fab --profile profile.json[/cyan]"""

_ANSWER = re.compile(r"(last\s+)?([^\s.]+)\.([^\s.]+)\s+by\s+(\S+)")
_BYTES = re.compile(r"(\d+(?:\.\d+)?) ?(B|kB|MB|GB)")
_UNITS = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


def protect_command(
    context: typer.Context,
    flow: Annotated[
        str,
        typer.Argument(
            metavar="FLOW",
            help="A workload, as in [cyan]snapline list workloads[/], or a dataflow in a file of your own, "
            "as in [cyan]my_flow.py:flow[/].",
        ),
    ],
    budget: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Of the time of a slot, how much captures may take at most: 3%."
        ),
    ] = "3%",
    most_bytes: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="How many bytes of checkpoints there may be a second."
        ),
    ] = None,
    kills: Annotated[
        int,
        typer.Option(min=6, max=10_000, metavar="N", help="How often each pool is killed."),
    ] = 12,
    away: Annotated[
        str,
        typer.Option(
            metavar="TIME..TIME", help="How long a killed slot is away: drawn between the two."
        ),
    ] = "500ms..2s",
    interval: Annotated[
        str,
        typer.Option(metavar="TIME", help="How often an operator is saved, if it is."),
    ] = "1s",
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Which numbers in the output matter, and what tells rows apart: [cyan]SINK.COLUMN by "
            "KEY,KEY[/], or [cyan]last SINK.COLUMN by KEY[/] where rows replace each other, as running "
            "counts do. Workloads know that of themselves.",
        ),
    ] = None,
    slots: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="How many slots share the work.")
    ] = 2,
    rate: Annotated[
        str, typer.Option(metavar="R", help="How many records per second a workload gets.")
    ] = "300",
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="For how long input comes, in simulated time.")
    ] = "10s",
    size: SizeOption = "small",
    seed: Annotated[
        int, typer.Option(min=0, metavar="K", help="Of the input, and of all kills.")
    ] = 1,
    settings: SetOption = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=local_file,
            help="What work costs, as [cyan]snapline calibrate[/] has measured it; without one, round "
            "numbers that nobody measured here.",
        ),
    ] = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline advise protect`."""
    refuse_for_own_sources(context, flow)
    given = {"interval": interval, "slots": slots, "duration": duration, "seed": seed}
    given |= {"settings": split_settings(settings or (), "a setting", "n=3")}
    if flow in WORKLOADS:
        given |= {"rate": _rate(rate), "size": size}
    with interruptible():
        spec = _spec(flow, given)
        limit = _budget(budget, most_bytes)
        known, span = _known(spec, answer), _away(away)
        progress = _Progress()
        trials = _trials(spec, profile, known, kills, span, progress)
        found = _advised(trials, limit)
        if as_json:
            print_json(_to_json(spec, found, limit, kills))
        else:
            _print(trials, found, limit, profile)
    raise typer.Exit(0)


# What is given.


def _rate(text: str) -> int:
    rate = written_rate(text, "--rate")
    if isinstance(rate, str):
        raise UsageError("--rate max has no failures at a moment of the input: give a number")
    return rate


def _spec(flow: str, given: dict[str, Any]) -> "Spec":
    from snapline.rundir.spec import spec_from

    spec = spec_from({"flow": flow, "protocol": PROTOCOL, **given}, option)
    if spec.endless:
        raise UsageError("--duration: a simulated run has an end")
    return spec


def _budget(share: str, most_bytes: str | None) -> "Budget":
    from snapline.scale.advice.protect import Budget

    number, percent = (share[:-1], 100) if share.endswith("%") else (share, 1)
    try:
        part = float(number) / percent
    except ValueError:
        part = -1.0
    if not 0 < part <= 1:
        raise UsageError(f"--budget is a share up to 1, written as 3% or 0.03, not {share!r}")
    if most_bytes is None:
        return Budget(part)
    found = _BYTES.fullmatch(most_bytes)
    if found is None or not float(found[1]):
        raise UsageError(f"--bytes is a size such as 200kB or 1.5MB, not {most_bytes!r}")
    return Budget(part, float(found[1]) * _UNITS[found[2]])


def _away(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    given = (first, last if dots else first)
    low_ms, high_ms = (millis(each, "--away", least_ms=1) for each in given)
    if low_ms > high_ms:
        raise UsageError(f"--away is the shorter time, then the longer one, not {text!r}")
    return low_ms, high_ms


def _known(spec: "Spec", text: str | None) -> "KnownAnswer":
    """The answer of a dataflow: as the user says, or as its workload does. Raises UsageError."""
    from snapline.rundir.program import KnownAnswer, find_program

    program = find_program(spec)
    if text is None:
        if program.answer is None:
            raise UsageError(
                f"nobody has said which numbers of {spec.flow} matter: --answer does, as in "
                "--answer 'counts.count by machine,window'"
            )
        return program.answer
    found = _ANSWER.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--answer is 'SINK.COLUMN by KEY,KEY', not {text!r}")
    sink, columns, keys = found[2], *(tuple(found[n].split(",")) for n in (3, 4))
    if sink not in program.sinks(spec.slots):
        there = ", ".join(program.sinks(spec.slots))
        raise UsageError(f"--answer: there is no output {sink!r}: there is {there}")
    return KnownAnswer(AnswerColumns(sink, keys, columns, replaces=found[1] is not None), None)


def _trials(
    spec: "Spec",
    profile: Path | None,
    known: "KnownAnswer",
    kills: int,
    away_ms: tuple[int, int],
    progress: "_Progress",
) -> "KillTrials":
    from snapline.scale.advice.kills import KillTrials
    from snapline.scale.advice.rough import ROUGH
    from snapline.scale.profile import read_profile

    costs = ROUGH if profile is None else read_profile(profile)
    trials = KillTrials(spec, costs, known, kills, away_ms, progress.tell)
    progress.most = trials.most
    return trials


def _advised(trials: "KillTrials", budget: "Budget") -> "ProtectAdvice":
    from snapline.scale.advice.protect import advise_protect

    names = ", ".join(each.operator for each in trials.candidates)
    messages().print(
        escape(f"{plural(trials.most, 'simulated run')} at most, for {names}"), soft_wrap=True
    )
    return advise_protect(trials, budget)


class _Progress:
    """Says every few seconds which run is made, and about how long the rest takes at most."""

    EVERY_S = 5.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = 0
        self._made = 0
        self._clock = clock
        self._begun_s = self._said_s = clock()

    def tell(self, what: str) -> None:
        """Say what is simulated next."""
        now_s, made = self._clock(), self._made
        self._made += 1
        if made and now_s - self._said_s >= self.EVERY_S:
            left = minutes((now_s - self._begun_s) / made * (self.most - made))
            text = f"run {self._made} of at most {self.most} (about {left} left at most): {what}"
            messages().print(escape(text), soft_wrap=True)
            self._said_s = now_s


# What is printed.


def _print(
    trials: "KillTrials", found: "ProtectAdvice", budget: "Budget", profile: Path | None
) -> None:
    out = results()
    chosen = ", ".join(found.chosen)
    out.print(f"[bold]save[/] {escape(chosen) if chosen else 'nothing'}", soft_wrap=True)
    table = Table("operator", "pool", "advice", "benefit", "blocked", "checkpoints", box=None)
    for each in found.operators:
        pool = each.pool or "(default)"
        bytes_ = f"{in_bytes(each.cost.bytes_per_s)}/s"
        cells = (each.operator, pool, each.advised.value, _range(each.benefit))
        table.add_row(*map(escape, cells), f"{100 * each.cost.blocked:.2g} %", bytes_)
    out.print(table)
    for each in found.operators:
        if each.rivals:
            others = ", ".join(each.rivals)
            out.print(escape(f"cannot tell whether {others} would be better than {each.operator}"))
    out.print(escape(_outcome(found, budget)), soft_wrap=True)
    if chosen:
        out.print(f"[cyan]{escape(_command(trials, found.chosen))}[/]", soft_wrap=True)
    costs = "round numbers, measured nowhere" if profile is None else str(profile)
    out.print(
        escape(
            f"from {plural(found.runs, 'simulated run')}: {plural(trials.kills, 'kill')} of each pool, the "
            f"same for every choice; intervals are right nine times in ten; costs: {costs}. Nothing was "
            "run for real."
        ),
        soft_wrap=True,
    )


def _command(trials: "KillTrials", chosen: Collection[str]) -> str:
    """The command for the very run that was advised on, with these operators saved."""
    from snapline.report.run.command import command_of

    return command_of(trials.saving(chosen).said())


def _outcome(found: "ProtectAdvice", budget: "Budget") -> str:
    limit = f"{100 * found.cost.blocked:.2g} % of {100 * budget.blocked:g} %"
    bytes_ = f"{in_bytes(found.cost.bytes_per_s)} of checkpoints a second"
    return (
        f"after a failure the answer is off by {_range(found.unsaved)} with nothing saved, and by "
        f"{_range(found.saved)} with this (1: all rows missing, or off by a typical value); it takes "
        f"{limit} of the time, and {bytes_}"
    )


def _range(estimate: "Estimate") -> str:
    return f"{estimate.mean:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"


def _to_json(spec: "Spec", found: "ProtectAdvice", budget: "Budget", kills: int) -> dict[str, Any]:
    from snapline.metrics.json_form import to_json

    advice: Any = to_json(found)
    return {
        "version": JSON_VERSION,
        "simulated": True,
        "run": spec.said(),
        "kills": kills,
        "budget": to_json(budget),
        "save": list(found.chosen),
        **advice,
    }
