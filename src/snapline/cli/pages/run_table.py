"""The list of runs: when each began, how large it is, and its verdict; and the removal of old ones.

A terminal that is too narrow for all columns gets fewer of them, those that say least left out first.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from snapline.cli.terminal.console import escape, messages, results
from snapline.cli.terminal.run_page import short
from snapline.cli.terminal.summary import VERDICTS
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.wording import plural, size

if TYPE_CHECKING:
    from snapline.rundir.directory import RunDirectory

_LEAST_FIRST = ("faults", "flow", "protocol", "size", "began")
"""The columns that a narrow terminal does not get, in the order in which they are left out."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """What the list says of a run."""

    name: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any]
    bytes: int
    written_s: float  # when anything in it was last written to

    @property
    def began_s(self) -> float:
        """When its input began to be due; before that, when it was last written to."""
        began = self.spec.get("origin_s")
        return float(began) if isinstance(began, int | float) else self.written_s


def measured_directory(path: Path) -> tuple[int, float]:
    """How many bytes are in a directory, and when anything in it was last written to."""
    count, last_s = 0, 0.0
    folders = [str(path)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):  # it may vanish while a run goes on
                    known = entry.stat(follow_symlinks=False)
                    last_s = max(last_s, known.st_mtime)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        count += known.st_size
    return count, last_s


def print_runs(runs: Sequence[ListedRun]) -> None:
    """Print the list, and how much all of them take."""
    out = results()
    rows = [dict(_cells(run)) for run in runs]
    names = list(rows[0])
    for name in _LEAST_FIRST:
        if sum(max(len(name), *(len(row[name]) for row in rows)) + 2 for name in names) > out.width:
            names.remove(name)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        fixed = name in ("began", "size", "verdict")
        right = "right" if name == "size" else "left"
        table.add_column(name, no_wrap=fixed, justify=right, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        colours = {word: colour for colour, word in VERDICTS.values()}
        verdict = escape(row["verdict"])
        colour = colours.get(row["verdict"], "yellow")
        told = {**{name: escape(row[name]) for name in names}, "verdict": f"[{colour}]{verdict}[/]"}
        table.add_row(*(told[name] for name in names))
    out.print(table)
    whole = size(sum(run.bytes for run in runs))
    messages().print(
        f"{plural(len(runs), 'run')}, {whole}; 'snapline runs rm --older 7d' removes old ones"
    )


def _cells(run: ListedRun) -> Iterator[tuple[str, str]]:
    spec = run.spec
    yield "run", short(run.name)
    yield "began", date_of(run.began_s)
    yield "size", size(run.bytes)
    yield "flow", short(spec.get("flow", "?"))
    yield "protocol", short(spec.get("protocol") or spec.get("system", "?"))
    yield "faults", short(spec.get("faults", "?"))
    yield "verdict", VERDICTS.get(str(run.result.get("kept")), ("", "not finished"))[1]


def date_of(seconds: float) -> str:
    """A moment in the time of this machine, to the minute."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "?"


def remove_runs(runs: Path, name: str | None, older: str | None) -> None:
    """Remove the run of this name, or all that are older, and say which. Raises UsageError."""
    if older is not None:
        if name is not None:
            raise UsageError("name a run to remove, or say --older 7d, but not both")
        _remove_older(runs, older)
        return
    if name is None:
        raise UsageError("say which run to remove: 'snapline runs rm NAME', or --older 7d")
    messages().print(f"removed {escape(_remove_idle(runs, name))}")


def _remove_idle(runs: Path, name: str) -> str:
    """Remove a run by its name, or the `last`; returns its name. Raises UsageError if it goes on."""
    from snapline.rundir.directory import RunDirectory, last_run, remove_run
    from snapline.rundir.presence import refuse_if_driven

    name = last_run(runs).name if name == "last" else name
    refuse_if_driven(RunDirectory(runs / name))
    return remove_run(runs, name)


def _remove_older(runs: Path, text: str) -> None:
    """Remove the runs that nothing was written to for so long. Raises UsageError."""
    from snapline.rundir.directory import run_directories

    least_s = _age_s(text)
    freed, removed = 0, 0
    for path in run_directories(runs):
        count, written_s = measured_directory(path)
        if time.time() - written_s < least_s:
            continue
        try:
            messages().print(f"removed {escape(_remove_idle(runs, path.name))}")
        except UsageError as error:
            messages().print(f"{escape(path.name)} stays: {escape(error)}", soft_wrap=True)
            continue
        freed, removed = freed + count, removed + 1
    messages().print(f"{plural(removed, 'run')} removed, {size(freed)} freed")


def _age_s(text: str) -> float:
    """An age such as 7d, or a duration such as 12h, in seconds. Raises UsageError."""
    days = text.removesuffix("d")
    if text.endswith("d") and days.isascii() and days.isdecimal() and len(days) < 6:
        return int(days) * 86_400.0
    try:
        return millis(text, "--older", least_ms=1) / 1000
    except UsageError as error:
        raise UsageError(f"--older is written as 7d, 12h or 30m, not {text!r}") from error


def listed_run(directory: "RunDirectory", result: Mapping[str, Any]) -> ListedRun:
    """What the list says of a run whose files can be read."""
    count, written_s = measured_directory(directory.path)
    return ListedRun(directory.name, directory.spec(), result, count, written_s)
