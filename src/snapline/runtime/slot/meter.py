"""What a slot measures of itself: counters that a few calls per batch keep, and reports of them.

Nothing here looks at a single record: a batch is counted by its length and size, and the ages of its
records go into the histogram in one call. A pulse carries what was added since the last one.
"""

from collections.abc import Iterable

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Message
from snapline.engine.shell import Ticket
from snapline.engine.slot.slot import Slot
from snapline.engine.slot.task import Task
from snapline.ids import INITIAL, CheckpointNo, Micros, Millis, TaskId
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Volume
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import Prefetched

TIME = "time"


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
        self.checkpoint_us: list[Micros] = []

    # Data.

    def ingested(self, records: int) -> None:
        """Count records that a source read."""
        self.read += records

    def sent(self, message: Message, *, logged: int) -> None:
        """Count a message that a task sent, in or out of this slot; so many bytes were logged before."""
        volume, header = self.volume, len(message.header)
        volume.messages += message.batch.nbytes + header
        volume.headers += header
        volume.log += logged

    def transmitted(self, size: int) -> None:
        """Count a frame that was given to the connection to another slot."""
        self.volume.wire += size

    def wrote(self, batch: Batch, now_us: Micros) -> None:
        """Count records that a sink wrote. Without a time they have no latency."""
        self.written += batch.length
        self.volume.output += batch.nbytes
        if TIME in batch.columns:
            self._latency.add_ages(batch[TIME], now_us)

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
