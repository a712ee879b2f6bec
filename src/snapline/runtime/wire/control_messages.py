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
from snapline.metrics.second import Volume
from snapline.net.framing import Body, WireError

# From a process that starts, and to it.


@dataclass(frozen=True, slots=True)
class Hello:
    """A process has started: it is nobody yet, and other slots will reach it here."""

    role: str
    run: str
    pid: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Assign:
    """Be this life of this slot."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class BecomeSpare:
    """Wait: a slot may be lost later."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Exit: nobody needs you (any more)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Where the present life of a slot listens."""

    incarnation: Incarnation
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the slots are that are known now."""

    lives: Mapping[SlotId, Peer]


@dataclass(frozen=True, slots=True)
class Begin:
    """Input is due from this moment on (milliseconds of the wall clock)."""

    origin_ms: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A slot is alive."""

    seq: int


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


@dataclass(frozen=True, slots=True)
class Lease:
    """The coordinator is alive and has heard this heartbeat: stay for another while."""

    seq: int


@dataclass(frozen=True, slots=True)
class PeerHello:
    """Which life of which slot speaks on this connection."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The connection with this life of another slot is broken: what was on its way is gone."""

    slot: SlotId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Failed:
    """The last word of a slot that ends because of an exception."""

    epoch: Epoch
    kind: str  # of the exception
    text: str
    operator: str  # whose code raised it; empty: it is none of the dataflow's
    code: str  # the file and the line of that code
    where: str  # the input that it was given


@dataclass(frozen=True, slots=True)
class Slow:
    """For so long, all that you send or receive takes longer: a fault, done on purpose."""

    delay_ms: Millis
    for_ms: Millis


@dataclass(frozen=True, slots=True)
class CutLink:
    """For so long, let nothing pass between you and these; 0: break the connections. A fault, too."""

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
    | Pulse
    | Lease
    | PeerHello
    | LinkLost
    | Failed
    | Slow
    | CutLink
)
Word: TypeAlias = Greeting | control.Order | control.Report


# Their text.


class ControlText:
    """Writes and reads the control messages of a job whose protocol has these commands."""

    def __init__(self, commands: Iterable[type[Command]] = SHARED_COMMANDS) -> None:
        self._form: Final = Forms(families={Command: commands}).tagged(get_args(Word))

    def write(self, word: Word) -> bytes:
        """The text of a control message, filled up with blanks to a multiple of eight."""
        text = json.dumps(self._form.write(word), separators=(",", ":")).encode()
        return text + b" " * (-len(text) % 8)

    def read(self, text: Body) -> Word:
        """The control message behind a text. Raises WireError."""
        try:
            word: Word = self._form.read(json.loads(str(text, "utf-8")))
        except (ValueError, RecursionError) as error:
            raise WireError(f"this is no word of ours: {error}") from error
        return word
