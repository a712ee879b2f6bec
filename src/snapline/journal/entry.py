"""The entries of a journal. Both worlds, simulated and real, write these and nothing else.

Messages stand in events as they were; only the binary form leaves their records out. What a protocol
object was told and answered (`Built`, `Handled`, `Stamped`) is complete: fed into fresh objects it must
give the same effects and stamps again.
"""

from dataclasses import dataclass
from typing import TypeAlias

from snapline.core.effects import CoordinatorEffect, TaskEffect
from snapline.core.events import CoordinatorEvent, TaskEvent
from snapline.core.messages import CheckpointMeta, Stamp
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Epoch, Incarnation, Micros, Seq
from snapline.journal.happenings import Happening

COORDINATOR = "coordinator"
STORE = "store"


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

    What it was is a value of its own class, one for each kind: see `journal.happenings`.
    """

    at_us: Micros
    actor: str  # `slot/1`, a task, COORDINATOR, STORE, or the name of a system under test
    epoch: Epoch
    what: Happening


Entry: TypeAlias = Built | Handled | Stamped | Happened
