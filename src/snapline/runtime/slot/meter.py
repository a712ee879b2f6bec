"""What a slot measures of itself: counters that a few calls per batch keep, and reports of them.

Nothing here looks at a single record: a batch is counted by its length and size, and the ages of its
records go into the histogram in one call. A pulse carries what was added since the last one. How the time
of a checkpoint is spent is in `checkpoint_clock`, what the process uses in `resources`.
"""

from collections.abc import Iterable
from typing import Protocol

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Message
from snapline.engine.slot.slot import Slot
from snapline.engine.slot.task import Task
from snapline.ids import Micros, Millis
from snapline.journal.happenings import CheckpointMoments
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Usage, Used, Volume
from snapline.runtime.slot.checkpoint_clock import CheckpointClock
from snapline.runtime.wire.codec import MARKER_BYTES
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import Prefetched

TIME = "time"


class SaidBytes(Protocol):
    """Counts what a process has said: bytes of control messages, and of reports of checkpoints."""

    @property
    def control_bytes(self) -> int:
        """All but messages, markers and metadata, so far."""
        ...

    @property
    def metadata_bytes(self) -> int:
        """Reports of stored checkpoints, so far."""
        ...


class TellsUse(Protocol):
    """Tells now and then what a process has used."""

    def since(self, inputs: Iterable[object], *, last: bool = False) -> Used | None:
        """What was used since this told last; None if that was just now."""
        ...


class Meter:
    """The counters of one process, since its last pulse."""

    def __init__(self, wire: SaidBytes, resources: TellsUse) -> None:
        self._wire = wire
        self._resources = resources
        self._said = (0, 0)  #: bytes of control and metadata that earlier pulses told of
        self._counted = Usage()  #: messages and the like, until it is told what was used
        self._rests = 0  #: how often the process had rested at its last pulse
        self.clock = CheckpointClock()
        self._reset()

    def _reset(self) -> None:
        self.read = self.written = 0
        self._first_us: Micros | None = None
        self._last_us: Micros | None = None
        self.volume = Volume()
        self._latency = Histogram()
        self.checkpoint_us: list[Micros] = []

    # Data.

    def ingested(self, records: int, now_us: Micros) -> None:
        """Count records that a source read just now."""
        self.read += records
        if self._first_us is None:
            self._first_us = now_us
        self._last_us = now_us

    def stepped(self) -> None:
        """Count an input that was taken: messages that were gathered, or what was due at a source."""
        self._counted.steps += 1

    def sent(self, message: Message, *, logged: int) -> None:
        """Count a message that a task sent, in or out of this slot; so many bytes were logged before."""
        volume, counted = self.volume, self._counted
        counted.messages += 1
        counted.rows += message.batch.length
        volume.payload += message.batch.nbytes
        volume.headers += len(message.header)
        volume.log += logged

    def marked(self, channels: int) -> None:
        """Count the markers that a task sent on so many channels, in or out of this slot."""
        self.volume.markers += channels * MARKER_BYTES

    def transmitted(self, size: int) -> None:
        """Count a frame that was given to the connection to another slot."""
        self._counted.frames += 1
        self.volume.wire += size

    def wrote(self, batch: Batch, now_us: Micros) -> None:
        """Count records that a sink wrote. Without a time they have no latency."""
        self.written += batch.length
        self.volume.output += batch.nbytes
        if TIME in batch.columns:
            self._latency.add_ages(batch[TIME], now_us)

    # Checkpoints.

    def stored(self, meta: CheckpointMeta, now_us: Micros) -> CheckpointMoments | None:
        """Count a durable checkpoint; return what is known of its moments."""
        self.volume.snapshots += meta.bytes
        moments = self.clock.durable(meta.task, meta.checkpoint, now_us)
        if moments is not None:
            self.checkpoint_us.append(now_us - moments.taken_us)
        return moments

    # The pulse.

    def pulse(self, slot: Slot, now_ms: Millis, rests: int = 0, *, last: bool = False) -> Pulse:
        """What was added since the last pulse, and how the slot stands; it rested so often so far."""
        self._count_words()
        self._counted.wakes += rests - self._rests
        self._rests = rests
        inputs = (task.plan.ingress for task in slot.tasks.values())
        said = Pulse(
            slot.epoch,
            slot.running,
            self.read,
            self.written,
            backlog(slot.tasks.values(), now_ms),
            self.volume,
            self._latency.pairs(),
            tuple(self.checkpoint_us),
            self._first_us,
            self._last_us,
            self._used(inputs, last=last),
        )
        self._reset()
        return said

    def _used(self, inputs: Iterable[object], *, last: bool) -> Used | None:
        """What the process has used, with its messages, if it is time to tell it."""
        used = self._resources.since(inputs, last=last)
        if used is not None:
            used.usage.add(self._counted)
            self._counted = Usage()
        return used

    def _count_words(self) -> None:
        control, metadata = self._said
        self._said = (self._wire.control_bytes, self._wire.metadata_bytes)
        self.volume.control += self._said[0] - control
        self.volume.metadata += self._said[1] - metadata


def backlog(tasks: Iterable[Task], now_ms: Millis) -> int:
    """Records that are due at the sources among these tasks and were not read, as far as they are known."""
    waiting = 0
    for task in tasks:
        ingress = task.plan.ingress
        if ingress is not None:
            due = ingress.due_through
            if isinstance(ingress, Prefetched):
                due = ingress.due_at_least  # a figure is not worth waiting for
            waiting += sum(max(0, due(p, now_ms) - offset) for p, offset in task.offsets.items())
    return waiting
