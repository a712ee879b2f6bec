"""What the driver sees of a run while it goes on: seconds, events, and at the end the figures.

Slots say with every heartbeat what they have done since the last (`Pulse`). The timeline adds these up to
seconds, finds out what a rollback costs and when the job has recovered, writes all that into the journal,
and tells a watcher. What it computes is in `metrics`; here is only the bookkeeping of a run under way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
from snapline.metrics.checkpointing.account import CheckpointAccount
from snapline.metrics.failures import failures
from snapline.metrics.figures import Figures, Told, after_warm_up, figures, forget_warm_up, is_line
from snapline.metrics.histogram import Histogram
from snapline.metrics.latency import RowTimes
from snapline.metrics.recovery import PATIENCE_S, Aftermath, aftermaths
from snapline.metrics.second import (
    PART_US,
    PARTS,
    SECOND_US,
    Part,
    Second,
    SlotSecond,
    Used,
    folded,
)
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import OutputReader

_LOG = getLogger(__name__)

KEPT_S = 540
"""So many of the last seconds are kept one by one, with what happened in them. All before them become one
second: so memory does not grow with the run, and sums and latencies stay those of the whole run. A
failure is followed for less than that (`recovery.PATIENCE_S`). Committed latency, and how long checkpoints
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


@dataclass(slots=True)
class _Share:
    """What one slot has done in the second under way."""

    read: int = 0
    written: int = 0
    latency: Histogram = field(default_factory=Histogram)

    def add(self, pulse: Pulse, latency: Histogram) -> None:
        """Add what a pulse says."""
        self.read += pulse.read
        self.written += pulse.written
        self.latency.merge(latency)


class Timeline:
    """One run, from the moment on at which all slots run for the first time."""

    def __init__(self, watcher: Watcher | None = None, warm_up_us: Micros = 0) -> None:
        self.watcher = watcher or Unwatched()
        self.warm_up_us = warm_up_us
        self.kept_s = KEPT_S
        self.folded_s = FOLDED_S
        self.seconds: list[Second] = []
        self._recorder: Recorder
        self._account = CheckpointAccount(read=0)
        self._told: list[Happened] = []  #: all that figures need, but lines long ago
        self._lines = 0  #: committed so far
        self._settled: dict[Micros, Aftermath] = {}  #: what came after failures, by their loss
        self._recovered: dict[Micros, None] = {}  #: the failures from which it has recovered
        self._trouble: list[Happened] = []  #: losses and restarts of which more may be to come
        self._now: Second | None = None  #: the second under way
        self._part = Histogram()  #: the latency of its part under way
        self._shares: dict[SlotId, _Share] = {}  #: what each slot has done in it
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
    def troubles(self) -> int:
        """How many losses and restarts are kept because more may be to come of them."""
        return len(self._trouble)

    @property
    def checkpoints_known(self) -> int:
        """How many checkpoints the figures may still be asked about."""
        return self._account.known

    # What the driver says.

    def see(self, entry: Entry) -> None:
        """Take an entry of the driver's journal."""
        found = self._account.see(entry)
        forget_warm_up(self._account, entry, self.warm_up_us)
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
        else:
            self._lost.pop(SlotId(int(happened.actor.removeprefix("slot/"))), None)
        if self._now is None:
            self._now = Second(max(0, happened.at_us) // SECOND_US)

    def pulse(self, slot: SlotId, pulse: Pulse) -> None:
        """Add what a slot has done to the second under way."""
        self.tick()
        self._pulses[slot] = pulse
        if not self._account.restoring and self._account.read is not None:
            self._account.read += pulse.read
        if self._now is not None:
            now = self._now
            now.read += pulse.read
            now.written += pulse.written
            now.note_reading(pulse.first_us, pulse.last_us)
            now.volume.add(pulse.volume)
            now.checkpoint_us += pulse.checkpoint_us
            latency = Histogram.of_pairs(pulse.latency)
            self._part.merge(latency)
            if (share := self._shares.get(slot)) is None:
                share = self._shares[slot] = _Share()
            share.add(pulse, latency)
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
        """End every part of a second, and every second, that is over by now."""
        while self._now is not None and self._part_ends_us(self._now) <= self._recorder.now_us():
            over = self._now
            self._end_part(over)
            if len(over.parts) == PARTS:
                self._now = Second(over.at_s + 1)
                self._end(over)

    @staticmethod
    def _part_ends_us(second: Second) -> Micros:
        return second.at_s * SECOND_US + (len(second.parts) + 1) * PART_US

    def close(self) -> None:
        """End the last second, which the end of the run has cut short."""
        self.tick()
        if self._now is not None:
            over, self._now = self._now, None
            over.length_us = max(0, self._recorder.now_us() - over.at_s * SECOND_US)
            self._end_part(over)
            self._end(over)

    def _stands(self, slot: SlotId) -> bool:
        """Whether a slot runs, and has said so in this epoch."""
        said = self._pulses.get(slot)
        return said is not None and said.epoch == self._epoch and said.running

    def _end_part(self, second: Second) -> None:
        here = [slot for slot in self._pulses if self._stands(slot)]
        backlog = None
        if here and not self._account.restoring and not self._lost:
            backlog = sum(self._pulses[slot].backlog for slot in here)
        p50_ms, p99_ms = (self._part.percentile_ms(q) for q in (50, 99))
        second.parts += (Part(len(here), backlog, p50_ms, p99_ms),)
        second.latency.merge(self._part)
        self._part = Histogram()

    def _end(self, second: Second) -> None:
        second.epoch = self._epoch
        second.running, second.backlog = second.parts[-1].running, second.parts[-1].backlog
        second.checkpoints = self._account.stored
        second.lines = self._lines
        second.slots = tuple(self._of_slot(s) for s in sorted({*self._shares, *self._pulses}))
        self._shares = {}
        second.settle()
        self.seconds.append(second)
        self._recorder.note(COORDINATOR, self._epoch, second.measured())
        self.watcher.second(second)
        if self._trouble:
            self._follow_failures()
        if len(self.seconds) > self.kept_s + self.folded_s:
            self._fold()

    def _of_slot(self, slot: SlotId) -> SlotSecond:
        """What a slot did in the second that is over; its backlog if it stands."""
        share = self._shares.get(slot) or _Share()
        backlog = self._pulses[slot].backlog if self._stands(slot) else None
        p50_ms, p99_ms = (share.latency.percentile_ms(q) for q in (50, 99))
        return SlotSecond(slot, share.read, share.written, backlog, p50_ms, p99_ms)

    def _fold(self) -> None:
        """Put what is long over together, and forget what happened then, but for failures.

        The seconds of the warm-up become one of their own, because they do not count.
        """
        old = self.seconds[: -self.kept_s]
        counted = after_warm_up(old, self.warm_up_us)
        warm_up = old[: len(old) - len(counted)]
        self.seconds[: -self.kept_s] = [folded(some) for some in (warm_up, counted) if some]
        cut_us = self.seconds[-self.kept_s].at_s * SECOND_US
        self._told = [
            each
            for each in self._told
            if each.at_us >= cut_us or not isinstance(each.what, LineDecided | OutputPublished)
        ]

    def _follow_failures(self) -> None:
        """Look what came after failures, until that is settled, or they are too long ago."""
        found = failures(self._trouble)
        followed_s = min(PATIENCE_S, self.kept_s)
        given_up_us = (self.seconds[-1].at_s + 1 - followed_s) * SECOND_US
        after = aftermaths(self.seconds, found, self._settled)
        for failure, each in zip(found, after, strict=True):
            lost_us = failure.lost_us
            if each.recovery_s is not None and lost_us not in self._recovered:
                self._recovered[lost_us] = None
                self._recorder.note(
                    COORDINATOR, self._epoch, JobRecovered(each.recovery_s, lost_us)
                )
            if each.is_settled or lost_us <= given_up_us:
                self._settled[lost_us] = each
        open_us = [each.lost_us for each in found if each.lost_us not in self._settled]
        self._trouble = [entry for entry in self._trouble if open_us and entry.at_us >= open_us[0]]

    # The end.

    def figures(self, times: Mapping[str, RowTimes], asked_ms: Millis | None = None) -> Figures:
        """The figures of the run; `times` are those of the rows that each sink published.

        `asked_ms` is the interval at which lines were asked for.
        """
        found = figures(
            self._told,
            self._account,
            self.seconds,
            times,
            settled=self._settled,
            warm_up_us=self.warm_up_us,
            asked_ms=asked_ms,
        )
        return replace(found, commits=self._lines)


def published_times(output: OutputReader, sinks: Iterable[TaskId]) -> dict[str, RowTimes]:
    """The times of the rows that each sink task has published, where rows have a time."""
    times: dict[str, RowTimes] = {}
    for task in sinks:
        pieces = output.pieces(task, "committed")
        columns = [
            (written.first, written.rows["time"])
            for piece in pieces
            for written in output.read(piece)
            if "time" in written.rows.columns
        ]
        if columns:
            times[task] = RowTimes(np.concatenate([each for _, each in columns]), columns[0][0])
    return times
