"""What a run cost: bytes by what they were for, CPU time and memory of each process."""

from functools import partial

from snapline.metrics.costs import ByteFigures, ResourceFigures
from snapline.metrics.json_form import definitions
from snapline.report.charts.bars import Bar, bar_chart
from snapline.report.page.html import DataTable, figure, grid
from snapline.report.run.reported import ReportedRun
from snapline.wording import size

KINDS = ("payload", "headers", "markers", "control", "metadata", "log", "snapshots", "output")


def costs(run: ReportedRun, id: str) -> list[str]:
    """Bytes by kind, and what processes used; nothing that was not measured."""
    figures = run.figures
    if figures is None:
        return []
    parts = []
    if figures.bytes is not None:
        parts.append(by_kind(run, figures.bytes, id))
    if figures.resources is not None and figures.resources.cpu_s:
        parts.append(_processes(figures.resources))
    return parts


def by_kind(run: ReportedRun, found: ByteFigures, id: str) -> str:
    """A bar for each kind of bytes."""
    meanings = definitions(ByteFigures)
    counts = {kind: int(getattr(found, kind)) for kind in KINDS}
    bars = [Bar(kind, count, size(count)) for kind, count in counts.items()]
    table = DataTable(
        f"{run.name}-bytes",
        ("kind", "bytes", "what it is"),
        [(kind, count, meanings[kind]) for kind, count in (*counts.items(), ("wire", found.wire))],
    )
    chart = partial(bar_chart, bars=bars, title=f"Bytes of {run.name} by what they were for")
    over = (
        "" if found.overhead is None else f", {found.overhead:.2f} times the payload on top of it"
    )
    per = (
        "" if found.per_record is None else f" That is {found.per_record:,.1f} B per record{over}."
    )
    note = f"No byte is in two kinds. {size(found.wire)} of them went over the wire.{per}"
    return figure(f"{id}bytes", "Bytes by kind", note, chart, table)


def _processes(used: ResourceFigures) -> str:
    rows = [(name, cpu_s, size(used.rss_bytes.get(name, 0))) for name, cpu_s in used.cpu_s.items()]
    return f"<h3>Processes</h3>{grid(('process', 'CPU s', 'peak memory'), rows, 'processes')}"
