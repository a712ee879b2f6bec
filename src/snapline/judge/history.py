"""What happened to a run, as far as a verdict depends on it: which faults struck, and what was lost when.

Snapline's own runs write journals, one per driver; other systems are watched from outside and have a list
of events in their `result.json`. Both become the same `History`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from snapline.chaos.faults import Fault, Kill, Partition, parse
from snapline.chaos.strikes import Strike
from snapline.errors import SnaplineError
from snapline.ids import Millis
from snapline.journal.codec import read
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.metrics.fault_spans import ENDS, fault_spans
from snapline.metrics.figures import is_line
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.validate.sentences import TimedFault

LOSSES = frozenset({"lost", "coordinator-killed", "coordinator-resumed"})
"""The entries of a driver's journal that mean that a process was lost on which the job depends."""

_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a damaged journal may raise: a line with a flipped byte may parse, and mean nonsense."""

Told: TypeAlias = Mapping[str, Any]
"""Something that happened to a system, as `result.json` has it: `at_ms`, `what`, and details."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a run; times are in milliseconds since input began to be due."""

    strikes: tuple[Strike, ...]  # what became of every fault of the plan, in the order of the plan
    faults: tuple[
        TimedFault, ...
    ]  # those that took effect, with the time in which they were active
    losses_ms: tuple[Millis, ...]
    first_line_ms: Millis | None  # None: no line was ever committed
    end_ms: Millis
    gap: str | None = None  # why a part of the history is unknown, if it is


def history_of(directory: RunDirectory, plan: str) -> History:
    """The history of one of Snapline's own runs, from the journals of its drivers."""
    entries, gap = driver_entries(directory)
    try:
        return _history(entries, gap, plan)
    except _NONSENSE as error:
        return _history([], f"the journals of the drivers say what cannot be: {error!r}", plan)


def _history(entries: Sequence[Entry], gap: str | None, plan: str) -> History:
    happened = [entry for entry in entries if isinstance(entry, Happened)]
    seen = ((h.detail["fault"], h.at_us // 1000) for h in happened if _strikes(h))
    lines = [h.at_us // 1000 for h in happened if is_line(h)]
    return History(
        _matched(parse(plan), seen),
        tuple(TimedFault(*span) for span in fault_spans(entries)),
        tuple(h.at_us // 1000 for h in happened if h.what in LOSSES),
        min(lines, default=None),
        max((entry.at_us for entry in entries), default=0) // 1000,
        gap,
    )


def history_of_system(events: Sequence[Told], end_ms: Millis, plan: str) -> History:
    """The history of a run of another system, from what was seen of it from outside."""
    struck = ("killed", "missed", "paused", "disturbed")
    seen = ((event["fault"], event["at_ms"]) for event in events if event["what"] in struck)
    losses = tuple(event["at_ms"] for event in events if event["what"] == "killed")
    # A kill that waited for a round struck while rows were written and not committed: there was output.
    rounds = (e["at_ms"] for e in events if e["what"] == "killed" and "on=round" in e["fault"])
    first_ms = min((at_ms - 1 for at_ms in rounds), default=None)
    return History(_matched(parse(plan), seen), tuple(_timed(events)), losses, first_ms, end_ms)


def driver_entries(directory: RunDirectory) -> tuple[list[Entry], str | None]:
    """The journal entries of all drivers of a run, in the order of time, and why some may be missing."""
    found: list[Entry] = []
    gap = None
    for path in sorted((directory.path / "journal").glob("driver-*.jsonl")):
        try:
            found.extend(_dated(journal_entries(directory, path)))
        except (SnaplineError, OSError, *_NONSENSE) as error:
            gap = f"the journal {path.name} cannot be read: {error}"
    if not found and gap is None:
        gap = f"there is no journal of a driver in {directory.path / 'journal'}"
    return sorted(found, key=lambda entry: entry.at_us), gap


def journal_entries(directory: RunDirectory, path: Path) -> list[Entry]:
    """The entries of one journal of a run, which has the commands and timers of the run's protocol."""
    name = directory.spec().get("protocol")
    protocol = PROTOCOLS[name] if isinstance(name, str) and name in PROTOCOLS else None
    with path.open() as lines:
        return list(read(lines, protocol))


def _dated(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries of one journal. Losses before the job first ran have no usable time: they become -1.

    A driver starts its clock again when all slots run for the first time, because input is due from then.
    """
    begun = next((n for n, entry in enumerate(entries) if _begins(entry)), len(entries))
    resumed = any(isinstance(e, Happened) and e.what == "coordinator-resumed" for e in entries)
    for number, entry in enumerate(entries):
        early = number < begun and not resumed
        if early and isinstance(entry, Happened) and entry.what in LOSSES:
            entry = replace(entry, at_us=-1)
        yield entry


def _begins(entry: Entry) -> bool:
    return isinstance(entry, Happened) and (entry.what, entry.actor) == ("running", COORDINATOR)


def _strikes(happened: Happened) -> bool:
    """Whether a fault took effect here, or found its target down already."""
    return "fault" in happened.detail and happened.what not in ENDS


def _matched(plan: Sequence[Fault], seen: Iterable[tuple[str, Millis]]) -> tuple[Strike, ...]:
    """Each fault of the plan with the moment at which it was seen; equal ones in their order.

    A fault that concerns several slots is seen once for each of them.
    """
    times: dict[str, list[Millis]] = {}
    for statement, at_ms in seen:
        times.setdefault(statement, []).append(at_ms)
    used: Counter[str] = Counter()
    strikes = []
    for fault in plan:
        statement = str(fault)
        left = sorted(times.get(statement, []))[used[statement] :]
        used[statement] += _targets(fault)
        strikes.append(Strike(statement, bool(left), left[0] if left else None))
    return tuple(strikes)


def _targets(fault: Fault) -> int:
    return len(fault.slots) if isinstance(fault, Kill | Partition) else 1


def _timed(events: Sequence[Told]) -> Iterator[TimedFault]:
    """The faults with their times. A kill lasts until the system runs again, if it was down at all."""
    for number, event in enumerate(events):
        later = events[number + 1 :]
        end_ms: Millis | None = None
        match event["what"]:
            case "killed":
                soon = list(takewhile(lambda other: other["what"] != "killed", later))
                down = _first(soon, "down") is not None
                end_ms = _first(later, "running") if down else None
            case "paused":
                end_ms = _first(later, "continued")
            case "disturbed":
                end_ms = event["at_ms"] + event["for_ms"]
            case _:
                continue
        yield TimedFault(event["fault"], event["at_ms"], end_ms)


def _first(events: Sequence[Told], what: str) -> Millis | None:
    return next((event["at_ms"] for event in events if event["what"] == what), None)
