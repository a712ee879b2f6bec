"""A counterexample as a story: who did what, step by step, in sentences.

Many steps have no effect on tasks: what the store and the control connections do in a row is told
in one line.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from snapline.core import effects
from snapline.core.messages import Marker, Message
from snapline.core.protocol import CheckpointProtocol
from snapline.engine import control
from snapline.engine.shell import Ticket, TimerAlarm
from snapline.ids import ChannelId, checkpoint_label
from snapline.journal.entry import Entry, Handled, Happened, Stamped
from snapline.journal.happenings import JobFinished, JobRunning, LineDecided, SlotLost
from snapline.journal.sentences import sentence
from snapline.sim.exhaustive.course import SteppedRun
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.order import Deviation
from snapline.sim.exhaustive.search import Counterexample
from snapline.sim.exhaustive.small import Small

Consequence: TypeAlias = LineDecided | JobRunning | SlotLost | JobFinished
"""The happenings that are told with a step; others are the step itself, or unimportant."""


class Line(NamedTuple):
    """One line of a story."""

    first: int  # the numbers of its steps
    last: int
    text: str

    def __str__(self) -> str:
        steps = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{steps:>7}  {self.text}"


def tell(small: Small, protocol: CheckpointProtocol, found: Counterexample) -> list[Line]:
    """Run a counterexample again and tell it."""
    course = SteppedRun.begin(small, small.job(protocol), keep_journal=True)
    entries = course.world.entries
    assert entries is not None
    told: list[tuple[int, bool, str]] = []
    for number, lane in enumerate(found.steps, start=1):
        head, known = _head(course, lane), len(entries)
        course.take(lane)
        tail = list(_consequences(entries[known:]))
        aside = not tail and lane.kind in ("store", "report", "order", "timer", "launch")
        told.append((number, aside, "; ".join([head, *tail])))
    return list(_grouped(told))


def _grouped(told: Sequence[tuple[int, bool, str]]) -> Iterator[Line]:
    asides: list[tuple[int, str]] = []
    for number, aside, text in told:
        if aside:
            asides.append((number, text))
            continue
        yield from _together(asides)
        asides = []
        yield Line(number, number, text)
    yield from _together(asides)


def _together(asides: Sequence[tuple[int, str]]) -> Iterator[Line]:
    if asides:
        texts = dict.fromkeys(text for _, text in asides)
        yield Line(asides[0][0], asides[-1][0], f"({'; '.join(texts)})")


def unusual(deviation: Deviation) -> str:
    """How a run left the usual order, in words."""
    kind, lane = deviation
    if kind == "crash":
        return f"{_slot(lane.actor)} crashes"
    if kind == "fire":
        return f"the timer {lane.name} goes off before its turn"
    return f"held until nothing else can happen: {_place(lane)}"


def _slot(actor: str) -> str:
    name, _, life = actor.partition(".")
    slot = name.replace("/", " ")
    return slot if life in ("", "1") else f"{slot} (life {life})"


def _place(lane: Lane) -> str:
    match lane.kind:
        case "take":
            return f"{_slot(lane.actor)} takes from {lane.name}"
        case "link":
            return f"the link from {_slot(lane.name)} to {_slot(lane.actor)}"
        case "store":
            return f"the write of {_written(lane.name)}"
        case "order":
            return f"orders to {_slot(lane.actor)}"
        case "report":
            return f"reports of {_slot(lane.name)}"
        case _:
            return f"{lane.kind} {_slot(lane.actor)} {lane.name}".strip()


def _written(name: str) -> str:
    what, _, number = name.rpartition("@")
    known = int(number)
    return f"{what} {checkpoint_label(known) if ' ' in what else known}"


def _head(course: SteppedRun, lane: Lane) -> str:
    first = course.world.first(lane)
    match first:
        case control.Frame(channel, _, payload):
            carried = _payload(channel, payload)
            return f"the link from {_slot(lane.name)} to {_slot(lane.actor)} delivers {carried}"
        case Message() | Marker():
            taker = course.world.job.topology.by_id[ChannelId(lane.name)].target
            return f"{taker} takes {_payload(ChannelId(lane.name), first)}"
        case Ticket():
            return f"durable: {_written(lane.name)}"
        case TimerAlarm(_, task, timer):
            return f"{task or 'the coordinator'}: {type(timer).__name__} goes off"
    match lane.kind:
        case "read":
            return f"{lane.name} reads its next record"
        case "replay":
            return f"a message is sent again on {lane.name}"
        case "crash":
            return f"{_slot(lane.actor).upper()} CRASHES"
        case "order":
            return f"{_slot(lane.actor)} gets {_said(first)}"
        case "report":
            return f"the coordinator gets {_said(first)} of {_slot(lane.name)}"
        case "detect":
            return f"the coordinator notices that {_slot(lane.name)} is gone"
        case "launch":
            return f"{_slot(lane.name)} registers"
        case _:
            return "the coordinator asks once more"


def _payload(channel: ChannelId, payload: object) -> str:
    if isinstance(payload, Message):
        return f"message {payload.seq} of {channel}"
    if isinstance(payload, Marker):
        return f"MARKER {checkpoint_label(payload.checkpoint)} of {channel}"
    return f"credit of {channel}"


def _said(said: object) -> str:
    match said:
        case control.Instruct(_, _, command):
            return type(command).__name__
        case control.Stored(_, meta):
            return f"Stored {meta.task} {checkpoint_label(meta.checkpoint)}"
        case _:
            return type(said).__name__


def _consequences(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        match entry:
            case Stamped(actor=actor, channel=channel, seq=seq):
                yield f"{actor} sends message {seq} of {channel}"
            case Handled(actor=actor, effects=answer):
                for effect in answer:
                    if words := _effect(effect):
                        yield f"{actor} {words}"
            case Happened(what=what) if isinstance(what, Consequence):
                yield sentence(entry)


def _effect(effect: object) -> str | None:
    match effect:
        case effects.Snapshot(checkpoint):
            return f"takes CHECKPOINT {checkpoint_label(checkpoint)}"
        case effects.Block(channel):
            return f"blocks {channel}"
        case effects.Unblock(channel):
            return f"unblocks {channel}"
        case effects.Forward(marker):
            return f"sends marker {checkpoint_label(marker.checkpoint)} on"
        case effects.Record(channel):
            return f"records {channel} into it"
        case effects.Halt():
            return "stands still"
        case effects.Continue():
            return "goes on"
        case effects.Rollback():
            return "rolls back"
        case _:
            return None
