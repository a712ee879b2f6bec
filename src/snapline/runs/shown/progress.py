"""Shows how a run goes on to whoever started it from a program.

In a notebook a card is shown below the cell and drawn anew every second. IPython is not asked for: whoever
works in a notebook has loaded it. Everywhere else there are plain lines on standard error.
"""

import sys
from collections import deque
from typing import Any, Final

from snapline.errors import SnaplineError
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import FaultHappening
from snapline.journal.happenings import (
    JobFinished,
    JobRecovered,
    JobRunning,
    JobStopped,
    LineFound,
    SlotLost,
)
from snapline.journal.sentences import sentence
from snapline.metrics.second import Second
from snapline.runs.listener import Listening
from snapline.runs.shown.card import RunningRun, card
from snapline.runtime.driver.driver import Driver
from snapline.wording import latency
from snapline.workload import WORKLOADS

SECONDS_SHOWN: Final = 300
LINES_EVERY_S: Final = 5
"""How often plain lines say the numbers."""

_Told = FaultHappening | JobRunning | LineFound | SlotLost | JobRecovered | JobFinished | JobStopped
_VERDICTS = {
    "yes": "its output is right",
    "no": "its output is wrong",
    "unknown": "nobody knows whether its output is right",
}


class Progress(Listening):
    """A watcher that shows how a run goes on: `sl.run(flow, spark, watcher=sl.Progress())`.

    In a notebook `sl.run` has one unless it is given another watcher. `sl.Progress(quiet=True)` shows
    nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(None)
        self._place = _Silent() if quiet else _Card() if in_notebook() else _Lines()
        self._does, self._standing = "its slots start", "running"
        self._length_s: float | None = None
        self._seconds: deque[Second] = deque(maxlen=SECONDS_SHOWN)
        self._events: list[tuple[float, str]] = []

    def begins(self, driver: Driver) -> None:
        """Learn which run it is, and for how long its input comes."""
        super().begins(driver)
        try:
            self._length_s = _length_s(driver.directory.spec())
        except SnaplineError:
            self._length_s = None
        self._show()

    def event(self, happened: Happened) -> None:
        """Tell what happened, if it is worth a sentence."""
        what = happened.what
        if not isinstance(what, _Told):
            return
        at_s, words = happened.at_us / 1e6, sentence(happened)
        self._does = "its output is judged" if isinstance(what, JobFinished) else words
        self._events.append((at_s, words))
        self._place.event(at_s, words)
        self._show()

    def second(self, second: Second) -> None:
        """Show the numbers of a second."""
        self._seconds.append(second)
        self._place.second(second, self._length_s)
        self._show()

    def ended(self, problem: str | None, kept: str | None) -> None:
        """Show how the run ended."""
        super().ended(problem, kept)
        self._standing = kept or "unknown"
        self._does = problem or _VERDICTS.get(self._standing, self._standing)
        self._place.end(f"{self.run}: {self._does}")
        self._show()

    def _show(self) -> None:
        self._place.show(
            RunningRun(
                self.run or "the run",
                self._does,
                self._standing,
                tuple(self._seconds),
                self._events,
                self._length_s,
            )
        )


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _length_s(spec: dict[str, Any]) -> float | None:
    """For how long input comes, where that was said."""
    paced = spec.get("flow") in WORKLOADS and spec.get("rate") != "max" and not spec.get("endless")
    return spec["duration_ms"] / 1000 if paced and not spec.get("input") else None


class _Silent:
    """Shows nothing."""

    def event(self, at_s: float, words: str) -> None:
        """Something happened."""

    def second(self, second: Second, length_s: float | None) -> None:
        """A second is over."""

    def end(self, words: str) -> None:
        """The run is over."""

    def show(self, run: RunningRun) -> None:
        """Something has changed."""


class _Lines(_Silent):
    """Plain lines on standard error: what happened, and every few seconds the numbers."""

    def event(self, at_s: float, words: str) -> None:
        self._say(at_s, words)

    def second(self, second: Second, length_s: float | None) -> None:
        if (second.at_s + 1) % LINES_EVERY_S == 0:
            of = "" if length_s is None else f" of {length_s:.0f} s"
            backlog = "unknown" if second.backlog is None else f"{second.backlog:,}"
            numbers = (
                f"{second.read:,} records/s read, backlog {backlog}, p99 {latency(second.p99_ms)}"
            )
            self._say(second.at_s + 1, f"{numbers}{of and f'; {second.at_s + 1}{of}'}")

    def end(self, words: str) -> None:
        sys.stderr.write(f"{words}\n")

    def _say(self, at_s: float, words: str) -> None:
        sys.stderr.write(f"{at_s:8.2f} s  {words}\n")
        sys.stderr.flush()


class _Card(_Silent):
    """A card below the cell of a notebook, which is drawn anew when something has changed."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, run: RunningRun) -> None:
        shown = _Html(card(run), f"{run.name}: {run.does}")
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Html:
    """What a notebook shows as HTML, and others as a line of text."""

    def __init__(self, html: str, words: str) -> None:
        self._html, self._words = html, words

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._words
