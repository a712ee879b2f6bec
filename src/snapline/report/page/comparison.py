"""A page that compares: two runs, two columns of runs in pairs, or the columns of a sweep."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

from snapline.journal.entry import Happened
from snapline.journal.happenings import SecondMeasured
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import SECOND_US
from snapline.report.charts.distribution import SHARES, distribution_chart, distribution_of
from snapline.report.charts.forest import ForestRow, forest
from snapline.report.charts.over_time import Series, TimeFrame, time_chart
from snapline.report.charts.scales import short
from snapline.report.page.html import DataTable, document, figure, grid, section
from snapline.report.page.overview import tiles, verdict
from snapline.report.page.traffic import whole_job
from snapline.report.run.failure_steps import explained_failures
from snapline.report.run.reported import ReportedRun
from snapline.wording import latency

BEFORE_S, AFTER_S = 10, 30
"""So much time is shown around the moment of loss."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """What is compared with the first: its name, and each figure against that of the first."""

    name: str
    rows: Sequence[ForestRow]
    #: of each figure: the first's value, the second's, and their unit
    values: Sequence[tuple[float, float, str]]


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """All that such a page shows."""

    first: str  # with what is compared
    columns: Sequence[ComparedColumn]
    certainty: str  # how many pairs there were, and what that allows to say
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # those that differ
    runs: Sequence[ReportedRun] = ()  # a run of each, where their directories are there
    notes: Sequence[str] = ()


def comparison_page(page: ComparisonPage) -> str:
    """One HTML document."""
    names = " and ".join(column.name for column in page.columns[:3])
    many = f" and {len(page.columns) - 3} more" if len(page.columns) > 3 else ""
    title = f"{names}{many} against {page.first}"
    told = "".join(f"<p>{escape(each)}</p>" for each in (*_sentences(page), *page.notes))
    differ = grid(
        ("setting", page.first, page.columns[0].name),
        [(name, str(one), str(other)) for name, (one, other) in page.settings.items()],
        "settings that differ",
    )
    ratios = [_forest(page, number, column) for number, column in enumerate(page.columns, 1)]
    sections = {
        "differs": ("What differs", differ if page.settings else ""),
        "ratios": ("Figures", "".join(ratios)),
        "moment": ("Latency at the moment of loss", at_the_loss(page.runs)),
        "spread": ("Distributions", distributions(page.runs)),
    }
    shown = {name: made for name, made in sections.items() if made[1]}
    links = "".join(f'<a href="#{name}">{heading}</a>' for name, (heading, _) in shown.items())
    parts = [
        f"<header><h1>{escape(title)}</h1></header>{told}<p>{escape(page.certainty)}</p>",
        f'<nav aria-label="Contents">{links}</nav>',
        "".join(_card(run) for run in page.runs[:2]),
        *(section(name, heading, body) for name, (heading, body) in shown.items()),
    ]
    return document(f"{title} · Snapline", f"<article>{''.join(parts)}</article>")


def _card(run: ReportedRun) -> str:
    return f"<h3>{escape(run.name)}</h3>{verdict(run)}<pre>{escape(run.command)}</pre>{tiles(run)}"


def _sentences(page: ComparisonPage) -> list[str]:
    """What may be said, in one sentence for each column."""
    found = []
    for column in page.columns:
        if all(row.low is None for row in column.rows):
            found.append(f"{column.name} against {page.first}: {_farthest(column.rows)}.")
            continue
        told = [f"{row.name} {row.words}" for row in column.rows if row.kind != "same"]
        rest = len(column.rows) - len(told)
        if not told:
            said = "no figure is distinguishable"
        else:
            said = "; ".join(told[:6])
            said += f"; and {len(told) - 6} more differ" if len(told) > 6 else ""
            said += (
                f". {rest} of {len(column.rows)} figures are not distinguishable" if rest else ""
            )
        found.append(f"{column.name} against {page.first}: {said}.")
    return found


def _farthest(rows: Sequence[ForestRow]) -> str:
    """The figures that are farthest apart, where nothing is known of chance."""
    known = [(row.name, row.estimate) for row in rows if row.estimate]
    apart = sorted(known, key=lambda each: -abs(math.log(each[1])))[:4]
    told = ", ".join(f"{name} ({short(estimate)} times)" for name, estimate in apart)
    return f"farthest apart are {told}; one pair of runs says nothing about chance"


def _forest(page: ComparisonPage, number: int, column: ComparedColumn) -> str:
    name = f"{column.name} against {page.first}"
    table = DataTable(
        f"ratios-{number}",
        ("figure", page.first, column.name, "unit", "ratio", "low", "high", "noise", "answer"),
        [
            (row.name, first, second, unit, row.estimate, row.low, row.high, row.floor, row.words)
            for row, (first, second, unit) in zip(column.rows, column.values, strict=True)
        ],
    )
    chart = partial(
        forest, rows=column.rows, title=f"Ratios of figures: {name}", axis="ratio, logarithmic"
    )
    note = (
        f"Each figure of {column.name} over that of {page.first}: right of 1 is more. A whisker is the "
        "interval of the true ratio; one that touches the dashed line says that nothing was shown."
    )
    return figure(f"forest-{number}", name, note, chart, table)


def at_the_loss(runs: Sequence[ReportedRun]) -> str:
    """The latency of two runs, one over the other, around the moment at which each lost its first slot."""
    lost = [(run, losses[0].lost_s) for run in runs[:2] if (losses := explained_failures(run))]
    if len(lost) < 2:
        return ""
    offsets = tuple(float(at) for at in range(-BEFORE_S, AFTER_S + 1))
    protocols = [str(run.settings.get("protocol") or run.name) for run, _ in lost]
    names = protocols if len({*protocols}) == len(lost) else [run.name for run, _ in lost]
    series: list[Series] = []
    for name, (run, lost_s) in zip(names, lost, strict=True):
        by_second = {row.second - int(lost_s): row for row in whole_job(run)}
        found = [by_second.get(int(at)) for at in offsets]
        p50 = tuple(None if row is None else row.p50_ms for row in found)
        p99 = tuple(None if row is None else row.p99_ms for row in found)
        series += [Series(f"{name} p50", p50, latency), Series(f"{name} p99", p99, latency)]
    known = [n for n in range(len(offsets)) if any(s.values[n] is not None for s in series)]
    if not known:
        return ""
    begin, end = offsets[known[0]], offsets[known[-1]]
    frame = TimeFrame(offsets, end, begin, title="seconds from the loss of a slot")
    table = DataTable(
        "at-the-loss",
        ("seconds", *(each.name for each in series)),
        [(at, *(s.values[n] for s in series)) for n, at in enumerate(offsets)],
    )
    chart = partial(
        time_chart,
        frame=frame,
        series=series,
        title="Latency of both runs around the loss of a slot",
        unit="written, since the record was due",
        log=True,
        height=230,
    )
    note = "Both runs, moved so that each lost its first slot at 0: who is late, by how much, how long."
    return figure("loss", "Written latency", note, chart, table)


def distributions(runs: Sequence[ReportedRun]) -> str:
    """The distribution of the written latency of each run."""
    found = [distribution_of(run.name, _latencies(run)) for run in runs[:4]]
    known = [each for each in found if each is not None]
    if len(known) < 2:
        return ""
    table = DataTable(
        "distributions",
        ("percent", *(each.name for each in known)),
        [(share, *(each.times_ms[n] for each in known)) for n, share in enumerate(SHARES)],
    )
    chart = partial(
        distribution_chart, all_of=known, title="Distribution of written latency of all runs"
    )
    note = (
        "The share of records that were written within a time. Marks stand at 50 and at 99 percent."
    )
    return figure("distributions", "Written latency", note, chart, table)


def _latencies(run: ReportedRun) -> Histogram:
    whole = Histogram()
    warm_up_ms = run.settings.get("warm_up_ms")
    begin_us = warm_up_ms * 1000 if isinstance(warm_up_ms, int) else 0
    for entry in run.entries:
        what = entry.what if isinstance(entry, Happened) else None
        if isinstance(what, SecondMeasured) and what.at_s * SECOND_US >= begin_us:
            whole.merge(Histogram.of_pairs(what.latency))
    return whole
