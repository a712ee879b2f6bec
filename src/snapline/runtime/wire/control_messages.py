"""Everything that is said on a connection but data: the connection's own words, orders and reports.

Words are rare, so they are JSON, each with a declared form. A new kind of order needs one line here, and
a new field of an old one too: a form that does not name every field of its class does not start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from snapline.core.events import AbortRound, Capture, Pause, Paused, Proceed, TriggerRound
from snapline.core.messages import CheckpointMeta
from snapline.engine import control
from snapline.ids import Epoch, Incarnation, Micros, Millis, SlotId
from snapline.metrics.histogram import Pairs
from snapline.metrics.second import Volume
from snapline.net.framing import Body, WireError
from snapline.recovery.replay import Origin, ReplayPart
from snapline.runtime.wire.forms import (
    FLAG,
    INT,
    TEXT,
    Form,
    by_number,
    by_text,
    choice,
    optional,
    pair,
    record,
    sequence,
    tagged,
)

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


# Their forms.

_COUNTS: Final = by_text(INT)  # channel -> number

_META: Final = record(
    CheckpointMeta,
    task=TEXT,
    checkpoint=INT,
    sent=_COUNTS,
    received=_COUNTS,
    epoch=INT,
    incarnation=INT,
    channel_state=by_text(pair(INT, INT)),
    offsets=by_number(INT),
    position=INT,
    watermark=INT,
    forced=FLAG,
    parent=optional(INT),
    bytes=INT,
    digest=TEXT,
)

_VOLUME: Final = record(
    Volume, messages=INT, headers=INT, wire=INT, log=INT, snapshots=INT, output=INT
)

_REPLAY: Final = record(ReplayPart, channel=TEXT, after=INT, through=INT, origin=choice(Origin))

_COMMAND: Final = tagged(
    record(TriggerRound, checkpoint=INT),
    record(AbortRound, checkpoint=INT),
    record(Pause, checkpoint=INT),
    record(Capture, checkpoint=INT, through=_COUNTS),
    record(Proceed, checkpoint=INT),
)

_WORD: Final[Form] = tagged(
    record(Hello, role=TEXT, run=TEXT, pid=INT, host=TEXT, port=INT),
    record(Assign, slot=INT, incarnation=INT),
    record(BecomeSpare),
    record(Leave, reason=TEXT),
    record(Peers, lives=by_number(record(Peer, incarnation=INT, host=TEXT, port=INT))),
    record(Begin, origin_ms=INT),
    record(Heartbeat, seq=INT),
    record(
        Pulse,
        epoch=INT,
        running=FLAG,
        read=INT,
        written=INT,
        backlog=INT,
        volume=_VOLUME,
        latency=sequence(pair(INT, INT)),
        checkpoint_us=sequence(INT),
    ),
    record(Lease, seq=INT),
    record(PeerHello, slot=INT, incarnation=INT),
    record(LinkLost, slot=INT, incarnation=INT),
    record(Failed, epoch=INT, kind=TEXT, text=TEXT, operator=TEXT, code=TEXT, where=TEXT),
    record(Slow, delay_ms=INT, for_ms=INT),
    record(CutLink, lives=by_number(INT), coordinator=FLAG, for_ms=INT, patience_ms=INT),
    # Orders.
    record(
        control.Restore,
        epoch=INT,
        incarnations=by_number(INT),
        chains=by_text(sequence(_META)),
        received=_COUNTS,
        replay=sequence(_REPLAY),
        alone=FLAG,
    ),
    record(control.Go, epoch=INT),
    record(control.Replaced, epoch=INT, slot=INT, incarnation=INT),
    record(control.Instruct, epoch=INT, tasks=sequence(TEXT), command=_COMMAND),
    record(control.Probe, epoch=INT, wave=INT),
    record(control.HoldSources, epoch=INT, hold=FLAG),
    record(control.Prune, epoch=INT, through=_COUNTS),
    record(control.Stop),
    # Reports.
    record(control.Restored, epoch=INT),
    record(control.Met, epoch=INT),
    record(control.Unreadable, epoch=INT, task=TEXT, checkpoint=INT),
    record(control.Stored, epoch=INT, meta=_META),
    record(control.NotStored, epoch=INT, task=TEXT, checkpoint=INT),
    record(
        control.TaskPaused,
        epoch=INT,
        paused=record(Paused, task=TEXT, sent=_COUNTS, received=_COUNTS),
    ),
    record(control.InputRead, epoch=INT),
    record(
        control.Counters,
        epoch=INT,
        wave=INT,
        sent=_COUNTS,
        received=_COUNTS,
        seqs=_COUNTS,
        busy=FLAG,
    ),
    record(control.Pressure, epoch=INT, high=FLAG),
)


def write_word(word: Word) -> bytes:
    """The text of a word, filled up with blanks to a multiple of eight."""
    text = json.dumps(_WORD.write(word), separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def read_word(text: Body) -> Word:
    """The word behind a text."""
    try:
        word: Word = _WORD.read(json.loads(str(text, "utf-8")))
    except (ValueError, RecursionError) as error:
        raise WireError(f"this is no word of ours: {error}") from error
    return word
