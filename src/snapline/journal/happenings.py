"""What happens in a run beside faults: to its processes, its engine, its messages, and what is measured.

`Happening` is the union of all kinds, those of faults and declared losses included. Whoever goes through
them by kind matches all of them and ends with `assert_never`, or names a smaller union and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from snapline.core.messages import Message
from snapline.ids import (
    ChannelId,
    CheckpointNo,
    Epoch,
    Incarnation,
    Micros,
    SlotId,
    TaskId,
)
from snapline.journal.fault_happenings import FaultHappening
from snapline.journal.loss_happenings import LossHappening

# Processes. The actor is the slot, unless something else is said.


@dataclass(frozen=True, slots=True)
class SlotLaunched:
    """A process is started for a life of a slot. Only simulated worlds write this down."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """A process that was started has died before it registered."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class RegisteredLate:
    """A process registers after the coordinator gave it up; it is still needed."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SentAway:
    """A process registers after another one took its place."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class ProcessNotStarted:
    """A process of a real run did not come; the actor is the coordinator, which starts another."""

    because: str


@dataclass(frozen=True, slots=True)
class OperatorRaised:
    """The code of the dataflow has raised an exception in the process that is the actor."""

    kind: str  # the class of the exception
    operator: str  # in which it was raised; empty if nobody knows


@dataclass(frozen=True, slots=True)
class SlotCutOff:
    """A slot is given up because it and another one have lost each other."""

    incarnation: Incarnation
    witness: tuple[SlotId, Incarnation] | None  # who complained


@dataclass(frozen=True, slots=True)
class SlotLost:
    """The coordinator, which is the actor, gives up a life of a slot."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SlotLeaving:
    """The coordinator, which is the actor, hears that a life of a slot is to end where it runs."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SlotLeft:
    """The coordinator, which is the actor, lets a life of a slot go: a line holds all that it did."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SlotRestored:
    """A slot has restored its tasks as they were at the line."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SlotRunning:
    """A slot that restarted alone runs again; the others never stopped."""


# The job. The actor is the coordinator, or a system under test.


@dataclass(frozen=True, slots=True)
class JobRunning:
    """All slots run, or the system under test takes input."""


@dataclass(frozen=True, slots=True)
class SystemDown:
    """A system under test does not run; it is started again."""


@dataclass(frozen=True, slots=True)
class LineFound:
    """A line was found for a rollback, and this is what it costs."""

    stored: int  # checkpoints since the last rollback, and earlier ones that are skipped now
    skipped: int  # of these: beyond the line, so they were stored in vain
    back_s: float  # since the oldest checkpoint of the line became durable
    back_records: int | None  # that sources read since then; None: not measured


@dataclass(frozen=True, slots=True)
class LineDecided:
    """A decision is durable, and its output is public."""

    number: int
    epoch: Epoch  # the job's epoch from now on; if it is the present one, a line was committed
    line: Mapping[TaskId, CheckpointNo]


@dataclass(frozen=True, slots=True)
class OutputPublished:
    """A manifest was published. Only real runs write this down."""

    number: int
    #: the rows of each sink task: the first, and the one after the last
    rows: Mapping[TaskId, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class GarbageCollected:
    """Snapshots that no kept line needs were given up, to be deleted."""

    snapshots: int


@dataclass(frozen=True, slots=True)
class StoreAwaited:
    """A call to the store has failed; the job waits, and asks again."""

    because: str


@dataclass(frozen=True, slots=True)
class JobRecovered:
    """Backlog and latency are as they were before a loss."""

    recovery_s: float
    lost_us: Micros  # when that loss was noticed


@dataclass(frozen=True, slots=True)
class InputEnded:
    """A system under test was given all its input."""

    records: int


@dataclass(frozen=True, slots=True)
class JobFinished:
    """All input is processed, and all output public."""

    with_line: bool = True  # whether its last line holds all of it; False: it has no lines


@dataclass(frozen=True, slots=True)
class JobStopped:
    """The job cannot go on."""

    problem: str


@dataclass(frozen=True, slots=True)
class JobInterrupted:
    """Somebody has asked for the end of the run; it can be resumed."""


@dataclass(frozen=True, slots=True)
class JobStopping:
    """Somebody has asked the run to stop with a last line: no more input is taken in."""


@dataclass(frozen=True, slots=True)
class JobSuspended:
    """A run was asked to stop, and has: its last line holds all that was taken in; it can be resumed."""

    line: int | None  # the number of that decision; None: its protocol has no lines


@dataclass(frozen=True, slots=True)
class CoordinatorDeposed:
    """A coordinator finds out that another one took over."""


# Messages. The actor is the task or slot that sent or received them.


@dataclass(frozen=True, slots=True)
class MessageReplayed:
    """A message was sent again from a log, or taken from a checkpoint."""

    message: Message


@dataclass(frozen=True, slots=True)
class ReportFenced:
    """The coordinator turned away what a former life of a slot reported."""

    slot: SlotId
    incarnation: Incarnation
    report: str  # its kind


@dataclass(frozen=True, slots=True)
class FrameFenced:
    """A slot turned away a message of a former life of another slot."""

    source: SlotId
    channel: ChannelId
    life: tuple[Epoch, Incarnation, Incarnation]  # see `engine.control.Frame`


@dataclass(frozen=True, slots=True)
class MessagesDiscarded:
    """A task did not send this on a channel, because its receiver was lost; now that is back."""

    channel: ChannelId
    messages: int
    records: int


@dataclass(frozen=True, slots=True)
class InputSkipped:
    """A source that restarted alone goes on at `stop`: records start <= n < stop may be lost."""

    partition: int
    start: int  # the offset of the checkpoint that it went back to; 0: it began empty
    stop: int  # the first record that it reads


@dataclass(frozen=True, slots=True)
class MessagesOvertaken:
    """A marker has passed messages that were waiting to be sent."""

    channel: ChannelId
    messages: int


# What is measured in a real run. Not measured in simulation.


@dataclass(frozen=True, slots=True)
class CheckpointMoments:
    """When a slot did what for a checkpoint of a task, in microseconds since input began to be due."""

    round: CheckpointNo | None  # the ordered round that it belongs to; None: the task's own
    due_us: Micros | None  # when the timer was to fire that asked for it; None: no timer did
    begun_us: Micros  # the task was told: by a first marker, a command, a timer or a message
    taken_us: Micros  # the capture began
    captured_us: Micros  # the capture was over, and the loop went on
    durable_us: Micros  # it was durable with all that it needs


@dataclass(frozen=True, slots=True)
class CheckpointTimed:
    """The coordinator hears of a checkpoint that is durable, and how its time was spent until then."""

    task: TaskId
    checkpoint: CheckpointNo
    moments: CheckpointMoments


@dataclass(frozen=True, slots=True)
class SecondMeasured:
    """What all slots together did in one second; `metrics.second.Second` explains the fields."""

    at_s: int
    running: int
    read: int
    written: int
    backlog: int | None
    checkpoints: int
    lines: int
    volume: Mapping[str, int]
    latency: tuple[tuple[int, int], ...]  # (bucket, count), see `metrics.histogram`
    p50_ms: float | None
    p99_ms: float | None
    checkpoint_us: tuple[int, ...]
    length_us: Micros
    first_us: Micros | None
    last_us: Micros | None
    #: of each slot: its number, read, written, backlog, p50_ms, p99_ms
    slots: tuple[tuple[SlotId, int, int, int | None, float | None, float | None], ...]
    #: of each part of the second: running, backlog, p50_ms, p99_ms
    parts: tuple[tuple[int, int | None, float | None, float | None], ...]
    processes: Mapping[str, tuple[int, int]]
    usage: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SystemProgressed:
    """A system under test has said how far it is, in figures of its own."""

    figures: Mapping[str, int]


ProcessHappening: TypeAlias = (
    SlotLaunched
    | LaunchFailed
    | RegisteredLate
    | SentAway
    | ProcessNotStarted
    | OperatorRaised
    | SlotCutOff
    | SlotLost
    | SlotLeaving
    | SlotLeft
    | SlotRestored
    | SlotRunning
)
JobHappening: TypeAlias = (
    JobRunning
    | SystemDown
    | LineFound
    | LineDecided
    | OutputPublished
    | GarbageCollected
    | StoreAwaited
    | JobRecovered
    | InputEnded
    | JobFinished
    | JobStopped
    | JobInterrupted
    | JobStopping
    | JobSuspended
    | CoordinatorDeposed
)
MessageHappening: TypeAlias = (
    MessageReplayed
    | ReportFenced
    | FrameFenced
    | MessagesOvertaken
    | MessagesDiscarded
    | InputSkipped
)
Measurement: TypeAlias = CheckpointTimed | SecondMeasured | SystemProgressed

Happening: TypeAlias = (
    FaultHappening
    | LossHappening
    | ProcessHappening
    | JobHappening
    | MessageHappening
    | Measurement
)
"""Every kind of happening."""
