"""What was promised and what became of it: guarantees, witnesses, faults, and PGVal's phases."""

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import Any

from snapline.metrics.reliability import LineageFigures, ReliabilityFigures
from snapline.report.page.html import ROWS_SHOWN_MAX, grid
from snapline.report.page.overview import SIGNS
from snapline.report.run.reported import ReportedRun
from snapline.wording import latency, plural

WITNESSES_MAX = 12


def guarantees(run: ReportedRun) -> list[str]:
    """All that the judge said."""
    parts = [_answers(run)] if run.guarantees else []
    parts += [_witness(problem) for problem in run.problems[:WITNESSES_MAX]]
    if len(run.problems) > WITNESSES_MAX:
        parts.append(f"<p>and {len(run.problems) - WITNESSES_MAX:,} more witnesses.</p>")
    if run.strikes:
        rows = islice(_strikes(run), ROWS_SHOWN_MAX)
        parts.append(f"<h3>Faults</h3>{grid(('fault', 'struck', 'at s'), rows, 'faults')}")
        if (more := len(run.strikes) - ROWS_SHOWN_MAX) > 0:
            parts.append(f"<p>and {plural(more, 'more fault')}.</p>")
    if run.figures is not None and run.figures.lineage is not None:
        parts.append(_phases(run.figures.lineage))
    return parts


def _answers(run: ReportedRun) -> str:
    rows = [
        (name, f"{SIGNS.get(str(answer), ('', ''))[0]} {answer}")
        for name, answer in run.guarantees.items()
    ]
    return grid(("guarantee", "was it kept?"), rows, "guarantees")


def _witness(problem: Any) -> str:
    kind, record = (escape(str(problem.get(name, ""))) for name in ("kind", "record"))
    because = escape(str(problem.get("because", "")))
    return (
        f'<div class="witness"><strong>{kind}</strong> <code>{record}</code><p>{because}</p></div>'
    )


def _strikes(run: ReportedRun) -> Iterator[tuple[object, ...]]:
    for strike in run.strikes:
        at_ms = strike.get("at_ms")
        at_s = at_ms / 1000 if isinstance(at_ms, int | float) else None
        yield str(strike.get("statement")), bool(strike.get("struck")), at_s


def _phases(figures: LineageFigures) -> str:
    """PGVal's figures: before the fault, while it was active, and after it."""
    columns = ("phase", "from", "events", "reliable %", "correct %", "events/s", "p50", "max")
    rows = [
        (name, f"{phase.from_ms / 1000:.1f} s", *_reliability(phase))
        for name, phase in figures.phases.items()
    ]
    rows.append(("run", "", *_reliability(figures)))
    return f"<h3>Phases</h3>{grid(columns, rows, 'phases')}"


def _reliability(part: ReliabilityFigures) -> tuple[object, ...]:
    found = part.latency_ms
    return (
        part.events,
        part.reliability,
        part.correctness,
        part.reliable_throughput,
        latency(found.p50 if found else None),
        latency(found.max if found else None),
    )
