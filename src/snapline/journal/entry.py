"""The entries of a journal. Both worlds, simulated and real, write these and nothing else.

Messages stand in events as they were; only the binary form leaves their records out. What a protocol
object was told and answered (`Built`, `Handled`, `Stamped`) is complete: fed into fresh objects it must
give the same effects and stamps again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from snapline.core.effects import CoordinatorEffect, TaskEffect
from snapline.core.events import CoordinatorEvent, TaskEvent
from snapline.core.messages import CheckpointMeta, Stamp
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Epoch, Incarnation, Micros, Seq

COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True)
class Built:
    """A fresh protocol object: of a task at the beginning of an epoch, or of the coordinator.

    With the job this is all that it knew at its birth: its context and what it was restored from.
    """

    at_us: Micros
    actor: str  # a task, or COORDINATOR
    epoch: Epoch
    incarnation: Incarnation
    seed: str  # of its random numbers
    memo: bytes | None  # what it was restored from
    first_checkpoint: CheckpointNo = (
        INITIAL  # of a task's context; `JobStarted` tells the coordinator
    )
    line: tuple[CheckpointMeta, ...] = ()  # at which a resumed coordinator began


@dataclass(frozen=True, slots=True)
class Handled:
    """A protocol object took an event and answered with effects, which then were performed.

    When one damage makes several snapshots unreadable, the coordinator's answer to the last counts.
    """

    at_us: Micros
    actor: str
    epoch: Epoch
    incarnation: Incarnation
    event: TaskEvent | CoordinatorEvent
    effects: tuple[TaskEffect, ...] | tuple[CoordinatorEffect, ...]


@dataclass(frozen=True, slots=True)
class Stamped:
    """A protocol object stamped message `seq`, which was then sent on `channel`."""

    at_us: Micros
    actor: str
    epoch: Epoch
    incarnation: Incarnation
    channel: ChannelId
    seq: Seq
    stamp: Stamp
    records: int


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that no protocol object was told in this form: a fault, a step of the engine.

    `what` is one of: killed, missed, paused, continued, cut, slowed, healed, outage, back, failing,
    damaged, coordinator-killed, coordinator-resumed (faults and their ends, with the statement as `fault`
    among the details); lost, launched, restored, running (a slot, or the job); line (found for a rollback,
    and what it costs), decided, published, collected, waiting (for a store that fails), finished, stopped,
    interrupted, deposed (the coordinator); replayed, fenced, overtaken (messages); second (what all slots
    did in one, see `metrics.second`), recovered (backlog and latency are as before a loss).
    """

    at_us: Micros
    actor: str  # `slot/1`, a task, or COORDINATOR
    epoch: Epoch
    what: str
    detail: Mapping[str, Any] = field(default_factory=dict)


Entry: TypeAlias = Built | Handled | Stamped | Happened
