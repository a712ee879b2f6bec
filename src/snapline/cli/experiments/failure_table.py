"""Prints what failures cost in the runs of a sweep: what was lost, and who put out nothing for how long."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from rich.table import Table

from snapline.cli.terminal.console import escape, results

HEADINGS = (
    "column",
    "kept",
    "rows lost",
    "came again",
    "restart",
    "silent: lost",
    "silent: others",
)


def print_failures(
    done: Sequence[Mapping[str, Any]], labels: Mapping[str, Mapping[str, Any]]
) -> None:
    """Print a row for each column in which something failed; `labels` has what varies in it."""
    table = Table(*HEADINGS, box=None, padding=(0, 2, 0, 0))
    for label, varied in labels.items():
        own = [each for each in done if each["varied"] == dict(varied) and not each["again"]]
        failed = [each for each in own if each["metrics"].get("failures")]
        if failed:
            table.add_row(escape(label), *_row(failed))
    if table.row_count:
        results().print("[bold]after failures[/], medians; silent are whole seconds without output")
        results().print(table)


def _row(failed: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    kept = [each["kept"] for each in failed]
    yield ", ".join(f"{kept.count(word)} {word}" for word in dict.fromkeys(kept))
    losses = [each["losses"] for each in failed if each.get("losses")]
    yield _middle([each["lost"] for each in losses], "{:,.0f}")
    yield _middle([each["again"] for each in losses], "{:,.0f}")
    failures = [failure for each in failed for failure in each["metrics"]["failures"]]
    yield _middle([failure["restart"]["s"] for failure in failures], "{:.2f} s")
    for who in ("hit", "others"):
        yield _middle([failure[who]["silent_s"] for failure in failures], "{:.0f} s")


def _middle(values: Sequence[float], form: str) -> str:
    return form.format(median(values)) if values else ""
