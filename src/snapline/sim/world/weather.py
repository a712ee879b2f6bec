"""What faults do at present to the network, by the lives of slots that they struck, and to starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from snapline.ids import Incarnation, Micros, SlotId

SlotLife: TypeAlias = tuple[SlotId, Incarnation]
"""One life of a slot, by its name."""


@dataclass(slots=True)
class Starting:
    """What a fault does to processes that are started for a slot."""

    delay_us: Micros | None  # by how much later they register; None: they die before they register
    until_us: Micros
    struck: Callable[[], None]  # tells the injector that it met a process


@dataclass(slots=True)
class FaultsUnderWay:
    """What faults do at present to the network, by the lives of slots that they struck, and to starts."""

    delay_us: dict[SlotLife, tuple[Micros, Micros]] = field(default_factory=dict)  # (extra, until)
    cut: dict[frozenset[SlotLife], Micros] = field(default_factory=dict)  # between two lives: until
    alone: dict[SlotLife, Micros] = field(default_factory=dict)  # without coordinator: until
    start: dict[SlotId, Starting] = field(default_factory=dict)
    away: dict[SlotId, Micros] = field(default_factory=dict)  # nothing takes its place: until

    def extra_us(self, life: SlotLife, now_us: Micros) -> Micros:
        """How much longer everything takes that this life sends or receives."""
        extra, until = self.delay_us.get(life, (0, 0))
        return extra if now_us < until else 0

    def starting(self, slot: SlotId, now_us: Micros) -> Starting | None:
        """What is wrong with a process that is started now, if anything."""
        trouble = self.start.get(slot)
        if trouble is None or now_us >= trouble.until_us:
            return None
        trouble.struck()
        return trouble
