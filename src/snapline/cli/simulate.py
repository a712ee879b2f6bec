"""`snapline simulate`: runs cases in the simulator. One run is told as a story; several make a table."""

import json
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from snapline.arguments import numbered, whole
from snapline.chaos.plan_file import read_plan
from snapline.cli.experiments import predicted
from snapline.cli.failure import BrokenPromise, find_failures, print_failure, read_case, shrink
from snapline.cli.pages.report import write_page
from snapline.cli.pages.simulated import simulated_run
from snapline.cli.request import Request, checked, chosen_protocols, chosen_seeds, chosen_workloads
from snapline.cli.run import READ
from snapline.cli.terminal.console import JSON_VERSION, escape, interruptible, print_json, results
from snapline.cli.terminal.given import given_options, refuse_given
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import (
    GLOSSARY,
    AllowVacuousOption,
    DiagramOption,
    FaultsOption,
    GuaranteeOption,
    InputsOption,
    JobsOption,
    JsonOption,
    OptionOption,
    ProtocolOption,
    RecordsOption,
    RepeatOption,
    SaveOption,
    SeedOption,
    SeedsOption,
    SetOption,
    SimulatedHotMovesOption,
    SimulatedHotOption,
    SimulatedSizeOption,
    SlotsOption,
    WorkloadOption,
)
from snapline.cli.terminal.run_options import PoolOption
from snapline.cli.terminal.story import told
from snapline.cli.terminal.summary import print_figures, summary
from snapline.cli.terminal.tables import (
    cells,
    refusals,
    sweep_table,
    watching,
)
from snapline.dataflow.usage.policies import inputs_rule, save_rule
from snapline.durations import millis
from snapline.engine.options import read_options
from snapline.errors import UsageError
from snapline.metrics.figures import figures_of
from snapline.metrics.json_form import to_json
from snapline.report.page.run_page import run_page
from snapline.report.spacetime.draw import draw, interesting_window
from snapline.sim.case import POOL_MAX, Case
from snapline.sim.explore import sweep, vacuous
from snapline.sim.run import Outcome, simulate
from snapline.wording import plural
from snapline.workload.common.base import size_of
from snapline.workload.common.settings import split_settings

KEPT, BROKEN, UNKNOWN = 0, 1, 3
UNMEASURED = "Not measured in simulation."

HELP = f"""Run dataflows in a simulator that breaks them, and judge what came out.

Nothing real is started: slots, network, store and time are simulated in one process, so a thousand runs \
take about a minute. In each run slots crash, stand still or are cut off, and the store fails or damages \
what it holds, as drawn from a seed; the same seed always gives the same run. A protocol has kept its \
promise when no invariant broke on the way and the published output is what an independent oracle expects.

{GLOSSARY} Exit codes: 0 kept, 1 broken, 2 bad input, 3 unknown, 130 interrupted."""

EXAMPLES = """[bold]Examples[/bold]

Run every protocol on the smallest workload, with 20 seeds each:
[cyan]snapline simulate[/cyan]

Run one protocol with many seeds:
[cyan]snapline simulate --protocol hmnr --workload q8 --seeds 200[/cyan]

Tell and draw a single run:
[cyan]snapline simulate --protocol aligned --workload q3 --seed 7 --diagram run.svg[/cyan]

Let half of the records name one key:
[cyan]snapline simulate --protocol uncoordinated --workload q12 --hot 50[/cyan]

Choose what breaks, and when:
[cyan]snapline simulate --protocol bcs --seed 1 --faults "kill slot=1 at=800ms"[/cyan]

Predict the figures of a run on 40 slots, from what work costs here:
[cyan]snapline simulate --figures --profile profile.json --workload q3 --slots 40 --rate 40000[/cyan]

Repeat a run in which a promise was broken:
[cyan]snapline simulate --repeat snapline-failure-hmnr-q8-42.json[/cyan]"""


IDLE_ALONE = {"jobs": "is for several runs at the same time: this is a single one, so leave it out"}
"""The options that have no effect on a single run, and why."""

IDLE_IN_A_SWEEP = {
    "allow_vacuous": "is for a single run: add --protocol P --workload W --seed K, or leave it out"
}
"""The options that have no effect on several runs, and why."""

_OF_A_REPEAT = {"repeat", "diagram", "as_json", "allow_vacuous"}


def simulate_command(
    context: typer.Context,
    protocol: ProtocolOption = None,
    workload: WorkloadOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = None,
    slots: SlotsOption = None,
    records: RecordsOption = None,
    size: SimulatedSizeOption = None,
    hot: SimulatedHotOption = None,
    hot_moves: SimulatedHotMovesOption = None,
    settings: SetOption = None,
    options: OptionOption = None,
    save: SaveOption = None,
    inputs: InputsOption = None,
    pools: PoolOption = None,
    guarantee: GuaranteeOption = None,
    faults: FaultsOption = None,
    diagram: DiagramOption = None,
    repeat: RepeatOption = None,
    jobs: JobsOption = None,
    allow_vacuous: AllowVacuousOption = False,
    figures: predicted.FiguresOption = False,
    profile: predicted.ProfileOption = None,
    rate: predicted.PredictedRateOption = None,
    duration: predicted.PredictedDurationOption = None,
    interval: predicted.PredictedIntervalOption = None,
    cores: predicted.CoresOption = None,
    dilute: predicted.DiluteOption = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline simulate`."""
    given = given_options(context)
    if figures:
        refuse_given(given, predicted.NOT_HERE)
        with interruptible():
            asked = {
                name: READ[name](value) if value is not None and name in READ else value
                for name, value in context.params.items()
            }
            raise typer.Exit(predicted.simulate_figures(asked, as_json))
    predicted.refuse_without_figures(given)
    if repeat is not None:
        refuse_description(given)
        with interruptible():
            raise typer.Exit(run_again(repeat, diagram, as_json, allow_vacuous))
    request = Request(
        chosen_protocols(protocol),
        chosen_workloads(workload),
        chosen_seeds(seeds, seed, one=diagram is not None),
        slots,
        records,
        guarantee,
        None if faults is None else read_plan(faults),
        size_of(size or "small", "--size"),
        whole(0, 100)(hot or 0, "--hot"),
        millis(hot_moves or 0, "--hot-moves"),
        tuple(settings or ()),
        read_options(split_settings(options or (), "an option", "batch=500")),
        save_rule(READ["save"](save or ()), "--save"),
        inputs_rule(READ["inputs"](inputs or ()), "--inputs"),
        numbered(1, POOL_MAX)(READ["pools"](pools or ()), "--pool"),
    )
    checked(request, diagram)
    refuse_given(given, IDLE_ALONE if request.alone else IDLE_IN_A_SWEEP)
    with interruptible():
        if request.alone:
            raise typer.Exit(run_one(request, diagram, as_json, allow_vacuous))
        raise typer.Exit(run_sweep(request, jobs, as_json))


def refuse_description(given: Collection[str]) -> None:
    """Raise UsageError if options beside --repeat describe a run."""
    if not _OF_A_REPEAT.issuperset(given):
        raise UsageError("--repeat brings its own run: leave the options that describe one out")


def run_sweep(request: Request, jobs: int | None, as_json: bool) -> int:
    """Run all cases on all cores, print what came of them, and return the exit code."""
    cases = [case for case in request.cases() if request.refusal(case.protocol) is None]
    began = time.monotonic()
    with watching(len(cases)) as advance:
        outcomes = sweep(cases, jobs or len(os.sched_getaffinity(0)), advance)
    seconds = time.monotonic() - began
    outcomes += [
        Outcome(case, refused=reason)
        for case in request.cases()
        if (reason := request.refusal(case.protocol)) is not None
    ]
    ran = [outcome for outcome in outcomes if outcome.refused is None]
    if not ran:
        raise UsageError("; ".join(dict.fromkeys(refusals(outcomes).values())))
    failures = find_failures(ran)
    empty = vacuous(ran) if request.telling else []
    if as_json:
        print_json(_sweep_json(outcomes, failures, empty, seconds))
    else:
        _print_sweep(outcomes, failures, empty, seconds)
    return BROKEN if failures or empty else KEPT


def _print_sweep(
    outcomes: Sequence[Outcome],
    failures: Sequence[BrokenPromise],
    empty: Sequence[str],
    seconds: float,
) -> None:
    out = results()
    rows = cells(outcomes)
    runs = sum(row.runs for row in rows)
    out.print(sweep_table(rows, out.width))
    for (protocol, workload), reason in refusals(outcomes).items():
        out.print(f"[dim]refused:[/] {protocol} on {workload}: {escape(reason)}")
    stopped = [outcome.stopped for outcome in outcomes if outcome.stopped is not None]
    if stopped:
        out.print(
            f"[yellow]stopped, rightly:[/] {plural(len(stopped), 'run')}, such as: {escape(stopped[0])}"
        )
    for failure in failures:
        print_failure(failure)
    for sentence in empty:
        out.print(f"[bold red]proves nothing:[/] {escape(sentence)}")
    verdict = "[bold green]every promise kept[/]"
    if empty:
        verdict = "[bold red]no violation, but the sweep is vacuous[/]"
    if failures:
        verdict = f"[bold red]{plural(len(failures), 'run')} broke a promise[/]"
    out.print(f"{plural(runs, 'run')} in {seconds:.1f} s ({runs / seconds:,.0f} runs/s): {verdict}")


def _sweep_json(
    outcomes: Sequence[Outcome],
    failures: Sequence[BrokenPromise],
    empty: Sequence[str],
    seconds: float,
) -> dict[str, Any]:
    rows = cells(outcomes)
    return {
        "version": JSON_VERSION,
        "kept": "no" if failures else "unknown" if empty else "yes",
        "runs": sum(row.runs for row in rows),
        "seconds": round(seconds, 3),
        "cells": [row.to_json() for row in rows],
        "refused": [
            {"protocol": protocol, "workload": workload, "reason": reason}
            for (protocol, workload), reason in refusals(outcomes).items()
        ],
        "stopped": sum(outcome.stopped is not None for outcome in outcomes),
        "violations": [{**failure.to_json(), "repeat": failure.command} for failure in failures],
        "vacuous": list(empty),
    }


def run_one(
    request: Request, diagram: Path | None, as_json: bool, allow_vacuous: bool = False
) -> int:
    """Run the only case of a request, print its story, and return the exit code."""
    [case] = request.cases()
    outcome = simulate(case, journal=True)
    reason = request.refusal(case.protocol) or outcome.refused
    if reason is not None:
        raise UsageError(reason)
    failure = None if outcome.violation is None else shrink(outcome)
    return _tell(_allowed(outcome, allow_vacuous), failure, diagram, as_json)


def run_again(file: Path, diagram: Path | None, as_json: bool, allow_vacuous: bool = False) -> int:
    """Run the case of a failure's file again, print its story, and return the exit code."""
    outcome = simulate(read_case(file), journal=True)
    failure = None if outcome.violation is None else BrokenPromise(outcome, outcome, file)
    return _tell(_allowed(outcome, allow_vacuous), failure, diagram, as_json)


def _allowed(outcome: Outcome, allow_vacuous: bool) -> Outcome:
    """The outcome; if vacuous runs are allowed, without the reason why it proves nothing."""
    return replace(outcome, vacuous=None) if allow_vacuous else outcome


def _tell(
    outcome: Outcome, failure: BrokenPromise | None, diagram: Path | None, as_json: bool
) -> int:
    if diagram is not None:
        _draw(outcome, diagram)
    if as_json:
        print_json(_run_json(outcome, failure, diagram))
    else:
        _print_run(outcome, failure, diagram)
    if failure is not None:
        return BROKEN
    return KEPT if outcome.vacuous is None else UNKNOWN


def _draw(outcome: Outcome, path: Path) -> None:
    assert outcome.topology is not None
    if path.suffix == ".html":
        write_page(path, run_page([simulated_run(outcome)]))
        return
    since_us, until_us = interesting_window(outcome.journal)
    picture = draw(
        outcome.journal,
        outcome.topology,
        title=_title(outcome.case),
        since_us=since_us,
        until_us=until_us,
    )
    try:
        path.write_text(picture)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _title(case: Case) -> str:
    return f"{case.protocol} on {case.workload}, seed {case.seed}"


def _print_run(outcome: Outcome, failure: BrokenPromise | None, diagram: Path | None) -> None:
    out = results()
    case = outcome.case
    slots, faults = plural(case.slots, "slot"), escape(outcome.faults or "none")
    out.print(f"[bold]{_title(case)}[/]: {slots}, faults: {faults}")
    for line in told(outcome.journal):
        out.print(line)
    out.print(", ".join(f"{name} {n:,}" for name, n in outcome.stats.items() if n), style="dim")
    print_figures(
        summary(figures_of(outcome.journal), outcome.rows, UNMEASURED, protocol=case.protocol)
    )
    if failure is None:
        out.print(_verdict(outcome))
    else:
        print_failure(failure)
    if diagram is not None:
        out.print(f"diagram: [cyan]{escape(str(diagram))}[/]", soft_wrap=True)


def _verdict(outcome: Outcome) -> str:
    """The last line about a run that broke no promise."""
    if outcome.stopped is not None:
        return f"[bold yellow]stopped, rightly[/]: {escape(outcome.stopped)}"
    if outcome.vacuous is not None:
        allowed = "--allow-vacuous counts it as kept"
        return f"[bold yellow]unknown[/]: {escape(outcome.vacuous)} ({allowed})"
    if outcome.problems:
        example = escape(outcome.problems[0])
        return f"[bold green]kept[/]: nothing was promised, and the output is wrong: {example} ..."
    expected = f"the published output is what the oracle expects ({outcome.case.guarantee})"
    return f"[bold green]kept[/]: {expected}"


def _run_json(
    outcome: Outcome, failure: BrokenPromise | None, diagram: Path | None
) -> dict[str, Any]:
    broken = [] if failure is None else [{**failure.to_json(), "repeat": failure.command}]
    unknown = outcome.stopped is not None or outcome.vacuous is not None
    return {
        "version": JSON_VERSION,
        "kept": "no" if broken else "unknown" if unknown else "yes",
        "case": json.loads(outcome.case.to_json()),
        "faults": [asdict(strike) for strike in outcome.strikes],
        "vacuous": outcome.vacuous,
        "virtual_ms": outcome.virtual_ms,
        "stats": dict(outcome.stats),
        "metrics": to_json(figures_of(outcome.journal)),
        "stopped": outcome.stopped,
        "problems": list(outcome.problems),
        "violations": broken,
        "diagram": None if diagram is None else str(diagram),
    }
