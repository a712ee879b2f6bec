"""Effects: what a protocol asks the engine to do. The engine performs them in their order."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from snapline.core.events import Command, Timer
from snapline.core.messages import Marker, Message, RecoveryLine
from snapline.ids import ChannelId, CheckpointNo, Millis, Seq, TaskId

# From a task and from the coordinator.


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Let `timer` fire after a delay. Replaces a timer of equal value. Dropped with the epoch."""

    timer: Timer
    delay_ms: Millis


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Keep `timer` from firing; nothing happens if it is not set."""

    timer: Timer


# From a task.


@dataclass(frozen=True, slots=True)
class Deliver:
    """Run the operator on the message, now."""

    message: Message


@dataclass(frozen=True, slots=True)
class Block:
    """Take nothing more from this channel."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Unblock:
    """Take from this channel again."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Capture the state, now; store it in the background.

    `memo` is the protocol's own memory at this moment, in a binary form of its own choice.
    An open snapshot is stored only after its `Seal`, when every recording has ended. A new snapshot
    abandons one that is still open.
    """

    checkpoint: CheckpointNo
    memo: bytes = b""
    forced: bool = False
    open: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """Add to the open snapshot the messages of an input that come after those already delivered.

    The recording ends behind message `through`; without it, where the marker of the snapshot's round
    stands in the channel. The messages are delivered in their turn all the same.
    """

    channel: ChannelId
    through: Seq | None = None


@dataclass(frozen=True, slots=True)
class Seal:
    """Store the open snapshot once its recordings have ended: no further `Record` will follow."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Abandon:
    """Forget a checkpoint, open or on its way to the store: it will never count."""

    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Forward:
    """Send the marker on every output, behind all earlier output.

    With `overtake` it passes output that has not left the slot; what it passes joins the open snapshot.
    """

    marker: Marker
    overtake: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """Take nothing more, from any channel or ingress, and report `Paused`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on after `Halt`."""


TaskEffect: TypeAlias = (
    Deliver
    | Block
    | Unblock
    | Snapshot
    | Record
    | Seal
    | Abandon
    | Forward
    | Halt
    | Continue
    | SetTimer
    | CancelTimer
)


# From the coordinator.


class Scope(Enum):
    """Who goes back in a rollback."""

    ALL = "all"
    LOST = "lost"  # only the tasks in the line; the others keep running


@dataclass(frozen=True, slots=True)
class Order:
    """Send a command to these tasks."""

    targets: tuple[TaskId, ...]
    command: Command


@dataclass(frozen=True, slots=True)
class Persist:
    """Make this memory of the coordinator durable, BEFORE any Commit or Rollback that follows."""

    memo: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit a line for good: publish its output, then delete what it makes garbage."""

    line: RecoveryLine


@dataclass(frozen=True, slots=True)
class Rollback:
    """Begin a new epoch at this line: restore, replay, go on. All timers are dropped."""

    line: RecoveryLine
    scope: Scope = Scope.ALL


CoordinatorEffect: TypeAlias = Order | Persist | Commit | Rollback | SetTimer | CancelTimer
