"""The entries of a journal. Both worlds, simulated and real, write these and nothing else.

Messages stand in events as they were; only the text form (`journal.codec`) leaves their records out. What a
protocol object was told and answered (`Built`, `Handled`, `Stamped`) is complete: fed into fresh objects it
must give the same effects and stamps again.
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
    """A protocol object was made: for a task at the beginning of an epoch, or for the coordinator.

    Together with the job this is all that it knew then: its context, and what it was restored from.
    """

    at_us: Micros
    actor: str  # a task, or COORDINATOR
    epoch: Epoch
    incarnation: Incarnation
    seed: str  # of its random numbers
    memo: bytes | None  # what it was restored from
    #: the field of a task's context; a coordinator learns it from `JobStarted`
    first_checkpoint: CheckpointNo = INITIAL
    line: tuple[CheckpointMeta, ...] = ()  # the line at which a resumed coordinator began


@dataclass(frozen=True, slots=True)
class Handled:
    """A protocol object took an event and answered with effects, which then were performed.

    If one damaged object makes several snapshots unreadable, each is an event of its own, and only the
    coordinator's answer to the last of them is performed.
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
    """Something happened that is no event of a protocol, such as a fault or a step of the engine.

    `what` says what it was; there is one class for each kind: see `journal.happenings`.
    """

    at_us: Micros
    actor: str  # `slot/1`, a task, COORDINATOR, STORE, or the name of a system under test
    epoch: Epoch
    what: Happening


Entry: TypeAlias = Built | Handled | Stamped | Happened
