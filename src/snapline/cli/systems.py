"""`snapline run --system S`: runs a system under test, breaks it, judges it, and prints how it went."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.cli.terminal.given import refuse_given
from snapline.cli.terminal.summary import print_phases, print_verdict
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.journal.codec import json_of
from snapline.journal.entry import Happened
from snapline.journal.sentences import sentence
from snapline.judge.report_files import NOT_DECLARED
from snapline.metrics.json_form import to_json
from snapline.systems.registry import system_of
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.rundir.spec import Spec
    from snapline.systems.run import SystemRun

KEPT, BROKEN, UNKNOWN = 0, 1, 3
EXIT = {"yes": KEPT, "no": BROKEN, "unknown": UNKNOWN}

OF_WHAT_GOES_ON = frozenset(
    {
        "runs",
        "heartbeat",
        "silence",
        "restart_failures",
        "restart_window",
        "ui",
        "as_json",
        "report",
        "live",
    }
)
"""Parameters that a resume and a fork may have; all else was settled when the run began."""


def refuse_description(given: Mapping[str, str]) -> None:
    """Raise UsageError if an option describes a new run: a resume or a fork is as its run began."""
    if "flow" in given:
        raise UsageError(
            "say what to run: a workload, --resume RUN, or --fork RUN, but not two of them"
        )
    if "resume" in given:
        idle = dict.fromkeys(("fork", "line"), "and --resume exclude each other: leave one out")
        refuse_given(given, idle)
        why = "describes a new run: one that is resumed goes on as it began, so leave it out"
    else:
        why = (
            "describes a new run: a fork has the flow, slots, protocol and options of the run that it "
            "comes from, and no faults, so leave it out"
        )
    kept = OF_WHAT_GOES_ON | {"resume", "fork", "line"}
    refuse_given(given, {name: why for name in given if name not in kept})


def run_system(spec: "Spec", runs: Path, as_json: bool) -> int:
    """Run a workload on a system under test, print how it went, and return the exit code."""
    from snapline.rundir.place import check_place
    from snapline.spark.cores import check_own_cores
    from snapline.systems.run import check_spec, run

    system = system_of(spec.system)
    check_spec(spec, system)
    if spec.guarantee == Guarantee.NOTHING.value:
        raise UsageError("a system is held to something: --guarantee exactly-once, or less")
    if spec.guarantee == Guarantee.BOUNDED_LOSS.value:
        raise UsageError(NOT_DECLARED)
    check_own_cores(spec)
    check_place(runs)
    messages().print(f"starting {escape(system.name)} ...")
    finished = run(spec, system, runs=runs, tell=teller())
    if as_json:
        print_json(_as_json(finished))
    else:
        _print_summary(finished)
    return EXIT[finished.verdict.kept]


def teller() -> Callable[[Happened], None]:
    """Make a function that prints what happens, one plain line per event."""
    console = messages()

    def tell(happened: Happened) -> None:
        text = escape(sentence(happened))
        console.print(f"{happened.at_us / 1e6:8.2f} s  {text}", soft_wrap=True)

    return tell


def _print_summary(finished: "SystemRun") -> None:
    out, figures = results(), finished.figures
    path = finished.directory.path
    out.print(f"[bold]{escape(path.name)}[/]: {escape(str(path))}", soft_wrap=True)
    rows = ", ".join(f"{escape(sink)} {count:,}" for sink, count in finished.rows.items())
    out.print(f"[bold]records[/]      {figures.records_read:,} given; rows of output: {rows}")
    if figures.lost:
        took = ", ".join(f"{seconds:.1f} s" for seconds in figures.restart_s)
        kills = plural(figures.lost, "kill")
        out.print(f"[bold]failures[/]     {kills}{took and f'; running again after {took}'}")
    if figures.lineage is not None:
        print_phases(figures.lineage)
    print_verdict(finished.verdict)


def _as_json(finished: "SystemRun") -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "run": finished.name,
        "directory": str(finished.directory.path),
        "system": finished.spec.system,
        "kept": finished.verdict.kept,
        "because": finished.verdict.because,
        "guarantees": dict(finished.verdict.guarantees),
        "faults": [asdict(strike) for strike in finished.faults],
        "metrics": to_json(finished.figures),
        "rows": dict(finished.rows),
        "events": [json_of(happened) for happened in finished.events],
    }
