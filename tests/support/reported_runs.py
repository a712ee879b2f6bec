"""Runs as pages show them, made without Spark: a simulated run with a crash, and made seconds."""

from dataclasses import replace
from functools import cache

from metric_runs import second
from snapline.cli.pages.simulated import simulated_run
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import (
    CheckpointMoments,
    CheckpointTimed,
    SlotLost,
)
from snapline.metrics.checkpointing.history import phases_of
from snapline.metrics.figures import figures_of
from snapline.metrics.json_form import to_json
from snapline.metrics.second import SECOND_US, SlotSecond, Usage, Used, Volume
from snapline.metrics.seconds_table import second_rows
from snapline.report.charts.forest import ForestRow
from snapline.report.page.comparison import ComparedColumn, ComparisonPage
from snapline.report.page.paper import PaperPage, PaperRow
from snapline.report.run.reported import ReportedRun
from snapline.sim.case import Case
from snapline.sim.run import simulate

KILL = "kill slot=1 at=1200ms"
SLOWER = 20
"""The simulated run takes about a second; here every moment of it is so many times later."""


@cache
def crashed_run(protocol="uncoordinated", seed=12, workload="counting") -> ReportedRun:
    """A run with a kill, of which everything was measured that a real run measures."""
    outcome = simulate(Case(protocol, workload, seed, faults=KILL), journal=True)
    slow = tuple(replace(entry, at_us=entry.at_us * SLOWER) for entry in outcome.journal)
    run = simulated_run(replace(outcome, journal=slow))
    entries = sorted((*slow, *_seconds(slow)), key=lambda entry: entry.at_us)
    figures = figures_of(entries)
    return replace(
        run,
        name=f"{workload}-{protocol}-calm-ember",
        simulated=False,
        entries=tuple(entries),
        journal=tuple(entries),
        seconds=tuple(second_rows(entries, {})),
        checkpoints=tuple(_timed(row) for row in run.checkpoints),
        figures=figures,
        metrics=to_json(figures),
        environment={"python": "3.11.7", "cores": 2},
    )


def _seconds(journal):
    lost_s = next(e.at_us for e in journal if _is_loss(e)) // SECOND_US
    for at_s in range(journal[-1].at_us // SECOND_US):
        slow = 900.0 if at_s == lost_s else 3.0 + at_s % 4
        backlog = 700 if at_s == lost_s else at_s % 3
        slots = tuple(
            SlotSecond(n, 300 + n, 300, backlog, slow / 2, slow * (1 + n)) for n in (0, 1, 2)
        )
        made = second(
            at_s,
            slow,
            backlog=backlog,
            running=3,
            slots=slots,
            volume=Volume(8_000, 900, 40, 300, 120, 8_900, 500, 9_000, 17_000),
        )
        made.add_used("driver", Used(20_000, 90_000_000, Usage()))
        for number in (0, 1, 2):
            made.add_used(f"slot/{number}", Used(300_000, 140_000_000, Usage()))
        yield Happened((at_s + 1) * SECOND_US - 1, COORDINATOR, 1, made.measured())


def _is_loss(entry):
    return isinstance(entry, Happened) and isinstance(entry.what, SlotLost)


def _timed(row):
    """The same checkpoint, with times for its phases that differ from one to the next."""
    stored = row.stored_us
    some = row.checkpoint % 5 + 1
    steps = [stored - n * 1_000 * some for n in (9, 8, 7, 6, 1)]
    moments = CheckpointMoments(None, *steps)
    timed = CheckpointTimed(row.task, row.checkpoint, moments)
    return replace(row, phases=phases_of(timed.moments, None, stored))


def a_comparison() -> ComparisonPage:
    """Two runs with a kill each, of whose figures some surely differ and some do not."""
    rows = [
        ForestRow("records read", 0.80, 0.78, 0.83, "20.2 % slower", "less", 1.04),
        ForestRow("latency p99", 3.1, 2.2, 4.4, "3.1 times longer", "more", 1.3),
        ForestRow("restart", 1.02, 0.9, 1.2, "not distinguishable", "same", 1.1),
        ForestRow("bytes per record", 1.2, None, None, "1.2 times, from one pair", "same"),
    ]
    column = ComparedColumn("protocol=hmnr", rows, [(10.0, 8.0, "/s")] * len(rows))
    return ComparisonPage(
        "protocol=aligned",
        [column],
        "6 pairs of runs; intervals of 96.9 %.",
        {"protocol": ("aligned", "hmnr")},
        [crashed_run(), crashed_run("aligned", 3)],
    )


def a_paper() -> PaperPage:
    """The scoreboard of a paper with a row of each verdict."""
    sides = "capacity[aligned] / capacity[none]"
    ratio = ForestRow(sides, 0.97, 0.93, 1.01, "holds", "more", bound=0.95, upwards=True)
    level = ForestRow("invalid[hmnr]", 0.03, 0.0, 0.05, "indicated", "same", bound=0.04)
    simulated = ForestRow(
        "capacity[hmnr] / capacity[none]",
        0.4,
        0.35,
        0.46,
        "holds",
        "less",
        bound=0.5,
        simulated=True,
    )
    missing = ForestRow(
        "recovery[hmnr] / recovery[aligned]", None, None, None, "?", "same", bound=1
    )
    verdicts = ("holds", "indicated", "does not hold", "cannot be tested here")
    rows = [
        PaperRow(
            f"fig{number}",
            "capacity, relative to no checkpoints, with up to a hundred workers",
            "all is as fast as without checkpoints",
            {"10 workers": {"COOR": [1.0, 0.9], "UNC": 0.9}},
            verdict,
            "two slots",
            f"snapline sweep checkmate-fig{number}",
            None if number == 4 else "spark",
            [("capacity[aligned] >= 0.95 * capacity[none]", f"{verdict}: 0.97 times")],
            [] if number == 4 else [ratio, missing, simulated],
            [level] if number == 2 else [],
        )
        for number, verdict in enumerate(verdicts, 1)
    ]
    return PaperPage(
        "A paper", "Somebody, 2024", "10 to 100 workers", rows, "1 holds", {"cores": 2}
    )
