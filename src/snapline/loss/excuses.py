"""What declared losses touched: rows that were in a lost task when they were needed there.

Row by row this asks: did it come before the task was back, after the checkpoint to which the task went
back, and was it still needed when the slot was struck? What came later, what the checkpoint held, and what
had been put out before, no loss explains. Likewise a row may come again only if it was put out by a lost
task whose next life had the same input. `lag_ms` is how long it may take from when a record is due until it
has passed a task.

When all input is read, time has come to its end, and windows close that would have been open for longer. So
nothing happens later than the last record is due (`ends_ms`), whatever an oracle says of event time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
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


def input_ends_ms(deployment: Deployment) -> Millis:
    """When the last record of all input is due."""
    last = 0
    for plan in deployment.plans.values():
        for partition in plan.partitions if plan.ingress is not None else ():
            assert plan.ingress is not None
            end = plan.ingress.end(partition)
            if end is None:
                return END_OF_TIME
            last = max(last, plan.ingress.due_ms(partition, end - 1)) if end else last
    return last


class DeclaredExcuses:
    """The losses of one run, as an oracle asks for them (`Excuses`)."""

    def __init__(
        self,
        losses: Sequence[Lost],
        places: Mapping[str, TaskPlace],
        lag_ms: Millis,
        ends_ms: Millis = END_OF_TIME,
    ) -> None:
        self.lost = 0  #: expected rows that are missing, and are excused
        self.rows = 0  #: rows that were expected
        self.free = 0  #: rows whose numbers need not be right
        self.again = 0  #: rows that came again, and are excused
        self._losses: Final[dict[str, list[Lost]]] = {}
        for loss in losses:
            self._losses.setdefault(operator_of(loss.task), []).append(loss)
        self._places: Final = places
        self.lag_ms: Final = lag_ms
        self._ends_ms: Final = ends_ms

    @property
    def nothing_lost(self) -> bool:
        """Whether no loss was declared."""
        return not self._losses

    def account(self, *, lost: int = 0, of: int = 0, free: int = 0, again: int = 0) -> None:
        """Take down how much is missing, how much need not be right, and how much came again."""
        self.again += again
        self.lost += lost
        self.rows += of
        self.free += free

    def touched(self, *stays: Stay) -> Bools:
        """Whether a loss may have touched a row in any of its stays, or made it late for its window."""
        return self._any(stays, lambda stay, loss: _touched(stay, loss, self.lag_ms * stay.timed))

    def late(self, *stays: Stay) -> Bools:
        """Whether a row was touched, or came so soon after a loss that time may have gone on without it.

        Nobody waits for a slot that is away, until the first message of its next life has come.
        """
        return self._any(stays, partial(_touched, later_ms=self.lag_ms))

    def repeated(self, *stays: Stay) -> Bools:
        """Whether a row may have come again, because two lives of a task put it out."""
        return self._any(stays, _repeated)

    def _any(self, stays: Sequence[Stay], hit_by: Callable[[Stay, Lost], Bools]) -> Bools:
        result: Bools = np.zeros(len(stays[0].first) if stays else 0, np.bool_)
        for stay in stays:
            if len(result):
                result |= self._hit(self._by_the_end(stay), hit_by)
        return result

    def _by_the_end(self, stay: Stay) -> Stay:
        times = {name: getattr(stay, name) for name in ("first", "last", "until")}
        return replace(stay, **{n: np.minimum(each, self._ends_ms) for n, each in times.items()})

    def _hit(self, stay: Stay, hit_by: Callable[[Stay, Lost], Bools]) -> Bools:
        """Which rows were in a lost task, at a time at which `hit_by` says that this mattered."""
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
                hit = hit_by(stay, loss)
                if index is not None:
                    hit &= index == place.slots.index(loss.slot)
                result |= hit
        return result


def _touched(stay: Stay, loss: Lost, later_ms: Millis) -> Bools:
    hit: Bools = stay.first <= loss.to_ms + later_ms
    hit &= stay.last >= loss.from_ms - loss.lag_ms
    hit &= stay.until >= loss.death_ms - loss.lag_ms
    return hit


def _repeated(stay: Stay, loss: Lost) -> Bools:
    if loss.again is None:
        return np.zeros(len(stay.first), np.bool_)
    first_ms, last_ms = loss.again
    hit: Bools = stay.until >= first_ms - loss.lag_ms
    hit &= (stay.until <= last_ms) & (stay.first <= last_ms)
    return hit


def _index(stay: Stay, tasks: int) -> Ints:
    """The index of the task to which each row goes."""
    if stay.key is None:
        assert stay.partition is not None
        return stay.partition % tasks
    names = [str(number) for number in range(len(stay.key))]
    rows = Batch(dict(zip(names, stay.key, strict=True)), len(stay.first))
    return targets_of(rows, names, tasks).astype(np.int64)
