"""What a space-time diagram shows: arrows, checkpoints, stretches of time, moments and rollbacks.

All of it in terms of tasks and microseconds; nothing here knows about journals or pixels.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from snapline.core.messages import RecoveryLine
from snapline.core.topology import Channel
from snapline.ids import CheckpointNo, Epoch, Micros, TaskId

Lane: TypeAlias = str
"""Whose timeline: a task, or COORDINATOR."""


class Travel(Enum):
    """What an arrow stands for."""

    MESSAGE = "message"
    MARKER = "marker"
    REPLAYED = "replayed"
    ORPHAN = "orphan"
    LOST = "lost"


class Stretch(Enum):
    """The kinds of things that last for a while in a timeline."""

    DOWN = "down"  # dead, or being restored
    PAUSED = "paused"
    BLOCKED = "blocked"


class Instant(Enum):
    """The kinds of things that happen at one moment of a timeline."""

    CRASH = "crash"
    FAULT = "fault"
    COMMIT = "commit"
    RESUMED = "resumed"


@dataclass(slots=True)
class Arrow:
    """A message or a marker under way; `received_us` is None when it never arrived."""

    travel: Travel
    channel: Channel
    label: str
    sent_us: Micros
    received_us: Micros | None = None


@dataclass(slots=True)
class DrawnCheckpoint:
    """A snapshot of one task."""

    task: TaskId
    checkpoint: CheckpointNo
    at_us: Micros
    forced: bool
    stored_us: Micros | None = None
    skipped: bool = False


@dataclass(slots=True)
class Span:
    """Something that lasts."""

    stretch: Stretch
    lane: Lane
    since_us: Micros
    until_us: Micros
    label: str


@dataclass(slots=True)
class Moment:
    """Something without duration."""

    instant: Instant
    lane: Lane
    at_us: Micros
    label: str
    count: int = 0  # rows of output, at a commit


@dataclass(frozen=True, slots=True)
class Return:
    """A rollback: the moment of the decision, and where every task goes back to."""

    number: int  # the first of the run is 1
    at_us: Micros
    line: RecoveryLine
    epoch: Epoch  # the one in which it was decided
    whole: bool  # of the whole job, and so the end of the epoch
    lost: tuple[TaskId, ...]  # whose loss made it necessary


@dataclass(slots=True)
class Story:
    """All that a diagram shows."""

    begin_us: Micros = 0
    end_us: Micros = 0
    arrows: list[Arrow] = field(default_factory=list)
    checkpoints: dict[tuple[TaskId, CheckpointNo], DrawnCheckpoint] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    events: list[Moment] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)
