"""What happened in one second of a run, as all slots together saw it.

A run's seconds are counted from the moment at which input began to be due. They stand in the driver's
journal (`Happened("second")`), so every figure can be computed again when the run is over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from snapline.ids import Epoch
from snapline.journal.entry import COORDINATOR, Happened
from snapline.metrics.histogram import Histogram

SECOND_US = 1_000_000


@dataclass(slots=True)
class Volume:
    """Bytes by what they were for."""

    messages: int = 0  # all messages between tasks, within a slot too, at the size of their columns
    headers: int = 0  # of these: what protocols piggybacked
    wire: int = 0  # what left for other slots, with framing and credit
    log: int = 0  # messages that were logged
    snapshots: int = 0
    output: int = 0  # rows that sinks wrote

    def add(self, other: "Volume") -> None:
        """Add up, each apart."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(slots=True)
class Second:
    """One second. What was read or written again after a rollback counts again."""

    at_s: int  # it covers at_s <= time < at_s + 1
    epoch: Epoch = 0
    running: int = 0  # slots that run at its end
    read: int = 0  # records that sources read
    written: int = 0  # records that sinks wrote
    backlog: int | None = (
        None  # records due and not read, at its end; None: not all slots could say
    )
    checkpoints: int = 0  # stored so far
    lines: int = 0  # committed so far
    volume: Volume = field(default_factory=Volume)
    latency: Histogram = field(default_factory=Histogram)  # of what was written
    p50_ms: float | None = None  # of that; None without output
    p99_ms: float | None = None
    checkpoint_us: tuple[int, ...] = ()  # trigger to durable, of those that became durable

    def settle(self) -> None:
        """It is over: work out what will be asked often."""
        self.p50_ms = self.latency.percentile_ms(50)
        self.p99_ms = self.latency.percentile_ms(99)

    def detail(self) -> dict[str, Any]:
        """As it stands in the journal."""
        written = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**written, "volume": self.volume.as_dict(), "latency": self.latency.pairs()}

    def as_dict(self) -> dict[str, Any]:
        """As it is shown: without what only figures need."""
        hidden = ("latency", "checkpoint_us")
        return {name: value for name, value in self.detail().items() if name not in hidden}


def second_of(detail: Mapping[str, Any]) -> Second:
    """A second, read from the journal."""
    known = {**detail, "volume": Volume(**detail["volume"])}
    return Second(**{**known, "latency": Histogram.of_pairs(detail["latency"])})


def seconds_of(entries: Iterable[object]) -> list[Second]:
    """The seconds of a journal."""
    return [
        second_of(entry.detail)
        for entry in entries
        if isinstance(entry, Happened) and entry.what == "second" and entry.actor == COORDINATOR
    ]
