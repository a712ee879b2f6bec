"""What `snapline checkpoints` prints: the lines that a run keeps, and what is wrong with their files."""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.ids import checkpoint_label
from snapline.wording import plural, size

if TYPE_CHECKING:
    from snapline.rundir.lines.listing import ListedCheckpoint, ListedLine
    from snapline.rundir.lines.verify import DamagedFile, Tell, Verified

HELP = """Show the lines that a run keeps, and its checkpoints; with --verify, read all that they need.

A line is one checkpoint of each task, and a run can go on from it. A run keeps its last lines whole, so \
that damage to the newest leaves another: two of them, or as many as [cyan]--option kept_lines=N[/] says. \
[cyan]snapline run --fork[/] makes a new run of each.

Exit codes: 0 all is whole or nothing was read, 1 a file that a kept line needs is damaged or gone, 2 bad \
input. docs/glossary.md explains the words."""

EXAMPLES = """[bold]Examples[/bold]

Show the lines of the last run, with sizes and ages:
[cyan]snapline checkpoints last[/cyan]

Read every snapshot, log and output file that these lines need, and name those that are damaged:
[cyan]snapline checkpoints last --verify[/cyan]

Begin a new run at one of the lines:
[cyan]snapline run --fork last --line 12[/cyan]"""

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN|last", help="The name of the run, or [cyan]last[/] for the newest."
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        metavar=" ",
        help="Read all that the kept lines need: snapshots with what they build on, messages in flight, "
        "decisions, and published output. Nothing is changed. The run must not be going on.",
    ),
]
QUIET_S = 3.0
"""For how long nothing is said about how far the reading has come, and between two such messages."""


def print_lines(name: str, lines: list["ListedLine"]) -> None:
    """Print the lines as one table, and their checkpoints as another."""
    out = results()
    if not lines:
        out.print(f"{escape(name)} has decided nothing, so it keeps no line")
        return
    out.print(f"[bold]{plural(len(lines), 'line')} that {escape(name)} keeps[/]", soft_wrap=True)
    table = Table("line", "age", "snapshots", "replayed", "manifests", "", box=None)
    for line in lines:
        table.add_row(
            str(line.number),
            age(line.age_s),
            size(line.bytes),
            plural(line.replayed, "message"),
            f"{line.manifests:,}",
            "newest" if line.newest else "",
        )
    out.print(table)
    out.print("[bold]checkpoints[/]")
    table = Table("line", "task", "checkpoint", "age", "size", "builds on", box=None)
    for number, checkpoint in ((ln.number, each) for ln in lines for each in ln.checkpoints):
        table.add_row(str(number), *_cells(checkpoint))
    out.print(table)


def _cells(checkpoint: "ListedCheckpoint") -> Iterator[str]:
    meta, bases = checkpoint.meta, checkpoint.bases
    yield escape(checkpoint.task)
    yield checkpoint_label(meta.checkpoint)
    yield age(checkpoint.age_s)
    yield size(meta.bytes)
    yield f"{bases} more, {size(checkpoint.bytes - meta.bytes)}" if bases else "-"


def age(seconds: float | None) -> str:
    """An age as people say it: in the largest unit of which at least one has passed."""
    if seconds is None:
        return "gone"
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def print_verified(name: str, verified: "Verified") -> None:
    """Print what is damaged, or that nothing is."""
    out = results()
    for damage in verified.damages:
        out.print(f"[bold red]damaged[/] {escape(damage.file)}", soft_wrap=True)
        out.print(f"  {escape(damage.problem)}", soft_wrap=True)
        out.print(f"  needed for: {escape(damage.needed_for)}", soft_wrap=True)
    read = f"{plural(len(verified.files), 'file')}, {size(verified.bytes)}"
    if verified.damages:
        broken = len({damage.file for damage in verified.damages})
        out.print(
            f"[bold red]damaged[/]: {plural(broken, 'file')} that kept lines of {escape(name)} need; put "
            "back what you have a copy of, and verify again",
            soft_wrap=True,
        )
    else:
        out.print(
            f"[bold green]whole[/]: every file that a kept line of {escape(name)} needs was read ({read})",
            soft_wrap=True,
        )


def lines_json(
    name: str, path: str, lines: list["ListedLine"], verified: "Verified | None"
) -> None:
    """Print the same as one JSON document."""
    document: dict[str, Any] = {
        "version": JSON_VERSION,
        "run": name,
        "directory": path,
        "lines": [_line(line) for line in lines],
    }
    if verified is not None:
        document["verified"] = {
            "files": len(verified.files),
            "bytes": verified.bytes,
            "damages": list(_damages(verified.damages)),
        }
    print_json(document)


def _line(line: "ListedLine") -> dict[str, Any]:
    return {
        "line": line.number,
        "newest": line.newest,
        "age_s": line.age_s,
        "bytes": line.bytes,
        "replayed_messages": line.replayed,
        "manifests": line.manifests,
        "checkpoints": [
            {
                "task": each.task,
                "checkpoint": checkpoint_label(each.meta.checkpoint),
                "age_s": each.age_s,
                "bytes": each.meta.bytes,
                "builds_on": each.bases,
                "bytes_in_all": each.bytes,
            }
            for each in line.checkpoints
        ],
    }


def _damages(damages: Iterable["DamagedFile"]) -> Iterator[dict[str, str]]:
    for damage in damages:
        yield {"file": damage.file, "problem": damage.problem, "needed_for": damage.needed_for}


def progress() -> "Tell":
    """Make a function that says now and then how much was read, once that takes longer."""
    due_s = monotonic() + QUIET_S

    def tell(done: int, total: int) -> None:
        nonlocal due_s
        if monotonic() >= due_s and done < total:
            due_s = monotonic() + QUIET_S
            messages().print(f"read {size(done)} of {size(total)}")

    return tell
