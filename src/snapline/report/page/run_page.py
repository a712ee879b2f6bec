"""A page about one run, or about several: explained from its verdict down to its numbers."""

from collections.abc import Sequence
from html import escape

from snapline.report.page.checkpoints import checkpoints
from snapline.report.page.costs import costs
from snapline.report.page.data import data
from snapline.report.page.failures import diagram, failures, story
from snapline.report.page.guarantees import guarantees
from snapline.report.page.html import document, fragment, section
from snapline.report.page.overview import overview, tiles, verdict
from snapline.report.page.traffic import has_latency, latencies, rates, slots, traffic, whole_job
from snapline.report.run.reported import ReportedRun


def run_page(runs: Sequence[ReportedRun]) -> str:
    """One HTML document about one run or several, one below the other."""
    if len(runs) == 1:
        return document(f"{runs[0].name} · Snapline", article(runs[0], ""))
    links = "".join(
        f'<a href="#r{number}">{escape(run.name)}: {escape(run.kept)}</a>'
        for number, run in enumerate(runs, 1)
    )
    body = "".join(article(run, f"r{number}-") for number, run in enumerate(runs, 1))
    head = f'<h1>{len(runs)} runs</h1><nav aria-label="Runs">{links}</nav>'
    return document(f"{len(runs)} runs · Snapline", f"{head}{body}")


def article(run: ReportedRun, id: str) -> str:
    """All that is shown of one run; `id` stands before the ids of its parts."""
    anchor = f' id="{id.rstrip("-")}"' if id else ""
    return f"<article{anchor}>{''.join(parts_of(run, id).values())}</article>"


def parts_of(run: ReportedRun, id: str = "") -> dict[str, str]:
    """The parts of an article by their names, in order; those that have nothing to show are empty."""
    sections = {
        "traffic": ("Rates, backlog, latency", traffic(run, id)),
        "failure": ("Failures", failures(run, id)),
        "story": ("What happened", [story(run)]),
        "checkpoints": ("Checkpoints", checkpoints(run, id)),
        "cost": ("Costs", costs(run, id)),
        "workers": ("Slots", [slots(run, id)]),
        "space": ("Space and time", [diagram(run, id)]),
        "promise": ("Guarantees", guarantees(run)),
        "data": ("Data", data(run)),
    }
    shown = {name: heading for name, (heading, parts) in sections.items() if any(parts)}
    links = "".join(f'<a href="#{id}{n}">{escape(heading)}</a>' for n, heading in shown.items())
    head = {"head": overview(run), "contents": f'<nav aria-label="Contents">{links}</nav>'}
    made = {n: section(f"{id}{n}", heading, *parts) for n, (heading, parts) in sections.items()}
    return head | made


def run_card(run: ReportedRun) -> str:
    """A run on a card, as a notebook shows it: its verdict, its main figures, and its latency or rates."""
    rows = whole_job(run)
    shown = latencies if has_latency(rows) else rates
    chart = shown(run, rows, f"{run.name}-") if rows else ""
    return fragment(f"<h3>{escape(run.name)}</h3>{verdict(run)}{tiles(run)}{chart}")
