"""What happened in one second of a run, as all slots together saw it.

A run's seconds are counted from the moment at which input began to be due. They stand in the driver's
journal (`SecondMeasured`), so every figure can be computed again when the run is over. A simulated run has
none, unless the costs of its work are known (`scale`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Self

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
class Sums:
    """Whole numbers that add up, field by field."""

    def add(self, other: Self) -> None:
        """Add another of the same kind to this one."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        """The number of each field, by its name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(slots=True)
class Volume(Sums):
    """How many bytes were spent, by what they were for. No byte is in two kinds; `wire` is no kind."""

    payload: int = 0  # columns of messages between tasks, within a slot too, and when sent again
    headers: int = 0  # what protocols piggybacked on these messages
    markers: int = 0  # markers, each at the size of its frame, within a slot too
    control: int = 0  # all else between processes: orders, reports, credit, heartbeats
    metadata: int = 0  # reports of stored checkpoints to the coordinator
    log: int = 0  # messages that senders logged, with their headers
    snapshots: int = 0  # snapshots of checkpoints that became durable
    output: int = 0  # rows that sinks wrote, at the size of their columns
    wire: int = 0  # what left for other slots: messages, markers and credit, with framing


@dataclass(slots=True)
class Usage(Sums):
    """What was used beside bytes on the way, CPU time and memory."""

    generator_us: int = 0  # CPU time that sources took to make generated records
    puts: int = 0  # objects that the store was asked to keep
    put_bytes: int = 0
    gets: int = 0  # objects that the store was asked for
    get_bytes: int = 0
    deletes: int = 0
    lists: int = 0  # folders that were listed, or cleared
    log_syncs: int = 0  # syncs that were asked of logs: many checkpoints may share one
    wakes: int = 0  # how often slots had nothing to do, and waited for something
    steps: int = 0  # inputs that were taken: messages that were gathered, what was due at a source
    messages: int = 0  # messages between tasks, within a slot too, and when sent again
    rows: int = 0  # records in these messages
    frames: int = 0  # what left for other slots: messages, markers and credit


@dataclass(frozen=True, slots=True)
class Used:
    """What one process has used since it last told."""

    cpu_us: int
    rss_bytes: int  # the most that it ever had
    usage: Usage


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
    #: CPU time (us) and peak memory (bytes) of each process that told them: `driver`, `slot/0`
    processes: dict[str, tuple[int, int]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def note_reading(self, first_us: Micros | None, last_us: Micros | None) -> None:
        """Take into account when some of its input was read; None: none was."""
        if first_us is not None and last_us is not None:
            self.first_us = first_us if self.first_us is None else min(self.first_us, first_us)
            self.last_us = last_us if self.last_us is None else max(self.last_us, last_us)

    def settle(self) -> None:
        """Compute the percentiles, now that the second is over: they are asked for often."""
        self.p50_ms = self.latency.percentile_ms(50)
        self.p99_ms = self.latency.percentile_ms(99)

    def add_used(self, process: str, used: Used) -> None:
        """Add what a process has used."""
        self.usage.add(used.usage)
        self.add_process(process, used.cpu_us, used.rss_bytes)

    def add_process(self, process: str, cpu_us: int, rss_bytes: int) -> None:
        """Add CPU time of a process, and take note of its peak memory."""
        before_us, peak = self.processes.get(process, (0, 0))
        self.processes[process] = (before_us + cpu_us, max(peak, rss_bytes))

    def measured(self) -> SecondMeasured:
        """The second as the journal has it; its epoch is that of the entry."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        del known["epoch"]
        sums = {"volume": self.volume.as_dict(), "usage": self.usage.as_dict()}
        return SecondMeasured(**{**known, **sums, "latency": self.latency.pairs()})


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
    _add_resources(total, seconds)
    return total


def total_used(seconds: Iterable[Second]) -> Second:
    """All that processes used in these seconds, and nothing else of them."""
    total = Second(0)
    _add_resources(total, seconds)
    return total


def _add_resources(total: Second, seconds: Iterable[Second]) -> None:
    for second in seconds:
        total.usage.add(second.usage)
        for process, (cpu_us, rss_bytes) in second.processes.items():
            total.add_process(process, cpu_us, rss_bytes)


def second_of(epoch: Epoch, measured: SecondMeasured) -> Second:
    """Read a second from what the journal has of it."""
    known = {each.name: getattr(measured, each.name) for each in fields(measured)}
    known["volume"] = Volume(**measured.volume)
    known["usage"] = Usage(**measured.usage)
    known["processes"] = dict(measured.processes)
    known["latency"] = Histogram.of_pairs(measured.latency)
    known["slots"] = tuple(SlotSecond(*each) for each in measured.slots)
    known["parts"] = tuple(Part(*each) for each in measured.parts)
    return Second(epoch=epoch, **known)
