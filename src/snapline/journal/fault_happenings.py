"""What faults do to a run: one class for each thing that can begin, end, or come too late.

The simulator, a real run and a system under test write the same class for the same thing. `fault` is always
the statement of the plan that asked for it; None means that no plan did. What only one world knows, such as
the numbers of real processes, is empty in the others.
"""

from dataclasses import dataclass
from typing import TypeAlias

from snapline.ids import CheckpointNo, Incarnation, Millis, SlotId

Statement: TypeAlias = str
"""A fault as the plan has it: `kill slot=1 at=2s`."""


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The process of the actor, which is a slot or a system under test, got SIGKILL."""

    fault: Statement | None = None
    incarnation: Incarnation | None = None  # of a slot: which of its lives ended
    pids: tuple[int, ...] = ()  # of the processes that were killed; the simulator has none


@dataclass(frozen=True, slots=True)
class CoordinatorKilled:
    """The process of the coordinator got SIGKILL; in a real run that is the driver."""

    fault: Statement | None = None


@dataclass(frozen=True, slots=True)
class CoordinatorResumed:
    """Another coordinator has taken over from the durable decisions."""

    fault: Statement | None = None  # the fault that had ended the coordinator before it


@dataclass(frozen=True, slots=True)
class ProcessPaused:
    """The process of the actor stands still, as after SIGSTOP."""

    fault: Statement | None = None
    incarnation: Incarnation | None = None
    pids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessContinued:
    """The process of the actor goes on after a pause."""

    fault: Statement | None = None
    incarnation: Incarnation | None = None


@dataclass(frozen=True, slots=True)
class FaultMissed:
    """A fault was due, and the process that it was meant for was not there."""

    fault: Statement | None = None


@dataclass(frozen=True, slots=True)
class ConnectionCut:
    """A slot can no longer reach some others."""

    fault: Statement | None
    others: tuple[SlotId | None, ...]  # None is the coordinator


@dataclass(frozen=True, slots=True)
class Slowed:
    """The network of the actor is slow, if it is a slot; calls to it are, if it is the store."""

    fault: Statement | None
    delay_ms: Millis


@dataclass(frozen=True, slots=True)
class FaultEnded:
    """A fault that lasts for a while is over."""

    fault: Statement | None


@dataclass(frozen=True, slots=True)
class StoreAway:
    """The store cannot be reached."""

    fault: Statement | None
    for_ms: Millis


@dataclass(frozen=True, slots=True)
class StoreBack:
    """The store can be reached again."""

    fault: Statement | None


@dataclass(frozen=True, slots=True)
class StoreUnreliable:
    """Some of the calls to the store fail."""

    fault: Statement | None
    percent: int


@dataclass(frozen=True, slots=True)
class SnapshotDamaged:
    """A stored snapshot of the actor, a task, was changed."""

    fault: Statement | None
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class RecordSpoiled:
    """A decision or a manifest in the store was changed or removed."""

    fault: Statement | None
    record: str  # its kind and its number
    lost: bool  # whether it is gone; else it was changed


@dataclass(frozen=True, slots=True)
class LaunchTroubled:
    """From now on processes that are started for the actor, a slot, die or register late."""

    fault: Statement | None


@dataclass(frozen=True, slots=True)
class ConnectionsDisturbed:
    """The connections of a system under test are cut or slowed down."""

    fault: Statement | None
    connections: int  # how many were open
    for_ms: Millis


FaultBegan: TypeAlias = (
    ProcessKilled
    | CoordinatorKilled
    | ProcessPaused
    | ConnectionCut
    | Slowed
    | StoreAway
    | StoreUnreliable
    | SnapshotDamaged
    | RecordSpoiled
    | LaunchTroubled
    | ConnectionsDisturbed
)
"""The happenings that say that a fault has struck."""

FaultOver: TypeAlias = ProcessContinued | FaultEnded | StoreBack
"""The happenings that say that a fault which lasts for a while is over."""

FaultHappening: TypeAlias = FaultBegan | FaultOver | FaultMissed | CoordinatorResumed
"""All happenings that name the statement of a fault."""
