"""What is shown while a run goes on: events as they come, and the numbers of the last second.

On a terminal the numbers stand in a table below the events and are drawn once a second; elsewhere both are
plain lines, with numbers every few seconds. All of it goes to standard error, and the table vanishes at the
end: what stays are the events, and the summary on standard output.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from snapline.cli.terminal.console import escape, messages
from snapline.journal.entry import COORDINATOR, Happened
from snapline.metrics.second import Second
from snapline.wording import plural

NUMBERS_EVERY_S = 5
SPARK_S = 60  # so many seconds are drawn
WIDE = 104  # what the table needs with all its columns
SPARED = ("lines", "stored", "slots")  # the columns that go first
_BARS = "▁▂▃▄▅▆▇█"


@contextmanager
def watching_run(console: Console | None = None) -> Iterator["EventTeller"]:
    """Who tells how a run goes on, for as long as it does."""
    console = console or messages()
    if not console.is_terminal:
        yield EventTeller(console)
        return
    # No thread of its own: it is drawn when there is something new, and never flickers.
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveTeller(live)


class EventTeller:
    """Says what happens while a run goes on, in plain lines."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.commits = 0
        self._heard = False  #: whether anything has happened
        self._told_s = 0  #: when numbers were last said

    def event(self, happened: Happened) -> None:
        """Take an event of the driver."""
        if not self._heard and happened.what == "decided":
            self.console.print("Spark runs; its slots start ...")
        self._heard = True
        if happened.what == "decided":
            self.commits += happened.detail["epoch"] == happened.epoch
        text = describe(happened, self.commits)
        if text is not None:
            self._say(happened.at_us / 1e6, text)

    def second(self, second: Second) -> None:
        """Say the numbers now and then."""
        if second.at_s + 1 - self._told_s >= NUMBERS_EVERY_S:
            self._told_s = second.at_s + 1
            numbers = ", ".join(f"{name} {value}" for name, value in columns(second).items())
            self._say(second.at_s + 1, numbers)

    def _say(self, at_s: float, text: str) -> None:
        self.console.print(f"{at_s:8.2f} s  {escape(text)}", soft_wrap=True)


class LiveTeller(EventTeller):
    """Keeps the numbers of the last second in a table below the events."""

    def __init__(self, live: Live) -> None:
        super().__init__(live.console)
        self._live = live
        self._written: deque[int] = deque(maxlen=SPARK_S)

    def second(self, second: Second) -> None:
        """Draw the table anew."""
        self._written.append(second.written)
        wide = self.console.width >= WIDE
        self._live.update(live_table(second, self._written, wide=wide), refresh=True)


def live_table(second: Second, written: Sequence[int], *, wide: bool) -> Group:
    """The numbers of a second, and the output of the last minute."""
    shown = {"time": f"{second.at_s + 1} s", **columns(second)}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, int(wide), 0, 0))
    for name in list(shown):
        if wide or name not in SPARED:
            table.add_column(name, justify="right", no_wrap=True, min_width=6)
        else:
            del shown[name]
    table.add_row(*shown.values())
    return Group(table, Text(f"out {sparkline(written)}", style="cyan"))


def columns(second: Second) -> dict[str, str]:
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
        "lines": f"{second.lines:,}",
        "sent": f"{size(volume.wire)}/s",
        "stored": f"{size(volume.log + volume.snapshots + volume.output)}/s",
        "slots": f"{second.running}",
        "epoch": f"{second.epoch}",
    }


def describe(happened: Happened, commits: int) -> str | None:
    """An event in words; None for those that only figures need."""
    detail = happened.detail
    match happened.what:
        case "killed":
            return f"signal {detail['signal']} to {happened.actor} (process {detail['pid']})"
        case "missed" if "signal" in detail:
            return f"signal {detail['signal']} finds nobody: {happened.actor} is not back yet"
        case "missed":
            return f"'{detail['fault']}' finds nobody: {happened.actor} is not back yet"
        case "paused":
            return f"{happened.actor} stands still"
        case "continued":
            return f"{happened.actor} goes on"
        case "slowed":
            return f"{happened.actor} is slower by {detail['delay_ms']} ms"
        case "failing":
            return f"the store fails: {detail['percent']} % of all calls"
        case "healed":
            return f"over: {detail['fault']}"
        case "coordinator-killed":
            return "the driver kills itself"
        case "coordinator-resumed":
            return "the run goes on from its last line"
        case "lost":
            return f"slot {detail['slot']} lost; {plural(commits, 'line')} committed before"
        case "failed":
            who = f"operator '{detail['operator']}'" if detail["operator"] else happened.actor
            return f"{who} has raised {detail['kind']}"
        case "not started":
            return f"{detail['because']}; another is started"
        case "cut":
            other = detail["other"]
            named = other if isinstance(other, str) else f"slot {other}"
            return f"{happened.actor} is cut off from {named}"
        case "cut off":
            return f"{happened.actor} is given up: it has lost another slot"
        case "outage":
            return f"the store is away for {detail['for_ms'] / 1000:g} s"
        case "back":
            return "the store is back"
        case "waiting":
            return f"the store fails, the job waits: {detail['because']}"
        case "damaged":
            return f"a snapshot of {happened.actor} is damaged"
        case "line":
            stored, skipped = plural(detail["stored"], "checkpoint"), detail["skipped"]
            return (
                f"line found: {detail['stored'] - skipped} of {stored}, {skipped} skipped; "
                f"back by {detail['back_s']:.1f} s and about {plural(detail['back_records'], 'record')}"
            )
        case "running" if happened.actor == COORDINATOR:
            return f"all slots run (epoch {happened.epoch})"
        case "running":
            return f"{happened.actor} runs again; the others never stopped"
        case "recovered":
            return f"recovered in {detail['recovery_s']:.1f} s"
        case "finished":
            return f"all input is processed and all output published ({plural(commits, 'line')})"
        case "stopped":
            return f"stopped: {detail['problem']}"
        case _:
            return None


def sparkline(values: Sequence[int]) -> str:
    """One bar per value; the highest is full."""
    highest = max(values, default=0)
    last = len(_BARS) - 1
    return "".join(_BARS[value * last // highest if highest else 0] for value in values)


def latency(value_ms: float | None) -> str:
    """A latency with as many digits as it deserves."""
    if value_ms is None:
        return "-"
    if value_ms < 0.1:
        return "<0.1 ms"
    if value_ms >= 10_000:
        return f"{value_ms / 1000:.1f} s"
    return f"{value_ms:.0f} ms" if value_ms >= 10 else f"{value_ms:.1f} ms"


def size(count: float) -> str:
    """Bytes, as people read them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
