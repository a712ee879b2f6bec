"""The port to the world: all that the engine may ask of sockets, clocks, stores and dice.

There are three adapters: the simulator, the stepped world of the exhaustive search, and the runtime on
Spark. What is asked in the background is answered later by a call of `done` or `failed` with the same
ticket; a ticket names the epoch in which it was made, and where something is loaded the order to restore,
so an answer that comes too late is recognised.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from snapline.batch import Batch
from snapline.core.effects import TaskEffect
from snapline.core.events import Timer
from snapline.core.messages import Message
from snapline.engine.control import Frame, Order, Report
from snapline.ids import CheckpointNo, Epoch, Incarnation, Millis, SlotId, TaskId
from snapline.journal.entry import Entry
from snapline.journal.happenings import Happening
from snapline.storage.api import Egress, Extent, Ingress, Life, MessageLog
from snapline.storage.codec import Pieces
from snapline.storage.discards.port import Discards


@dataclass(frozen=True, slots=True)
class Ticket:
    """One call to storage that is under way."""

    kind: Literal[
        "snapshot", "group", "log", "egress", "fetch", "fetch group", "decision", "manifest"
    ]
    epoch: Epoch
    task: TaskId | None
    number: (
        int  # of the checkpoint, the decision or the manifest; for groups any that is not in use
    )
    order: int = 0  # what is loaded, for which `Restore` of its epoch: see its `number`


@dataclass(frozen=True, slots=True)
class TimerAlarm:
    """A timer of a protocol. `generation` tells it from an equal timer that it replaced."""

    epoch: Epoch
    task: TaskId | None
    timer: Timer
    generation: int


@dataclass(frozen=True, slots=True)
class SourceAlarm:
    """It is time to look whether input is due at this source."""

    epoch: Epoch
    task: TaskId


@dataclass(frozen=True, slots=True)
class RetryAlarm:
    """It is time to make a failed call to storage again."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class ProbeAlarm:
    """It is time for another wave of counters, unless one was begun since."""

    epoch: Epoch
    wave: int


Alarm: TypeAlias = TimerAlarm | SourceAlarm | RetryAlarm | ProbeAlarm


class NextRead(NamedTuple):
    """What a source is about to read: so many records from each offset, as far as they are due by now."""

    ingress: Ingress
    offsets: Mapping[int, int]  # by partition
    records: int
    now_ms: Millis


class Shell(Protocol):
    """What slots and the coordinator both ask of the world."""

    def now_ms(self) -> Millis:
        """The present time of the schedule by which input is due."""
        ...

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Let an alarm go off after a delay. It cannot be cancelled: whoever set it judges it then."""
        ...

    def rng(self, name: str) -> random.Random:
        """A stream of random numbers of this name."""
        ...

    def journal(self, entry: Entry) -> None:
        """Write down what happened."""
        ...

    def now_us(self) -> int:
        """The present time for the journal, in microseconds."""
        ...

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write down what happened to an actor."""
        ...


class SlotShell(Shell, Protocol):
    """What a slot asks of the world."""

    journals_messages: bool  #: whether the journal wants every message: taken and stamped
    gathers: bool  #: whether messages that wait behind each other are given to operators at once

    def transmit(self, slot: SlotId, frame: Frame) -> None:
        """Send to another slot. Frames between two slots arrive in order, or not at all."""
        ...

    def overtake(self, slot: SlotId, frame: Frame) -> Sequence[Message]:
        """Send, ahead of what has not left on this channel; return the messages overtaken."""
        ...

    def report(self, report: Report) -> None:
        """Send a report to the coordinator."""
        ...

    def performing(self, act: TaskEffect | Message) -> None:
        """Told before an effect is performed or a message sent, so that simulated crashes strike here."""
        ...

    def worked(self, records: int) -> None:
        """Told when a batch was processed, so that simulated work takes time."""
        ...

    # What is measured. Nothing depends on it.

    def ingested(self, records: int) -> None:
        """Told when a source has read so many records."""
        ...

    def sent(self, message: Message, *, logged: int) -> None:
        """Told when a task has sent a message, or sent it again; so many bytes were logged before."""
        ...

    def wrote(self, batch: Batch) -> None:
        """Told when a sink has written records to its egress."""
        ...

    def marked(self, channels: int) -> None:
        """Told when a task has sent a marker on so many channels, in or out of its slot."""
        ...

    def captured(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """Told when a task has captured its state for a checkpoint, and goes on."""
        ...

    # Input and storage.

    def choose(self, count: int) -> int:
        """Choose which of so many ready inputs to take next."""
        ...

    def at_hand(self, alarm: SourceAlarm, wanted: NextRead) -> bool:
        """Whether a source can read what it wants without waiting.

        If not, it is fetched in the background, and the alarm goes off when it may be at hand.
        """
        ...

    def open_log(self, life: Life) -> MessageLog:
        """The sender log of a task."""
        ...

    def open_discards(self, life: Life) -> Discards:
        """Where a task writes down what it discards."""
        ...

    def open_egress(self, life: Life, position: int) -> Egress:
        """The output of a sink task."""
        ...

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        """Make an object and store it in the background, in any thread."""
        ...

    def fetch(self, ticket: Ticket, key: str, digest: str) -> None:
        """Load an object in the background; answered by `fetched`."""
        ...

    def sync(self, ticket: Ticket, file: MessageLog | Egress) -> None:
        """Make a log or an egress durable in the background."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object in the background; there is no answer."""
        ...


class CoordinatorShell(Shell, Protocol):
    """What the coordinator asks of the world."""

    def send(self, slot: SlotId, incarnation: Incarnation, order: Order) -> None:
        """Give an order to one life of a slot. Orders arrive in order, or not at all."""
        ...

    def launch(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Start a slot anew; answered by `registered` when it is there."""
        ...

    def dismiss(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Let a life of a slot end: a line holds its work, and the next life is launched."""
        ...

    def decide(self, ticket: Ticket, key: str, data: bytes) -> None:
        """Store an object unless the name is taken, in the background."""
        ...

    def publish(self, ticket: Ticket, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Publish a manifest in the background."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object in the background; there is no answer."""
        ...

    def sweep(
        self, before: Epoch, snapshots: Collection[str], files: Collection[str] | None
    ) -> None:
        """Delete what lives of epochs before this one left, but these snapshots and these files of output.

        Without `files`, all output stays.

        It is done in the background, and there is no answer: `engine/coordinator/sweep.py` says why nothing
        can go wrong.
        """
        ...

    def compact(self, through: int) -> None:
        """Let manifests up to a number, before all kept lines, be kept in few objects, or be deleted.

        It is done in the background, and there is no answer.
        """
        ...

    def finish(self, problem: str | None) -> None:
        """End the job: all output is public, or `problem` says why it cannot go on."""
        ...

    def deposed(self) -> None:
        """Told when another coordinator has taken over: this one does nothing any more."""
        ...
