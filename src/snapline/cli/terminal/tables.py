"""What the command line shows of a sweep: its table, and its progress."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from snapline.cli.terminal.console import messages
from snapline.sim.run import Outcome
from snapline.wording import plural

COLUMNS = ("crashes", "rollbacks", "replayed", "forced", "skipped", "useless")
WIDE = 94  # how wide the table of a sweep is with all its columns
PROGRESS_EVERY_S = 10.0


@dataclass(slots=True)
class Cell:
    """One row of the table: all runs of one protocol on one workload, added up."""

    protocol: str
    workload: str
    runs: int = 0
    violations: int = 0
    stats: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """The cell as `--json` prints it."""
        counts = {column: self.stats[column] for column in COLUMNS}
        names = {"protocol": self.protocol, "workload": self.workload}
        return {**names, "runs": self.runs, **counts, "violations": self.violations}


def cells(outcomes: Sequence[Outcome]) -> list[Cell]:
    """The outcomes of the runs that took place, added up per protocol and workload."""
    by_name: dict[tuple[str, str], Cell] = {}
    for outcome in outcomes:
        if outcome.refused is not None:
            continue
        name = outcome.case.protocol, outcome.case.workload
        cell = by_name.setdefault(name, Cell(*name))
        cell.runs += 1
        cell.violations += outcome.violation is not None
        cell.stats.update(outcome.stats)
    return list(by_name.values())


def refusals(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], str]:
    """(protocol, workload) -> why this combination does not run."""
    return {
        (outcome.case.protocol, outcome.case.workload): outcome.refused
        for outcome in outcomes
        if outcome.refused is not None
    }


def sweep_table(rows: Sequence[Cell], width: int) -> Table:
    """The table of a sweep: what happened for each protocol and workload, and what was broken.

    Where `width` does not hold all columns, a name that is the same in every row becomes the title, and
    counts are left out, those first that are 0 everywhere: rather fewer columns than headings that are cut.
    """
    padding = (0, 1 if width > WIDE + 10 else 0, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=padding, title_justify="left")
    names = {"protocol": [row.protocol for row in rows], "workload": [row.workload for row in rows]}
    for column, values in list(names.items()):
        if width < WIDE and table.title is None and values == values[:1] * len(values):
            table.title = f"{column} {values[0]}"
            del names[column]
        else:
            table.add_column(column, no_wrap=True)
    used = sum(1 + max(map(len, [name, *values])) for name, values in names.items())
    counts = _that_fit(rows, width - used - len("runs violations"))
    for column in ("runs", *counts, "violations"):
        table.add_column(column, justify="right", no_wrap=True)
    for n, row in enumerate(rows):
        ends = len(rows) > 8 and [r.protocol for r in rows[n : n + 2]] != [row.protocol] * 2
        table.add_row(
            *(values[n] for values in names.values()), *_numbers(row, counts), end_section=ends
        )
    return table


def _that_fit(rows: Sequence[Cell], room: int) -> list[str]:
    """The counts for which there is room."""
    shown = list(COLUMNS)
    idle = [column for column in COLUMNS if not any(row.stats[column] for row in rows)]
    for column in (*reversed(idle), *(each for each in reversed(COLUMNS) if each not in idle)):
        if sum(1 + _wide(each, rows) for each in shown) <= room:
            break
        shown.remove(column)
    return shown


def _wide(column: str, rows: Sequence[Cell]) -> int:
    return max([len(column), *(len(f"{row.stats[column]:,}") for row in rows)])


def _numbers(row: Cell, columns: Sequence[str]) -> list[str]:
    counts = [
        f"{row.stats[column]:,}" if row.stats[column] else "[dim]0[/dim]" for column in columns
    ]
    verdict = f"[bold red]{row.violations:,}[/]" if row.violations else "[green]0[/]"
    return [f"{row.runs:,}", *counts, verdict]


@contextmanager
def watching(total: int) -> Iterator[Callable[[Outcome], None]]:
    """Show how far a sweep is: a bar on a terminal, a line now and then elsewhere."""
    console = messages()
    if not console.is_terminal:
        yield _Lines(console, total)
        return
    violations = 0
    shown = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(TextColumn("{task.description}"), *shown, console=console, transient=True) as bar:
        task = bar.add_task("simulating", total=total)

        def advance(outcome: Outcome) -> None:
            nonlocal violations
            violations += outcome.violation is not None
            described = (
                f"simulating, [red]{violations} broken[/red]" if violations else "simulating"
            )
            bar.update(task, advance=1, description=described)

        yield advance


class _Lines:
    """Prints the progress of a sweep as a line now and then, where there is no terminal."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self.total = total
        self.done = 0
        self.violations = 0
        self.told_at = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        self.done += 1
        self.violations += outcome.violation is not None
        now = time.monotonic()
        if now - self.told_at >= PROGRESS_EVERY_S:
            self.told_at = now
            self.console.print(
                f"{self.done:,} of {plural(self.total, 'run')}, {self.violations} broken"
            )
