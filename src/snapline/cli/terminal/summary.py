"""What a run has achieved, on one screen: throughput, latency, checkpoints, failures, bytes, verdict."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rich.table import Table

from snapline.cli.terminal.console import escape, escape_lines, results
from snapline.cli.terminal.live import latency, size
from snapline.wording import plural

if TYPE_CHECKING:  # the runtime takes a second to import, and `--help` should not
    from snapline.judge.verdict import Verdict
    from snapline.rundir.directory import RunDirectory

VERDICTS = {"yes": ("green", "kept"), "no": ("red", "broken"), "unknown": ("yellow", "unknown")}


class Finished(Protocol):
    """A run that is over, as far as it is shown."""

    @property
    def directory(self) -> "RunDirectory":
        """Where everything about it is."""
        ...

    @property
    def verdict(self) -> "Verdict":
        """Whether the output is what was promised."""
        ...

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Its figures."""
        ...

    @property
    def rows(self) -> Mapping[str, int]:
        """Published rows by sink."""
        ...


def print_summary(finished: Finished) -> None:
    """Print it to standard output."""
    out = results()
    path = finished.directory.path
    out.print(f"[bold]{escape(path.name)}[/]: {escape(str(path))}", soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in summary(finished.metrics, sum(finished.rows.values())):
        table.add_row(name, escape(text))
    out.print(table)
    if "lineage" in finished.metrics:
        print_phases(finished.metrics["lineage"])
    print_verdict(finished.verdict)


def print_phases(figures: Mapping[str, Any]) -> None:
    """Print PGVal's figures: before the fault, while it was active, and after it."""
    table = Table(
        "phase", "from", "events", "reliable", "throughput", "latency p50", "max", box=None
    )
    for name, part in {**figures["phases"], "run": figures}.items():
        latency_ms = part["latency_ms"] or {"p50": None, "max": None}
        reliable = part["reliability"]
        table.add_row(
            escape(name),
            f"{part['from_ms'] / 1000:.1f} s" if "from_ms" in part else "",
            f"{part['events']:,}",
            "" if reliable is None else f"{percent(reliable)} %",
            f"{part['reliable_throughput']:,.0f}/s",
            latency(latency_ms["p50"]),
            latency(latency_ms["max"]),
        )
    out = results()
    out.print(table)
    if figures["failure_cost_ms"] is not None:
        cost = latency(figures["failure_cost_ms"])
        out.print(f"[bold]failure cost[/] {cost} above the mean latency before the fault")


def percent(value: float) -> str:
    """A share that was rounded down: what is shown as 100 is 100."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def print_verdict(verdict: "Verdict") -> None:
    """Print what became of every guarantee, and why."""
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


def summary(metrics: Mapping[str, Any], rows: int) -> Iterator[tuple[str, str]]:
    """The lines of a summary: what it is about, and the figures."""
    yield (
        "output",
        f"{plural(rows, 'row')} published, {plural(metrics['commits'], 'line')} committed",
    )
    yield "records", _records(metrics)
    yield "latency", _latency(metrics)
    if metrics["checkpoints"]["stored"]:
        yield "checkpoints", _checkpoints(metrics["checkpoints"])
    if metrics["lost"]:
        yield "failures", _failures(metrics)
    volume = metrics["bytes"]
    kinds = ("messages", "headers", "wire", "log", "snapshots", "output")
    yield "bytes", ", ".join(f"{kind} {size(volume[kind])}" for kind in kinds if volume[kind])


def _records(metrics: Mapping[str, Any]) -> str:
    again = metrics["read_again"]
    return (
        f"{metrics['records_read']:,} read, {metrics['records_written']:,} written"
        + (f" ({again:,} read again)" if again else "")
        + f"; {metrics['rate']['read']:,.0f} per second"
    )


def _latency(metrics: Mapping[str, Any]) -> str:
    if metrics["latency_ms"]["p50"] == 0:  # no record is written in no time
        return "not measured: at rate max, records come before the times that they carry"
    text = f"written {_percentiles(metrics['latency_ms'])}"
    if metrics["committed_latency_ms"]:
        text += f"; published {_percentiles(metrics['committed_latency_ms'])}"
    return text


def _percentiles(figures: Mapping[str, float | None]) -> str:
    return f"p50 {latency(figures['p50'])}, p99 {latency(figures['p99'])}"


def _checkpoints(figures: Mapping[str, Any]) -> str:
    text = f"{figures['stored']:,} stored ({size(figures['bytes'])})"
    for name in ("forced", "skipped"):
        if figures[name]:
            text += f", {figures[name]:,} {name}"
    if figures["aborted_rounds"]:
        text += f", {plural(figures['aborted_rounds'], 'round')} aborted"
    if times := figures["time_ms"]:
        what = {"round": "a round", "task": "each"}[figures["timed"]]
        text += f"; {what} took {latency(times['median'])}, at most {latency(times['max'])}"
    return text


def _failures(metrics: Mapping[str, Any]) -> str:
    parts = [f"{plural(metrics['lost'], 'slot')} lost"]
    if metrics["detection_s"]:
        parts.append(f"noticed after {_seconds(metrics['detection_s'])}")
    if metrics["restart_s"]:
        parts.append(f"all running again {_seconds(metrics['restart_s'])} later")
    if metrics["recovery_s"]:
        parts.append(f"recovered after {_seconds(metrics['recovery_s'])}")
    return ", ".join(parts)


def _seconds(values: Iterable[float | None]) -> str:
    return ", ".join("> the run" if s is None else f"{s:.2f} s" for s in values)
