"""A long run in which slots keep dying: faults for the whole of it, drawn from a seed.

`seed=7 intensity=high` is all that has to be said. Faults come one after the other at random intervals:
mostly one slot is killed, sometimes several at once, sometimes another one while the job recovers, and
sometimes a slot stands still for so long that it is given up and comes back as a zombie. The beginning
is left in peace, so that something is committed, and the end, so that the run can be seen to recover.

A kill in a recovery has a time here, shortly after the kill before it. `on=recovery` would not do: those
that wait all take the first recovery that comes, and then the recoveries of each other.
"""

import random
from collections.abc import Mapping

from snapline.chaos.faults import At, Fault, Kill, Pause
from snapline.errors import FaultSyntaxError
from snapline.ids import Millis, SlotId

#: the mean time between two faults
INTERVALS_MS: Mapping[str, Millis] = {"low": 20_000, "medium": 12_000, "high": 6_000}
PEACE_MS = 3_000  # at the beginning
PEACE_PERCENT = 10  # at the end
PAUSE_MS = (3_000, 6_000)  # longer than a slot may be silent in a real run
RECOVERY_MS = (10, 800)  # after a loss: real slots need about so long to run again
#: what happens, in proportion
WEIGHTS: Mapping[str, int] = {"one": 6, "several": 2, "recovery": 2, "pause": 1}


def soak(text: str, slots: int, duration_ms: Millis) -> tuple[Fault, ...]:
    """The faults that a text such as `seed=7 intensity=high` means for a run of this size."""
    seed, mean_ms = _read(text)
    rng = random.Random(f"{seed}:soak")
    end_ms = duration_ms * (100 - PEACE_PERCENT) // 100
    faults: list[Fault] = []
    at_ms = PEACE_MS + rng.randint(0, mean_ms)
    while at_ms < end_ms:
        faults += _draw(rng, slots, at_ms, end_ms)
        at_ms += rng.randint(mean_ms // 2, mean_ms * 3 // 2)
    return tuple(faults)


def _draw(rng: random.Random, slots: int, at_ms: Millis, end_ms: Millis) -> list[Fault]:
    """What happens at one moment."""
    (what,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    slot = rng.randrange(slots)
    match what:
        case "several" if slots > 1:
            return [Kill(_several(rng, slots), At(at_ms))]
        case "recovery" if slots > 1:
            other = (
                slot + rng.randrange(1, slots)
            ) % slots  # the same one is not there to be killed
            then_ms = min(at_ms + rng.randint(*RECOVERY_MS), end_ms - 1)
            return [Kill((slot,), At(at_ms)), Kill((other,), At(then_ms))]
        case "pause":
            span_ms = rng.randint(*PAUSE_MS)
            if at_ms + span_ms < end_ms:
                return [Pause(slot, at_ms, span_ms)]
    return [Kill((slot,), At(at_ms))]


def _several(rng: random.Random, slots: int) -> tuple[SlotId, ...]:
    return tuple(sorted(rng.sample(range(slots), rng.randint(2, slots))))


def _read(text: str) -> tuple[int, Millis]:
    """The seed, and the mean time between two faults."""
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
    return int(said["seed"]), INTERVALS_MS[intensity]


def _unclear(text: str, problem: str) -> FaultSyntaxError:
    levels = ", ".join(INTERVALS_MS)
    return FaultSyntaxError(
        f"{problem}: '{text}'; expected seed=7, and if you like intensity= with one of {levels}"
    )
