"""What a page about a run is made of: a value that knows no files, whoever has read it.

A run that is not over has no verdict yet, and what it measured so far. A simulated run has no seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snapline.core.topology import Topology
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.journal.happenings import JobRunning
from snapline.metrics.checkpointing.history import CheckpointRow
from snapline.metrics.fault_spans import FaultSpan
from snapline.metrics.figures import Figures
from snapline.metrics.second import SECOND_US
from snapline.metrics.seconds_table import SecondRow

RUNNING = "running"
"""What stands in place of a verdict while a run is not over."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """All that is shown of one run."""

    name: str
    simulated: bool
    command: str  # which makes such a run again
    settings: Mapping[str, Any]
    kept: str  # yes, no, unknown, or RUNNING
    because: str
    guarantees: Mapping[str, str]  # yes, no or unknown, by guarantee
    problems: Sequence[Mapping[str, Any]]  # witnesses: kind, record, because
    strikes: Sequence[Mapping[str, Any]]  # what became of each fault: statement, struck, at_ms
    metrics: Mapping[str, Any]  # the figures as plain values
    figures: Figures | None  # None: these are figures of another system
    rows: Mapping[str, int]  # rows published, by sink
    seconds: Sequence[SecondRow] = ()
    checkpoints: Sequence[CheckpointRow] = ()
    faults: Sequence[FaultSpan] = ()
    entries: Sequence[Entry] = field(default=(), repr=False)  # of drivers, in the order of time
    journal: Sequence[Entry] = field(default=(), repr=False)  # of all processes, likewise
    topology: Topology | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    gap: str | None = None  # why a part of the journals is missing, if it is

    @property
    def end_s(self) -> float:
        """When the last thing happened, in seconds since input began to be due."""
        last_us = max((entry.at_us for entry in self.entries), default=0)
        last_s = max((row.second + 0.5 for row in self.seconds), default=0)
        return max(last_us / SECOND_US, last_s)

    @property
    def epochs(self) -> tuple[tuple[float, int], ...]:
        """When all slots first ran in each epoch."""
        found: dict[int, float] = {}
        for entry in self.entries:
            if (
                isinstance(entry, Happened)
                and isinstance(entry.what, JobRunning)
                and entry.actor == COORDINATOR
            ):
                found.setdefault(entry.epoch, entry.at_us / SECOND_US)
        return tuple((at_s, epoch) for epoch, at_s in found.items())
