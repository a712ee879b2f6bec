"""What happened in one second of a run, as all slots together saw it.

A run's seconds are counted from the moment at which input began to be due. They stand in the driver's
journal (`SecondMeasured`), so every figure can be computed again when the run is over. A simulated run has
none: how long its work would take is not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from snapline.ids import Epoch, Micros, SlotId
from snapline.journal.happenings import SecondMeasured
from snapline.metrics.histogram import Histogram

SECOND_US = 1_000_000
PARTS = 4
"""A second is cut into so many parts. Slots report every 0.2 s, so each part has heard of all of them."""

PART_US = SECOND_US // PARTS


class SlotSecond(NamedTuple):
    """What one slot did in a second; the fields are as in `Second`."""

    slot: SlotId
    read: int
    written: int
    backlog: int | None
    p50_ms: float | None
    p99_ms: float | None


class Part(NamedTuple):
    """A part of a second: how the job stood at its end, and the latency of what was written in it."""

    running: int
    backlog: int | None
    p50_ms: float | None
    p99_ms: float | None


@dataclass(slots=True)
class Volume:
    """How many bytes were spent, by what they were for."""

    messages: int = 0  # all messages between tasks, within a slot too, at the size of their columns
    headers: int = 0  # of these: what protocols piggybacked
    wire: int = 0  # what left for other slots, with framing and credit
    log: int = 0  # messages that were logged
    snapshots: int = 0
    output: int = 0  # rows that sinks wrote

    def add(self, other: "Volume") -> None:
        """Add another volume to this one, field by field."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        """The bytes of each field, by its name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(slots=True)
class Second:
    """One second. What was read or written again after a rollback counts again."""

    at_s: int  # it covers at_s <= time < at_s + 1
    epoch: Epoch = 0
    running: int = 0  # slots that run at its end
    read: int = 0  # records that sources read
    written: int = 0  # records that sinks wrote
    backlog: int | None = None  # records due and not read, at its end; None: some slot did not say
    checkpoints: int = 0  # stored so far
    lines: int = 0  # committed so far
    volume: Volume = field(default_factory=Volume)
    latency: Histogram = field(default_factory=Histogram)  # of what was written
    p50_ms: float | None = None  # of `latency`, once settled; None without output
    p99_ms: float | None = None
    checkpoint_us: tuple[int, ...] = ()  # trigger to durable, of those that became durable
    length_us: Micros = SECOND_US  # the end of the run cuts the last one short
    first_us: Micros | None = None  # when a source read first in it; None: nobody read
    last_us: Micros | None = None  # when a source read last
    slots: tuple[SlotSecond, ...] = ()  # each slot that said something
    parts: tuple[Part, ...] = ()

    def note_reading(self, first_us: Micros | None, last_us: Micros | None) -> None:
        """Take into account when some of its input was read; None: none was."""
        if first_us is not None and last_us is not None:
            self.first_us = first_us if self.first_us is None else min(self.first_us, first_us)
            self.last_us = last_us if self.last_us is None else max(self.last_us, last_us)

    def settle(self) -> None:
        """Compute the percentiles, now that the second is over: they are asked for often."""
        self.p50_ms = self.latency.percentile_ms(50)
        self.p99_ms = self.latency.percentile_ms(99)

    def measured(self) -> SecondMeasured:
        """The second as the journal has it; its epoch is that of the entry."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        del known["epoch"]
        return SecondMeasured(
            **{**known, "volume": self.volume.as_dict(), "latency": self.latency.pairs()}
        )


def folded(seconds: Sequence[Second]) -> Second:
    """Several seconds that are long over as one: sums, one histogram, and the counts at their end.

    It stands where the first of them stood in which input was read. It has no percentiles and no backlog,
    so nobody takes it for a second of the present; what each slot did, and how long checkpoints took, is
    forgotten.
    """
    first, last = next((s for s in seconds if s.read), seconds[0]), seconds[-1]
    total = Second(first.at_s, checkpoints=last.checkpoints, lines=last.lines)
    for second in seconds:
        total.read += second.read
        total.written += second.written
        total.volume.add(second.volume)
        total.latency.merge(second.latency)
        total.note_reading(second.first_us, second.last_us)
    return total


def second_of(epoch: Epoch, measured: SecondMeasured) -> Second:
    """Read a second from what the journal has of it."""
    known = {each.name: getattr(measured, each.name) for each in fields(measured)}
    known["volume"] = Volume(**measured.volume)
    known["latency"] = Histogram.of_pairs(measured.latency)
    known["slots"] = tuple(SlotSecond(*each) for each in measured.slots)
    known["parts"] = tuple(Part(*each) for each in measured.parts)
    return Second(epoch=epoch, **known)
