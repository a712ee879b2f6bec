"""The steps of a failure, one after the other, from the fault until all is as it was before.

- *detect*: from the fault until the coordinator gives the slot up;
- *decide*: until the recovery line is found and the decision is durable;
- *launch*: until a process that takes the place of the lost one begins to restore;
- *restore*: until all tasks are ready, and run;
- *replay*: until the last message that was in flight has been sent again;
- *catch up*: until backlog and median latency are as before.

A step whose end nobody wrote down is joined with the next one. Where nobody made the slot fail on purpose,
nothing is known of the time before it was detected, and the account begins there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from snapline.core.effects import Rollback
from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta
from snapline.ids import Micros, TaskId, slot_of
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened
from snapline.journal.happenings import MessageReplayed
from snapline.metrics.failures import Failure, failures
from snapline.metrics.figures import Told
from snapline.metrics.recovery import FailureFigures
from snapline.metrics.second import SECOND_US
from snapline.report.charts.checkpoint_graph import GraphedRollback
from snapline.report.charts.waterfall import FailureStep
from snapline.report.run.reported import ReportedRun
from snapline.wording import latency

MEANINGS = {
    "detect": "from the fault until the coordinator gives the slot up",
    "decide": "until the line is found and the decision is durable",
    "launch": "until a new process begins to restore",
    "restore": "until all tasks are ready and run",
    "replay": "until the last message that was in flight is sent again",
    "catch up": "until backlog and median latency are as before",
}


@dataclass(frozen=True, slots=True)
class ExplainedFailure:
    """One failure: its steps, and the rollback with which the job answered, if it did."""

    lost_s: float
    slots: tuple[int, ...]
    from_fault: bool  # whether the steps count from the fault; else from its detection
    steps: tuple[FailureStep, ...]
    rollback: GraphedRollback | None


def explained_failures(run: ReportedRun) -> list[ExplainedFailure]:
    """All failures of a run, in order."""
    happened = [entry for entry in run.entries if isinstance(entry, Happened)]
    found = failures([entry for entry in happened if isinstance(entry.what, Told)])
    known = run.figures.failures if run.figures is not None else None
    return [
        ExplainedFailure(
            failure.lost_us / SECOND_US,
            failure.slots,
            failure.struck_us is not None,
            tuple(_steps(run, failure, _figures_of(failure, known or ()))),
            _rollback(run.entries, failure),
        )
        for failure in found
    ]


def _figures_of(failure: Failure, known: Sequence[FailureFigures]) -> FailureFigures | None:
    at_s = failure.lost_us / SECOND_US
    return next((each for each in known if abs(each.lost_at_s - at_s) < 0.002), None)


def _steps(
    run: ReportedRun, failure: Failure, figures: FailureFigures | None
) -> Iterator[FailureStep]:
    begin_us = failure.lost_us if failure.struck_us is None else failure.struck_us
    ends = dict(_ends(run, failure, figures))
    last_us, still_open = begin_us, False
    waiting: list[str] = []
    for name in MEANINGS:
        if name not in ends:
            continue
        end_us, known, closed = ends[name]
        waiting.append(name)
        if not known:
            continue
        end_us = max(end_us, last_us)
        took_ms = (end_us - last_us) / 1000
        told = latency(took_ms) if closed else f"> {latency(took_ms)}"
        meaning = "; ".join(MEANINGS[each] for each in waiting)
        yield FailureStep(
            " + ".join(waiting),
            (last_us - begin_us) / SECOND_US,
            (end_us - begin_us) / SECOND_US,
            told,
            meaning,
            open=not closed,
        )
        last_us, waiting, still_open = end_us, [], not closed
        if still_open:
            return


def _ends(
    run: ReportedRun, failure: Failure, figures: FailureFigures | None
) -> Iterator[tuple[str, tuple[Micros, bool, bool]]]:
    """Each step that there was: when it ended, whether that is known, and whether it did."""
    end_us = round(run.end_s * SECOND_US)
    if failure.struck_us is not None:
        yield "detect", (failure.lost_us, True, True)
    running_us = failure.running_us
    until_us = end_us if running_us is None else running_us
    if failure.decided_us is not None:
        yield "decide", (failure.decided_us, True, True)
    launched_us = _first_built(run.journal, failure, until_us)
    yield "launch", (launched_us or 0, launched_us is not None, True)
    yield "restore", (until_us, True, running_us is not None)
    if running_us is None:
        return
    if (replayed_us := _last_replayed(run.journal, running_us)) is not None:
        yield "replay", (replayed_us, True, True)
    back = None if figures is None else figures.from_detection
    if back is not None and isfinite(back.backlog.s + back.p50.s):
        took_s = max(back.backlog.s, back.p50.s)
        caught_us = failure.lost_us + round(took_s * SECOND_US)
        yield "catch up", (caught_us, True, back.recovery_s is not None)


def _first_built(journal: Iterable[Entry], failure: Failure, until_us: Micros) -> Micros | None:
    """When a new process first built a task of a slot that was lost."""
    for entry in journal:
        if (
            failure.lost_us <= entry.at_us <= until_us
            and isinstance(entry, Built)
            and entry.actor != COORDINATOR
            and slot_of(TaskId(entry.actor)) in failure.slots
        ):
            return entry.at_us
    return None


def _last_replayed(journal: Iterable[Entry], since_us: Micros) -> Micros | None:
    """When the last message was replayed, in the epoch that began then."""
    epoch: int | None = None
    last: Micros | None = None
    for entry in journal:
        if entry.at_us < since_us or not isinstance(entry, Happened):
            continue
        if isinstance(entry.what, MessageReplayed):
            epoch = entry.epoch if epoch is None else epoch
            if entry.epoch == epoch:
                last = entry.at_us
    return last


def _rollback(entries: Sequence[Entry], failure: Failure) -> GraphedRollback | None:
    """The rollback that answered a failure, with all checkpoints that were stored before it."""
    stored: dict[tuple[str, int], CheckpointMeta] = {}
    for entry in entries:
        if not isinstance(entry, Handled) or entry.actor != COORDINATOR:
            continue
        if isinstance(entry.event, SnapshotStored):
            meta = entry.event.meta
            stored[meta.task, meta.checkpoint] = meta
        for effect in entry.effects:
            if isinstance(effect, Rollback):
                if entry.at_us >= failure.lost_us:
                    return GraphedRollback(entry.at_us, effect.line, tuple(stored.values()))
                # What an earlier rollback has skipped is gone.
                kept = effect.line.checkpoints
                stored = {n: m for n, m in stored.items() if n[1] <= kept.get(m.task, n[1])}
    return None
