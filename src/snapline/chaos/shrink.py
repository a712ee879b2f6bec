"""Makes a failing case smaller, so that a person can understand it.

Greedy delta debugging: of the candidates that are a little smaller, the first that still fails becomes the
case, until none of them fails or the budget is used up. What "smaller" means is the caller's business; for
plans of faults it is `smaller_faults`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from snapline.chaos.faults import (
    BeforeEffect,
    Cut,
    Delay,
    Fault,
    Kill,
    KillCoordinator,
    LaunchFailing,
    LaunchSlow,
    Partition,
    Pause,
    PauseCoordinator,
    PauseDriver,
    StoreFailing,
    StoreOutage,
    StoreSlow,
    cut,
)

T = TypeVar("T")


def shrink(
    candidate: T,
    smaller: Callable[[T], Iterator[T]],
    fails: Callable[[T], bool],
    budget: int,
) -> T:
    """The smallest failing case that was found with at most `budget` calls of `fails`.

    `candidate` itself is known to fail. `smaller` must lead to an end: each candidate that it gives is
    smaller in some measure than what it was given.
    """
    attempts = 0
    shrinking = True
    while shrinking:
        shrinking = False
        for attempt in smaller(candidate):
            if attempts == budget:
                return candidate
            attempts += 1
            if fails(attempt):
                candidate, shrinking = attempt, True
                break
    return candidate


def smaller_faults(faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
    """Plans with one fault less, then plans with one simpler fault; the largest steps come first."""
    for i in range(len(faults)):
        yield faults[:i] + faults[i + 1 :]
    for i, fault in enumerate(faults):
        for simpler in _simpler(fault):
            yield (*faults[:i], simpler, *faults[i + 1 :])


def _simpler(fault: Fault) -> Iterator[Fault]:
    """The fault with fewer slots, half the duration, half the delay, or at half the step."""
    match fault:
        case Kill(slots, when, for_ms):
            if for_ms:
                yield replace(fault, for_ms=0)
            if len(slots) > 1:
                for i in range(len(slots)):
                    yield replace(fault, slots=slots[:i] + slots[i + 1 :])
            if isinstance(when, BeforeEffect) and when.n > 1:
                yield replace(fault, when=BeforeEffect(when.n // 2))
        case Pause() | Cut() | KillCoordinator() | PauseCoordinator() | PauseDriver():
            if fault.for_ms > 1:
                yield replace(fault, for_ms=fault.for_ms // 2)
        case StoreOutage() | StoreFailing() | LaunchFailing():
            if fault.for_ms > 1:
                yield replace(fault, for_ms=fault.for_ms // 2)
        case Partition(slots, others, at_ms, for_ms):
            yield from (cut((slot,), others, at_ms, for_ms) for slot in slots if len(slots) > 1)
            yield from (cut(slots, (other,), at_ms, for_ms) for other in others if len(others) > 1)
        case Delay() | StoreSlow() | LaunchSlow():
            if fault.for_ms > 1:
                yield replace(fault, for_ms=fault.for_ms // 2)
            if fault.delay_ms > 1:
                yield replace(fault, delay_ms=fault.delay_ms // 2)
        case _:
            return
