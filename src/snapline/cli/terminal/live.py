"""What is shown while a run goes on: events as they come, and the numbers of the last second.

On a terminal the numbers stand in a table below the events and are drawn once a second; elsewhere both are
plain lines, with numbers every few seconds. All of it goes to standard error, and the table vanishes at the
end: what stays are the events, and the summary on standard output.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from snapline.cli.terminal.console import escape, messages
from snapline.journal.entry import Happened
from snapline.journal.happenings import (
    CoordinatorDeposed,
    GarbageCollected,
    JobFinished,
    JobInterrupted,
    JobSuspended,
    LineDecided,
    Measurement,
    MessageHappening,
    OutputPublished,
    SlotLaunched,
    SlotLost,
    SlotRestored,
)
from snapline.journal.sentences import sentence
from snapline.metrics.figures import is_line
from snapline.metrics.second import Second
from snapline.protocols import DEFAULT, committed
from snapline.wording import latency, plural, size

NUMBERS_EVERY_S = 5
SPARK_S = 60  # how many seconds the row of bars shows
WIDE = 104  # how wide the table is with all its columns
SPARED = ("lines", "decisions", "stored", "slots")  # columns that a narrow terminal does without
_BARS = "▁▂▃▄▅▆▇█"

Routine: TypeAlias = (
    LineDecided
    | OutputPublished
    | GarbageCollected
    | JobInterrupted
    | JobSuspended
    | CoordinatorDeposed
    | SlotLaunched
    | SlotRestored
    | MessageHappening
    | Measurement
)
"""Events that get no line: they happen all the time, or the numbers or the command tell them."""


@contextmanager
def watching_run(
    console: Console | None = None, protocol: str = DEFAULT
) -> Iterator["EventTeller"]:
    """Make a watcher that shows on the console how a run goes on, until the `with` block ends."""
    noun, _ = committed(protocol)
    console = console or messages()
    if not console.is_terminal:
        yield EventTeller(console, noun)
        return
    # It has no thread: it is drawn only when there is something new, and does not flicker.
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveTeller(live, noun)


class EventTeller:
    """Prints what happens while a run goes on, in plain lines."""

    def __init__(self, console: Console, noun: str = "line") -> None:
        self.console = console
        self.noun = noun  #: what the coordinator commits, or makes
        self.commits = 0
        self._heard = False  #: whether any event has come
        self._told_s = 0  #: when numbers were last printed, in seconds of the run

    def event(self, happened: Happened) -> None:
        """Print an event of the driver, if it is worth a line."""
        if not self._heard and isinstance(happened.what, LineDecided):
            self.console.print("Spark runs; its slots start ...")
        self._heard = True
        self.commits += is_line(happened)
        text = describe(happened, self.commits, self.noun)
        if text is not None:
            self._say(happened.at_us / 1e6, text)

    def second(self, second: Second) -> None:
        """Print the numbers of a second, once every few seconds."""
        if second.at_s + 1 - self._told_s >= NUMBERS_EVERY_S:
            self._told_s = second.at_s + 1
            shown = columns(second, self.noun).items()
            numbers = ", ".join(f"{name} {value}" for name, value in shown)
            self._say(second.at_s + 1, numbers)

    def _say(self, at_s: float, text: str) -> None:
        self.console.print(f"{at_s:8.2f} s  {escape(text)}", soft_wrap=True)


class LiveTeller(EventTeller):
    """Keeps the numbers of the last second in a table below the events."""

    def __init__(self, live: Live, noun: str = "line") -> None:
        super().__init__(live.console, noun)
        self._live = live
        self._written: deque[int] = deque(maxlen=SPARK_S)

    def second(self, second: Second) -> None:
        """Draw the table with the numbers of this second."""
        self._written.append(second.written)
        wide = self.console.width >= WIDE
        self._live.update(live_table(second, self._written, self.noun, wide=wide), refresh=True)


def live_table(second: Second, written: Sequence[int], noun: str = "line", *, wide: bool) -> Group:
    """The numbers of a second, and the output of the last minute."""
    shown = {"time": f"{second.at_s + 1} s", **columns(second, noun)}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, int(wide), 0, 0))
    for name in list(shown):
        if wide or name not in SPARED:
            table.add_column(name, justify="right", no_wrap=True, min_width=6)
        else:
            del shown[name]
    table.add_row(*shown.values())
    return Group(table, Text(f"out {sparkline(written)}", style="cyan"))


def columns(second: Second, noun: str = "line") -> dict[str, str]:
    """The numbers of a second, by name."""
    volume = second.volume
    return {
        "in/s": f"{second.read:,}",
        "out/s": f"{second.written:,}",
        # At rate max records come before the times that they carry, and there is no latency to show.
        "p50": latency(second.p50_ms or None),
        "p99": latency(second.p99_ms or None),
        "backlog": "-" if second.backlog is None else f"{second.backlog:,}",
        "checkpoints": f"{second.checkpoints:,}",
        f"{noun}s": f"{second.lines:,}",
        "sent": f"{size(volume.wire)}/s",
        "stored": f"{size(volume.log + volume.snapshots + volume.output)}/s",
        "slots": f"{second.running}",
        "epoch": f"{second.epoch}",
    }


def describe(happened: Happened, commits: int, noun: str = "line") -> str | None:
    """An event as a sentence, some with what was committed so far; None for an event without a line."""
    match happened.what:
        case SlotLost() if noun == "line":
            return f"{sentence(happened)}; {plural(commits, noun)} committed before"
        case JobFinished():
            return f"{sentence(happened)} ({plural(commits, noun)})"
        case what if isinstance(what, Routine):
            return None
        case _:
            return sentence(happened)


def sparkline(values: Sequence[int]) -> str:
    """A text of one bar per value; the highest value has a full bar."""
    highest = max(values, default=0)
    last = len(_BARS) - 1
    return "".join(_BARS[value * last // highest if highest else 0] for value in values)
