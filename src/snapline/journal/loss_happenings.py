"""Losses that a run declares: what may be missing or wrong after a slot has restarted alone.

A judge excuses nothing else, and holds each of these against the faults that struck (`judge.loss`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from snapline.ids import ChannelId, CheckpointNo, Millis, TaskId


@dataclass(frozen=True, slots=True)
class TaskLoss:
    """A task of a slot that restarted alone is let go: what it took in meanwhile may be lost.

    The coordinator, which is the actor, declares this for every task of the slot, in milliseconds of the
    run, before `SlotRunning`. What a task took in while it was away is what was meant for it then.
    """

    task: TaskId
    checkpoint: CheckpointNo  # to which it went back; INITIAL: it began empty
    from_ms: Millis  # when that was captured; 0: it began empty
    to_ms: Millis  # when it was let go


@dataclass(frozen=True, slots=True)
class StaleDropped:
    """A task that restarted alone, the actor, dropped windows that had ended while it was away."""

    task: TaskId
    windows: int


@dataclass(frozen=True, slots=True)
class GroupLost:
    """A group of rows of a task that restarts alone could not be read: it goes on without these rows.

    The coordinator, which is the actor, says this after the `TaskLoss` of the task.
    """

    task: TaskId
    part: str  # of the task's state
    rows: int


@dataclass(frozen=True, slots=True)
class RowsMissed:
    """How many rows a task that restarted alone did not get on an input of its windows by rows.

    The coordinator, which is the actor, says this before `SlotRunning`. The task then forgets the rows that
    these would have driven out of its windows.
    """

    channel: ChannelId
    rows: int  # 0 if they are estimated
    estimated: bool  # whoever sent them was lost as well: the task goes by how many came before


@dataclass(frozen=True, slots=True)
class StaleRowsDropped:
    """A task that restarted alone, the actor, dropped rows that should have left its windows meanwhile."""

    task: TaskId
    rows: int


Declared: TypeAlias = TaskLoss | RowsMissed | GroupLost
"""What a run says of its losses in the journals of its drivers."""

LossHappening: TypeAlias = TaskLoss | StaleDropped | GroupLost | RowsMissed | StaleRowsDropped
