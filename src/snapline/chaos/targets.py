"""Which slots faults strike: those that they name, and those of the pools that they name.

A pool is a name for slots that only a dataflow gives them (`dataflow.deploy`). So a fault that names one is
read before anybody knows its slots, and gets them when the run is prepared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from snapline.chaos.faults import (
    Cut,
    Damage,
    Delay,
    Fault,
    Kill,
    KillExecutor,
    LaunchFailing,
    LaunchSlow,
    Partition,
    Pause,
)
from snapline.errors import FaultSyntaxError
from snapline.ids import SlotId


def aimed(faults: Sequence[Fault], pools: Mapping[str, tuple[SlotId, ...]]) -> tuple[Fault, ...]:
    """The same faults, with the slots of pools for their names. Raises FaultSyntaxError."""
    return tuple(_aimed(fault, pools) for fault in faults)


def _aimed(fault: Fault, pools: Mapping[str, tuple[SlotId, ...]]) -> Fault:
    if not isinstance(fault, Kill) or not fault.pool:
        return fault
    if not pools.get(fault.pool):
        known = ", ".join(name for name in pools if name)
        hint = f"the dataflow has {known}" if known else "the dataflow has none"
        raise FaultSyntaxError(f"there is no pool {fault.pool!r}: {hint}\n  {fault}")
    return replace(fault, slots=pools[fault.pool], pool="")


def check(faults: Sequence[Fault], slots: int) -> None:
    """Refuse faults that name a slot which a job of so many slots does not have."""
    for fault in aimed(faults, {}):
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
        case LaunchFailing(slot) | LaunchSlow(slot):
            return (slot,)
        case Cut(slot, other):
            return (slot,) if other is None else (slot, other)
        case Partition(slots, others):
            return (*slots, *(other for other in others if other is not None))
        case _:
            return ()
