"""What the coordinator and the slots say to each other, outside the data channels.

Orders go to slots, reports come back. Each names its epoch: whoever is in another one ignores it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from snapline.core.events import Command, Paused
from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.ids import ChannelId, CheckpointNo, Epoch, Incarnation, Seq, SlotId, TaskId
from snapline.journal.happenings import CheckpointMoments
from snapline.journal.loss_happenings import GroupLost
from snapline.recovery.replay import ReplayPart

# Between slots.


@dataclass(frozen=True, slots=True)
class Credit:
    """The receiver of a channel took this many messages: as many more may be sent."""

    messages: int


@dataclass(frozen=True, slots=True)
class Frame:
    """What goes over the wire from one slot to another.

    `life` is (epoch, incarnation of the sending slot, incarnation of the receiving slot). A frame whose
    life is not the receiver's present one is from a dead timeline, and is dropped.
    """

    channel: ChannelId
    life: tuple[Epoch, Incarnation, Incarnation]
    payload: Message | Marker | Credit


# Orders.


@dataclass(frozen=True, slots=True)
class Restore:
    """Phase one of a rollback: stop, forget everything, restore, acknowledge; send nothing yet."""

    epoch: Epoch
    incarnations: Mapping[SlotId, Incarnation]
    #: per task of this slot: its snapshot, after those of which it is a delta; empty: initial state
    chains: Mapping[TaskId, tuple[CheckpointMeta, ...]]
    received: Mapping[ChannelId, Seq]  # what tasks in their initial state are to take as received
    replay: tuple[ReplayPart, ...]  # the parts whose messages this slot has
    #: only this slot restarts: tasks without a snapshot begin empty, with the present input. It may be
    #: told again in the same epoch, because a snapshot could not be read: see `number`
    alone: bool = False
    #: if all slots restart at the present: for each output whose log is sent again, the last message
    #: that its receiver's checkpoint has; all behind it is sent
    missed: Mapping[ChannelId, Seq] = field(default_factory=dict)
    away: tuple[SlotId, ...] = ()  # if only this slot restarts: who else is not back yet
    #: how many orders to restore this life was given in this epoch before. Only the last one counts: what
    #: was asked of storage for another one, or answers it, comes too late
    number: int = 0


@dataclass(frozen=True, slots=True)
class RowsByKey:
    """How many rows of each key there are."""

    hashes: tuple[int, ...]  # of the keys
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many rows that are."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Go:
    """Phase two: every slot has acknowledged the epoch, so everybody may send."""

    epoch: Epoch
    #: to a slot that restarted alone: what its windows by rows missed, as far as its senders know it
    missed: Mapping[ChannelId, RowsByKey] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Severed:
    """A peer is lost, and will restart alone: go on without it, and send it nothing."""

    epoch: Epoch
    slot: SlotId
    incarnation: Incarnation  # of its next life


@dataclass(frozen=True, slots=True)
class Replaced:
    """A peer that was severed is there again: what is sent to it finds it."""

    epoch: Epoch
    slot: SlotId
    #: for each channel to it whose log is sent again, the last message that its receiver surely has
    received: Mapping[ChannelId, Seq] = field(default_factory=dict)
    #: for each channel on which it asks how many rows it has missed, the last message that it has
    recalled: Mapping[ChannelId, Seq] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instruct:
    """A command of the protocol's coordinator side for these tasks."""

    epoch: Epoch
    tasks: tuple[TaskId, ...]
    command: Command


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask a slot how many messages it has sent and received on each channel."""

    epoch: Epoch
    wave: int


@dataclass(frozen=True, slots=True)
class HoldSources:
    """Read no more input for now (or go on): a cycle is full, a slot is to leave, or the run to stop."""

    epoch: Epoch
    hold: bool


@dataclass(frozen=True, slots=True)
class Prune:
    """Drop logged messages up to these numbers: nobody needs them any more."""

    epoch: Epoch
    through: Mapping[ChannelId, Seq]


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop for good: the job is over."""


EpochOrder: TypeAlias = Go | Severed | Replaced | Instruct | Probe | HoldSources | Prune
"""An order within an epoch: whoever is in another one ignores it."""

Order: TypeAlias = Restore | EpochOrder | Stop


# Reports.


@dataclass(frozen=True, slots=True)
class Restored:
    """Answer to Restore: done."""

    epoch: Epoch
    groups: Mapping[TaskId, tuple[str, ...]] = field(default_factory=dict)  # it was restored from
    lost: tuple[GroupLost, ...] = ()  # what it could not read, and goes on without
    number: int = 0  # of the order that it answers


@dataclass(frozen=True, slots=True)
class Met:
    """Answer to Replaced: this life of the peer is expected."""

    epoch: Epoch
    slot: SlotId
    incarnation: Incarnation
    missed: Mapping[ChannelId, RowsByKey] = field(
        default_factory=dict
    )  # what it did not get, if known


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A snapshot that should be restored is damaged or missing."""

    epoch: Epoch
    task: TaskId
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint is durable with all that it needs."""

    epoch: Epoch
    meta: CheckpointMeta
    moments: CheckpointMoments | None = None  # None: nobody measured them
    added: tuple[str, ...] = ()  # groups that it refers to, and the one reported before it does not
    dropped: tuple[str, ...] = ()  # those to which it refers no more


@dataclass(frozen=True, slots=True)
class NotStored:
    """A snapshot could not be stored yet; the slot goes on trying."""

    epoch: Epoch
    task: TaskId
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class TaskPaused:
    """A task obeyed Halt."""

    epoch: Epoch
    paused: Paused


@dataclass(frozen=True, slots=True)
class InputRead:
    """All sources of this slot are at their end."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Counters:
    """Answer to Probe. `sent` and `received` count since the younger end of a channel started."""

    epoch: Epoch
    wave: int
    sent: Mapping[ChannelId, int]
    received: Mapping[ChannelId, int]
    seqs: Mapping[ChannelId, Seq]  # number of the last message sent, per output
    busy: bool  # something is under way inside the slot: unread input, replay
    rows: Mapping[TaskId, int]  # rows written, per task that has no channels


@dataclass(frozen=True, slots=True)
class Pressure:
    """The back edges into this slot hold too much (or no longer do)."""

    epoch: Epoch
    high: bool


Report: TypeAlias = (
    Restored | Met | Unreadable | Stored | NotStored | TaskPaused | InputRead | Counters | Pressure
)
