"""Rates, backlog and latency of a run, second by second."""

from collections.abc import Callable
from functools import partial

from snapline.metrics.seconds_table import SecondRow
from snapline.protocols import PROTOCOLS
from snapline.report.charts.multiples import SmallChart, small_multiples
from snapline.report.charts.over_time import Series, TimeFrame, Values, time_chart
from snapline.report.charts.scales import short
from snapline.report.page.html import DataTable, figure
from snapline.report.run.reported import ReportedRun
from snapline.wording import latency, plural


def time_frame(run: ReportedRun, rows: list[SecondRow]) -> TimeFrame:
    """The times that the charts of a run cover, with its faults and epochs."""
    return TimeFrame(
        tuple(row.second + 0.5 for row in rows),
        run.end_s,
        faults=tuple((f.start_ms / 1000, f.end_ms / 1000, f.text) for f in run.faults),
        epochs=run.epochs,
    )


def whole_job(run: ReportedRun) -> list[SecondRow]:
    """The seconds of all slots together."""
    return [row for row in run.seconds if row.slot is None]


def _column(rows: list[SecondRow], read: Callable[[SecondRow], float | None]) -> Values:
    return tuple(read(row) for row in rows)


def publishes_at_once(run: ReportedRun) -> bool:
    """Whether what is written is public without waiting for a line, as under `none` and `partial`."""
    protocol = PROTOCOLS.get(str(run.settings.get("protocol")))
    return protocol is not None and protocol.publishes_at_once


def traffic(run: ReportedRun, id: str) -> list[str]:
    """The charts of rates, backlog and latency; none of a run that measured no seconds."""
    rows = whole_job(run)
    if not rows:
        return []
    return [rates(run, rows, id), backlog(run, rows, id), latencies(run, rows, id)]


def rates(run: ReportedRun, rows: list[SecondRow], id: str) -> str:
    """Records read and written, and rows published, in each second."""
    series = [
        Series("read", _column(rows, lambda row: row.read), _count),
        Series("written", _column(rows, lambda row: row.written), _count),
    ]
    known = any(row.published for row in rows) or not publishes_at_once(run)
    if known:  # where rows are public at once, their publication is not measured
        series.append(Series("published", _column(rows, lambda row: row.published), _count))
    table = DataTable(
        f"{run.name}-rates",
        ("second", "slots running", "read", "written", "published", "backlog"),
        [(r.second, r.running, r.read, r.written, r.published, r.backlog) for r in rows],
    )
    chart = partial(
        time_chart,
        frame=time_frame(run, rows),
        series=series,
        title=f"Records per second of {run.name}: read, written and published",
        unit="records per second",
    )
    note = "Records that sources read and sinks wrote in each second, and rows that became public. "
    note += "Rows are published in steps, because a committed line has to cover them."
    if publishes_at_once(run):
        note = "Records that sources read and sinks wrote in each second. No row waits for a line."
    return figure(f"{id}rates", "Rates", note, chart, table)


def backlog(run: ReportedRun, rows: list[SecondRow], id: str) -> str:
    """Records that were due and not read, at the end of each second."""
    series = [Series("backlog", _column(rows, lambda row: row.backlog), _count)]
    table = DataTable(
        f"{run.name}-backlog", ("second", "backlog"), [(r.second, r.backlog) for r in rows]
    )
    chart = partial(
        time_chart,
        frame=time_frame(run, rows),
        series=series,
        title=f"Backlog of {run.name}: records due and not read",
        unit="records",
        height=120,
    )
    note = (
        "Records that were due and not yet read. It grows while the job stands still, and shows when it "
        "has caught up."
    )
    return figure(f"{id}backlog", "Backlog", note, chart, table)


def has_latency(rows: list[SecondRow]) -> bool:
    """Whether rows have one: those whose times are long ago, or that are due at once, have none."""
    return any(row.p99_ms or row.published_p99_ms for row in rows)


def latencies(run: ReportedRun, rows: list[SecondRow], id: str) -> str:
    """The median and the 99th percentile of both latencies, on a logarithmic scale; empty without one."""
    series = [
        Series("written p50", _column(rows, lambda row: row.p50_ms), latency),
        Series("written p99", _column(rows, lambda row: row.p99_ms), latency),
        Series("published p50", _column(rows, lambda row: row.published_p50_ms), latency),
        Series("published p99", _column(rows, lambda row: row.published_p99_ms), latency),
    ]
    if not has_latency(rows):
        return ""
    names = ("second", *(each.name for each in series))
    values = zip(*(each.values for each in series), strict=True)
    table = DataTable(
        f"{run.name}-latency",
        names,
        [(row.second, *each) for row, each in zip(rows, values, strict=True)],
    )
    chart = partial(
        time_chart,
        frame=time_frame(run, rows),
        series=series,
        title=f"Latency of {run.name} in each second, on a logarithmic scale",
        unit="since the record was due, logarithmic",
        log=True,
        height=230,
    )
    note = (
        "How long after its time a record was written by a sink, and how long until it was public. "
        "What was written again after a rollback is late, which shows as a peak behind the fault."
    )
    if publishes_at_once(run):
        note = "How long after its time a record was written by a sink, where it is public at once."
    return figure(f"{id}latency", "Latency", note, chart, table)


def slots(run: ReportedRun, id: str) -> str:
    """A little chart for each slot: the 99th percentile of its latency, or else its rate."""
    numbers = sorted({row.slot for row in run.seconds if row.slot is not None})
    rows = whole_job(run)
    if len(numbers) < 2 or not rows:
        return ""
    by_slot = {(row.slot, row.second): row for row in run.seconds if row.slot is not None}
    late = any(row.p99_ms for row in by_slot.values())
    cells = [_small(number, rows, by_slot, late=late) for number in numbers]
    table = DataTable(
        f"{run.name}-slots",
        ("second", "slot", "read", "written", "backlog", "p50 ms", "p99 ms"),
        [
            (r.second, r.slot, r.read, r.written, r.backlog, r.p50_ms, r.p99_ms)
            for r in run.seconds
            if r.slot is not None
        ],
    )
    what = "99th percentile of written latency" if late else "records read per second"
    chart = partial(
        small_multiples,
        frame=time_frame(run, rows),
        cells=cells,
        title=f"Each slot of {run.name}: {what}",
        log=late,
    )
    note = (
        f"The {what} of each slot, all on one scale: a straggler stands out. The greatest value is in "
        "the corner."
    )
    return figure(f"{id}slots", plural(len(numbers), "slot"), note, chart, table)


def _small(
    number: int,
    rows: list[SecondRow],
    by_slot: dict[tuple[int, int], SecondRow],
    *,
    late: bool,
) -> SmallChart:
    found = [by_slot.get((number, row.second)) for row in rows]
    values: Values = tuple(
        None if row is None else row.p99_ms if late else row.read for row in found
    )
    most = max((value for value in values if value is not None), default=0.0)
    return SmallChart(f"slot {number}", values, latency(most) if late else short(most))


def _count(value: float) -> str:
    return f"{value:,.0f}"
