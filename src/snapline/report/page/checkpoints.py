"""The history of the checkpoints of a run: how the time of each was spent, its size, what became of it."""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean

from snapline.ids import checkpoint_label
from snapline.metrics.checkpointing.history import COLUMNS, PHASES, CheckpointRow, flat
from snapline.report.charts.bars import Stack, stacked_chart
from snapline.report.page.html import DataTable, figure, grid
from snapline.report.run.reported import ReportedRun
from snapline.wording import latency, plural, size


def checkpoints(run: ReportedRun, id: str) -> list[str]:
    """The chart of all checkpoints, and a table by task; nothing if none was stored."""
    rows = run.checkpoints
    if not rows:
        return []
    return [history(run, rows, id), by_task(run, rows)]


def history(run: ReportedRun, rows: Sequence[CheckpointRow], id: str) -> str:
    """A column for each checkpoint, in the order in which the coordinator heard of them."""
    table = DataTable(
        f"{run.name}-checkpoints", tuple(COLUMNS), [tuple(row.values()) for row in flat(rows)]
    )
    timed = any(row.phases is not None for row in rows)
    chart = partial(
        stacked_chart,
        stacks=[_stack(row) for row in rows],
        names=[name.replace("_", " ") for name in PHASES] if timed else (),
        title=f"Checkpoints of {run.name} in the order of storing: phases and sizes",
        unit="milliseconds from due to stored" if timed else "how long they took was not measured",
        strip="bytes",
        told=size,
    )
    note = (
        f"{plural(len(rows), 'checkpoint')} in the order in which they were stored. Phases add up to the "
        "time from when a checkpoint was due until the coordinator had it; the strip below has its size."
    )
    return figure(f"{id}history", "Checkpoint history", note, chart, table)


def _stack(row: CheckpointRow) -> Stack:
    phases = row.phases
    times = [0.0] * len(PHASES)
    if phases is not None:
        times = [getattr(phases, f"{name}_us") / 1000 for name in PHASES]
    marks = [name for name in ("forced", "skipped", "useless") if getattr(row, name)]
    told = ", ".join(
        f"{name.replace('_', ' ')} {latency(ms)}" for name, ms in zip(PHASES, times, strict=True)
    )
    what = [*marks, "on a committed line" if row.committed else ""]
    tip = (
        f"{row.task} {checkpoint_label(row.checkpoint)} at {row.stored_us / 1e6:.2f} s: "
        f"{size(row.bytes)} {row.kind}; {told}; {', '.join(filter(None, what)) or 'on no line'}"
    )
    return Stack(tuple(times), row.bytes, tip, tuple(marks))


def by_task(run: ReportedRun, rows: Sequence[CheckpointRow]) -> str:
    """For each task: how many, how long (least, mean, most), and how large."""
    columns = (
        *("task", "stored", "forced", "skipped", "committed"),
        *("time min ms", "time mean ms", "time max ms", "bytes min", "bytes mean", "bytes max"),
    )
    body = list(_by_task(rows))
    figures = run.figures
    aborted = figures.checkpoints.aborted_rounds if figures is not None else 0
    note = f"<p>{plural(aborted, 'round was', 'rounds were')} aborted.</p>" if aborted else ""
    return f"<h3>By task</h3>{grid(columns, body, 'checkpoints by task')}{note}"


def _by_task(rows: Sequence[CheckpointRow]) -> Iterator[tuple[object, ...]]:
    for task in sorted({row.task for row in rows}):
        mine = [row for row in rows if row.task == task]
        times = [row.phases.whole_us / 1000 for row in mine if row.phases is not None]
        sizes = [row.bytes for row in mine]
        spread = (min(times), fmean(times), max(times)) if times else (None, None, None)
        counted = [sum(getattr(r, n) for r in mine) for n in ("forced", "skipped", "committed")]
        yield task, len(mine), *counted, *spread, min(sizes), fmean(sizes), max(sizes)
