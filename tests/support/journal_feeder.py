"""Feeds a journal back, entry by entry, into fresh protocol objects.

Only the job and the journal are used: no engine, no world. A task's object is known by its task, epoch and
incarnation. The coordinator's is known by the epoch in which it was built: it handles nothing before it
has begun an epoch of its own, so what is handled in an epoch belongs to the newest object built before it.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from snapline.core.protocol import CoordinatorProtocol, TaskProtocol
from snapline.engine.job import Job
from snapline.ids import Epoch, Incarnation, TaskId
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Stamped


@dataclass
class Difference:
    """Where a fresh object answered something else than the journal says."""

    entry: Entry
    answered: object


@dataclass
class Feeder:
    """The protocol objects of one journal."""

    job: Job
    tasks: dict[tuple[str, Epoch, Incarnation], TaskProtocol] = field(default_factory=dict)
    coordinators: dict[Epoch, CoordinatorProtocol] = field(default_factory=dict)
    checked: int = 0

    def feed(self, entries: Iterable[Entry]) -> Iterator[Difference]:
        """Feed all of it; what does not agree."""
        for entry in entries:
            match entry:
                case Built(actor=actor) if actor == COORDINATOR:
                    self._build_coordinator(entry)
                case Built():
                    self._build_task(entry)
                case Handled() | Stamped():
                    yield from self._compare(entry)

    def _compare(self, entry: Handled | Stamped) -> Iterator[Difference]:
        self.checked += 1
        if isinstance(entry, Stamped):
            task = self.tasks[entry.actor, entry.epoch, entry.incarnation]
            stamp = task.stamp(self.job.topology.by_id[entry.channel])
            if stamp != entry.stamp:
                yield Difference(entry, stamp)
            return
        if entry.actor == COORDINATOR:
            built = max(epoch for epoch in self.coordinators if epoch < entry.epoch)
            effects = self.coordinators[built].handle(entry.event)
        else:
            task = self.tasks[entry.actor, entry.epoch, entry.incarnation]
            effects = task.handle(entry.event)
        if effects != entry.effects:
            yield Difference(entry, effects)

    def _build_task(self, entry: Built) -> None:
        job, name = self.job, TaskId(entry.actor)
        context = job.task_context(name, entry.first_checkpoint, random.Random(entry.seed))
        protocol = job.protocol.task(context)
        if entry.memo is not None:
            protocol.restore(entry.memo)
        self.tasks[name, entry.epoch, entry.incarnation] = protocol

    def _build_coordinator(self, entry: Built) -> None:
        job = self.job
        context = job.context(random.Random(entry.seed))
        protocol = job.protocol.coordinator(context)
        if entry.memo is not None:
            protocol.restore(entry.memo, entry.line)
        self.coordinators[entry.epoch] = protocol
