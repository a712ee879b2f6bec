"""The page of a sweep while it goes on: which runs are done, which one is made, and the ratios so far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape

from snapline.report.charts.forest import ForestRow, forest
from snapline.report.page.html import DataTable, figure, section
from snapline.report.page.overview import tiles
from snapline.report.page.traffic import latencies, rates, whole_job
from snapline.report.run.reported import ReportedRun
from snapline.wording import plural

SIGNS = {
    "done": ("✓", "done"),
    "unproved": ("✗", "done, but not proved right"),
    "running": ("▶", "runs now"),
    "failed": ("!", "failed: tried again when the sweep is started again"),
    "waiting": ("·", "still to be made"),
}
"""How the standing of a run is shown: a shape, and what it means."""

TURNS_SHOWN_MAX = 24
"""So many turns are shown at once, the present one among the last of them."""

FAILURES_SHOWN_MAX = 12


@dataclass(frozen=True, slots=True)
class SweptRun:
    """One run of a sweep: how it stands (of SIGNS), and what is told of it."""

    standing: str
    told: str


@dataclass(frozen=True, slots=True)
class SweptGroup:
    """Columns that are compared with the first of them; a paper's sweep has a group for each form."""

    name: str  # empty if there is only one
    columns: Mapping[str, Sequence[SweptRun]]  # by label, a run for each turn
    first: str  # the label of the column with which the others are compared
    ratios: Mapping[str, Sequence[ForestRow]] = field(default_factory=dict)  # by figure


@dataclass(frozen=True, slots=True)
class SweepView:
    """All that the page shows."""

    name: str
    working: bool  # whether somebody works at the sweep now
    standing: str  # what the sweep does now, in a sentence
    groups: Sequence[SweptGroup]
    counts: Mapping[str, int]  # of runs, by standing
    times: Sequence[tuple[str, str, str]]  # a name, a time, and a word on it
    problems: Sequence[str] = ()  # what went wrong, a sentence each
    present: ReportedRun | None = None  # the run that is made now


def sweep_parts(view: SweepView) -> dict[str, str]:
    """The parts of the page by their names, in order; those that have nothing to show are empty."""
    sections = {
        "runs": ("Runs", [_map(group, many=len(view.groups) > 1) for group in view.groups]),
        "problems": ("What went wrong", _problems(view.problems)),
        "ratios": ("Ratios so far", list(_ratios(view))),
        "now": ("The present run", list(_present(view.present))),
    }
    shown = {name: heading for name, (heading, parts) in sections.items() if any(parts)}
    links = "".join(f'<a href="#{n}">{escape(heading)}</a>' for n, heading in shown.items())
    head = {"head": _head(view), "contents": f'<nav aria-label="Contents">{links}</nav>'}
    return head | {n: section(n, heading, *parts) for n, (heading, parts) in sections.items()}


def _head(view: SweepView) -> str:
    counts = view.counts
    whole = sum(counts.values())
    done = counts.get("done", 0) + counts.get("unproved", 0)
    finished = done == whole
    kind = "running" if view.working or not finished else "yes"
    sign = "…" if view.working else "✓" if finished else "◼"
    word = "goes on" if view.working else "over" if finished else "not over, and nobody works at it"
    told = [("runs done", f"{done:,} of {whole:,}", f"{100 * done // max(1, whole)} %")]
    if counts.get("unproved"):
        told.append(("not proved right", f"{counts['unproved']:,}", "of those done"))
    if counts.get("failed"):
        told.append(("failed", f"{counts['failed']:,}", "without a result"))
    boxes = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)} <small>{escape(unit)}</small></dd></div>"
        for name, value, unit in (*told, *view.times)
    )
    return (
        f'<header><h1>{escape(view.name)}</h1><div class="verdict {kind}">'
        f'<span class="sign" aria-hidden="true">{sign}</span><p><strong class="{kind}">{word}</strong>: '
        f"{escape(view.standing)}</p></div></header>{_bar(counts, whole)}"
        f'<dl class="tiles">{boxes}</dl>'
    )


def _bar(counts: Mapping[str, int], whole: int) -> str:
    """One bar with a part for each standing, as long as its share of all runs."""
    parts = "".join(
        f'<span class="{name}" style="width:{100 * counts[name] / whole:.2f}%"></span>'
        for name in SIGNS
        if counts.get(name)
    )
    said = ", ".join(
        f"{counts[name]} {words}" for name, (_, words) in SIGNS.items() if counts.get(name)
    )
    return f'<div class="progress" role="img" aria-label="runs: {escape(said)}">{parts}</div>'


def _present(run: ReportedRun | None) -> Iterator[str]:
    """The run that is made now: what it measured so far."""
    if run is None:
        return
    yield f"<h3>{escape(run.name)}</h3><pre>{escape(run.command)}</pre>{tiles(run)}"
    if rows := whole_job(run):
        yield rates(run, rows, "now-")
        yield latencies(run, rows, "now-")


def _map(group: SweptGroup, *, many: bool) -> str:
    """A table with a row for each column and a place for each turn, marked with how that run stands."""
    turns = max((len(runs) for runs in group.columns.values()), default=0)
    reached = [
        n
        for runs in group.columns.values()
        for n, r in enumerate(runs, 1)
        if r.standing != "waiting"
    ]
    last = min(turns, max(TURNS_SHOWN_MAX, max(reached, default=0) + 1))
    first = max(1, last - TURNS_SHOWN_MAX + 1)
    head = "".join(f'<th scope="col">{turn}</th>' for turn in range(first, last + 1))
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_place, runs[first - 1 : last]))}</tr>'
        for label, runs in group.columns.items()
    )
    found = {run.standing for runs in group.columns.values() for run in runs}
    keys = "".join(
        f'<span><b class="{name}" aria-hidden="true">{sign}</b> {words}</span>'
        for name, (sign, words) in SIGNS.items()
        if name in found
    )
    hidden = turns - (last - first + 1)
    more = f"<p>{plural(hidden, 'turn is', 'turns are')} not shown.</p>" if hidden > 0 else ""
    name = f"<h3>{escape(group.name)}</h3>" if many else ""
    label = f"runs of {group.name}" if group.name else "runs"
    return (
        f'{name}<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="runs"><thead><tr><th scope="col">turn</th>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="keys">{keys}</p>{more}'
    )


def _place(run: SweptRun) -> str:
    sign, words = SIGNS[run.standing]
    told = f"{words}; {run.told}" if run.told else words
    return f'<td class="{run.standing}" title="{escape(told)}">{sign}</td>'


def _ratios(view: SweepView) -> Iterator[str]:
    for place, group in enumerate(view.groups, 1):
        for number, (name, rows) in enumerate(group.ratios.items(), 1):
            of = f"{group.name}: {name}" if group.name else name
            table = DataTable(
                f"ratios-{place}-{number}",
                ("column", "ratio", "low", "high", "noise", "answer"),
                [(r.name, r.estimate, r.low, r.high, r.floor, r.words) for r in rows],
            )
            chart = partial(
                forest, rows=rows, title=f"Ratios so far: {of}", axis="ratio, logarithmic"
            )
            note = (
                f"Each column over {group.first}, from the turns in which both are done: right of 1 is "
                "more. They may still move; six turns are needed to be sure."
            )
            yield figure(f"ratios-{place}-{number}", of, note, chart, table)


def _problems(problems: Sequence[str]) -> list[str]:
    told = [f'<div class="witness">{escape(each)}</div>' for each in problems[:FAILURES_SHOWN_MAX]]
    if len(problems) > FAILURES_SHOWN_MAX:
        told.append(f"<p>and {len(problems) - FAILURES_SHOWN_MAX:,} more.</p>")
    return told
