"""Feeds a journal back, entry by entry, into fresh protocol objects.

Only the job and the journal are used: no engine, no world. A task's object is known by its task, epoch and
incarnation. The coordinator's is known by the epoch in which it was built: it handles nothing before it
has begun an epoch of its own, so what is handled in an epoch belongs to the newest object built before it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta
from snapline.core.protocol import CoordinatorProtocol, JobContext, TaskContext, TaskProtocol
from snapline.engine.job import Job
from snapline.ids import CheckpointNo, Epoch, Incarnation, TaskId, first_checkpoint
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened, Stamped


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
    metas: dict[tuple[TaskId, CheckpointNo], CheckpointMeta] = field(default_factory=dict)
    lost: dict[tuple[int, Epoch], None] = field(default_factory=dict)  #: (slot, epoch)
    checked: int = 0

    def feed(self, entries: Sequence[Entry]) -> Iterator[Difference]:
        """Feed all of it; what does not agree."""
        for at, entry in enumerate(entries):
            match entry:
                case Built(actor=actor) if actor == COORDINATOR:
                    self._build_coordinator(entry, entries[at:])
                case Built():
                    self._build_task(entry)
                case Handled() | Stamped():
                    yield from self._compare(entry)
                case Happened(_, _, epoch, "lost", detail):
                    self.lost[detail["slot"], epoch] = None

    def _compare(self, entry: Handled | Stamped) -> Iterator[Difference]:
        self.checked += 1
        if isinstance(entry, Stamped):
            task = self.tasks[entry.actor, entry.epoch, entry.incarnation]
            stamp = task.stamp(self.job.topology.by_id[entry.channel])
            if stamp != entry.stamp:
                yield Difference(entry, stamp)
            return
        if entry.actor == COORDINATOR:
            if isinstance(entry.event, SnapshotStored):
                meta = entry.event.meta
                self.metas[meta.task, meta.checkpoint] = meta
            built = max(epoch for epoch in self.coordinators if epoch < entry.epoch)
            effects = self.coordinators[built].handle(entry.event)
        else:
            task = self.tasks[entry.actor, entry.epoch, entry.incarnation]
            effects = task.handle(entry.event)
        if effects != entry.effects:
            yield Difference(entry, effects)

    def _build_task(self, entry: Built) -> None:
        job, name = self.job, TaskId(entry.actor)
        first = first_checkpoint(entry.epoch)
        if (job.slot_by_task[name], entry.epoch) in self.lost:  # it restarts alone, in its epoch
            first += (entry.incarnation & 0xFFFF) << 16
        context = TaskContext(
            name,
            job.topology.inputs[name],
            job.topology.outputs[name],
            job.topology.tasks,
            job.options,
            job.guarantee,
            job.deployment.plans[name].policy,
            first,
            random.Random(entry.seed),
        )
        protocol = job.protocol.task(context)
        if entry.memo is not None:
            protocol.restore(entry.memo)
        self.tasks[name, entry.epoch, entry.incarnation] = protocol

    def _build_coordinator(self, entry: Built, rest: Sequence[Entry]) -> None:
        job = self.job
        context = JobContext(job.topology, job.options, job.guarantee, random.Random(entry.seed))
        protocol = job.protocol.coordinator(context)
        if entry.memo is not None:
            protocol.restore(entry.memo, self._line(entry.epoch + 1, rest))
        self.coordinators[entry.epoch] = protocol

    def _line(self, epoch: Epoch, rest: Sequence[Entry]) -> tuple[CheckpointMeta, ...]:
        """The line at which a resumed coordinator begins: its first decision names it."""
        for entry in rest:
            decided = isinstance(entry, Happened) and entry.what == "decided"
            if decided and entry.detail["epoch"] == epoch:
                line = entry.detail["line"].items()
                return tuple(self.metas[task, number] for task, number in line if number)
        return ()  # it died before it decided anything, so it will be asked nothing
