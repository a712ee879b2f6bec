"""Prints a run that is over on one screen: throughput, latency, checkpoints, failures, bytes, verdict."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Protocol

from rich.table import Table

from snapline.cli.terminal.console import escape, escape_lines, results
from snapline.protocols import DEFAULT, committed
from snapline.wording import latency, plural, size

if TYPE_CHECKING:  # the runtime takes a second to import: not for `--help`
    from snapline.judge.verdict import Verdict
    from snapline.metrics.costs import (
        ByteFigures,
        CheckpointFigures,
        CheckpointPhases,
        OperatorCheckpoints,
        ResourceFigures,
    )
    from snapline.metrics.deviation import DeviationFigures
    from snapline.metrics.figures import Figures
    from snapline.metrics.reliability import LineageFigures, ReliabilityFigures
    from snapline.rundir.directory import RunDirectory

VERDICTS = {"yes": ("green", "kept"), "no": ("red", "broken"), "unknown": ("yellow", "unknown")}


class Finished(Protocol):
    """What a summary needs of a run that is over."""

    @property
    def directory(self) -> "RunDirectory":
        """The directory with everything that the run left."""
        ...

    @property
    def verdict(self) -> "Verdict":
        """Whether the output is what was promised."""
        ...

    @property
    def figures(self) -> "Figures":
        """What was measured."""
        ...

    @property
    def rows(self) -> Mapping[str, int]:
        """Published rows by sink."""
        ...


def print_summary(finished: Finished, protocol: str = DEFAULT) -> None:
    """Print the summary of a run to standard output."""
    out = results()
    path = finished.directory.path
    out.print(f"[bold]{escape(path.name)}[/]: {escape(str(path))}", soft_wrap=True)
    print_figures(summary(finished.figures, sum(finished.rows.values()), protocol=protocol))
    if finished.figures.lineage is not None:
        print_phases(finished.figures.lineage)
    print_verdict(finished.verdict)


def print_figures(lines: Iterable[tuple[str, str]]) -> None:
    """Print the lines of a summary."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in lines:
        table.add_row(name, escape(text))
    results().print(table)


def print_phases(figures: "LineageFigures") -> None:
    """Print PGVal's figures: before the fault, while it was active, and after it."""
    table = Table(
        *("phase", "from", "events", "reliable", "correct", "throughput", "latency p50", "max"),
        box=None,
    )
    for name, phase in figures.phases.items():
        table.add_row(escape(name), f"{phase.from_ms / 1000:.1f} s", *_reliability(phase))
    table.add_row("run", "", *_reliability(figures))
    out = results()
    out.print(table)
    if figures.failure_cost_ms is not None:
        cost = latency(figures.failure_cost_ms)
        out.print(f"[bold]failure cost[/] {cost} above the mean latency before the fault")


def _reliability(part: "ReliabilityFigures") -> Iterator[str]:
    yield f"{part.events:,}"
    yield "" if part.reliability is None else f"{percent(part.reliability)} %"
    yield "" if part.correctness is None else f"{percent(part.correctness)} %"
    yield f"{part.reliable_throughput:,.0f}/s"
    yield latency(part.latency_ms.p50 if part.latency_ms else None)
    yield latency(part.latency_ms.max if part.latency_ms else None)


def percent(value: float) -> str:
    """Write a percentage. It was rounded down before, so that 100 is shown only for all."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def print_verdict(verdict: "Verdict") -> None:
    """Print whether the promise was kept, why, and what became of every guarantee."""
    out = results()
    out.print(f"[bold]guarantees[/]   {_guarantees(verdict.guarantees)}")
    out.print(verdict_line(verdict.kept, verdict.because), soft_wrap=True)


def verdict_line(kept: str, because: str) -> str:
    """The verdict in one line, as every command prints it: `kept: 12 rows of output are ...`."""
    colour, word = VERDICTS[kept]
    return f"[bold {colour}]{word}[/]: {escape_lines(because)}"


def _guarantees(answers: Mapping[str, str]) -> str:
    colours = {"yes": "green", "no": "red", "unknown": "yellow"}
    shown = (f"{name} [{colours[answer]}]{answer}[/]" for name, answer in answers.items())
    return ", ".join(shown)


def summary(
    figures: "Figures", rows: int, unmeasured: str = "not measured", *, protocol: object = DEFAULT
) -> Iterator[tuple[str, str]]:
    """The lines of a summary: a title and the figures, or `unmeasured` where there are none."""
    noun, many = committed(protocol)
    told = f"{plural(figures.commits, noun)} {many.partition(' ')[2]}"
    yield "output", f"{plural(rows, 'row')} published, {told}"
    yield "records", _records(figures) or unmeasured
    yield "latency", _latency(figures) or unmeasured
    if figures.checkpoints.stored:
        yield "checkpoints", _checkpoints(figures.checkpoints)
    if figures.checkpoint_phases_ms is not None:
        yield "phases", _phases(figures.checkpoint_phases_ms)
    if intervals := _intervals(figures.operators):
        yield "intervals", intervals
    if figures.lost:
        yield "failures", _failures(figures)
    if figures.deviation is not None:
        yield "deviation", deviation_text(figures.deviation)
    yield "bytes", unmeasured if figures.bytes is None else _bytes(figures.bytes)
    if figures.resources is not None and figures.resources.cpu_s:
        yield "resources", _resources(figures.resources)


def _records(figures: "Figures") -> str:
    if figures.records_read is None or figures.records_written is None:
        return ""
    text = f"{figures.records_read:,} read, {figures.records_written:,} written"
    if figures.read_again:
        text += f" ({figures.read_again:,} read again)"
    return text if figures.rate is None else f"{text}; {figures.rate.read:,.0f} per second"


def _latency(figures: "Figures") -> str:
    if figures.latency_ms is None and figures.read_again is not None:  # records were measured
        return "not measured: at rate max, records come before the times that they carry"
    shown = {"written": figures.latency_ms, "published": figures.committed_latency_ms}
    return "; ".join(
        f"{name} p50 {latency(found.p50)}, p99 {latency(found.p99)}"
        for name, found in shown.items()
        if found is not None
    )


def _checkpoints(figures: "CheckpointFigures") -> str:
    text = f"{figures.stored:,} stored ({size(figures.bytes)})"
    if figures.forced:
        text += f", {figures.forced:,} forced"
    if figures.skipped:
        text += f", {figures.skipped:,} skipped"
    if figures.useless:
        text += f", {figures.useless:,} useless"
    if figures.aborted_rounds:
        text += f", {plural(figures.aborted_rounds, 'round')} aborted"
    if times := figures.time_ms:
        what = "a round" if figures.timed == "round" else "each"
        text += f"; {what} took {latency(times.median)}, at most {latency(times.max)}"
    return text


def _phases(phases: "CheckpointPhases") -> str:
    """The mean of each phase of a checkpoint of a task; the first field is their sum."""
    means = {each.name: getattr(phases, each.name).mean for each in fields(phases)[1:]}
    parts = (f"{name.replace('_', ' ')} {latency(mean)}" for name, mean in means.items())
    return f"{', '.join(parts)} (on average)"


def _intervals(operators: "Mapping[str, OperatorCheckpoints]") -> str:
    """How often the tasks of each operator were saved; nothing if all were saved about as often."""
    known = {name: of.interval_ms for name, of in operators.items() if of.interval_ms}
    if not known or max(known.values()) < 1.5 * min(known.values()):
        return ""
    return ", ".join(f"{name} every {latency(ms)}" for name, ms in known.items())


def _bytes(figures: "ByteFigures") -> str:
    counts = {kind: count for kind, count in asdict(figures).items() if isinstance(count, int)}
    text = ", ".join(f"{kind} {size(count)}" for kind, count in counts.items() if count)
    if figures.per_record is not None:
        text += f"; {figures.per_record:,.1f} B per record"
    if figures.overhead is not None:
        text += f", {figures.overhead:.3g} times the payload on top of it"
    return text


def _resources(figures: "ResourceFigures") -> str:
    slots_s = sum(cpu_s for name, cpu_s in figures.cpu_s.items() if name != "driver")
    text = f"CPU {slots_s:.1f} s of slots"
    if figures.generator_cpu_s:
        text += f" ({figures.generator_cpu_s:.1f} s to generate input)"
    text += f", {figures.cpu_s.get('driver', 0):.1f} s of the driver"
    if not figures.rss_bytes:
        return text  # nobody knows the memory of a simulated slot
    peak = max((rss for name, rss in figures.rss_bytes.items() if name != "driver"), default=0)
    return f"{text}; a slot takes up to {size(peak)} of memory"


def _failures(figures: "Figures") -> str:
    parts = [f"{plural(figures.lost, 'slot')} lost"]
    if figures.detection_s:
        parts.append(f"noticed after {_seconds(figures.detection_s)}")
    if figures.restart_s:
        parts.append(f"all running again {_seconds(figures.restart_s)} later")
    if figures.recovery_s:
        parts.append(f"recovered after {_seconds(figures.recovery_s)}")
    return ", ".join(parts)


def deviation_text(figures: "DeviationFigures") -> str:
    """How far the answer of a run is off, from its first fault on, in one line."""
    rows = plural(figures.rows, "row")
    since = f" from {figures.from_ms / 1000:.1f} s on" if figures.from_ms else ""
    if figures.is_zero:
        return f"none: {rows} of the answer{since} as they should be"
    parts = [
        f"{name} off by {column.rmse:.3g} (RMSE; at most {column.largest:.3g}, typical value "
        f"{column.typical:.3g})"
        for name, column in figures.columns.items()
    ]
    shares = {"missing": figures.missing, "again": figures.repeated}
    parts += [f"{100 * share:.3g} % {name}" for name, share in shares.items() if share]
    if figures.unexpected:
        parts.append(f"{plural(figures.unexpected, 'row')} unexpected")
    right = figures.right_again_s
    parts.append("wrong to the end" if right is None else f"right again after {right:.1f} s")
    return f"{rows}{since}: {', '.join(parts)}"


def _seconds(values: Iterable[float | None]) -> str:
    return ", ".join("> the run" if s is None else f"{s:.2f} s" for s in values)
