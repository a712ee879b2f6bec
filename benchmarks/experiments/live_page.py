"""What the live page costs the run that it shows, and how soon it shows what happened.

    python -m benchmarks.experiments.live_page --pairs 8

*With*: the page is served beside the run, as `snapline run --live` does, and somebody looks at it all the
time. *Without*: there is no page. Each pair compares q12 at full speed (records per second) and at a fixed
rate (p50 and p99). Then runs with the page lose a slot: for each event of the run, the time between its
journal entry and the moment at which a viewer has it is measured. Two slots as plain processes, and every
run is judged. The viewer is a process that reads what a browser would be sent; it draws nothing.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from math import inf
from pathlib import Path
from statistics import median

from benchmarks.common.pages import Session, call, claimed, parser_of, table
from benchmarks.common.plain_run import plain_run
from snapline.experiments.statistics import answer
from snapline.journal.entry import Happened
from snapline.journal.sentences import sentence
from snapline.metrics.figures import Figures
from snapline.metrics.second import Second
from snapline.report.live.follower import follow_run
from snapline.report.live.process import LiveProcess
from snapline.report.page.failures import Told
from snapline.rundir.spec import Spec, spec_from
from snapline.runs.listener import Beginning
from snapline.runtime.driver.driver import Driver

KILL = "kill slot=1 at=4s"
#: Prints, for every piece of news, when it came and the part of the page that tells what happened.
VIEWER = """
import json, sys, time
from urllib.request import urlopen

with urlopen(sys.argv[1] + "events?since=0", timeout=60) as news:
    for line in news:
        if line.startswith(b"data: "):
            story = json.loads(line[6:]).get("story", "")
            print(json.dumps([time.monotonic(), story]), flush=True)
"""


@dataclass
class Viewed:
    """A watcher that shows the run on a live page to one viewer, and notes when its events happened."""

    told: list[tuple[float, str]] = field(default_factory=list)
    page: LiveProcess | None = None
    viewer: subprocess.Popen[str] | None = None

    def begin(self, driver: Driver) -> None:
        """Serve the page, and look at it."""
        self.page = LiveProcess(partial(follow_run, driver.directory.path))
        assert self.page.url is not None, "the page could not be served"
        self.viewer = subprocess.Popen(
            [sys.executable, "-c", VIEWER, self.page.url], stdout=subprocess.PIPE, text=True
        )

    def event(self, happened: Happened) -> None:
        """Note when something happened that the page tells."""
        if isinstance(happened.what, Told):
            self.told.append((time.monotonic(), escape(sentence(happened))))

    def second(self, second: Second) -> None:
        """Do nothing."""

    def delays_s(self) -> list[float]:
        """End the page; how long after each event the viewer had it. One that never came is infinite."""
        assert self.page is not None
        assert self.viewer is not None
        self.page.stop()
        seen, _ = self.viewer.communicate(timeout=60)
        news = [json.loads(line) for line in seen.splitlines()]
        return [
            next((came_s - at_s for came_s, story in news if came_s >= at_s and text in story), inf)
            for at_s, text in self.told
        ]


def shown(spec: Spec, runs: Path) -> tuple[Figures, list[float]]:
    """One real run beside its live page; with how long after each event the viewer had it."""
    viewed = Viewed()
    run = plain_run(spec, runs, Beginning(viewed.begin, viewed))
    return run.figures, viewed.delays_s()


def measured(fast: Spec, paced: Spec, runs: Path, *, live: bool) -> dict[str, float]:
    """One run at full speed, and one at a fixed rate."""
    done, timed = (
        shown(spec, runs)[0] if live else plain_run(spec, runs).figures for spec in (fast, paced)
    )
    assert done.rate is not None
    assert timed.latency_ms is not None
    assert timed.latency_ms.p50 is not None
    assert timed.latency_ms.p99 is not None
    return {
        "records per second": done.rate.read,
        "latency p50, ms": timed.latency_ms.p50,
        "latency p99, ms": timed.latency_ms.p99,
    }


def main() -> None:
    parser = parser_of(__doc__, "live_page.md")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--records", type=int, default=20_000_000, help="of a run at full speed")
    parser.add_argument(
        "--rate", type=int, default=100_000, help="records a second, where it is fixed"
    )
    parser.add_argument("--seconds", type=int, default=10, help="of a run at a fixed rate")
    parser.add_argument("--kills", type=int, default=3, help="runs that lose a slot")
    asked = parser.parse_args()
    given = {"flow": "q12", "protocol": "aligned", "slots": 2, "interval": "1s"}
    fast = spec_from({**given, "rate": "max", "records": asked.records}, str)
    paced = spec_from(
        {**given, "rate": asked.rate, "duration": f"{asked.seconds}s", "warm_up": "2s"}, str
    )
    session, drawn = Session(cores=2), random.Random(1)
    found: dict[str, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    delays_s: list[float] = []
    with tempfile.TemporaryDirectory(prefix="snapline-live-") as folder:
        for pair in range(asked.pairs):
            for live in drawn.sample([True, False], 2):
                figures = measured(fast, paced, Path(folder), live=live)
                for figure, value in figures.items():
                    found[figure][live].append(value)
                told = ", ".join(f"{figure} {value:,.1f}" for figure, value in figures.items())
                session.say(f"{pair + 1}  {'with' if live else 'without':<8} {told}")
        for kill in range(asked.kills):
            late = shown(replace(paced, faults=KILL), Path(folder))[1]
            session.say(f"kill {kill + 1}: {len(late)} events, the last after {max(late):.2f} s")
            delays_s += late
    rows = []
    for figure, columns in found.items():
        ratio, verdict = answer(columns[False], columns[True])
        span = f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        rows.append([figure, span, claimed(verdict)])
    how = [
        f"Commit {session.commit()}; {asked.pairs} pairs. Ratios of runs with a live page and a viewer to",
        "runs without, with their 95 % intervals. All outputs were right.",
        f"In {asked.kills} runs that lost a slot the viewer had an event {median(delays_s):.2f} s",
        f"after its journal entry (median of {len(delays_s)}), at most {max(delays_s):.2f} s.",
    ]
    head = ["figure", "with / without", "verdict"]
    session.write(asked.to, "What the live page costs", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
