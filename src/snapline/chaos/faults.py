"""Faults as data: what breaks, when, and for how long.

Every fault is a frozen value whose `str` is the statement that means it, so a plan can be printed, edited
and given back. `FORMS` is what is parsed; `catalogue.py` shows every form to people, with its meaning. A
statement means the same in the simulator and in a real run.

A fault that names a slot strikes the process that is the slot at that moment, and the one that takes its
place is sound, so a fault is noticed at most once. What happens to the store happens to all processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from snapline.chaos.grammar import StatementForm, read_statements
from snapline.durations import write_duration
from snapline.ids import Millis, SlotId

# When.


@dataclass(frozen=True, slots=True)
class At:
    """At this time of the run."""

    ms: Millis

    def __str__(self) -> str:
        return f"at={write_duration(self.ms)}"


@dataclass(frozen=True, slots=True)
class BeforeEffect:
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


When: TypeAlias = At | BeforeEffect | During

# What.


@dataclass(frozen=True, slots=True)
class Kill:
    """Slots die, all at once; nothing takes their places for `for_ms` (0: until it has started).

    Where a pool is named, these are its slots: see `targets`.
    """

    kind: ClassVar[str] = "kill"
    slots: tuple[SlotId, ...]
    when: When
    for_ms: Millis = 0
    pool: str = ""

    def __str__(self) -> str:
        away = f" for={write_duration(self.for_ms)}" if self.for_ms else ""
        whom = f"pool={self.pool}" if self.pool else f"slot={','.join(map(str, self.slots))}"
        return f"kill {whom} {self.when}{away}"


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
    """The Java process that hosts a slot dies, and with it all slots that it hosts."""

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


@dataclass(frozen=True, slots=True)
class DamageRecord:
    """The newest decision that published output, or the newest manifest, is changed, or is gone.

    Whoever reads it, to resume the run or to read its output, must stop with a message that names it.
    """

    kind: ClassVar[str] = "damage-record"
    record: Literal["decision", "manifest"]
    lost: bool
    at_ms: Millis

    def __str__(self) -> str:
        return f"{'lose' if self.lost else 'damage'} {self.record} {At(self.at_ms)}"


@dataclass(frozen=True, slots=True)
class LaunchFailing:
    """Every process that is started for a slot in this time dies before it registers."""

    kind: ClassVar[str] = "launch-failing"
    slot: SlotId
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        return f"launch failing slot={self.slot} {_span(self.at_ms, self.for_ms)}"


@dataclass(frozen=True, slots=True)
class LaunchSlow:
    """Every process that is started for a slot in this time registers late, perhaps too late."""

    kind: ClassVar[str] = "launch-slow"
    slot: SlotId
    delay_ms: Millis
    at_ms: Millis
    for_ms: Millis

    def __str__(self) -> str:
        span = _span(self.at_ms, self.for_ms)
        return f"launch slow slot={self.slot} {write_duration(self.delay_ms)} {span}"


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
    | DamageRecord
    | LaunchFailing
    | LaunchSlow
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


FORMS: tuple[StatementForm[Fault], ...] = (
    StatementForm("kill slot=SLOTS at=TIME", lambda slots, ms: Kill(slots, At(ms))),
    StatementForm("kill slot=SLOT step=COUNT", lambda slot, n: Kill((slot,), BeforeEffect(n))),
    StatementForm("kill slot=SLOTS on=PHASE", lambda slots, what: Kill(slots, During(what))),
    StatementForm("kill slot=SLOTS at=TIME for=SPAN", lambda s, at, ms: Kill(s, At(at), ms)),
    StatementForm("kill pool=POOL at=TIME", lambda pool, at: Kill((), At(at), pool=pool)),
    StatementForm(
        "kill pool=POOL at=TIME for=SPAN", lambda pool, at, ms: Kill((), At(at), ms, pool)
    ),
    StatementForm("kill executor=SLOT at=TIME", KillExecutor),
    StatementForm("kill coordinator at=TIME for=SPAN", KillCoordinator),
    StatementForm("kill driver at=TIME", lambda ms: KillDriver(At(ms))),
    StatementForm("kill driver on=PHASE", lambda what: KillDriver(During(what))),
    StatementForm("pause slot=SLOT at=TIME for=SPAN", Pause),
    StatementForm("pause coordinator at=TIME for=SPAN", PauseCoordinator),
    StatementForm("pause driver at=TIME for=SPAN", PauseDriver),
    StatementForm("cut slot=SLOTS from=PEERS at=TIME for=SPAN", cut),
    StatementForm("cut slot=SLOTS from=PEERS at=TIME", cut),
    StatementForm("delay slot=SLOT SPAN at=TIME for=SPAN", Delay),
    StatementForm("store outage at=TIME for=SPAN", StoreOutage),
    StatementForm("store slow SPAN at=TIME for=SPAN", StoreSlow),
    StatementForm("store failing PERCENT at=TIME for=SPAN", StoreFailing),
    StatementForm("damage slot=SLOT at=TIME", Damage),
    StatementForm("damage RECORD at=TIME", lambda record, ms: DamageRecord(record, False, ms)),
    StatementForm("lose RECORD at=TIME", lambda record, ms: DamageRecord(record, True, ms)),
    StatementForm("launch failing slot=SLOT at=TIME for=SPAN", LaunchFailing),
    StatementForm("launch slow slot=SLOT SPAN at=TIME for=SPAN", LaunchSlow),
)


def parse(text: str) -> tuple[Fault, ...]:
    """The faults that these statements mean. They end with `;` or the line; `#` begins a comment."""
    return tuple(read_statements(FORMS, text))


def describe(faults: Sequence[Fault]) -> str:
    """Faults as one line that `parse` takes back."""
    return "; ".join(map(str, faults))


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
