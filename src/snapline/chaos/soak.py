"""Faults for the whole of a long run, in which things keep breaking (`--chaos`), drawn from a seed.

`seed=7 intensity=high` is all that has to be said. Moments come one after the other at random intervals,
and at each something breaks. Three intensities differ in how often, and in what:

- *low*: slow networks, slow stores and pauses, all shorter than the time for which a slot may be silent, so
  that nobody is given up; and one kill.
- *medium*: processes. Mostly one slot is killed, sometimes several at once, sometimes another one while
  the job recovers, and sometimes a slot stands still for so long that it is given up, and comes back as a
  zombie.
- *high*: everything, often, up to three things at once: processes, the network (delays and cuts below and
  beyond the time-out, lost connections, partitions), the store (slow, failing, away), the coordinator.

The beginning is left in peace, so that something is committed, and the end, so that the run can be seen to
recover. Nothing is drawn that ends a run: no damage, and nothing that kills the driver.

A kill during a recovery is drawn as a time shortly after the kill before it. `on=recovery` cannot be used
here: all faults that wait for a recovery would strike in the first one, and then in those they cause.
"""

import random
from collections.abc import Callable, Mapping
from typing import TypeAlias

from snapline.chaos.faults import (
    At,
    Cut,
    Delay,
    Fault,
    Kill,
    Pause,
    PauseCoordinator,
    StoreFailing,
    StoreOutage,
    StoreSlow,
    cut,
)
from snapline.errors import FaultSyntaxError
from snapline.ids import Millis, SlotId

#: the mean time between two moments
INTERVALS_MS: Mapping[str, Millis] = {"low": 20_000, "medium": 12_000, "high": 6_000}
PEACE_MS = 3_000  # no fault strikes in the first part of the run ...
PEACE_PERCENT = 10  # ... nor in the last
SHORT_RUN_PARTS = 5
AT_ONCE_MAX = 3  # how many faults begin at one moment, at most, with a high intensity
TIMEOUT_MS = 2_000  # for how long a slot of a real run may be silent
PAUSE_MS = (3_000, 6_000)  # pauses that are longer than that: the slot is given up
SHORT_MS = (100, 1_200)  # pauses that are shorter than that: nobody is given up
RECOVERY_MS = (10, 800)  # how long after a kill the job is probably still recovering
FOR_MS = (1_000, 4_000)  # how long a slow network or a slow store lasts
STORE_MS = (10, 200)  # how much slower a store becomes
FAILING_PERCENT = (5, 40)
#: how often each thing happens at a moment, in proportion, for each intensity
MILD: Mapping[str, int] = {"slow network": 4, "short pause": 2, "slow store": 2}
PROCESSES: Mapping[str, int] = {"one": 6, "several": 2, "recovery": 2, "pause": 1}
EVERYTHING: Mapping[str, int] = {
    **PROCESSES,
    **MILD,
    "too slow a network": 2,
    "short cut": 2,
    "long cut": 2,
    "lost connection": 2,
    "partition": 2,
    "failing store": 2,
    "outage": 1,
    "pause of the coordinator": 1,
}


def soak(text: str, slots: int, duration_ms: Millis) -> tuple[Fault, ...]:
    """The faults that a text such as `seed=7 intensity=high` means for a run of this size."""
    seed, intensity = _read(text)
    mean_ms = INTERVALS_MS[intensity]
    if intensity == "low":  # even a short run gets a kill and some slowness
        mean_ms = min(mean_ms, duration_ms // SHORT_RUN_PARTS)
    rng = random.Random(f"{seed}:soak")
    end_ms = duration_ms * (100 - PEACE_PERCENT) // 100
    moments: list[Millis] = []
    faults: list[Fault] = []
    at_ms = PEACE_MS + rng.randint(0, mean_ms)
    while at_ms < end_ms:
        moments.append(at_ms)
        dice = _Dice(rng, slots, at_ms, end_ms)
        if intensity == "high":
            for _ in range(rng.randint(1, AT_ONCE_MAX)):
                faults += dice.draw(EVERYTHING)
        else:
            faults += dice.draw(PROCESSES if intensity == "medium" else MILD)
        at_ms += rng.randint(mean_ms // 2, mean_ms * 3 // 2)
    if intensity == "low" and moments:
        faults.append(Kill((rng.randrange(slots),), At(rng.choice(moments))))
    return tuple(faults)


class _Dice:
    """What happens at one moment of a run."""

    def __init__(self, rng: random.Random, slots: int, at_ms: Millis, end_ms: Millis) -> None:
        self.rng = rng
        self.slots = slots
        self.at_ms = at_ms
        self.end_ms = end_ms
        self.slot: SlotId = 0

    def draw(self, weights: Mapping[str, int]) -> list[Fault]:
        (what,) = self.rng.choices(list(weights), list(weights.values()))
        self.slot = self.rng.randrange(self.slots)
        match what:
            case "several" if self.slots > 1:
                return [Kill(self._several(), At(self.at_ms))]
            case "recovery" if self.slots > 1:
                return self._kill_twice()
            case "pause":
                return self._pause()
            case _ if what in _MAKE:
                return [_MAKE[what](self)]
        return [Kill((self.slot,), At(self.at_ms))]

    def _kill_twice(self) -> list[Fault]:
        other = self._other()  # the slot that was just killed has no process to be killed again
        then_ms = min(self.at_ms + self.rng.randint(*RECOVERY_MS), self.end_ms - 1)
        return [Kill((self.slot,), At(self.at_ms)), Kill((other,), At(then_ms))]

    def _pause(self) -> list[Fault]:
        span_ms = self.rng.randint(*PAUSE_MS)
        if self.at_ms + span_ms < self.end_ms:
            return [Pause(self.slot, self.at_ms, span_ms)]
        return [Kill((self.slot,), At(self.at_ms))]

    def _several(self) -> tuple[SlotId, ...]:
        count = self.rng.randint(2, self.slots)
        return tuple(sorted(self.rng.sample(range(self.slots), count)))

    def _other(self) -> SlotId:
        return (self.slot + self.rng.randrange(1, self.slots)) % self.slots

    def _peer(self) -> SlotId | None:
        """Another slot, or the coordinator."""
        alone = self.slots == 1 or self.rng.randrange(2) == 0
        return None if alone else self._other()

    def span(self, between: tuple[Millis, Millis]) -> tuple[Millis, Millis]:
        """When a fault begins and how long it lasts; it is over before the quiet end of the run begins."""
        return self.at_ms, max(1, min(self.rng.randint(*between), self.end_ms - self.at_ms - 1))

    def delay(self, between: tuple[Millis, Millis]) -> Fault:
        """A slow network."""
        return Delay(self.slot, self.rng.randint(*between), *self.span(FOR_MS))

    def cut(self, between: tuple[Millis, Millis]) -> Fault:
        """Nothing passes for a while."""
        return Cut(self.slot, self._peer(), *self.span(between))

    def lost_connection(self) -> Fault:
        """A connection that breaks."""
        return Cut(self.slot, self._peer(), self.at_ms)

    def partition(self) -> Fault:
        """Some slots without the others and the coordinator."""
        here = self._several() if self.slots > 2 else (self.slot,)
        there: list[SlotId | None] = [slot for slot in range(self.slots) if slot not in here]
        return cut(here, (*there, None), *self.span(PAUSE_MS))


_Make: TypeAlias = Callable[[_Dice], Fault]
_MAKE: Mapping[str, _Make] = {
    "slow network": lambda dice: dice.delay((50, 800)),
    "too slow a network": lambda dice: dice.delay((TIMEOUT_MS + 500, 2 * TIMEOUT_MS)),
    "short pause": lambda dice: Pause(dice.slot, *dice.span(SHORT_MS)),
    "short cut": lambda dice: dice.cut(SHORT_MS),
    "long cut": lambda dice: dice.cut(PAUSE_MS),
    "lost connection": _Dice.lost_connection,
    "partition": _Dice.partition,
    "slow store": lambda dice: StoreSlow(dice.rng.randint(*STORE_MS), *dice.span(FOR_MS)),
    "failing store": lambda dice: StoreFailing(
        dice.rng.randint(*FAILING_PERCENT), *dice.span(FOR_MS)
    ),
    "outage": lambda dice: StoreOutage(*dice.span(FOR_MS)),
    "pause of the coordinator": lambda dice: PauseCoordinator(*dice.span(SHORT_MS)),
}


def _read(text: str) -> tuple[int, str]:
    """The seed, and the intensity."""
    said: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or key not in ("seed", "intensity") or key in said:
            raise _unclear(text, f"{word!r} is not known here")
        said[key] = value
    intensity = said.get("intensity", "medium")
    if intensity not in INTERVALS_MS:
        raise _unclear(text, f"there is no intensity {intensity!r}")
    if not (said.get("seed", "").isascii() and said.get("seed", "").isdigit()):
        raise _unclear(text, "a seed is a whole number from 0 on")
    return int(said["seed"]), intensity


def _unclear(text: str, problem: str) -> FaultSyntaxError:
    levels = ", ".join(INTERVALS_MS)
    return FaultSyntaxError(
        f"{problem}: '{text}'; expected seed=7, and if you like intensity= with one of {levels}"
    )
