"""Everything that is said on a connection but data: greetings of processes, orders and reports.

These messages are rare, so they are JSON. Their forms are derived from the declared types of their fields
(`core.forms`); the commands among them are those of the job's protocol, and no others are understood.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

from snapline.core.events import SHARED_COMMANDS, Command
from snapline.core.forms import Forms
from snapline.engine import control
from snapline.ids import Epoch, Incarnation, Micros, Millis, SlotId
from snapline.metrics.histogram import Pairs
from snapline.metrics.second import Used, Volume
from snapline.net.framing import Body, WireError

# From a process that starts, and to it.


@dataclass(frozen=True, slots=True)
class Hello:
    """Says that a process has started, no slot yet, and where other slots will reach it."""

    role: str
    run: str
    pid: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Assign:
    """Orders a process to become this life of this slot."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class BecomeSpare:
    """Orders a process to wait as a spare, until a slot is lost."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Orders a process to exit, because it is not needed (any more)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Peer:
    """The address at which the present life of a slot listens."""

    incarnation: Incarnation
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Peers:
    """The addresses of all slots that are known now."""

    lives: Mapping[SlotId, Peer]


@dataclass(frozen=True, slots=True)
class Begin:
    """Says from which moment on input is due (milliseconds of the wall clock)."""

    origin_ms: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that a process is alive."""

    seq: int


@dataclass(frozen=True, slots=True)
class Computing:
    """Says that a process is alive, but has not come back from what it computes."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a slot has done since its last pulse, and how it stands."""

    epoch: Epoch
    running: bool
    read: int  # records, by its sources
    written: int  # records, by its sinks
    backlog: int  # records that are due at its sources
    volume: Volume
    latency: Pairs  # of what was written
    checkpoint_us: tuple[Micros, ...]  # trigger to durable, of those that became durable
    first_us: Micros | None = None  # when its sources read first ...
    last_us: Micros | None = None  # ... and last, by the clock of the run; None: they read nothing
    used: Used | None = None  # about once a second


@dataclass(frozen=True, slots=True)
class Lease:
    """Says that the driver is alive: a slot may go on for another lease."""

    seq: int


@dataclass(frozen=True, slots=True)
class PeerHello:
    """Says which life of which slot speaks on this connection."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class LinkLost:
    """Says that the link with this life of another slot broke: what was on its way is gone."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Failed:
    """Says why a slot ends: an exception."""

    epoch: Epoch
    kind: str  # of the exception
    text: str
    operator: str  # whose code raised it; empty: it is none of the dataflow's
    code: str  # the file and the line of that code
    where: str  # the input that it was given


@dataclass(frozen=True, slots=True)
class Slow:
    """Orders a slot to delay all that it sends or receives, for so long: a fault on purpose."""

    delay_ms: Millis
    for_ms: Millis


@dataclass(frozen=True, slots=True)
class CutLink:
    """Orders a slot to let nothing pass to or from these, for so long; 0: to break the links."""

    lives: Mapping[SlotId, Incarnation]
    coordinator: bool
    for_ms: Millis
    patience_ms: Millis  # a connection between slots through which nothing passes for longer breaks


Greeting: TypeAlias = (
    Hello
    | Assign
    | BecomeSpare
    | Leave
    | Peers
    | Begin
    | Heartbeat
    | Computing
    | Pulse
    | Lease
    | PeerHello
    | LinkLost
    | Failed
    | Slow
    | CutLink
)
ControlMessage: TypeAlias = Greeting | control.Order | control.Report


# Their text.


class ControlText:
    """Writes and reads the control messages of a job whose protocol has these commands."""

    def __init__(self, commands: Iterable[type[Command]] = SHARED_COMMANDS) -> None:
        self._form: Final = Forms(families={Command: commands}).tagged(get_args(ControlMessage))

    def write(self, message: ControlMessage) -> bytes:
        """The text of a control message, filled up with blanks to a multiple of eight."""
        text = json.dumps(self._form.write(message), separators=(",", ":")).encode()
        return text + b" " * (-len(text) % 8)

    def read(self, text: Body) -> ControlMessage:
        """The control message behind a text. Raises WireError."""
        try:
            message: ControlMessage = self._form.read(json.loads(str(text, "utf-8")))
        except (ValueError, RecursionError) as error:
            raise WireError(f"this is no control message: {error}") from error
        return message
