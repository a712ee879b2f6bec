"""Runs a workload on a system under test at a rate, and says whether the system kept pace.

A system is seen from outside: the records that are due, and how many of them it says to have read
(`read` among its figures). The difference is its *backlog*. A system that works in micro-batches reads a
whole batch at a time, so its backlog rises and falls like the teeth of a saw, and where in a tooth somebody
looks is chance. What counts is the least backlog of every five seconds: if that does not grow, the system
keeps pace. It is held against the rules C1, C2 and C5 of `pace`; latency, lines and logs of other systems
are not known.

Every try is a run of its own, from the start of the system to the verdict on its output. The first
micro-batches of a system take long, so the warm-up does, too. What a system has before it when that is over
is not held against it: near its capacity it takes minutes to work that off. It must not become more.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree

from snapline.errors import SnaplineError, UsageError
from snapline.experiments.rates.capacity import Trial
from snapline.experiments.rates.pace import (
    BY_FAR_S,
    Window,
    backlog_objections,
    is_behind,
    is_hopeless,
)
from snapline.experiments.rates.probing import HOPELESS, OutputWrong, ProbeTeller, Untold
from snapline.journal.entry import Happened
from snapline.journal.happenings import InputEnded, SystemProgressed
from snapline.metrics.second import SECOND_US, Second
from snapline.rundir.spec import Spec
from snapline.storage.files.places import make_directory
from snapline.systems.harness.base import System
from snapline.systems.run import SystemRun, run

START = 10_000
"""The rate, in records per second, at which the search begins: what a system can do is not known before."""

WARM_UP_S, LEAST_S = 20, 30
PIECE_S = 5
"""Of each piece of so many seconds the least backlog counts. It is longer than any micro-batch of a system
that keeps pace should be."""

SAMPLE_S = 0.25
"""How often a system is asked how much it has read."""


class FellBehind(SnaplineError):
    """A run is ended before its output is judged: it has not kept pace."""

    def __init__(self, *because: str) -> None:
        super().__init__("; ".join(because))
        self.because = because


@dataclass(slots=True)
class BacklogWatch:
    """Follows how far a system is behind, and gives its run up if it does not keep pace."""

    rate: int
    window: Window
    tell: Callable[[Second], None]
    #: the least backlog of each second, and how many records had been read at its end
    least: dict[int, int] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    over: bool = False  # all input was given

    def __call__(self, happened: Happened) -> None:
        """Take note of what a run tells. Raises FellBehind."""
        match happened.what:
            case SystemProgressed(figures) if not self.over:
                self._sample(happened.at_us, figures["due"], figures.get("read"))
            case InputEnded():
                self.over = True
                if because := tuple(self.objections()):
                    raise FellBehind(*because)

    def _sample(self, at_us: int, due: int, read: int | None) -> None:
        if read is None:
            raise UsageError("the system does not say how many records it has read")
        at_s, backlog = at_us // SECOND_US, max(0, due - read)
        if at_s not in self.least:
            self._second_over(at_s - 1)
        self.least[at_s] = min(backlog, self.least.get(at_s, backlog))
        self.read[at_s] = read

    def _second_over(self, at_s: int) -> None:
        if at_s not in self.least:
            return
        read = self.read[at_s] - self.read.get(at_s - 1, 0)
        second = Second(at_s, read=read, backlog=self.least[at_s])
        self.tell(second)
        if is_hopeless(self._since_warm_up(second), self.rate):
            raise FellBehind(HOPELESS)

    def _since_warm_up(self, second: Second) -> Second:
        """A second with what the backlog has grown by since the warm-up was over."""
        grown = (second.backlog or 0) - next((least for _, least in self.troughs()), math.inf)
        return Second(second.at_s, backlog=round(max(0.0, grown)))

    def objections(self) -> Iterator[str]:
        """Why the system has not kept pace, in words; none if it has."""
        return backlog_objections(list(self.troughs()), self.rate)

    def troughs(self) -> Iterator[tuple[float, float]]:
        """The least backlog of each piece of the window, with the time at which the piece began."""
        for begin_s in range(self.window.warm_up_s, self.window.end_s, PIECE_S):
            piece = range(begin_s, begin_s + PIECE_S)
            if known := [self.least[at_s] for at_s in piece if at_s in self.least]:
                yield float(begin_s), float(min(known))

    @property
    def by_far(self) -> bool:
        """Whether the backlog had become far larger when it was looked at last."""
        last = max(self.least, default=0)
        second = self._since_warm_up(Second(last, backlog=self.least.get(last)))
        return is_behind(second, self.rate, BY_FAR_S)


class SystemProber:
    """Tries rates with one workload on one system; `make` makes the system anew for each try."""

    def __init__(
        self,
        spec: Spec,
        make: Callable[[], System],
        runs: Path,
        least_s: int,
        teller: ProbeTeller | None = None,
    ) -> None:
        self.window = Window(WARM_UP_S, max(LEAST_S, least_s))
        self._spec = spec
        self._make = make
        self._runs = runs
        self._teller = teller or Untold()

    def start(self) -> int:
        """The rate with which the search begins."""
        return START

    def attempt(self, rate: int, left: int = 1) -> Trial:
        """One run at a rate; about so many tries are left, this one included."""
        begun_s = time.monotonic()
        self._teller.begins(rate, self.window, left)
        watch = BacklogWatch(rate, self.window, lambda s: self._teller.second(s, self.window))
        spec = replace(self._spec, rate=rate, duration_ms=1000 * (self.window.end_s + 1))
        because = self._because(spec, watch)
        took_s = round(time.monotonic() - begun_s, 1)
        trial = Trial(rate, because, watch.by_far, took_s)
        self._teller.tried(trial)
        return trial

    def _because(self, spec: Spec, watch: BacklogWatch) -> tuple[str, ...]:
        """Make a run, and say why its rate is not sustained. What it leaves stays only if it is wrong."""
        make_directory(self._runs)
        home = Path(tempfile.mkdtemp(prefix="capacity-", dir=self._runs))
        is_wrong = False
        try:
            finished = run(spec, self._make(), runs=home, tell=watch, tell_every_s=SAMPLE_S)
            return tuple(_doubts(finished))
        except FellBehind as given_up:
            return given_up.because
        except OutputWrong:
            is_wrong = True
            raise
        finally:
            if not is_wrong:
                rmtree(home)


def _doubts(finished: SystemRun) -> Iterator[str]:
    """Why a run that kept pace does not count. Raises OutputWrong."""
    verdict = finished.verdict
    if verdict.kept == "no":
        where, rate = finished.directory.path, finished.spec.rate
        raise OutputWrong(f"{where}, at {rate} records/s: {verdict.because}")
    if verdict.kept != "yes":
        yield f"nobody knows whether its output is right: {verdict.because}"
