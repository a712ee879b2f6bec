"""The judge of a run that is going on: what its published output already shows.

The rows of the sinks `counts` and `late` are taken as they become public (`following`). The events behind
them are made by the workload's generator, only as far as rows claim them or windows need them. Each
window is judged once, by `validate.incremental`, and forgotten.

*When a window is judged.* No clock decides this: output is public only when a line is committed, which may
take a checkpoint interval or a recovery. What was published shows how far the run has come. The events of a
window that belong to one task of `counts` are a *cell*, which is

- *complete* when outputs and late rows have as many events as went in. A task without events in a window
  puts nothing out, and nobody waits for it.
- *passed* when its task has published a window so much later that none of its events can still be on its
  way: a task puts out its windows in order, and by then it has read all events of the earlier ones. What it
  had put out may still become public with a later line than its counts did, so the judge has patience
  for some checkpoint intervals, by the times at which published rows were written. A pause in these, such
  as a recovery, counts as one interval, however long.

A window is judged when the output has gone on behind it, and each of its cells is complete or passed, in
the order of windows. Where neither is the case, the judge waits: at the latest for the end of the run.

*What is certain while it runs.* What is published is never taken back, so an output that is wrong, or there
twice, stays so, and with it the guarantee that it breaks. An event that is called lost had time enough to
come out; should it come all the same, the judgement says that it is undecided. Nothing is said of
windows that are not judged yet: reliability is that of the judged ones. A duplicate of a window that was
judged long before is still called one, without the position of the first.

*Memory*: the events of the windows that are not judged yet, which begins with the oldest one that waits. In
a run that is well, those between two commits, and `disorder` and two windows more; what is held up (a task
that is silent, a recovery, a store that is away) makes it grow until it goes on. Where events are lost,
those of the patience come on top.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.partition import targets_of
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.judge.following import Following, PublicStep
from snapline.judge.history import history_of
from snapline.judge.lineage import LineageReport, named_rows, sentence_of
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import POSITION_BITS, position_label, public_view
from snapline.rundir.program import program_of_run
from snapline.rundir.spec import OWN, spec_of
from snapline.storage.api import View
from snapline.validate.causes import Cause
from snapline.validate.columns import Ints, as_outputs
from snapline.validate.incremental import Incremental
from snapline.validate.judged import Judged, Witness
from snapline.validate.sentences import TimedFault, event_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Lineage, Ranges

PATIENCE_INTERVALS: Final = 3
"""For how many checkpoint intervals one sink's public output may lag behind that of the others."""

_EVER: Final = -(1 << 62)
_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class JudgedSoFar:
    """How far the judge has come."""

    judged: Judged  # the judgement on all windows that were judged so far
    through_ms: Millis | None  # the end of the last of them
    held_events: int
    held_bytes: int
    bound_bytes: int  # the most that so many events and outputs take


class LiveJudge:
    """Judges the published output of one run, as far as it has come."""

    def __init__(
        self,
        directory: RunDirectory,
        lineage: Lineage,
        ranges: Ranges,
        view: View,
        *,
        slots: int,
        interval_ms: Millis,
    ) -> None:
        self.directory: Final = directory
        self.view: Final = view
        self._lineage: Final = lineage
        self._ranges: Final = ranges
        self._following: Final = Following(directory, view)
        size_ms = lineage.window_ms
        self._judge: Final = Incremental(
            size_ms, lateness_ms=lineage.lateness_ms, grace_ms=ranges.disorder_ms
        )
        self._hold_ms: Final = size_ms + lineage.lateness_ms + ranges.disorder_ms
        self._cells: Final = _Cells(slots, size_ms, size_ms + ranges.disorder_ms, interval_ms)
        self._given: Final = np.zeros(ranges.streams, np.int64)  #: events of each stream
        self._newest = _EVER  #: the latest event that was given
        self._told: dict[Cause, tuple[Witness, str]] = {}

    def poll(self, tell: Callable[[JudgedSoFar], None] = lambda progress: None) -> JudgedSoFar:
        """Take in what was published since, judge what can be judged, and say how far it has come.

        This may take long, so `tell` is called after every step.
        """
        for step in self._following.steps():
            self._take(step)
            tell(self.progress)
        return self.progress

    def finish(self) -> LineageReport:
        """Judge all that is left of a run that is over."""
        self.poll()
        ends = np.array([self._ranges.end(stream) for stream in range(self._ranges.streams)])
        size_ms = self._lineage.window_ms
        window = max(self._cells.closed, -size_ms)
        while (self._given < ends).any():  # the events that never came out, window by window
            window += size_ms
            self._give_through(window)
            self._judge.advance(window + self._hold_ms)
        self._told.clear()  # now all faults are known with their ends, so sentences are made again
        return self.report(self._judge.finish())

    @property
    def progress(self) -> JudgedSoFar:
        """How far it has come."""
        judge, closed = self._judge, self._cells.closed
        through_ms = None if closed == _EVER else closed + self._lineage.window_ms
        return JudgedSoFar(
            judge.so_far, through_ms, judge.held_events, judge.held_bytes, judge.bound_bytes
        )

    def report(self, judged: Judged) -> LineageReport:
        """The report so far, with a sentence for each cause, but no figures: these need the whole run."""
        new = {c for c, w in judged.witnesses.items() if self._told.get(c, (None,))[0] != w}
        if new:
            faults = history_of(self.directory, "").faults
            for cause in new:
                witness = judged.witnesses[cause]
                self._told[cause] = (witness, self._sentence(witness, faults))
        sentences = {cause: self._told[cause][1] for cause in Cause if cause in judged.witnesses}
        return LineageReport(judged, sentences, None)

    # What comes in.

    def _take(self, step: PublicStep) -> None:
        outputs = as_outputs(step.outputs)
        claims = [outputs[name].compact().values for name in ("get_ids", "post_ids")]
        self._give_claimed(np.concatenate([*claims, step.late["id"] if len(step.late) else []]))
        # A row of a window later than all known events is wrong, and must not count as progress.
        windows = outputs["window"]
        known = windows <= self._newest
        self._give_through(int(windows.max(initial=_EVER, where=known)))
        self._judge.add_outputs(outputs)
        self._judge.add_late(step.late)
        counts = sum(np.diff(outputs[name].offsets) for name in ("get_ids", "post_ids"))
        self._cells.add(outputs, windows, -np.asarray(counts, np.int64))
        if len(step.late):
            windows = step.late["time"] - step.late["time"] % self._lineage.window_ms
            self._cells.add(step.late, windows, np.full(len(windows), -1))
        tasks = outputs["position"] >> POSITION_BITS
        closed = self._cells.step(tasks[known], outputs["window"][known], step.written_ms)
        self._judge.advance(closed + self._hold_ms)

    def _give_claimed(self, ids: Ints) -> None:
        """Give the judge all events up to those that were claimed."""
        streams, offsets = self._ranges.places(ids.astype(np.int64))
        needed = self._given.copy()
        np.maximum.at(needed, streams[streams >= 0], offsets[streams >= 0] + 1)
        self._give(needed.tolist())

    def _give_through(self, window: Millis) -> None:
        """Give the judge all events of the windows up to this one."""
        last_ms = window + self._lineage.window_ms - 1
        streams = range(self._ranges.streams)
        self._give([self._ranges.through(stream, last_ms) for stream in streams])

    def _give(self, needed: Sequence[int]) -> None:
        for stream, stop in enumerate(needed):
            for start in range(int(self._given[stream]), stop, _PIECE):
                events = self._ranges.make(stream, start, min(start + _PIECE, stop))
                self._judge.add_inputs(events)
                windows = events["time"] - events["time"] % self._lineage.window_ms
                self._cells.open(events, windows)
                self._newest = int(events["time"].max(initial=self._newest))
            self._given[stream] = max(stop, self._given[stream])

    # Sentences.

    def _sentence(self, witness: Witness, faults: Sequence[TimedFault]) -> str:
        origin_ms = int((self.directory.spec().get("origin_s") or 0) * 1000)
        written = (self._following.written_ms(*row) - origin_ms for row in named_rows(witness))
        event = event_of(self._event(witness.id), witness.id)
        return sentence_of(witness, self._lineage, event, written, faults, position_label)

    def _event(self, id: int | str | None) -> Batch:
        """A batch with the event of this id, or an empty one."""
        number = id if isinstance(id, int) else -1
        streams, offsets = self._ranges.places(np.array([number], np.int64))
        if streams[0] < 0:
            return self._ranges.make(0, 0, 0)
        return self._ranges.make(int(streams[0]), int(offsets[0]), int(offsets[0]) + 1)


class _Cells:
    """The windows that are not judged yet: how many events of each task are still to come out."""

    def __init__(self, slots: int, size_ms: Millis, settle_ms: Millis, interval_ms: Millis) -> None:
        self._slots: Final = slots
        self._size_ms: Final = size_ms
        self._settle_ms: Final = settle_ms  # a cell is passed by a window that is this much later
        self._interval_ms: Final = interval_ms
        self._now_ms = 0  #: when the newest row was written
        self._clock_ms = 0  #: the same, but a long pause counts as one interval
        self._missing: dict[Millis, Ints] = {}  #: events missing, by window and task
        self._passed_at: dict[Millis, Millis] = {}  #: when a window's cells were all passed
        self._newest: Final = np.full(slots, _EVER)  #: the latest window of each task
        self.closed = _EVER

    def open(self, events: Batch, windows: Ints) -> None:
        """Expect these events."""
        for window in np.unique(windows[windows > self.closed]).tolist():
            self._missing.setdefault(window, np.zeros(self._slots, np.int64))
        self.add(events, windows, np.ones(len(windows), np.int64))

    def add(self, rows: Batch, windows: Ints, events: Ints) -> None:
        """Change the number of missing events by `events`, for the task of each row and its window."""
        if not len(rows):
            return
        owners = targets_of(rows, ["resource"], self._slots).astype(np.int64)
        codes, group = np.unique(
            windows // self._size_ms * self._slots + owners, return_inverse=True
        )
        totals = np.bincount(group, weights=events).astype(np.int64)
        for code, total in zip(codes.tolist(), totals.tolist(), strict=True):
            cells = self._missing.get(code // self._slots * self._size_ms)
            if cells is not None:
                cells[code % self._slots] += total

    def step(self, tasks: Ints, windows: Ints, now_ms: Millis) -> Millis:
        """Note the windows that tasks have published; return up to which window all can be judged."""
        np.maximum.at(self._newest, tasks, windows)
        self._clock_ms += min(max(now_ms - self._now_ms, 0), self._interval_ms)
        self._now_ms = max(self._now_ms, now_ms)
        behind = int(self._newest.max()) - self._settle_ms
        held_up = False
        for window in sorted(self._missing):
            if window > behind:
                break
            held_up |= not self._is_over(window)
            if not held_up:
                self.closed = window
                del self._missing[window]
                self._passed_at.pop(window, None)
        return self.closed

    def _is_over(self, window: Millis) -> bool:
        waiting = self._missing[window] > 0
        if not waiting.any():
            return True
        if (self._newest[waiting] - self._settle_ms < window).any():
            return False
        waited_ms = self._clock_ms - self._passed_at.setdefault(window, self._clock_ms)
        return waited_ms >= PATIENCE_INTERVALS * self._interval_ms


def live_judge(directory: RunDirectory) -> LiveJudge:
    """The judge of a run by its directory. Raises UsageError."""
    spec = spec_of(directory)
    if spec.system != OWN:
        raise UsageError(f"only Snapline's own runs can be followed, not those of {spec.system}")
    if spec.endless:
        raise UsageError(f"{directory.name} has no end: only runs with an end can be followed")
    workload = WORKLOADS.get(spec.flow)
    lineage = program_of_run(spec, None).lineage if workload and workload.lineage else None
    if lineage is None or lineage.ranges is None:
        known = " and ".join(name for name, each in WORKLOADS.items() if each.lineage)
        raise UsageError(
            f"{spec.flow} cannot be followed: its outputs do not name the events behind them, as those "
            f"of {known} do; without --follow it is judged when it is over"
        )
    return LiveJudge(
        directory,
        lineage,
        lineage.ranges,
        public_view(spec.protocol),
        slots=spec.slots,
        interval_ms=spec.interval_ms,
    )
