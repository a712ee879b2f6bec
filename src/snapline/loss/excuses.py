"""What declared losses touched: rows that were in a lost task when they were needed there.

Row by row this asks: did it come before the task was back, after the checkpoint to which the task went
back, and was it still needed when the slot was struck? What came later, what the checkpoint held, and what
had been put out before, no loss explains. `bound.lag_ms` is how long it may take from when a record is due
until it has passed a task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.chain import Chain
from snapline.dataflow.deploy import Deployment
from snapline.dataflow.partition import targets_of
from snapline.ids import Millis, SlotId, operator_of
from snapline.loss.declared import Lost
from snapline.workload.common.losses import Bools, Ints, Stay


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where the tasks of an operator ran."""

    tasks: str  # what they are called: after their operator, or after the chain that it is part of
    slots: tuple[SlotId, ...]  # by the index of the task


def places_of(deployment: Deployment) -> dict[str, TaskPlace]:
    """Where the tasks of every operator ran, also of those that are parts of chains."""
    slots: dict[str, list[SlotId]] = {}
    members: dict[str, Sequence[str]] = {}
    for task, plan in deployment.plans.items():
        name = operator_of(task)
        slots.setdefault(name, []).append(plan.slot)
        if name not in members:
            operator = plan.operator()
            members[name] = operator.names if isinstance(operator, Chain) else (name,)
    return {
        member: TaskPlace(name, tuple(slots[name]))
        for name, some in members.items()
        for member in some
    }


class DeclaredExcuses:
    """The losses of one run, as an oracle asks for them (`Excuses`)."""

    def __init__(
        self, losses: Sequence[Lost], places: Mapping[str, TaskPlace], lag_ms: Millis
    ) -> None:
        self.lost = 0  #: expected rows that are missing, and are excused
        self.rows = 0  #: rows that were expected
        self.free = 0  #: rows whose numbers need not be right
        self._losses: Final[dict[str, list[Lost]]] = {}
        for loss in losses:
            self._losses.setdefault(operator_of(loss.task), []).append(loss)
        self._places: Final = places
        self._lag_ms: Final = lag_ms

    @property
    def nothing_lost(self) -> bool:
        """Whether no loss was declared."""
        return not self._losses

    def account(self, *, lost: int = 0, of: int = 0, free: int = 0) -> None:
        """Take down how much is missing, and how much need not be right."""
        self.lost += lost
        self.rows += of
        self.free += free

    def touched(self, *stays: Stay) -> Bools:
        """Whether a loss may have touched a row in any of its stays."""
        return self._any(stays, 0)

    def late(self, *stays: Stay) -> Bools:
        """Whether a row was touched, or came so soon after a loss that time may have gone on without it.

        Nobody waits for a slot that is away, until the first message of its next life has come.
        """
        return self._any(stays, self._lag_ms)

    def _any(self, stays: Sequence[Stay], later_ms: Millis) -> Bools:
        result: Bools = np.zeros(len(stays[0].first) if stays else 0, np.bool_)
        for stay in stays:
            if len(result):
                result |= self._touched(stay, later_ms)
        return result

    def _touched(self, stay: Stay, later_ms: Millis) -> Bools:
        result: Bools = np.zeros(len(stay.first), np.bool_)
        index: Ints | None = None  # of the task of each row; None: any of them
        size = 0
        for number, operator in enumerate(stay.operators):
            place = self._places[operator]
            if number == 0:
                index, size = _index(stay, len(place.slots)), len(place.slots)
            elif len(place.slots) != size:  # here batches go to the tasks in turn
                index, size = None, len(place.slots)
            for loss in self._losses.get(place.tasks, ()):
                hit = (stay.first <= loss.to_ms + later_ms) & (
                    stay.last >= loss.from_ms - self._lag_ms
                )
                hit &= stay.until >= loss.death_ms - self._lag_ms
                if index is not None:
                    hit &= index == place.slots.index(loss.slot)
                result |= hit
        return result


def _index(stay: Stay, tasks: int) -> Ints:
    """The index of the task to which each row goes."""
    if stay.key is None:
        assert stay.partition is not None
        return stay.partition % tasks
    names = [str(number) for number in range(len(stay.key))]
    rows = Batch(dict(zip(names, stay.key, strict=True)), len(stay.first))
    return targets_of(rows, names, tasks).astype(np.int64)
