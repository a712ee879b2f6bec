"""A card about a run that goes on, as a notebook shows it: what it does, and its numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from snapline.metrics.second import Second
from snapline.report.charts.canvas import NARROW, WIDE, Canvas
from snapline.report.charts.over_time import Series, TimeFrame, time_chart
from snapline.report.charts.scales import short
from snapline.report.page.html import fragment
from snapline.wording import latency

EVENTS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class RunningRun:
    """What is known of a run that goes on."""

    name: str
    does: str  # what it does now, in a few words
    standing: str  # running; or its verdict: yes, no, unknown
    seconds: Sequence[Second]  # the last of them
    events: Sequence[tuple[float, str]]  # when what happened
    length_s: float | None = None  # for how long input comes; None: nobody knows


def card(run: RunningRun) -> str:
    """The card as HTML, with its style."""
    sign = {"yes": "✓", "no": "✗", "unknown": "?"}.get(run.standing, "…")
    kind, name = escape(run.standing), escape(run.name)
    parts = [
        f'<div class="verdict {kind}"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<p><strong class="{kind}">{name}</strong>: {escape(run.does)}</p></div>'
    ]
    if run.seconds:
        last = run.seconds[-1]
        parts += [_bar(last.at_s + 1, run.length_s), _numbers(last), _chart(run)]
    told = "".join(
        f"<li><time>{at_s:.2f} s</time><span>{escape(words)}</span></li>"
        for at_s, words in run.events[-EVENTS_SHOWN:]
    )
    if told:
        parts.append(f'<ol class="story">{told}</ol>')
    return fragment("".join(parts))


def _bar(at_s: int, length_s: float | None) -> str:
    if length_s is None:
        return ""
    share = min(1.0, at_s / length_s)
    return (
        f'<div class="progress" role="img" aria-label="{at_s} of {length_s:.0f} s">'
        f'<span class="running" style="width:{100 * share:.1f}%"></span></div>'
    )


def _numbers(last: Second) -> str:
    told = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)} <small>{unit}</small></dd></div>"
        for name, value, unit in _figures(last)
    )
    return f'<dl class="tiles">{told}</dl>'


def _figures(last: Second) -> Iterator[tuple[str, str, str]]:
    yield "records read", short(last.read), "in this second"
    yield "backlog", "?" if last.backlog is None else short(last.backlog), "due and not read"
    if last.p99_ms:
        yield "written, p99", latency(last.p99_ms), f"p50 {latency(last.p50_ms)}"
    yield "slots", f"{last.running}", f"{last.checkpoints:,} checkpoints stored"


def _chart(run: RunningRun) -> str:
    seconds = run.seconds
    series = [
        Series("read", tuple(float(each.read) for each in seconds), short),
        Series("written", tuple(float(each.written) for each in seconds), short),
    ]
    times = tuple(each.at_s + 0.5 for each in seconds)
    frame = TimeFrame(times, max(run.length_s or 0, times[-1] + 0.5), float(seconds[0].at_s))
    return "".join(
        f'<div class="{canvas.name}">{_drawn(canvas, frame, series, run.name)}</div>'
        for canvas in (WIDE, NARROW)
    )


def _drawn(canvas: Canvas, frame: TimeFrame, series: Sequence[Series], name: str) -> str:
    title = f"Records per second of {name}"
    return time_chart(canvas, frame, series, title=title, unit="records per second", height=110)
