"""When which fault was active: the spans of the faults of a run, from its journal.

A fault is written down with its statement when it begins, and what lasts a while also when it ends. A
process that was killed has no such end: its span lasts until the job runs again. Damage is a moment. What
was still going on at the end of the journal lasts until then. A fault that found nobody is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from snapline.ids import Micros, Millis
from snapline.journal.entry import COORDINATOR, Entry, Happened

ENDS = frozenset({"continued", "healed", "back"})
KILLS = frozenset({"killed", "coordinator-killed"})
NO_BEGINNINGS = ENDS | {"missed", "coordinator-resumed"}


class FaultSpan(NamedTuple):
    """A statement, and when it was true: milliseconds since input began to be due."""

    text: str
    start_ms: Millis
    end_ms: Millis


@dataclass(slots=True)
class _Active:
    text: str
    start_us: Micros
    whats: set[str]
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
    active = [fault for fault in found if fault.end_us is None]
    text = entry.detail.get("fault")
    if entry.what == "running":
        for fault in active:
            if fault.whats & KILLS and (entry.actor == COORDINATOR or entry.actor in fault.actors):
                fault.end_us = entry.at_us
    elif entry.what in ENDS:
        for fault in active:
            if fault.text == text or (text is None and entry.actor in fault.actors):
                fault.end_us = entry.at_us
    elif text is not None and entry.what not in NO_BEGINNINGS:
        same = [fault for fault in active if fault.text == text]
        if same:  # it strikes several
            same[0].whats.add(entry.what)
            same[0].actors.add(entry.actor)
            return
        end_us = entry.at_us if entry.what == "damaged" else None
        found.append(_Active(text, entry.at_us, {entry.what}, {entry.actor}, end_us))
