"""The head of a page about a run: verdict, command, three sentences, and what people ask for first."""

from collections.abc import Iterator
from html import escape
from math import isfinite

from snapline.durations import write_duration
from snapline.metrics.figures import Figures
from snapline.protocols import committed
from snapline.report.charts.scales import short
from snapline.report.run.reported import RUNNING, ReportedRun
from snapline.wording import latency, plural, size

SIGNS = {"yes": ("✓", "kept"), "no": ("✗", "broken"), "unknown": ("?", "unknown")}
"""A shape and a word for each verdict: colour alone says nothing to many."""


def overview(run: ReportedRun) -> str:
    """The head of the page."""
    kind = "simulated run: times are those of a model" if run.simulated else "real run"
    badges = [kind, *_badges(run)]
    told = "".join(f'<span class="badge">{escape(each)}</span>' for each in badges if each)
    sentences = "".join(f"<p>{escape(each)}</p>" for each in three_sentences(run))
    gap = f"<p><strong>Not all is known:</strong> {escape(run.gap)}.</p>" if run.gap else ""
    return (
        f'<header><h1>{escape(run.name)}</h1><div class="badges">{told}</div>{verdict(run)}'
        f'<pre aria-label="the command that makes such a run">{escape(run.command)}</pre></header>'
        f"{sentences}{gap}{tiles(run)}"
    )


def verdict(run: ReportedRun) -> str:
    """The verdict with its reason, as a shape, a word and a colour."""
    sign, word = SIGNS.get(run.kept, ("…", "not over"))
    kind = run.kept if run.kept in SIGNS else RUNNING
    return (
        f'<div class="verdict {kind}"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<p><strong class="{kind}">{word}</strong>: {escape(run.because)}</p></div>'
    )


def _badges(run: ReportedRun) -> Iterator[str]:
    settings = run.settings
    yield str(settings.get("protocol") or settings.get("system", ""))
    yield str(settings.get("flow") or settings.get("workload", ""))
    slots = settings.get("slots")
    yield plural(slots, "slot") if isinstance(slots, int) else ""
    interval_ms = settings.get("interval_ms")
    yield f"interval {write_duration(interval_ms)}" if isinstance(interval_ms, int) else ""


def three_sentences(run: ReportedRun) -> Iterator[str]:
    """What was run, what broke, and what it cost."""
    figures = run.figures
    yield _what_ran(run, figures)
    if figures is not None:
        yield _what_broke(run, figures)
        yield _what_it_cost(figures)


def _what_ran(run: ReportedRun, figures: Figures | None) -> str:
    settings = run.settings
    flow = settings.get("flow") or settings.get("workload", "a dataflow")
    by = settings.get("protocol") or settings.get("system", "?")
    told = f"{flow} {'runs' if run.kept == RUNNING else 'ran'} under {by}"
    if isinstance(slots := settings.get("slots"), int):
        told += f" in {plural(slots, 'slot')}"
    told += f" for {run.end_s:.1f} s" if run.kept != RUNNING else f"; {run.end_s:.1f} s are over"
    if figures is not None and figures.records_read is not None:
        told += f": {plural(figures.records_read, 'record')} were read"
        if figures.rate is not None:
            told += f" at {figures.rate.read:,.0f} a second"
        if run.rows:
            told += f", and {plural(sum(run.rows.values()), 'row')} of output published"
    return f"{told}."


def _what_broke(run: ReportedRun, figures: Figures) -> str:
    struck = [str(each.get("statement")) for each in run.strikes if each.get("struck")]
    if not figures.lost:
        if struck:
            return f"The {_listed(struck)} struck, and no slot was lost."
        return "No fault struck, and no slot was lost."
    told = f"the {_listed(struck)} struck: " if struck else ""
    told += f"{plural(figures.lost, 'slot was', 'slots were')} lost"
    if figures.detection_s:
        told += f", noticed after {_seconds(figures.detection_s)}"
    if figures.restart_s:
        told += f"; all tasks ran again {_seconds(figures.restart_s)} later"
    if figures.recovery_s:
        if None in figures.recovery_s:
            told += "; backlog and latency were not as before when the run ended"
        else:
            told += f", and backlog and latency were as before after {_seconds(figures.recovery_s)}"
    return f"{told[0].upper()}{told[1:]}."


def _listed(struck: list[str]) -> str:
    shown = "; ".join(f"'{each}'" for each in struck[:3])
    more = f" and {len(struck) - 3} more" if len(struck) > 3 else ""
    return f"{'fault' if len(struck) == 1 else 'faults'} {shown}{more}"


def _seconds(values: tuple[float | None, ...]) -> str:
    return ", ".join("> the run" if value is None else f"{value:.2f} s" for value in values[:4])


def _what_it_cost(figures: Figures) -> str:
    taken = figures.checkpoints
    told = f"{plural(taken.stored, 'checkpoint was', 'checkpoints were')} stored"
    if taken.stored:
        told += f" ({size(taken.bytes)})"
        told += f", {taken.skipped} of them in vain" if taken.skipped else ", none in vain"
    if figures.bytes is not None and figures.bytes.overhead is not None:
        over = f"{figures.bytes.overhead:.2f} times the payload"
        told += f"; all that is not payload or output came to {over}"
    if figures.latency_ms is not None and figures.latency_ms.p50 is not None:
        told += f"; half of the rows were written within {latency(figures.latency_ms.p50)}"
    published = figures.committed_latency_ms
    if published is not None and published.p50 is not None:
        told += f" and published within {latency(published.p50)}"
    return f"{told}."


def tiles(run: ReportedRun) -> str:
    """The figures that people ask for first."""
    told = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)} <small>{escape(unit)}</small></dd></div>"
        for name, value, unit in _tiles(run.figures, committed(run.settings.get("protocol"))[1])
    )
    return f'<dl class="tiles">{told}</dl>' if told else ""


def _tiles(figures: Figures | None, decided: str) -> Iterator[tuple[str, str, str]]:
    if figures is None:
        return
    if figures.rate is not None:
        read = figures.rate.read
        yield "records read", short(round(read) if isfinite(read) else read), "per second"
    for name, found in (
        ("written", figures.latency_ms),
        ("published", figures.committed_latency_ms),
    ):
        if found is not None and found.p99 is not None:
            yield f"{name}, p99", latency(found.p99), f"p50 {latency(found.p50)}"
    if (times := figures.checkpoints.time_ms) is not None:
        of = "a round" if figures.checkpoints.timed == "round" else "each"
        yield "checkpoint time", latency(times.median), f"{of}, at most {latency(times.max)}"
    yield decided, f"{figures.commits:,}", f"{figures.checkpoints.stored:,} checkpoints"
    if figures.recovery_s:
        last = figures.recovery_s[-1]
        yield "recovery", "> the run" if last is None else f"{last:.2f} s", "since detection"
    if figures.bytes is not None and figures.bytes.per_record is not None:
        yield "bytes per record", f"{figures.bytes.per_record:,.1f}", "B, all kinds"
