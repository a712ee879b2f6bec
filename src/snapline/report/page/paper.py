"""The page of a paper: its scoreboard, and for each figure the paper's claim and ours on the same axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

from snapline.report.charts.forest import ForestRow, forest
from snapline.report.page.data import settings_told
from snapline.report.page.html import DataTable, document, figure, grid, pairs, section

SIGNS = {"holds": "✓", "indicated": "≈", "does not hold": "✗", "cannot be tested here": "?"}
SIMULATED = "simulated"
"""How slots are said to have been started in runs that were simulated."""
KINDS = {"holds": "yes", "indicated": "running", "does not hold": "no"}


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A figure or table of a paper, and what became of it here."""

    id: str
    title: str
    finding: str  # what the paper found
    values: Mapping[str, Any]  # numbers of the paper
    verdict: str  # one of SIGNS
    why: str
    command: str
    slots_are: str | None
    claims: Sequence[tuple[str, str]]  # each claim, and what became of it
    ratios: Sequence[ForestRow] = ()  # comparisons of two sides: left over right
    levels: Sequence[ForestRow] = ()  # comparisons with a number


@dataclass(frozen=True, slots=True)
class PaperPage:
    """All that the page of a paper shows."""

    title: str
    source: str  # authors and year
    settings: str  # of the paper's own measurements
    rows: Sequence[PaperRow]
    last_line: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    found: str = "the paper found"  # who says what its figures should show


def paper_page(page: PaperPage) -> str:
    """One HTML document."""
    rows = [
        (f"{SIGNS[row.verdict]} {row.verdict}", row.id, row.title, row.finding) for row in page.rows
    ]
    board = grid(("verdict", "figure", "title", page.found), rows, "scoreboard")
    counts = "".join(
        f'<div><dt>{SIGNS[name]} {name}</dt><dd class="{KINDS.get(name, "")}">{number}</dd></div>'
        for name in SIGNS
        if (number := sum(row.verdict == name for row in page.rows))
    )
    measured = f"{page.source}. Measured there: {page.settings}"
    links = "".join(f'<a href="#{escape(row.id)}">{escape(row.id)}</a>' for row in page.rows)
    parts = [
        f"<header><h1>{escape(page.title)}</h1><p>{escape(measured)}</p></header>",
        f'<dl class="tiles">{counts}</dl><p>{escape(page.last_line)}.</p>',
        f'<nav aria-label="Figures">{links}</nav>',
        section("scoreboard", "Scoreboard", board),
        *(_row(row, page.found) for row in page.rows),
        section("environment", "Environment", pairs(settings_told(page.environment))),
    ]
    return document(f"{page.title} · Snapline", f"<article>{''.join(parts)}</article>")


def _row(row: PaperRow, found: str) -> str:
    kind = KINDS.get(row.verdict, "unknown")
    why = f": {row.why}" if row.why else ""
    slots = f"<p>{_launched(row.slots_are)}.</p>" if row.slots_are else ""
    values = _values(row.values)
    claims = grid(("the claim", "here"), row.claims, f"claims of {row.id}") if row.claims else ""
    return section(
        row.id,
        f"{row.id}: {row.title}",
        f'<div class="verdict {kind}"><span class="sign" aria-hidden="true">{SIGNS[row.verdict]}</span>'
        f'<p><strong class="{kind}">{row.verdict}</strong>{escape(why)}</p></div>',
        f"<p>{escape(found.capitalize())}: {escape(row.finding)}</p>",
        _axes(row, row.ratios, "ratio of the two sides, logarithmic", "ratios"),
        _axes(row, row.levels, "value", "values"),
        claims,
        f"<details><summary>Numbers of the paper</summary>{values}</details>" if values else "",
        slots,
        f"<pre>{escape(row.command)}</pre>",
    )


def _launched(slots_are: str) -> str:
    if slots_are == SIMULATED:
        return "The runs were simulated, with the costs of a calibrated machine"
    return f"Slots were {'jobs on Spark' if slots_are == 'spark' else 'plain processes, without Spark'}"


def _axes(row: PaperRow, shown: Sequence[ForestRow], axis: str, what: str) -> str:
    """What the paper claims and what was measured here, on one axis."""
    if not shown:
        return ""
    table = DataTable(
        f"{row.id}-{what}",
        ("comparison", "claimed", "on which side", "ours", "low", "high", "simulated", "answer"),
        [
            (e.name, e.bound, _side(e), e.estimate, e.low, e.high, e.simulated, e.words)
            for e in shown
        ],
    )
    chart = partial(
        forest, rows=shown, title=f"{row.id}: claimed and found here, {what}", axis=axis
    )
    kinds = {each.simulated for each in shown if each.estimate is not None}
    how = "simulated" if kinds == {True} else "measured"
    note = f"A bracket is what is claimed, open to its side; a mark is what was {how} here"
    note += ", or, where it is hollow, simulated." if kinds == {True, False} else "."
    return figure(f"{row.id}-{what}", f"Claimed and found here: {what}", note, chart, table)


def _side(row: ForestRow) -> str:
    return "above" if row.upwards else "below"


def _values(values: Mapping[str, Any]) -> str:
    rows = [(name, _told(value)) for name, value in values.items()]
    return grid(("what", "value"), rows, "numbers of the paper") if rows else ""


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_told(each)}" for name, each in value.items())
    return ", ".join(map(_told, value)) if isinstance(value, list | tuple) else str(value)
