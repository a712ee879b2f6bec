"""What travels and what is remembered: messages, markers, checkpoint metadata, recovery lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapline.batch import Batch
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Epoch, Incarnation, Millis, Seq, TaskId

END_OF_TIME: Millis = 1 << 62
"""The watermark of a source at its end: every window closes, and the source holds nobody back."""

IDLE: Millis = -1
"""The watermark of a channel that says nothing about time until it speaks again."""

AWAY: Millis = -3
"""The watermark of a task all of whose senders are lost: until it speaks again, nobody waits for it."""

SILENT = (IDLE, AWAY)
"""The watermarks that say nothing about time."""

BEFORE_TIME: Millis = -2
"""The watermark of a channel that has not spoken yet: it holds everything back."""


def watermark_of(lowest: Millis) -> Millis:
    """The watermark of a source none of whose next records is earlier.

    Negative watermarks have meanings of their own, so a source says nothing about time before 1970.
    """
    return lowest if lowest >= 0 else BEFORE_TIME


@dataclass(frozen=True, slots=True)
class Message:
    """A batch of records on a channel. An empty batch carries a watermark alone."""

    channel: ChannelId
    seq: Seq
    epoch: Epoch
    batch: Batch
    header: bytes = b""  # what the sender's protocol piggybacked; only that protocol reads it
    watermark: Millis | None = None  # None on feedback edges and where no one needs event time


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker: it separates, on a channel, what belongs to round `checkpoint` from what comes after it."""

    checkpoint: CheckpointNo
    overtaking: bool = False  # it has passed queued output, so a task that sights it need not align


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an outgoing message carries, and whether the sender logs it."""

    header: bytes = b""
    log: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointMeta:
    """All that is known about a checkpoint, except the state itself. A counter that is absent is 0."""

    task: TaskId
    checkpoint: CheckpointNo
    sent: Mapping[ChannelId, Seq] = field(default_factory=dict)  # last message sent, per output
    received: Mapping[ChannelId, Seq] = field(default_factory=dict)  # last delivered, per input
    epoch: Epoch = 0
    incarnation: Incarnation = 0
    #: messages (after, through] stored with the snapshot: recorded inputs and overtaken outputs
    channel_state: Mapping[ChannelId, tuple[Seq, Seq]] = field(default_factory=dict)
    offsets: Mapping[int, int] = field(default_factory=dict)  # source partition -> next offset
    position: int = 0  # rows that a sink has written to its egress in this timeline
    watermark: Millis = BEFORE_TIME
    forced: bool = False
    parent: CheckpointNo | None = None  # the snapshot of which this one is a delta
    bytes: int = 0
    digest: str = ""
    taken_ms: Millis = 0  # when, in milliseconds since the input began to be due
    groups: int = 0  # objects beside the snapshot that its index names


def initial_meta(task: TaskId) -> CheckpointMeta:
    """The checkpoint that every task has from the beginning."""
    return CheckpointMeta(task, INITIAL)


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """One checkpoint per task. A task that is absent keeps running (`Rollback(scope=LOST)`)."""

    checkpoints: Mapping[TaskId, CheckpointNo]
