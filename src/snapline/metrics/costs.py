"""What a run cost: checkpoints by number, size and time, bytes by kind, CPU time, memory, requests.

What a killed slot had not said is lost, so all of this is a lower bound: at most 0.2 s of bytes, and at
most a second of CPU time and requests, for each slot that was killed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

from snapline.ids import operator_of
from snapline.metrics.checkpointing.account import CheckpointAccount, TaskCheckpoints
from snapline.metrics.checkpointing.history import PHASES, Phases
from snapline.metrics.second import SECOND_US, Second, Volume, total_used


class Timed(StrEnum):
    """What the time of a checkpoint covers: a whole round, or a single task."""

    ROUND = "round"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class CheckpointTimes:
    """How long something took, in milliseconds, of at least the last 10,000 checkpoints or rounds."""

    mean: float  # the arithmetic mean
    median: float  # half of them took no longer
    max: float  # the longest


@dataclass(frozen=True, slots=True)
class CheckpointPhases:
    """How the time of checkpoints of tasks was spent; `metrics.checkpointing.history` has the phases."""

    time: CheckpointTimes  # from when it was due until the coordinator had it: the sum of all
    start_delay: CheckpointTimes  # until the task was told: first marker, command or timer
    alignment: CheckpointTimes  # from there until the capture began
    blocked: CheckpointTimes  # the capture, while the slot does nothing else
    background: CheckpointTimes  # until it was durable with all that it needs
    reporting: CheckpointTimes  # until the coordinator had it


@dataclass(frozen=True, slots=True)
class CheckpointSizes:
    """The bytes of stored snapshots."""

    mean: float  # bytes of a snapshot
    max: int  # bytes of the largest snapshot
    full: int  # how many hold all of the state
    full_mean: float | None  # bytes of a full one; None: there was none
    deltas: int  # how many hold what changed since the one before
    delta_mean: float | None  # bytes of a delta; None: there was none


@dataclass(frozen=True, slots=True)
class CheckpointFigures:
    """Checkpoints by number, size and time; see `metrics.checkpointing`."""

    stored: int  # checkpoints that the coordinator was told of
    forced: int  # of these: forced by a message, before their time
    skipped: int  # of these: a rollback went back beyond them
    useless: int | None  # of these: on a Z-cycle; None: too many to tell, or it has no meaning
    invalid_percent: float | None  # the share of those that are skipped or useless
    aborted_rounds: int  # rounds that were given up
    bytes: int  # of all stored snapshots
    timed: Timed  # what `time_ms` is of: a whole round, or the checkpoint of one task
    time_ms: CheckpointTimes | None  # order to last task durable, or trigger to durable
    interval_ms: float | None  # the mean time between two committed lines; None: less than two
    interval_ratio: float | None  # that, over the interval that was asked for


@dataclass(frozen=True, slots=True)
class OperatorCheckpoints:
    """The checkpoints of all tasks of an operator, or of operators that are one task."""

    stored: int  # checkpoints that the coordinator was told of
    bytes: int  # of their snapshots
    interval_ms: float | None  # the mean time between two of one task; None: less than two


@dataclass(frozen=True, slots=True)
class ByteFigures:
    """Bytes of the whole run, by kind, and in proportion; `metrics.second.Volume` has the kinds."""

    payload: int
    headers: int
    markers: int
    control: int
    metadata: int
    log: int
    snapshots: int
    output: int
    wire: int
    overhead: float | None  # all kinds but payload and output, over payload
    message_overhead: float | None  # headers, markers, control and metadata over payload
    per_record: float | None  # all kinds together, over records read; both without the warm-up


@dataclass(frozen=True, slots=True)
class StoreRequests:
    """What was asked of the store, by slots and driver."""

    puts: int  # objects to keep
    put_bytes: int  # their size
    gets: int  # objects to give
    get_bytes: int  # their size
    deletes: int  # objects to delete
    lists: int  # folders to list, or to clear


@dataclass(frozen=True, slots=True)
class ResourceFigures:
    """What the processes of a run used, from their start on; not Java."""

    cpu_s: Mapping[str, float]  # user and system, of `driver` and of each `slot/N` in all lives
    rss_bytes: Mapping[str, int]  # the highest resident memory of each process
    generator_cpu_s: float  # of the CPU time of slots: to make generated records
    store: StoreRequests  # requests to the store
    log_syncs: int  # syncs that were asked of logs: many checkpoints may share one


def checkpoint_figures(
    account: CheckpointAccount, seconds: Sequence[Second], asked_ms: int | None = None
) -> CheckpointFigures:
    """Checkpoints by number, size and time. Times are of rounds, or where there are none, of tasks."""
    of_tasks_us = [us for second in seconds for us in second.checkpoint_us]
    times_us = account.round_us if account.in_rounds else of_tasks_us
    useless, interval_us = account.useless.found(), account.interval_us
    known = useless is not None and account.stored
    return CheckpointFigures(
        account.stored,
        account.forced,
        account.skipped,
        None if useless is None else len(useless),
        round(100 * account.invalid(useless or ()) / account.stored, 3) if known else None,
        account.aborted,
        account.bytes,
        Timed.ROUND if account.in_rounds else Timed.TASK,
        times(times_us) if times_us else None,
        None if interval_us is None else round(interval_us / 1000, 3),
        round(interval_us / 1000 / asked_ms, 4) if interval_us is not None and asked_ms else None,
    )


def operator_figures(account: CheckpointAccount) -> dict[str, OperatorCheckpoints]:
    """The checkpoints of each operator that has any, by its name."""
    by_operator: dict[str, list[TaskCheckpoints]] = {}
    for task, found in account.tasks.items():
        by_operator.setdefault(operator_of(task), []).append(found)
    return {name: _of_operator(tasks) for name, tasks in sorted(by_operator.items())}


def _of_operator(tasks: Sequence[TaskCheckpoints]) -> OperatorCheckpoints:
    stored, gaps = sum(task.stored for task in tasks), sum(task.stored - 1 for task in tasks)
    span_us = sum(task.last_us - task.first_us for task in tasks)
    interval_ms = round(span_us / gaps / 1000, 3) if gaps else None
    return OperatorCheckpoints(stored, sum(task.bytes for task in tasks), interval_ms)


def times(values_us: Sequence[int]) -> CheckpointTimes:
    """The mean, the median and the greatest of some times."""
    found = fmean(values_us), median(values_us), max(values_us)
    return CheckpointTimes(*(round(us / 1000, 3) for us in found))


def phase_figures(phases: Sequence[Phases]) -> CheckpointPhases | None:
    """How the time of checkpoints was spent; None if nobody measured any."""
    if not phases:
        return None
    each = (times([getattr(one, f"{name}_us") for one in phases]) for name in PHASES)
    return CheckpointPhases(times([one.whole_us for one in phases]), *each)


def size_figures(account: CheckpointAccount) -> CheckpointSizes | None:
    """The sizes of snapshots; None if none was stored."""
    stored, deltas = account.stored, account.deltas
    if not stored:
        return None
    full = stored - deltas
    return CheckpointSizes(
        round(account.bytes / stored, 1),
        account.bytes_max,
        full,
        round((account.bytes - account.delta_bytes) / full, 1) if full else None,
        deltas,
        round(account.delta_bytes / deltas, 1) if deltas else None,
    )


def byte_figures(total: Volume, records: int | None) -> ByteFigures:
    """Bytes by kind; `records` are those that were read, each counted once."""
    spoken = total.headers + total.markers + total.control + total.metadata
    added = spoken + total.log + total.snapshots
    everything = total.payload + added + total.output
    return ByteFigures(
        **total.as_dict(),
        overhead=_ratio(added, total.payload),
        message_overhead=_ratio(spoken, total.payload),
        per_record=_ratio(everything, records),
    )


def _ratio(part: int, whole: int | None) -> float | None:
    return round(part / whole, 6) if whole else None


def resource_figures(seconds: Iterable[Second]) -> ResourceFigures:
    """CPU time, memory and requests of the whole run."""
    total = total_used(seconds)
    used, by_name = total.usage, sorted(total.processes.items())
    return ResourceFigures(
        {name: round(cpu_us / SECOND_US, 3) for name, (cpu_us, _) in by_name},
        {name: rss_bytes for name, (_, rss_bytes) in by_name},
        round(used.generator_us / SECOND_US, 3),
        StoreRequests(
            used.puts, used.put_bytes, used.gets, used.get_bytes, used.deletes, used.lists
        ),
        used.log_syncs,
    )
