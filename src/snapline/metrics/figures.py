"""All figures of a run in one frozen value, as `result.json` and `Run.metrics` have them.

The same functions read the journal of a simulated and of a real run. Figures that need the measured seconds
of a real run are None for a simulated one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from snapline.ids import Micros, Millis
from snapline.journal.entry import Entry, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    JobFinished,
    JobRunning,
    LineDecided,
    LineFound,
    OutputPublished,
    SecondMeasured,
    SlotLost,
    SlotRunning,
)
from snapline.journal.loss_happenings import RowsMissed
from snapline.metrics.checkpointing.account import CheckpointAccount
from snapline.metrics.costs import (
    ByteFigures,
    CheckpointFigures,
    CheckpointPhases,
    CheckpointSizes,
    OperatorCheckpoints,
    ResourceFigures,
    byte_figures,
    checkpoint_figures,
    operator_figures,
    phase_figures,
    resource_figures,
    size_figures,
)
from snapline.metrics.deviation import DeviationFigures
from snapline.metrics.failures import Over, Struck, decisions, detections, failures, restarts
from snapline.metrics.histogram import Histogram
from snapline.metrics.latency import RowTimes, committed, uncommitted
from snapline.metrics.recovery import Aftermath, FailureFigures, aftermaths, failure_figures
from snapline.metrics.reliability import LineageFigures
from snapline.metrics.second import SECOND_US, Second, Volume, second_of

VERSION = 2
"""The version of the figures, as `result.json` has them under `metrics`."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles of a latency, in milliseconds; None where nothing was written."""

    p50: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Rate:
    """Records per second, from the first read of a source to the last one."""

    read: float  # by sources; what is read again counts again
    written: float  # by sinks; likewise


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run. None stands for what was not measured, unless something else is said."""

    commits: int  # lines that were committed
    kills: int  # processes of slots that faults have killed
    lost: int  # slots that were given up
    killed_pids: tuple[int, ...]  # of what was killed; empty in simulation, which has no processes
    detection_s: tuple[float, ...]  # from a fault to the loss of its slot; see `metrics.failures`
    restart_s: tuple[float, ...]  # from the loss of a slot until all tasks were ready
    #: from the loss until p50 and backlog were as before; one is None if the run ended before
    recovery_s: tuple[float | None, ...] | None
    failures: tuple[FailureFigures, ...] | None  # all times of each failure; see `metrics.recovery`
    latency_ms: Percentiles | None  # due to written; also None at rate max, see `came_early`
    #: due to published; None likewise, and where no row with a time was published
    committed_latency_ms: Percentiles | None
    records_read: int | None  # by sources; each record counts once
    records_written: int | None  # by sinks; each record counts once
    read_again: int | None  # records read again after rollbacks: at least so many
    written_again: int | None  # records written again after rollbacks: at least so many
    rate: Rate | None  # from the first read to the last; None if all was read at once
    checkpoints: CheckpointFigures  # by number and time; see `metrics.costs`
    checkpoint_phases_ms: CheckpointPhases | None  # how the time of checkpoints was spent
    checkpoint_bytes: CheckpointSizes | None  # sizes of snapshots; None: none was stored
    operators: Mapping[str, OperatorCheckpoints]  # checkpoints of each operator that has any
    rollbacks: tuple[LineFound, ...]  # what each of them cost
    #: rows that windows by rows did not get while their tasks were away, as far as their senders know: so
    #: many of the rows that were restored were stale
    missed_rows: int
    bytes: ByteFigures | None  # by what they were for, and in proportion
    resources: ResourceFigures | None  # CPU time, memory and requests
    lineage: LineageFigures | None = None  # None: outputs do not name the inputs behind them
    deviation: DeviationFigures | None = None  # how far the answer is off; see `metrics.deviation`
    #: the first part of a restart: from the loss of a slot until the line was found and decided
    decision_s: tuple[float, ...] = ()
    version: int = VERSION  # of these figures: raised when one changes its meaning, or goes


Told: TypeAlias = (
    SlotLost
    | JobRunning
    | SlotRunning
    | LineDecided
    | LineFound
    | OutputPublished
    | JobFinished
    | RowsMissed
    | Struck
    | Over
)
"""The happenings that figures are made of, beside the measured seconds."""


def figures_of(
    entries: Iterable[Entry],
    times: Mapping[str, RowTimes] | None = None,
    warm_up_us: Micros = 0,
    asked_ms: Millis | None = None,
) -> Figures:
    """The figures of a run from the journal of its coordinator.

    `times` are those of the rows that each sink has published: committed latency needs them. `warm_up_us`
    and `asked_ms` are as for `figures`.
    """
    account = CheckpointAccount()
    told: list[Happened] = []
    seconds: list[Second] = []
    found: list[LineFound] = []
    for entry in entries:
        if (line := account.see(entry)) is not None:
            found.append(line)
        forget_warm_up(account, entry, warm_up_us)
        if not isinstance(entry, Happened):
            continue
        if isinstance(entry.what, SecondMeasured):
            seconds.append(second_of(entry.epoch, entry.what))
        elif isinstance(entry.what, Told):
            told.append(entry)
    known = times or {}
    return figures(told, account, seconds, known, found, warm_up_us=warm_up_us, asked_ms=asked_ms)


def figures(
    told: Sequence[Happened],
    account: CheckpointAccount,
    seconds: Sequence[Second],
    times: Mapping[str, RowTimes],
    found: Sequence[LineFound] = (),
    settled: Mapping[Micros, Aftermath] = MappingProxyType({}),
    *,
    warm_up_us: Micros = 0,
    asked_ms: Millis | None = None,
) -> Figures:
    """The figures of a run. `found` are its rollbacks, if the journal has no `LineFound` of them.

    `settled` is what is known already of what came after failures, by the time of the loss. Seconds that
    begin before `warm_up_us` enter neither rates nor latencies, bytes and the times of checkpoints.
    `asked_ms` is the interval at which lines were asked for.
    """
    failed, counted = failures(told), after_warm_up(seconds, warm_up_us)
    after = aftermaths(seconds, failed, settled)
    written_ms, public_ms = uncommitted(counted), committed(told, times, warm_up_us)
    timed = not came_early(written_ms)
    kills = [entry.what for entry in told if isinstance(entry.what, ProcessKilled)]
    priced = tuple(entry.what for entry in told if isinstance(entry.what, LineFound))
    read, written = records(told, account, seconds)
    return Figures(
        commits=lines(told),
        kills=len(kills),
        lost=sum(isinstance(entry.what, SlotLost) for entry in told),
        killed_pids=tuple(pid for kill in kills for pid in kill.pids),
        detection_s=tuple(round(s, 3) for s in detections(told)),
        restart_s=tuple(round(s, 3) for s in restarts(failed)),
        recovery_s=tuple(each.recovery_s for each in after) if seconds else None,
        failures=failure_figures(seconds, failed, after) if seconds else None,
        latency_ms=percentiles(written_ms) if seconds and timed else None,
        committed_latency_ms=percentiles(public_ms) if len(public_ms) and timed else None,
        records_read=read,
        records_written=written,
        read_again=_again(read, [second.read for second in seconds]),
        written_again=_again(written, [second.written for second in seconds]),
        rate=rate(counted) if seconds else None,
        checkpoints=checkpoint_figures(account, counted, asked_ms),
        checkpoint_phases_ms=phase_figures(account.phases),
        checkpoint_bytes=size_figures(account),
        operators=operator_figures(account),
        rollbacks=priced or tuple(found),
        missed_rows=sum(entry.what.rows for entry in told if isinstance(entry.what, RowsMissed)),
        bytes=byte_figures(volume(counted), _once_in(counted, seconds, read)) if seconds else None,
        resources=resource_figures(seconds) if seconds else None,
        decision_s=tuple(round(s, 4) for s in decisions(failed)),
    )


def came_early(written_ms: Histogram) -> bool:
    """Whether records were written before the times that they carry, as at rate max.

    Latency is the time since a record was due, and never below 0. Every record takes some time, so a median
    of 0 tells that most records were not due yet. Then no percentile measures anything.
    """
    return written_ms.percentile_ms(50.0) == 0


def percentiles(histogram: Histogram) -> Percentiles:
    """The percentiles of a histogram that are shown to people."""
    return Percentiles(*(histogram.percentile_ms(q) for q in (50.0, 99.0, 100.0)))


def lines(told: Iterable[Happened]) -> int:
    """The number of lines that were committed."""
    return sum(is_line(entry) for entry in told)


def is_line(entry: Happened) -> bool:
    """Whether a line was committed here; a decision that begins an epoch commits nothing new."""
    return isinstance(entry.what, LineDecided) and entry.what.epoch == entry.epoch


def records(
    told: Sequence[Happened], account: CheckpointAccount, seconds: Sequence[Second]
) -> tuple[int | None, int | None]:
    """The number of records read and written, where each record counts once.

    The last line of a finished run has all input and all output. Without lines, or without an end, the sums
    of what slots reported are used; they lack what a slot did just before it was killed.
    """
    ends = (entry.what for entry in told if isinstance(entry.what, JobFinished))
    if account.stored and any(end.with_line for end in ends):
        return account.offset, account.position
    if not seconds:
        return None, None
    return sum(s.read for s in seconds), sum(s.written for s in seconds)


def _again(once: int | None, each_second: Sequence[int]) -> int | None:
    return max(0, sum(each_second) - once) if each_second and once is not None else None


def _once_in(counted: Sequence[Second], seconds: Sequence[Second], read: int | None) -> int | None:
    """How many records were read in the seconds that count, each once: all but those of the others."""
    others = sum(second.read for second in seconds) - sum(second.read for second in counted)
    return None if read is None else max(0, read - others)


def after_warm_up(seconds: Iterable[Second], warm_up_us: Micros) -> list[Second]:
    """The seconds that count: those that begin when the warm-up is over, or later."""
    return [second for second in seconds if second.at_s * SECOND_US >= warm_up_us]


def forget_warm_up(account: CheckpointAccount, entry: Entry, warm_up_us: Micros) -> None:
    """Forget how long rounds and checkpoints took that were complete before the warm-up was over."""
    if entry.at_us < warm_up_us:
        account.round_us.clear()
        account.phases.clear()


def rate(seconds: Iterable[Second]) -> Rate | None:
    """Records per second, from the first read of a source to the last one.

    What was written in all of these seconds counts. None if there was only one moment of reading.
    """
    read = written = 0
    span = Second(0)
    for second in seconds:
        read, written = read + second.read, written + second.written
        span.note_reading(second.first_us, second.last_us)
    if span.first_us is None or span.last_us is None:
        return Rate(0.0, 0.0)
    span_s = (span.last_us - span.first_us) / SECOND_US
    return Rate(round(read / span_s, 1), round(written / span_s, 1)) if span_s else None


def volume(seconds: Iterable[Second]) -> Volume:
    """The bytes of some seconds, by what they were for."""
    total = Volume()
    for second in seconds:
        total.add(second.volume)
    return total
