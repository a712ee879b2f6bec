"""`snapline validate RUN --follow`: the verdict on a run while it goes on.

On a terminal one line is kept up to date; elsewhere there is a line every few seconds, as long as something
changes. What is found wrong is said at once, a line for each cause. All of that goes to standard error; the
verdict follows when the run is over.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.status import Status

from snapline.cli.terminal.console import escape, messages
from snapline.dataflow.graph import Dataflow
from snapline.judge.evidence import Question
from snapline.judge.lineage import LineageReport
from snapline.judge.live import JudgedSoFar, LiveJudge, live_judge
from snapline.judge.report_files import reliability
from snapline.judge.run_directory import Judgement, judge
from snapline.rundir.directory import RunDirectory
from snapline.validate.causes import Cause
from snapline.wording import plural

POLL_S: Final = 1.0
LINE_EVERY_S: Final = 5.0
QUIET_S: Final = 15.0
"""After so long without news a message says so: perhaps nobody writes to the run any more."""


def follow(directory: RunDirectory, question: Question, flow: Dataflow | None = None) -> Judgement:
    """Judge a run while it goes on, and print how far it is; return the judgement when it is over."""
    live = live_judge(directory)
    with _telling(live) as teller:
        while directory.result() is None:
            teller.tell(live.poll(teller.tell))
            time.sleep(POLL_S)
        live.poll(teller.tell)
        report = live.finish()
    if report.judged.undecided is None:
        return judge(directory, question, flow=flow, report=report)
    messages().print(
        "output came for a window that was judged already: the whole run is judged again",
        style="dim",
    )
    return judge(directory, question, flow=flow)


@contextmanager
def _telling(judge: LiveJudge) -> Iterator["FollowTeller"]:
    console = messages()
    if not console.is_terminal:
        yield FollowTeller(judge, console)
        return
    with console.status("waiting for output") as status:
        yield FollowTeller(judge, console, status)


class FollowTeller:
    """Prints how far the judge has come, and what it has found."""

    def __init__(self, judge: LiveJudge, console: Console, status: Status | None = None) -> None:
        self._judge: Final = judge
        self._console: Final = console
        self._status: Final = status
        self._found: set[Cause] = set()
        self._last: JudgedSoFar | None = None
        self._changed_s = self._now_s()
        self._said_s = -LINE_EVERY_S
        self._said = ""

    def tell(self, progress: JudgedSoFar) -> None:
        """Print what is new since the last call."""
        if progress != self._last:
            self._last, self._changed_s = progress, self._now_s()
        if new := progress.judged.causes.keys() - self._found:
            self._witnesses(self._judge.report(progress.judged), new)
        text = described(progress)
        quiet_s = self._now_s() - self._changed_s
        if quiet_s >= QUIET_S:
            text += f"; nothing new for {quiet_s // QUIET_S * QUIET_S:.0f} s"
        if self._status is not None:
            self._status.update(text)
        elif text != self._said and self._now_s() - self._said_s >= LINE_EVERY_S:
            self._console.print(text, soft_wrap=True)
            self._said, self._said_s = text, self._now_s()

    def _witnesses(self, report: LineageReport, new: set[Cause]) -> None:
        for cause in Cause:
            if cause in new:
                told = f"[red]{cause}[/]: {escape(report.sentences[cause])}"
                self._console.print(told, soft_wrap=True)
        self._found |= new

    def _now_s(self) -> float:
        return time.monotonic()


def described(progress: JudgedSoFar) -> str:
    """How far the judge has come, in one line."""
    held = f"holding {plural(progress.held_events, 'event')}, {progress.held_bytes / 1024:,.0f} KB"
    held += f" of at most {progress.bound_bytes / 1024:,.0f}"
    if progress.through_ms is None:
        return f"nothing to judge yet; {held}"
    judged = progress.judged
    through = (
        f"judged through {progress.through_ms / 1000:,.1f} s: {plural(judged.inputs, 'event')}"
    )
    return f"{through}, reliability {reliability(judged)}; {held}"
