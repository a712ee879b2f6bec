"""When a slot did what for its checkpoints: noted a few times per checkpoint, and never per message.

The engine tells nobody which marker, command or timer leads to a checkpoint; what its tasks were told and
answered stands in the journal, so that is where it is seen. In a brief journal no message stands, so a
checkpoint that a message forces begins when it is taken.
"""

from dataclasses import dataclass, replace

from snapline.core.effects import Snapshot
from snapline.core.events import CommandArrived, MarkerArrived, MarkerSighted, TimerFired
from snapline.ids import CheckpointNo, Micros, TaskId
from snapline.journal.entry import Entry, Handled
from snapline.journal.happenings import CheckpointMoments


@dataclass(slots=True)
class _Round:
    """The newest ordered round that a task was told of."""

    number: CheckpointNo
    begun_us: Micros
    joined: bool = False  # a checkpoint was taken for it


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a task is about to take a checkpoint."""

    checkpoint: CheckpointNo
    round: CheckpointNo | None
    due_us: Micros | None
    begun_us: Micros


class CheckpointClock:
    """The moments of the checkpoints of one slot that are not durable yet."""

    def __init__(self) -> None:
        self.due_us: Micros = 0  #: when the alarm was due that goes off just now
        self._rounds: dict[TaskId, _Round] = {}
        self._causes: dict[TaskId, _Cause] = {}
        self._taken_us: Micros = 0  #: when the last capture began
        self._under_way: dict[TaskId, dict[CheckpointNo, CheckpointMoments]] = {}

    def see(self, entry: Entry) -> None:
        """Look at an entry of the slot's journal: does it tell why a checkpoint is taken?"""
        if not isinstance(entry, Handled):
            return
        task = TaskId(entry.actor)
        number = _round_of(entry)
        known = self._rounds.get(task)
        if number is not None and (known is None or number > known.number):
            known = self._rounds[task] = _Round(number, entry.at_us)
        for effect in entry.effects:
            if not isinstance(effect, Snapshot):
                continue
            about = known is not None and known.number in (number, effect.checkpoint)
            self._causes[task] = self._cause(entry, effect.checkpoint, known if about else None)

    def _cause(self, entry: Handled, checkpoint: CheckpointNo, known: _Round | None) -> _Cause:
        if known is not None and not known.joined:
            known.joined = True
            return _Cause(checkpoint, known.number, None, known.begun_us)
        due_us = self.due_us if isinstance(entry.event, TimerFired) else None
        return _Cause(checkpoint, None, due_us, entry.at_us)

    def taking(self, now_us: Micros) -> None:
        """Note when a task is about to capture its state."""
        self._taken_us = now_us

    def captured(self, task: TaskId, checkpoint: CheckpointNo, now_us: Micros) -> None:
        """Note when it has: nothing else happened in this slot meanwhile."""
        taken_us = self._taken_us
        cause = self._causes.pop(task, None)
        if cause is None or cause.checkpoint != checkpoint:
            cause = _Cause(checkpoint, None, None, taken_us)
        moments = CheckpointMoments(
            cause.round, cause.due_us, cause.begun_us, taken_us, now_us, now_us
        )
        self._under_way.setdefault(task, {})[checkpoint] = moments

    def durable(
        self, task: TaskId, checkpoint: CheckpointNo, now_us: Micros
    ) -> CheckpointMoments | None:
        """The moments of a checkpoint that is durable; the task's earlier ones are durable, or gone."""
        under_way = self._under_way.get(task, {})
        self._under_way[task] = {n: each for n, each in under_way.items() if n > checkpoint}
        known = under_way.get(checkpoint)
        return None if known is None else replace(known, durable_us=now_us)


def _round_of(entry: Handled) -> CheckpointNo | None:
    """The ordered round that a task is told of; a sighting counts if the protocol acts on it."""
    match entry.event:
        case MarkerArrived(_, marker):
            return marker.checkpoint
        case MarkerSighted(_, marker) if entry.effects:
            return marker.checkpoint
        case CommandArrived(command):
            return command.begins
        case _:
            return None
