"""What a benchmark says: progress on the terminal, a table in Markdown, and a page that keeps it.

A page in `results/` opens with what a reader needs to judge it: the command, the date, the machine, and how
busy it was before. Programs end in good order on SIGTERM as on Ctrl-C, so no slot is left behind.
"""

import argparse
import os
import platform
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from snapline.experiments.statistics import Answer, Difference

HOME = Path(__file__).parents[1]
RESULTS = HOME / "results"
BUSY = 0.5  # load before; above it figures say little


def names(text: str) -> list[str]:
    """What stands between commas."""
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[int]:
    """Whole numbers between commas."""
    return [int(name) for name in names(text)]


def parser_of(doc: str | None, page: str) -> argparse.ArgumentParser:
    """A parser whose help is the program's docstring, with `--to`."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--to", type=Path, default=RESULTS / page, help=f"the page (results/{page})"
    )
    return parser


class Session:
    """One call of a benchmark, from its command line to its page."""

    def __init__(self, cores: int | None = None) -> None:
        """Note the load of the machine; stay on so many cores, and children with us."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what runs is ended
        self.load_before = os.getloadavg()[0]
        if cores is not None:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        self.cores = len(os.sched_getaffinity(0))

    def say(self, text: str) -> None:
        """A line of progress."""
        print(text, flush=True)

    def opening(self) -> str:
        """When and where, and how busy the machine was."""
        busy = (
            " (a **busy machine**: read no more than orders of magnitude)"
            if self.load_before > BUSY
            else ""
        )
        return (
            f"{datetime.now(UTC):%Y-%m-%d}, {_processor()}, {self.cores} cores, Python "
            f"{platform.python_version()}; load of the machine before: {self.load_before:.1f}{busy}."
        )

    def command(self) -> str:
        """How this program was called."""
        program = Path(sys.argv[0]).resolve().relative_to(HOME.parent).with_suffix("")
        return shlex.join(["python", "-m", ".".join(program.parts), *sys.argv[1:]])

    def commit(self) -> str:
        """What was measured; a star, if something was changed since."""
        git = ["git", "-C", str(HOME)]
        try:
            told = [*git, "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=*"]
            return subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return "unknown"

    def write(
        self, to: Path, title: str, how: Iterable[str], tables: Iterable[Sequence[str]]
    ) -> str:
        """Write the page of this call, and return it."""
        opening = [self.opening(), *how, f"Again: `{self.command()}`."]
        return self.keep(to, title, opening, tables)

    def keep(
        self, to: Path, title: str, opening: Iterable[str], tables: Iterable[Sequence[str]]
    ) -> str:
        """Write a page whose opening is known, and return it."""
        parts = [f"# {title}", "", *opening]
        parts += [line for table in tables for line in ("", *table)]
        page = "\n".join([*parts, ""])
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(page)
        print(f"\n{page}\n(written to {to})", flush=True)
        return page


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The lowest and the highest."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def with_spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, then the lowest and the highest."""
    return f"**{median(values):.{digits}f}** ({spread(values, digits)})"


def claimed(answer: Answer) -> str:
    """What a comparison answers; a difference that too few pairs show is indicated at most."""
    found = answer.difference
    differs = found in (Difference.MORE, Difference.LESS)
    return str(found) if answer.is_sure or not differs else f"indicated: {found}"


def call(main: Callable[[], None]) -> None:
    """Run a program; whoever presses Ctrl-C wants it to end, and no story."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
