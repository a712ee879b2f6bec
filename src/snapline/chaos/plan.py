"""A plan of faults from a seed.

Swarm testing: a seed first switches some kinds of faults off, then draws from those that are left. Runs in
which everything breaks all the time look alike; runs in which only two things break, but those again and
again, find what the others hide. Wherever kills are allowed, one of them comes late enough that something
has probably been committed before it: a run that never goes back to a checkpoint proves little.

Faults that concern the start of a process strike only if a process is started, and a damaged snapshot is
noticed only if it is read. So they are drawn for a slot that dies in the late kill, around that time.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from snapline.chaos.faults import (
    KINDS,
    At,
    BeforeEffect,
    Cut,
    Damage,
    DamageRecord,
    Delay,
    During,
    Fault,
    Kill,
    KillCoordinator,
    KillDriver,
    KillExecutor,
    LaunchFailing,
    LaunchSlow,
    Pause,
    PauseCoordinator,
    PauseDriver,
    StoreFailing,
    StoreOutage,
    StoreSlow,
    When,
    cut,
)
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId

FAULTS_MAX = 4
OFF_PERCENT = 40  # the chance that a kind of fault is switched off; kills never are
LATE_PERCENT = (35, 85)  # the part of the run in which the late kill comes
ANY_PERCENT = (5, 90)  # the part of the run in which everything else comes
SPAN_PERCENT = (2, 30)  # how long a fault with a duration lasts, as a part of the run
SLOW_PERCENT = (1, 5)  # the delay of a slow network or store, as a part of the run
SEVERAL_PERCENT = 20  # the chance that a kill takes several slots
FAILING_PERCENT = (5, 60)  # the chance that a call to a failing store fails
#: by how much a process that is slow to start registers late, as a part of the run
LATE_START_PERCENT = (5, 60)
#: how long before the late kill faults of starting begin, as a part of the run
LEAD_PERCENT = (0, 5)
BREAK_PERCENT = 30  # the chance that a partition breaks connections instead of holding them up

#: how often each kind is drawn, in proportion
WEIGHTS: Mapping[str, int] = {
    "kill": 20,
    "pause": 4,
    "cut": 4,
    "delay": 2,
    "kill-coordinator": 4,
    "pause-coordinator": 2,
    "store-outage": 3,
    "store-slow": 2,
    "damage": 1,
    "kill-executor": 2,
    "kill-driver": 3,
    "pause-driver": 1,
    "partition": 3,
    "store-failing": 3,
    "damage-record": 1,
    "launch-failing": 4,
    "launch-slow": 3,
}
#: how often each kind of moment of a kill is drawn, in proportion
KILL_WEIGHTS: Mapping[str, int] = {"at": 3, "away": 1, "step": 4, "recovery": 3, "round": 3}


def draw(
    seed: int | str,
    slots: int,
    duration_ms: Millis,
    *,
    kinds: Sequence[str] = KINDS,
    steps: int = 1_000,
) -> tuple[Fault, ...]:
    """One to four faults, the same for the same arguments.

    `steps` is roughly how many effects a slot performs in the run. `kinds` are the kinds of faults that are
    allowed (see `KINDS`); their order does not matter.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise UsageError(f"no such kinds of faults: {unknown}; there are {', '.join(KINDS)}")
    dice = _Dice(random.Random(f"{seed}:faults"), slots, duration_ms, steps)
    allowed = dice.swarm([kind for kind in KINDS if kind in kinds])
    faults: list[Fault] = [dice.late_kill()] if "kill" in allowed else []
    while len(faults) < dice.count:
        faults.append(dice.fault(allowed))
    return tuple(faults)


class _Dice:
    """Every choice of a plan, from one stream of random numbers."""

    def __init__(self, rng: random.Random, slots: int, duration_ms: Millis, steps: int) -> None:
        self.rng = rng
        self.slots = slots
        self.duration_ms = duration_ms
        self.steps = steps
        self.count = rng.randint(1, FAULTS_MAX)
        self.late: tuple[SlotId, Millis] | None = None  #: a slot of the late kill, and its time

    def swarm(self, kinds: Sequence[str]) -> list[str]:
        """The kinds that this seed leaves switched on: at least one, and always kills."""
        spared = "kill" if "kill" in kinds else self.rng.choice(kinds)
        return [k for k in kinds if k == spared or self.rng.randrange(100) >= OFF_PERCENT]

    def fault(self, kinds: Sequence[str]) -> Fault:
        """A fault of one of these kinds."""
        (kind,) = self.rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])
        return _MAKE[kind](self)

    def late_kill(self) -> Fault:
        """A kill after a commit has probably happened."""
        slots, at_ms = self._some_slots(), self._time(LATE_PERCENT)
        self.late = slots[0], at_ms
        return Kill(slots, At(at_ms))

    def kill(self) -> Fault:
        """A kill of any sort."""
        (way,) = self.rng.choices(list(KILL_WEIGHTS), list(KILL_WEIGHTS.values()))
        when: When
        match way:
            case "at":
                when = At(self._time(ANY_PERCENT))
            case "away":
                at_ms, for_ms = self._while()
                return Kill(self._some_slots(), At(at_ms), for_ms)
            case "step":
                return Kill((self._slot(),), BeforeEffect(self.rng.randint(1, self.steps)))
            case "recovery":
                when = During("recovery")
            case _:
                when = During("round")
        return Kill(self._some_slots(), when)

    def cut(self) -> Fault:
        """A slot without the coordinator, or without another slot if there is one."""
        slot = self._slot()
        others = [None, *(other for other in range(self.slots) if other != slot)]
        return Cut(slot, self.rng.choice(others), *self._while())

    def pause(self) -> Fault:
        """A slot that stands still."""
        return Pause(self._slot(), *self._while())

    def delay(self) -> Fault:
        """A slot with a slow network."""
        return Delay(self._slot(), self._time(SLOW_PERCENT), *self._while())

    def store_slow(self) -> Fault:
        """A slow store."""
        return StoreSlow(self._time(SLOW_PERCENT), *self._while())

    def damage(self) -> Fault:
        """A damaged snapshot."""
        return Damage(*self._started())

    def kill_coordinator(self) -> Fault:
        """A coordinator that dies."""
        return KillCoordinator(*self._while())

    def pause_coordinator(self) -> Fault:
        """A coordinator that stands still."""
        return PauseCoordinator(*self._while())

    def store_outage(self) -> Fault:
        """A store that answers nobody."""
        return StoreOutage(*self._while())

    def kill_executor(self) -> Fault:
        """An executor that dies."""
        return KillExecutor(self._slot(), self._time(ANY_PERCENT))

    def kill_driver(self) -> Fault:
        """A driver that dies."""
        return KillDriver(At(self._time(ANY_PERCENT)))

    def pause_driver(self) -> Fault:
        """A driver that stands still."""
        return PauseDriver(*self._while())

    def partition(self) -> Fault:
        """Some slots without the others, with the coordinator on the other side or on none."""
        here = self._some_slots()
        there: list[SlotId | None] = [slot for slot in range(self.slots) if slot not in here]
        if not there or self.rng.randrange(2):
            there.append(None)
        at_ms, for_ms = self._while()
        return cut(here, tuple(there), at_ms, 0 if self._chance(BREAK_PERCENT) else for_ms)

    def store_failing(self) -> Fault:
        """A store that fails now and then."""
        return StoreFailing(self.rng.randint(*FAILING_PERCENT), *self._while())

    def damage_record(self) -> Fault:
        """A decision or a manifest that is damaged or gone."""
        record: Literal["decision", "manifest"] = "manifest" if self._chance(50) else "decision"
        return DamageRecord(record, self._chance(50), self._time(ANY_PERCENT))

    def launch_failing(self) -> Fault:
        """Processes that die before they register."""
        slot, at_ms = self._started()
        return LaunchFailing(slot, at_ms, self._time(SPAN_PERCENT))

    def launch_slow(self) -> Fault:
        """Processes that register late."""
        slot, at_ms = self._started()
        return LaunchSlow(slot, self._time(LATE_START_PERCENT), at_ms, self._time(SPAN_PERCENT))

    def _started(self) -> tuple[SlotId, Millis]:
        """A slot for which a process is probably started, and a time just before."""
        if self.late is None:
            return self._slot(), self._time(ANY_PERCENT)
        slot, at_ms = self.late
        return slot, max(1, at_ms - self._time(LEAD_PERCENT))

    def _chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def _slot(self) -> SlotId:
        return self.rng.randrange(self.slots)

    def _some_slots(self) -> tuple[SlotId, ...]:
        if self.slots == 1 or self.rng.randrange(100) >= SEVERAL_PERCENT:
            return (self._slot(),)
        count = self.rng.randint(2, self.slots)
        return tuple(sorted(self.rng.sample(range(self.slots), count)))

    def _time(self, percent: tuple[int, int]) -> Millis:
        low, high = (share * self.duration_ms // 100 for share in percent)
        return max(1, self.rng.randint(low, high))

    def _while(self) -> tuple[Millis, Millis]:
        return self._time(ANY_PERCENT), self._time(SPAN_PERCENT)


_MAKE: Mapping[str, Callable[[_Dice], Fault]] = {
    "kill": _Dice.kill,
    "pause": _Dice.pause,
    "cut": _Dice.cut,
    "delay": _Dice.delay,
    "kill-coordinator": _Dice.kill_coordinator,
    "pause-coordinator": _Dice.pause_coordinator,
    "store-outage": _Dice.store_outage,
    "store-slow": _Dice.store_slow,
    "damage": _Dice.damage,
    "kill-executor": _Dice.kill_executor,
    "kill-driver": _Dice.kill_driver,
    "pause-driver": _Dice.pause_driver,
    "partition": _Dice.partition,
    "store-failing": _Dice.store_failing,
    "damage-record": _Dice.damage_record,
    "launch-failing": _Dice.launch_failing,
    "launch-slow": _Dice.launch_slow,
}
