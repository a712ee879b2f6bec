"""Reads a run directory into the value that its page is made of. Nothing in it is executed or changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from snapline.errors import SnaplineError, UsageError
from snapline.ids import Micros
from snapline.journal.codec import happened_of
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import JobRunning
from snapline.judge.history import journal_entries, journals_of_drivers
from snapline.metrics.checkpointing.history import checkpoint_rows
from snapline.metrics.fault_spans import fault_spans
from snapline.metrics.figures import Figures, figures_of
from snapline.metrics.json_form import from_json, to_json
from snapline.metrics.latency import RowTimes
from snapline.metrics.seconds_table import second_rows
from snapline.report.run.command import command_of
from snapline.report.run.reported import RUNNING, ReportedRun
from snapline.report.run.topology import topology_of
from snapline.rundir.directory import RunDirectory
from snapline.rundir.results import check_version
from snapline.wording import plural

JOURNAL_BYTES_MAX = 32 << 20
"""A journal of a slot that is larger is left out of the picture: nobody could see its messages."""

JOURNALS_BYTES_MAX = 128 << 20
"""So much of the journals of all slots is read: in memory it takes many times as much."""


def read_run(
    directory: RunDirectory,
    times: Mapping[str, RowTimes],
    environment: Mapping[str, Any] | None = None,
) -> ReportedRun:
    """Read a run; `times` are those of the rows that each sink has published. Raises UsageError.

    A run that is not over is read as far as its journals go.
    """
    if (result := directory.result()) is not None:
        check_version(directory, result)
    drivers, gap = _of_drivers(directory, result)
    slots, left_out = _of_slots(directory)
    return reported_run(directory, drivers, slots, times, environment, gap=gap or left_out)


def reported_run(
    directory: RunDirectory,
    drivers: Sequence[Entry],
    slots: Sequence[Entry],
    times: Mapping[str, RowTimes],
    environment: Mapping[str, Any] | None = None,
    *,
    gap: str | None = None,
) -> ReportedRun:
    """What a page shows of a run, of which drivers have written this in this order, and slots that."""
    spec, result = directory.spec(), directory.result()
    runs = any(isinstance(e, Happened) and isinstance(e.what, JobRunning) for e in drivers)
    if result is None and not runs:
        # Input is not due yet: the clocks of all processes still count from their own beginning.
        drivers, slots = ([replace(e, at_us=0) for e in some] for some in (drivers, slots))
    entries = sorted(drivers, key=lambda entry: entry.at_us)
    whole = sorted((*entries, *slots), key=lambda entry: entry.at_us)
    known = result or {"kept": RUNNING, "because": directory.why_not_over() or "it is not over"}
    metrics, figures = _figures(known, entries, times, spec)
    return ReportedRun(
        directory.name,
        simulated=False,
        command=command_of(spec),
        settings=spec,
        kept=str(known.get("kept")),
        because=str(known.get("because", "")),
        guarantees=_mapping(known.get("guarantees")),
        problems=_mappings(known.get("problems")),
        strikes=_mappings(known.get("faults")),
        metrics=metrics,
        figures=figures,
        rows=_mapping(known.get("rows")),
        seconds=tuple(second_rows(entries, times)),
        checkpoints=tuple(checkpoint_rows(drivers)),
        faults=tuple(fault_spans(entries)),
        entries=tuple(entries),
        journal=tuple(whole),
        topology=topology_of(whole),
        environment=environment or _mapping(known.get("environment")),
        gap=gap,
    )


def _figures(
    result: Mapping[str, Any],
    entries: list[Entry],
    times: Mapping[str, RowTimes],
    spec: Mapping[str, Any],
) -> tuple[Mapping[str, Any], Figures | None]:
    """The figures of a run: as its result has them, or as they are so far."""
    metrics = _mapping(result.get("metrics"))
    if not metrics and result.get("kept") == RUNNING:
        warm_up_ms, asked_ms = spec.get("warm_up_ms"), spec.get("interval_ms")
        found = figures_of(
            entries,
            times,
            1000 * warm_up_ms if isinstance(warm_up_ms, int) else 0,
            asked_ms if isinstance(asked_ms, int) else None,
        )
        return to_json(found), found
    try:
        return metrics, from_json(Figures, dict(metrics))
    except (ValueError, OverflowError):
        return metrics, None  # of another system, which has figures of its own


def _of_drivers(
    directory: RunDirectory, result: Mapping[str, Any] | None
) -> tuple[list[Entry], str | None]:
    """The entries of all drivers in the order of writing; of another system, what was seen of it."""
    events = (result or {}).get("events")
    if isinstance(events, list) and events:
        try:
            return [happened_of(each) for each in events], None
        except (ValueError, TypeError, KeyError) as error:
            file = directory.path / "result.json"
            raise UsageError(
                f"{file}: an event cannot be read: {error} (docs/history.md)"
            ) from error
    journals, gap = journals_of_drivers(directory)
    found = [entry for each in journals for entry in in_order(each)]
    return found, gap if found or gap else "the run has left no journal of a driver"


def _of_slots(directory: RunDirectory) -> tuple[list[Entry], str | None]:
    """The journal entries of all slots, and why some are left out."""
    found: list[Entry] = []
    left_out: list[str] = []
    unread, total = None, 0
    for path in sorted((directory.path / "journal").glob("slot-*.jsonl")):
        try:
            size = path.stat().st_size
            if size > JOURNAL_BYTES_MAX or total + size > JOURNALS_BYTES_MAX:
                left_out.append(path.name)
                continue
            total += size
            found += in_order(journal_entries(directory, path))
        except FileNotFoundError:
            continue  # a run without an end has deleted it meanwhile
        except (SnaplineError, OSError, ValueError, LookupError, TypeError) as error:
            unread = f"the journal {path.name} cannot be read: {error}"
    return found, unread or too_large(left_out)


def too_large(left_out: Sequence[str]) -> str | None:
    """What a page says of journals of slots that are left out; None if there are none."""
    if not left_out:
        return None
    if len(left_out) == 1:
        return f"the journal {left_out[0]} is too large to be drawn"
    more = plural(len(left_out) - 1, "other")
    return f"the journals of slots are too large to be drawn: {left_out[0]} and {more} are left out"


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of one process, each no later than those that it wrote behind it.

    A process starts its clock again when input begins to be due, so what it wrote before has times that
    mean nothing: it came before, and that is all that is known.
    """
    told: list[Entry] = []
    latest_us: Micros | None = None
    for entry in reversed(entries):
        if latest_us is not None and entry.at_us > latest_us:
            entry = replace(entry, at_us=latest_us)
        latest_us = entry.at_us
        told.append(entry)
    return told[::-1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    known = value if isinstance(value, list | tuple) else ()
    return tuple(each for each in known if isinstance(each, Mapping))
