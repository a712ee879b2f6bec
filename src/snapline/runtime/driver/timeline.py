"""What the driver sees of a run while it goes on: seconds, events, and at the end the figures.

Slots say with every heartbeat what they have done since the last (`Pulse`). The timeline adds these up to
seconds, finds out what a rollback costs and when the job has recovered, writes all that into the journal,
and tells a watcher. What it computes is in `metrics`; here is only the bookkeeping of a run under way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from logging import getLogger
from typing import Protocol

import numpy as np

from snapline.ids import Epoch, Micros, Millis, SlotId, TaskId
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.journal.happenings import (
    CheckpointTimed,
    Happening,
    JobRecovered,
    JobRunning,
    LineDecided,
    OutputPublished,
    SecondMeasured,
    SlotLeft,
    SlotLost,
    SlotRunning,
)
from snapline.metrics.checkpoints import CheckpointAccount
from snapline.metrics.failures import failures, recoveries
from snapline.metrics.figures import Figures, Told, figures, is_line
from snapline.metrics.histogram import Counts, Histogram
from snapline.metrics.second import SECOND_US, Second, Used, folded
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import OutputReader, rows_of

_LOG = getLogger(__name__)

KEPT_S = 540
"""So many of the last seconds are kept one by one, with what happened in them. All before them become one
second: so memory does not grow with the run, and sums and latencies stay those of the whole run. A job that
has not recovered from a failure by then has no recovery time. Committed latency, and how long checkpoints
of tasks took, are those of the seconds that are kept."""

FOLDED_S = 60
"""How many seconds are put together at once."""


class Watcher(Protocol):
    """Is told how a run goes on."""

    def event(self, happened: Happened) -> None:
        """Something happened to the job."""
        ...

    def second(self, second: Second) -> None:
        """A second is over."""
        ...


class Unwatched:
    """A watcher that ignores everything."""

    def event(self, happened: Happened) -> None:
        """Do nothing."""

    def second(self, second: Second) -> None:
        """Do nothing."""


class Recorder(Protocol):
    """What the timeline asks of the driver."""

    def now_us(self) -> Micros:
        """The time since input began to be due."""
        ...

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write into the journal what happened to an actor; it comes back by `see`."""
        ...


class Timeline:
    """One run, from the moment on at which all slots run for the first time."""

    def __init__(self, watcher: Watcher | None = None) -> None:
        self.watcher = watcher or Unwatched()
        self.kept_s = KEPT_S
        self.folded_s = FOLDED_S
        self.seconds: list[Second] = []
        self._recorder: Recorder
        self._account = CheckpointAccount(read=0)
        self._told: list[Happened] = []  #: all that figures need, but lines long ago
        self._lines = 0  #: committed so far
        self._recovered: dict[Micros, float] = {}  #: recovery times, by the time of the loss
        self._trouble: list[Happened] = []  #: losses and restarts from which it has not recovered
        self._now: Second | None = None  #: the second under way
        self._pulses: dict[SlotId, Pulse] = {}  #: the last one of every slot that is there
        self._lost: dict[SlotId, None] = {}
        self._epoch: Epoch = 0

    def attach(self, recorder: Recorder) -> None:
        """Connect the timeline with its driver, into whose journal it writes."""
        self._recorder = recorder

    @property
    def told(self) -> int:
        """How many happenings are kept for the figures."""
        return len(self._told)

    @property
    def checkpoints_known(self) -> int:
        """How many checkpoints the figures may still be asked about."""
        return self._account.known

    # What the driver says.

    def see(self, entry: Entry) -> None:
        """Take an entry of the driver's journal."""
        found = self._account.see(entry)
        if isinstance(entry, Happened):
            self._happened(entry)
        if found is not None:
            self._recorder.note(COORDINATOR, entry.epoch, found)

    def _happened(self, happened: Happened) -> None:
        what = happened.what
        if isinstance(what, SecondMeasured | CheckpointTimed):
            return
        _LOG.info("%s", happened)
        if isinstance(what, Told):
            self._told.append(happened)
        self._lines += is_line(happened)
        if isinstance(what, SlotLost):
            self._trouble.append(happened)
        if isinstance(what, SlotLost | SlotLeft):
            self._lost[what.slot] = None
            self._pulses.pop(what.slot, None)
        if isinstance(what, JobRunning | SlotRunning):
            self._trouble.append(happened)
            self._running(happened)
        self.watcher.event(happened)

    def _running(self, happened: Happened) -> None:
        if isinstance(happened.what, JobRunning):
            self._epoch = happened.epoch
            self._lost.clear()
        if self._now is None:
            self._now = Second(max(0, happened.at_us) // SECOND_US)

    def pulse(self, slot: SlotId, pulse: Pulse) -> None:
        """Add what a slot has done to the second under way."""
        self.tick()
        self._pulses[slot] = pulse
        if slot in self._lost and pulse.running:  # it came back alone: the others never stopped
            del self._lost[slot]
            self._recorder.note(f"slot/{slot}", pulse.epoch, SlotRunning())
        if not self._account.restoring and self._account.read is not None:
            self._account.read += pulse.read
        if self._now is not None:
            now = self._now
            now.read += pulse.read
            now.written += pulse.written
            now.volume.add(pulse.volume)
            now.latency.merge(Histogram.of_pairs(pulse.latency))
            now.checkpoint_us += pulse.checkpoint_us
            if pulse.used is not None:
                now.add_used(f"slot/{slot}", pulse.used)

    def spent(self, control_bytes: int, used: Used | None) -> None:
        """Add what the driver itself has said to slots and used to the second under way."""
        self.tick()
        if self._now is not None:
            self._now.volume.control += control_bytes
            if used is not None:
                self._now.add_used("driver", used)

    def tick(self) -> None:
        """End every second that is over by now."""
        while self._now is not None and (self._now.at_s + 1) * SECOND_US <= self._recorder.now_us():
            over = self._now
            self._now = Second(over.at_s + 1)
            self._end(over)

    def close(self) -> None:
        """End the last second, which the end of the run has cut short."""
        self.tick()
        if self._now is not None:
            over, self._now = self._now, None
            self._end(over)

    def _end(self, second: Second) -> None:
        here = [p for p in self._pulses.values() if p.epoch == self._epoch and p.running]
        second.epoch = self._epoch
        second.running = len(here)
        if here and not self._account.restoring and not self._lost:
            second.backlog = sum(pulse.backlog for pulse in here)
        second.checkpoints = self._account.stored
        second.lines = self._lines
        second.settle()
        self.seconds.append(second)
        if len(self.seconds) > self.kept_s + self.folded_s:
            self._fold()
        self._recorder.note(COORDINATOR, self._epoch, second.measured())
        self.watcher.second(second)
        if self._trouble:
            self._look_for_recovery()

    def _fold(self) -> None:
        """Put what is long over together, and forget what happened then, but for failures."""
        self.seconds[: -self.kept_s] = [folded(self.seconds[: -self.kept_s])]
        cut_us = self.seconds[1].at_s * SECOND_US
        self._told = [
            each
            for each in self._told
            if each.at_us >= cut_us or not isinstance(each.what, LineDecided | OutputPublished)
        ]
        self._trouble = [each for each in self._trouble if each.at_us >= cut_us]

    def _look_for_recovery(self) -> None:
        found = failures(self._trouble)
        over_us = self._trouble[-1].at_us if not found else -1
        for failure, time_s in zip(found, recoveries(self.seconds, found), strict=True):
            if time_s is not None:
                over_us = failure.lost_us + int(time_s * SECOND_US)
                self._recovered[failure.lost_us] = time_s
                recovered = JobRecovered(round(time_s, 3), failure.lost_us)
                self._recorder.note(COORDINATOR, self._epoch, recovered)
        self._trouble = [entry for entry in self._trouble if entry.at_us > over_us]

    # The end.

    def figures(self, times_ms: Mapping[str, Counts], asked_ms: Millis | None = None) -> Figures:
        """The figures of the run; `times_ms` are the times of the rows that each sink published.

        `asked_ms` is the interval at which lines were asked for.
        """
        found = figures(
            self._told,
            self._account,
            self.seconds,
            times_ms,
            recovered=self._recovered,
            asked_ms=asked_ms,
        )
        return replace(found, commits=self._lines)


def published_times(output: OutputReader, sinks: Iterable[TaskId]) -> dict[str, Counts]:
    """The times of the rows that each sink task has published, where rows have a time."""
    times: dict[str, Counts] = {}
    for task in sinks:
        batches = rows_of(output, [task], "committed")
        columns = [batch["time"] for batch in batches if "time" in batch.columns]
        if columns:
            times[task] = np.concatenate(columns)
    return times
