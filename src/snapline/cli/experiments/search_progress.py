"""Tells how a search for a capacity goes on: what runs, what it does, and about how long the rest takes."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING

from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.rates.capacity import Trial
    from snapline.experiments.rates.pace import Window
    from snapline.metrics.second import Second

NUMBERS_EVERY_S = 5
"""How often a run that goes on says its numbers."""

JUDGING_EVERY_S = 15.0
"""How often it is said that a run is still being judged."""

START_S = 6.0
"""What a run takes beside its input, until one was measured: to start its slots, and to judge it."""

MAIN_FIGURES = ("records read", "latency p99", "published p99", "recovery")
"""What is said of a sweep while it goes on; all figures are shown at its end."""

LAST_TRIES = 4
"""How many of the last tries say how long the next one takes: judging takes longer at higher rates."""


class SearchProgress:
    """Says in plain lines how a search goes on; `say` prints a line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._took_s: list[float] = []

    def begins(self, rate: "int | None", window: "Window", left: int | None) -> None:
        """Say which rate is tried, and about how long the search takes from here on."""
        if rate is None:
            self._say(f"at full speed for {window.end_s} s, to know where to begin")
            return
        each_s = fmean(self._took_s[-LAST_TRIES:] or [window.end_s + START_S])
        rest = "" if left is None else f"; about {minutes(left * each_s)} left"
        number = len(self._took_s) + 1
        self._say(f"try {number}: {rate:,} records/s for {window.end_s} s{rest}")

    def second(self, second: "Second", window: "Window") -> None:
        """Say the numbers of a run, once every few seconds."""
        at_s = second.at_s + 1
        if at_s > window.end_s or (at_s % NUMBERS_EVERY_S and at_s != window.end_s):
            return
        phase = "warm-up" if at_s <= window.warm_up_s else "measured"
        backlog = "unknown" if second.backlog is None else f"{second.backlog:,}"
        p99 = "" if second.p99_ms is None else f", p99 {second.p99_ms:.1f} ms"
        lines = f", {plural(second.lines, 'line')}" if second.lines else ""
        self._say(
            f"  {phase}, {at_s} of {window.end_s} s: {second.read:,} records/s read, "
            f"backlog {backlog}{p99}{lines}"
        )

    @contextmanager
    def judging(self, records: int) -> Iterator[None]:
        """Say that a run is judged, and again and again that it still is."""
        self._say(f"  kept pace; judging {plural(records, 'record')}")
        over, begun_s = threading.Event(), time.monotonic()

        def tell() -> None:
            while not over.wait(JUDGING_EVERY_S):
                self._say(f"  still judging, for {time.monotonic() - begun_s:.0f} s")

        teller = threading.Thread(target=tell, name="judging", daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()

    def tried(self, trial: "Trial") -> None:
        """Say how a rate did."""
        self._took_s.append(trial.took_s)
        self._say(f"  {trial.rate:,} records/s {outcome(trial)} ({trial.took_s:.0f} s)")


def outcome(trial: "Trial") -> str:
    """Whether a rate is sustained, and if not, why not."""
    return "sustained" if trial.sustained else f"not sustained: {'; '.join(trial.because)}"


def minutes(seconds: float) -> str:
    """A time that is only about right."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
