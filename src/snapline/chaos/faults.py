"""Faults as data: what breaks, when, and for how long.

Every fault is a frozen value whose `str` is the statement that means it, so a plan can be printed, edited
and given back. `FORMS` is what is parsed; `GRAMMAR` shows every form to people, with its meaning. A
statement means the same in the simulator and in a real run; `where` says what only one of them can do.

A fault that names a slot strikes the process that is the slot at that moment, and the one that takes its
place is sound: what is noticed is noticed once. What happens to the store happens to all processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from snapline.chaos.grammar import Form, read_statements
from snapline.durations import write_duration
from snapline.errors import FaultSyntaxError
from snapline.ids import Millis, SlotId

# When.


@dataclass(frozen=True, slots=True)
class At:
    """At this time of the run."""

    ms: Millis

    def __str__(self) -> str:
        return f"at={write_duration(self.ms)}"


@dataclass(frozen=True, slots=True)
class Step:
    """Just before the slot performs its n-th effect."""

    n: int

    def __str__(self) -> str:
        return f"step={self.n}"


@dataclass(frozen=True, slots=True)
class During:
    """While the next recovery, or the next round, is under way."""

    what: Literal["recovery", "round"]

    def __str__(self) -> str:
        return f"on={self.what}"


When: TypeAlias = At | Step | During

# What.


@dataclass(frozen=True, slots=True)
class Kill:
    """Slots die, all at once."""

    kind: ClassVar[str] = "kill"
    slots: tuple[SlotId, ...]
    when: When

    def __str__(self) -> str:
        return f"kill slot={','.join(map(str, self.slots))} {self.when}"


@dataclass(frozen=True, slots=True)
class Pause:
    """A slot stands still; if for longer than the time-out, it comes back as a zombie."""

    kind: ClassVar[str] = "pause"
    slot: SlotId
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"pause slot={self.slot} {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class KillExecutor:
    """The Java process dies that hosts a slot, and with it all slots that it hosts."""

    kind: ClassVar[str] = "kill-executor"
    slot: SlotId
    at_ms: Millis

    def __str__(self) -> str:
        return f"kill executor={self.slot} {At(self.at_ms)}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Nothing passes between a slot and another one, or the coordinator (`other=None`).

    What is sent meanwhile waits, and passes when the cut is over; beyond the time-out the slot is given up.
    Without a duration (`for_ms=0`) the connection breaks instead: what was on its way is lost.
    """

    kind: ClassVar[str] = "cut"
    slot: SlotId
    other: SlotId | None
    at_ms: Millis
    for_ms: Millis = 0

    def __str__(self) -> str:
        return f"cut slot={self.slot} from={peers((self.other,))} {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class Partition:
    """A cut between each of some slots and each of the others, one of which may be the coordinator."""

    kind: ClassVar[str] = "partition"
    slots: tuple[SlotId, ...]
    others: tuple[SlotId | None, ...]
    at_ms: Millis
    for_ms: Millis = 0

    def __str__(self) -> str:
        slots = ",".join(map(str, self.slots))
        return f"cut slot={slots} from={peers(self.others)} {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class Delay:
    """All that a slot sends or receives takes longer, in order; beyond the time-out it is given up."""

    kind: ClassVar[str] = "delay"
    slot: SlotId
    delay_ms: Millis
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        span = _span(self.at_ms, self.for_ms)
        return f"delay slot={self.slot} {write_duration(self.delay_ms)} {span}"


@dataclass(frozen=True, slots=True)
class KillCoordinator:
    """The coordinator dies and is resumed later."""

    kind: ClassVar[str] = "kill-coordinator"
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"kill coordinator {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class KillDriver:
    """The process of the coordinator dies; all connections break, and the run is resumed at once."""

    kind: ClassVar[str] = "kill-driver"
    when: At | During

    def __str__(self) -> str:
        return f"kill driver {self.when}"


@dataclass(frozen=True, slots=True)
class PauseCoordinator:
    """The coordinator stands still; if a second one resumes meanwhile, the first comes back as a zombie."""

    kind: ClassVar[str] = "pause-coordinator"
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"pause coordinator {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class PauseDriver:
    """The process of the coordinator stands still: to Snapline that is a pause of the coordinator."""

    kind: ClassVar[str] = "pause-driver"
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"pause driver {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class StoreOutage:
    """The store answers nobody; what it was asked may have happened all the same."""

    kind: ClassVar[str] = "store-outage"
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"store outage {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class StoreSlow:
    """Every call to the store takes this much longer."""

    kind: ClassVar[str] = "store-slow"
    delay_ms: Millis
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"store slow {write_duration(self.delay_ms)} {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class StoreFailing:
    """Each call to the store fails with this chance; it may have happened all the same."""

    kind: ClassVar[str] = "store-failing"
    percent: int
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"store failing {self.percent}% {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class Damage:
    """The newest stored snapshot of a task of this slot is changed behind everybody's back."""

    kind: ClassVar[str] = "damage"
    slot: SlotId
    at_ms: Millis

    def __str__(self) -> str:
        return f"damage slot={self.slot} at={write_duration(self.at_ms)}"


Fault: TypeAlias = (
    Kill
    | Pause
    | Cut
    | Delay
    | KillCoordinator
    | PauseCoordinator
    | StoreOutage
    | StoreSlow
    | Damage
    | KillExecutor
    | KillDriver
    | PauseDriver
    | Partition
    | StoreFailing
)

KINDS: tuple[str, ...] = tuple(fault.kind for fault in get_args(Fault))


def cut(
    slots: tuple[SlotId, ...],
    others: tuple[SlotId | None, ...],
    at_ms: Millis,
    for_ms: Millis = 0,
) -> Cut | Partition:
    """A cut between two, or between two groups; ValueError if one is on both sides."""
    if any(slot in others for slot in slots):
        raise ValueError("a slot cannot be cut from itself")
    if len(slots) == len(others) == 1:
        return Cut(slots[0], others[0], at_ms, for_ms)
    return Partition(slots, others, at_ms, for_ms)


FORMS: tuple[Form[Fault], ...] = (
    Form("kill slot=SLOTS at=TIME", lambda slots, ms: Kill(slots, At(ms))),
    Form("kill slot=SLOT step=COUNT", lambda slot, n: Kill((slot,), Step(n))),
    Form("kill slot=SLOTS on=PHASE", lambda slots, what: Kill(slots, During(what))),
    Form("kill executor=SLOT at=TIME", KillExecutor),
    Form("kill coordinator at=TIME for=SPAN", KillCoordinator),
    Form("kill driver at=TIME", lambda ms: KillDriver(At(ms))),
    Form("kill driver on=PHASE", lambda what: KillDriver(During(what))),
    Form("pause slot=SLOT at=TIME for=SPAN", Pause),
    Form("pause coordinator at=TIME for=SPAN", PauseCoordinator),
    Form("pause driver at=TIME for=SPAN", PauseDriver),
    Form("cut slot=SLOTS from=PEERS at=TIME for=SPAN", cut),
    Form("cut slot=SLOTS from=PEERS at=TIME", cut),
    Form("delay slot=SLOT SPAN at=TIME for=SPAN", Delay),
    Form("store outage at=TIME for=SPAN", StoreOutage),
    Form("store slow SPAN at=TIME for=SPAN", StoreSlow),
    Form("store failing PERCENT at=TIME for=SPAN", StoreFailing),
    Form("damage slot=SLOT at=TIME", Damage),
)

GRAMMAR: tuple[tuple[str, str], ...] = (
    ("kill slot=1 at=800ms", "slot 1 dies"),
    ("kill slot=0,2 at=1s", "slots 0 and 2 die at once"),
    ("kill slot=1 step=137", "slot 1 dies just before the 137th effect that it performs"),
    ("kill slot=1 on=recovery", "slot 1 dies while the next recovery is under way"),
    (
        "kill slot=1 on=round",
        "slot 1 dies while a round is under way, after the first committed line",
    ),
    ("kill executor=1 at=1s", "the executor that hosts slot 1 dies, with all slots that it hosts"),
    ("kill driver at=1s", "the driver dies, and the run is resumed at once"),
    ("kill driver on=round", "the same, while the next round (or recovery) is under way"),
    ("kill coordinator at=1s for=300ms", "the coordinator dies and is resumed after 300 ms"),
    ("pause slot=1 at=1s for=2s", "slot 1 stands still; after the time-out it is a zombie"),
    ("pause coordinator at=1s for=2s", "the coordinator stands still"),
    ("pause driver at=1s for=2s", "the same, for systems that have only a driver"),
    ("cut slot=1 from=2 at=1s for=500ms", "nothing passes between slots 1 and 2; then it does"),
    ("cut slot=1 from=coordinator at=1s for=500ms", "nothing passes to or from the coordinator"),
    ("cut slot=0,1 from=2,coordinator at=1s for=5s", "a partition: nothing passes across it"),
    (
        "cut slot=1 from=2 at=1s",
        "the connection of slots 1 and 2 breaks; what was on its way is lost",
    ),
    ("delay slot=2 500ms at=30s for=10s", "all that slot 2 sends or receives takes 500 ms longer"),
    ("store outage at=1s for=500ms", "the store answers nobody"),
    ("store slow 50ms at=1s for=1s", "every call to the store takes 50 ms longer"),
    ("store failing 30% at=1s for=1s", "every call to the store fails with this chance"),
    ("damage slot=1 at=1s", "the newest snapshot of a task of slot 1 is damaged"),
)


def where(fault: Fault) -> str:
    """In which worlds a fault can be done."""
    match fault:
        case Kill(_, Step()):
            return "simulator"
        case KillExecutor():
            return "simulator, clusters"  # on a local master there is no executor of its own
        case KillDriver() | PauseDriver():
            return "everywhere"  # also in systems that are not ours
        case _:
            return "simulator, real runs"


def parse(text: str) -> tuple[Fault, ...]:
    """The faults that these statements mean. They end with `;` or the line; `#` begins a comment."""
    return tuple(read_statements(FORMS, text))


def describe(faults: Sequence[Fault]) -> str:
    """Faults as one line that `parse` takes back."""
    return "; ".join(map(str, faults))


def check(faults: Sequence[Fault], slots: int) -> None:
    """Refuse faults that name a slot which a job of so many slots does not have."""
    for fault in faults:
        for slot in slots_of(fault):
            if slot >= slots:
                raise FaultSyntaxError(
                    f"there is no slot {slot}: the job has slots 0 to {slots - 1}\n  {fault}"
                )


def slots_of(fault: Fault) -> tuple[SlotId, ...]:
    """The slots that a fault names."""
    match fault:
        case Kill(slots):
            return slots
        case Pause(slot) | Delay(slot) | Damage(slot) | KillExecutor(slot):
            return (slot,)
        case Cut(slot, other):
            return (slot,) if other is None else (slot, other)
        case Partition(slots, others):
            return (*slots, *(other for other in others if other is not None))
        case _:
            return ()


def start_ms(fault: Fault) -> Millis | None:
    """When a fault strikes; None if it waits for something else than a time."""
    if isinstance(fault, Kill | KillDriver):
        return fault.when.ms if isinstance(fault.when, At) else None
    return fault.at_ms


def _span(at_ms: Millis, for_ms: Millis) -> str:
    return f"{At(at_ms)} for={write_duration(for_ms)}" if for_ms else str(At(at_ms))


def peers(others: Sequence[SlotId | None]) -> str:
    """Who is on the other side of a cut, as statements have it."""
    return ",".join("coordinator" if other is None else str(other) for other in others)
