"""What happened to a run, as far as a verdict depends on it: which faults struck, and what was lost when.

Snapline's own runs write journals, one per driver; of other systems, which are watched from outside, the
list of what happened stands in their `result.json`. Both become the same `History`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

from snapline.chaos.faults import Fault, Kill, Partition, parse
from snapline.chaos.strikes import Strike
from snapline.errors import SnaplineError
from snapline.ids import Millis
from snapline.journal.codec import read
from snapline.journal.entry import Entry, Happened
from snapline.journal.fault_happenings import (
    ConnectionsDisturbed,
    CoordinatorKilled,
    CoordinatorResumed,
    FaultBegan,
    FaultMissed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
)
from snapline.journal.happenings import Happening, JobRunning, SlotLost, SystemDown
from snapline.journal.loss_happenings import Declared
from snapline.metrics.fault_spans import fault_spans
from snapline.metrics.figures import is_line
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import driver_journals
from snapline.validate.sentences import TimedFault

Loss: TypeAlias = SlotLost | CoordinatorKilled | CoordinatorResumed
"""What means that a process was lost on which the job depends; a resume tells of a loss before it."""

_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a damaged journal may raise: a line with a flipped byte may parse, and mean nonsense."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a run; times are in milliseconds since input began to be due."""

    strikes: tuple[Strike, ...] = ()  # what became of every fault of the plan, in its order
    faults: tuple[TimedFault, ...] = ()  # those that took effect, and when they were active
    losses_ms: tuple[Millis, ...] = ()
    first_line_ms: Millis | None = None  # None: no line was ever committed
    end_ms: Millis = 0
    gap: str | None = None  # why a part of the history is unknown, if it is
    declared: tuple[Declared, ...] = ()  # what the run says that it lost


def history_of(directory: RunDirectory, plan: str) -> History:
    """The history of one of Snapline's own runs, from the journals of its drivers."""
    entries, gap = driver_entries(directory)
    try:
        return _history(entries, gap, plan)
    except _NONSENSE as error:
        return _history([], f"the journals of the drivers say what cannot be: {error!r}", plan)


def _history(entries: Sequence[Entry], gap: str | None, plan: str) -> History:
    happened = [entry for entry in entries if isinstance(entry, Happened)]
    lines = [h.at_us // 1000 for h in happened if is_line(h)]
    return History(
        _matched(parse(plan), _seen(happened)),
        tuple(TimedFault(*span) for span in fault_spans(entries)),
        tuple(h.at_us // 1000 for h in happened if isinstance(h.what, Loss)),
        min(lines, default=None),
        max((entry.at_us for entry in entries), default=0) // 1000,
        gap,
        tuple(h.what for h in happened if isinstance(h.what, Declared)),
    )


def history_of_system(events: Sequence[Happened], end_ms: Millis, plan: str) -> History:
    """The history of a run of another system, from what was seen of it from outside."""
    kills = [(e.at_us // 1000, e.what.fault) for e in events if isinstance(e.what, ProcessKilled)]
    losses = tuple(at_ms for at_ms, _ in kills)
    # A kill that waited for a round struck while rows were written and not committed: there was output.
    rounds = (at_ms for at_ms, fault in kills if fault is not None and "on=round" in fault)
    first_ms = min((at_ms - 1 for at_ms in rounds), default=None)
    strikes = _matched(parse(plan), _seen(events))
    return History(strikes, tuple(_timed(events)), losses, first_ms, end_ms)


def driver_entries(directory: RunDirectory) -> tuple[list[Entry], str | None]:
    """The journal entries of all drivers of a run, in the order of time, and why some may be missing."""
    journals, gap = journals_of_drivers(directory)
    found = [entry for entries in journals for entry in _dated(entries)]
    if not found and gap is None:
        gap = f"there is no journal of a driver in {directory.path / 'journal'}"
    return sorted(found, key=lambda entry: entry.at_us), gap


def journals_of_drivers(directory: RunDirectory) -> tuple[list[list[Entry]], str | None]:
    """What each driver of a run wrote, in its order, the first driver first; and why some may be missing.

    Times do not tell the order of all entries: a driver starts its clock again when all slots first run.
    """
    found: list[list[Entry]] = []
    gap = None
    for segments in driver_journals(directory.path / "journal"):
        entries: list[Entry] = []
        for path in segments:
            try:
                # A driver may have died before it deleted a segment of which it had kept this.
                entries += _new(journal_entries(directory, path), entries)
            except (SnaplineError, OSError, *_NONSENSE) as error:
                gap = f"the journal {path.name} cannot be read: {error}"
        found.append(entries)
    return sorted(found, key=lambda entries: entries[0].epoch if entries else 0), gap


def _new(entries: Iterable[Entry], known: Sequence[Entry]) -> list[Entry]:
    """These entries, without those that are known."""
    by_time: dict[int, list[Entry]] = {}
    for entry in known:
        by_time.setdefault(entry.at_us, []).append(entry)
    return [entry for entry in entries if entry not in by_time.get(entry.at_us, ())]


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
    happened = [entry for entry in entries if isinstance(entry, Happened)]
    resumed = any(isinstance(entry.what, CoordinatorResumed) for entry in happened)
    for number, entry in enumerate(entries):
        early = number < begun and not resumed
        if early and isinstance(entry, Happened) and isinstance(entry.what, Loss):
            entry = replace(entry, at_us=-1)
        yield entry


def _begins(entry: Entry) -> bool:
    return isinstance(entry, Happened) and isinstance(entry.what, JobRunning)


def _seen(happened: Iterable[Happened]) -> Iterator[tuple[str, Millis]]:
    """The faults that took effect or found their target down already, each with its time."""
    for each in happened:
        what = each.what
        if isinstance(what, FaultBegan | FaultMissed) and what.fault is not None:
            yield what.fault, each.at_us // 1000


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


def _timed(events: Sequence[Happened]) -> Iterator[TimedFault]:
    """The faults with their times. A kill lasts until the system runs again, if it was down at all."""
    for number, event in enumerate(events):
        later = events[number + 1 :]
        at_ms, end_ms = event.at_us // 1000, None
        match event.what:
            case ProcessKilled(fault):
                soon = takewhile(lambda other: not isinstance(other.what, ProcessKilled), later)
                down = _first([*soon], SystemDown) is not None
                end_ms = _first(later, JobRunning) if down else None
            case ProcessPaused(fault):
                end_ms = _first(later, ProcessContinued)
            case ConnectionsDisturbed(fault, _, for_ms):
                end_ms = at_ms + for_ms
            case _:
                continue
        if fault is not None:
            yield TimedFault(fault, at_ms, end_ms)


def _first(events: Sequence[Happened], kind: type[Happening]) -> Millis | None:
    return next((event.at_us // 1000 for event in events if isinstance(event.what, kind)), None)
