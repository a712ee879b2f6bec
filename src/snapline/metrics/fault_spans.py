"""When which fault was active: the spans of the faults of a run, from its journal.

A fault is written down with its statement when it begins, and what lasts a while also when it ends. A
process that was killed has no such end: its span lasts until the job runs again. The span of damage is a
single moment. A fault that was still active at the end of the journal lasts until then. A fault that found
nobody has no span.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from snapline.ids import Micros, Millis
from snapline.journal.entry import Entry, Happened
from snapline.journal.fault_happenings import (
    CoordinatorKilled,
    FaultBegan,
    FaultOver,
    ProcessKilled,
    RecordSpoiled,
    SnapshotDamaged,
)
from snapline.journal.happenings import JobRunning, SlotRunning

_Kill: TypeAlias = ProcessKilled | CoordinatorKilled
_Damage: TypeAlias = SnapshotDamaged | RecordSpoiled


class FaultSpan(NamedTuple):
    """A fault's statement, and when it was active: in milliseconds since input began to be due."""

    text: str
    start_ms: Millis
    end_ms: Millis


@dataclass(slots=True)
class _Active:
    text: str
    start_us: Micros
    kills: bool  # whether it killed a process
    actors: set[str]
    end_us: Micros | None = None


def fault_spans(entries: Iterable[Entry]) -> list[FaultSpan]:
    """The faults of a run in the order in which they began; entries are in the order of time."""
    found: list[_Active] = []
    last_us: Micros = 0
    for entry in entries:
        last_us = max(last_us, entry.at_us)
        if isinstance(entry, Happened):
            _see(found, entry)
    return [
        FaultSpan(
            fault.text,
            fault.start_us // 1000,
            (last_us if fault.end_us is None else fault.end_us) // 1000,
        )
        for fault in found
    ]


def _see(found: list[_Active], entry: Happened) -> None:
    what, active = entry.what, [fault for fault in found if fault.end_us is None]
    if isinstance(what, JobRunning | SlotRunning):
        for fault in active:
            if fault.kills and (isinstance(what, JobRunning) or entry.actor in fault.actors):
                fault.end_us = entry.at_us
    elif isinstance(what, FaultOver):
        for fault in active:
            if fault.text == what.fault or (what.fault is None and entry.actor in fault.actors):
                fault.end_us = entry.at_us
    elif isinstance(what, FaultBegan) and what.fault is not None:
        same = [fault for fault in active if fault.text == what.fault]
        if same:  # one fault may strike several actors
            same[0].kills |= isinstance(what, _Kill)
            same[0].actors.add(entry.actor)
            return
        end_us = entry.at_us if isinstance(what, _Damage) else None
        struck = _Active(what.fault, entry.at_us, isinstance(what, _Kill), {entry.actor}, end_us)
        found.append(struck)
