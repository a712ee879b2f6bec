"""All figures of a run in one plain dictionary, as `result.json` and `Run.metrics` have them."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from snapline.journal.entry import Entry, Happened
from snapline.metrics.checkpoints import CheckpointAccount
from snapline.metrics.failures import OVER, STRUCK, detections, failures, recoveries, restarts
from snapline.metrics.histogram import Counts
from snapline.metrics.latency import as_dict, committed, uncommitted
from snapline.metrics.second import Second, Volume, seconds_of

TOLD = {"lost", "running", "decided", "line", "published", "finished"} | STRUCK | OVER
"""What figures need of all that happened."""


def figures_of(entries: Iterable[Entry], times_ms: Mapping[str, Counts]) -> dict[str, Any]:
    """The figures of a run from its driver's journal, and the times of the rows that it published."""
    account = CheckpointAccount()
    told = []
    seconds = []
    for entry in entries:
        account.see(entry)
        if isinstance(entry, Happened):
            seconds += seconds_of([entry])
            told += [entry] if entry.what in TOLD else []
    return figures(told, account, seconds, times_ms)


def figures(
    told: Sequence[Happened],
    account: CheckpointAccount,
    seconds: Sequence[Second],
    times_ms: Mapping[str, Counts],
) -> dict[str, Any]:
    """The figures of a run."""
    found = failures(told)
    public = committed(told, times_ms)
    kills = [entry for entry in told if entry.what == "killed"]
    return {
        "commits": lines(told),
        "kills": len(kills),
        "lost": sum(entry.what == "lost" for entry in told),
        "killed_pids": [entry.detail["pid"] for entry in kills],
        "detection_s": _rounded(detections(told)),
        "restart_s": _rounded(restarts(found)),
        "recovery_s": _rounded(recoveries(seconds, found)),
        "latency_ms": as_dict(uncommitted(seconds)),
        "committed_latency_ms": as_dict(public) if len(public) else None,
        **records(told, account, seconds),
        "rate": rate(seconds),
        "checkpoints": checkpoints(account, seconds),
        "rollbacks": [dict(entry.detail) for entry in told if entry.what == "line"],
        "bytes": volume(seconds).as_dict(),
    }


def lines(told: Iterable[Happened]) -> int:
    """Lines that were committed."""
    return sum(is_line(entry) for entry in told)


def is_line(entry: Happened) -> bool:
    """Whether a line was committed here; a decision that begins an epoch commits nothing new."""
    return entry.what == "decided" and bool(entry.detail["epoch"] == entry.epoch)


def records(
    told: Sequence[Happened], account: CheckpointAccount, seconds: Sequence[Second]
) -> dict[str, int]:
    """Records read and written, each once; and at least so many of them again, after rollbacks.

    The last line of a finished run has all input and all output. Without lines, or without an end, what
    slots said has to do; what a slot did just before it was killed it could not say any more.
    """
    read, written = sum(s.read for s in seconds), sum(s.written for s in seconds)
    once = read, written
    if account.stored and any(entry.what == "finished" for entry in told):
        once = account.offset, account.position
    return {
        "records_read": once[0],
        "records_written": once[1],
        "read_again": max(0, read - once[0]),
        "written_again": max(0, written - once[1]),
    }


def rate(seconds: Sequence[Second]) -> dict[str, float]:
    """Records per second, over the seconds in which input was read."""
    busy = [second for second in seconds if second.read]
    if not busy:
        return {"read": 0.0, "written": 0.0}
    span_s = busy[-1].at_s - busy[0].at_s + 1
    read, written = sum(s.read for s in seconds), sum(s.written for s in seconds)
    return {"read": round(read / span_s, 1), "written": round(written / span_s, 1)}


def checkpoints(account: CheckpointAccount, seconds: Sequence[Second]) -> dict[str, Any]:
    """Checkpoints by number, size and time. Times are of rounds, or where there are none, of tasks."""
    of_tasks_us = [us for second in seconds for us in second.checkpoint_us]
    times_us = account.round_us if account.in_rounds else of_tasks_us
    time_ms = (
        {"median": round(median(times_us) / 1000, 3), "max": round(max(times_us) / 1000, 3)}
        if times_us
        else None
    )
    return {
        "stored": account.stored,
        "forced": account.forced,
        "skipped": account.skipped,
        "aborted_rounds": account.aborted,
        "bytes": account.bytes,
        "timed": "round" if account.in_rounds else "task",
        "time_ms": time_ms,
    }


def volume(seconds: Iterable[Second]) -> Volume:
    """Bytes of the whole run."""
    total = Volume()
    for second in seconds:
        total.add(second.volume)
    return total


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 3) for value in values]
