"""What a slot measures of itself: counters that a few calls per batch keep, and reports of them.

Nothing here looks at a single record: a batch is counted by its length and size. Many records of a batch
have the same time, so their ages are counted once per time, and go into the histogram many batches at once,
because that costs the same for few and for many. A pulse carries what was added since the last one.
"""

from collections.abc import Iterable

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Message
from snapline.engine.shell import Ticket
from snapline.engine.slot.slot import Slot
from snapline.engine.slot.task import Task
from snapline.ids import INITIAL, CheckpointNo, Micros, Millis, TaskId
from snapline.metrics.histogram import Counts, Histogram
from snapline.metrics.latency import since
from snapline.metrics.second import Volume
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import Prefetched

TIME = "time"
AGES_MAX = 1 << 15  # so many ages are collected at most


class Meter:
    """The counters of one process, since its last pulse."""

    def __init__(self) -> None:
        self._triggered: tuple[CheckpointNo, Micros] = (INITIAL, 0)  #: the last snapshot
        #: on their way to the store, with the time of their trigger
        self._storing: dict[TaskId, dict[CheckpointNo, Micros]] = {}
        self._reset()

    def _reset(self) -> None:
        self.read = self.written = 0
        self.volume = Volume()
        self._latency = Histogram()
        #: ages that are not in the histogram yet, and how many records have each
        self._ages: list[tuple[Counts, Counts]] = []
        self._aged = 0  #: how many ages these are
        self.checkpoint_us: list[Micros] = []

    # Data.

    def ingested(self, records: int) -> None:
        """Count records that a source read."""
        self.read += records

    def sent(self, message: Message, *, logged: bool) -> None:
        """Count a message that a task sent, in or out of this slot, and perhaps logged before."""
        volume, header = self.volume, len(message.header)
        size = message.batch.nbytes + header
        volume.messages += size
        volume.headers += header
        if logged:
            volume.log += size

    def transmitted(self, size: int) -> None:
        """Count a frame that was given to the connection to another slot."""
        self.volume.wire += size

    def wrote(self, batch: Batch, now_us: Micros) -> None:
        """Count records that a sink wrote. Without a time they have no latency."""
        self.written += batch.length
        self.volume.output += batch.nbytes
        if TIME in batch.columns:
            times, records = times_of(batch[TIME])
            self._ages.append((since(times, now_us), records))
            self._aged += len(times)
            if self._aged > AGES_MAX:
                self._count_ages()

    def _count_ages(self) -> None:
        if self._ages:
            ages, records = zip(*self._ages, strict=True)
            self._latency.add(np.concatenate(ages), np.concatenate(records))
            self._ages, self._aged = [], 0

    # Checkpoints.

    def triggered(self, checkpoint: CheckpointNo, now_us: Micros) -> None:
        """Note when a task is about to take a snapshot."""
        self._triggered = (checkpoint, now_us)

    def storing(self, ticket: Ticket) -> None:
        """Note when a snapshot that goes to the store was triggered: just now, unless open."""
        number, at_us = self._triggered
        if ticket.task is not None and ticket.number == number:
            self._storing.setdefault(ticket.task, {}).setdefault(number, at_us)

    def stored(self, meta: CheckpointMeta, now_us: Micros) -> None:
        """Note how long a durable checkpoint took; the task's earlier ones are durable, or gone."""
        self.volume.snapshots += meta.bytes
        under_way = self._storing.get(meta.task, {})
        if meta.checkpoint in under_way:
            self.checkpoint_us.append(now_us - under_way[meta.checkpoint])
        self._storing[meta.task] = {n: us for n, us in under_way.items() if n > meta.checkpoint}

    # The pulse.

    def pulse(self, slot: Slot, now_ms: Millis) -> Pulse:
        """What was added since the last pulse, and how the slot stands."""
        self._count_ages()
        said = Pulse(
            slot.epoch,
            slot.running,
            self.read,
            self.written,
            backlog(slot.tasks.values(), now_ms),
            self.volume,
            self._latency.pairs(),
            tuple(self.checkpoint_us),
        )
        self._reset()
        return said


def times_of(column: Counts) -> tuple[Counts, Counts]:
    """The times in a column, and how many records have each; that may be 0."""
    times: Counts = np.asarray(column, np.int64)
    first = int(times.min())
    span = int(times.max()) - first + 1
    if span > len(times):
        return times, np.ones(len(times), np.int64)
    return np.arange(first, first + span), np.bincount(times - first)


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
