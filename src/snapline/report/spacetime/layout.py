"""Where things stand in a space-time diagram: lanes from top to bottom, time from left to right.

The tasks of a slot are neighbours, because they live and die together. Labels are placed one after the
other, each at the first of its wished places that is still free; one that finds none is left out, for
its text is in the tooltip of its mark as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, hypot, log10

from snapline.core.topology import Topology
from snapline.ids import Micros, SlotId, TaskId, operator_of, slot_of
from snapline.journal.entry import COORDINATOR
from snapline.report.spacetime.story import Lane

ROW = 34.0
SLOT_GAP = 8.0
HEAD = 66.0  # title and caption
COORDINATOR_ROW = 30.0
FLAGS = 24.0  # the strip in which recovery lines are named
AXIS = 34.0
MARGIN = 22.0
SLOT_LABEL = 20.0
CHARACTER = 6.4  # the estimated width of a character at 12 px; the viewer chooses the font
WIDTH_MIN, WIDTH_MAX = 1100.0, 1800.0


@dataclass(frozen=True, slots=True)
class Band:
    """The strip of one slot."""

    slot: SlotId
    top: float
    height: float


class PictureFrame:
    """The coordinates of one diagram."""

    def __init__(
        self, topology: Topology, since_us: Micros, until_us: Micros, messages: int
    ) -> None:
        self.since_us = since_us
        self.until_us = max(until_us, since_us + 1)
        names = [operator_of(task) for task in topology.tasks] + [COORDINATOR]
        self.width = min(WIDTH_MAX, max(WIDTH_MIN, 1050.0 + 2.5 * messages))
        self.left = MARGIN + SLOT_LABEL + CHARACTER * max(map(len, names)) + 20
        self.right = self.width - MARGIN - 14
        self.top = HEAD
        self.lanes: dict[Lane, float] = {COORDINATOR: self.top + COORDINATOR_ROW / 2}
        self.bands = self._stack(topology.tasks)
        self.bottom = self.bands[-1].top + self.bands[-1].height

    def _stack(self, tasks: Iterable[TaskId]) -> list[Band]:
        by_slot: dict[SlotId, list[TaskId]] = {}
        for task in tasks:
            by_slot.setdefault(slot_of(task), []).append(task)
        bands = []
        top = self.top + COORDINATOR_ROW + FLAGS
        for slot in sorted(by_slot):
            bands.append(Band(slot, top, ROW * len(by_slot[slot])))
            for row, task in enumerate(by_slot[slot]):
                self.lanes[task] = top + ROW * (row + 0.5)
            top += bands[-1].height + SLOT_GAP
        return bands

    @property
    def tasks(self) -> list[Lane]:
        """The timelines of tasks, from top to bottom."""
        return [lane for lane in self.lanes if lane != COORDINATOR]

    def x(self, at_us: Micros) -> float:
        """The place of a moment."""
        share = (at_us - self.since_us) / (self.until_us - self.since_us)
        return self.left + share * (self.right - self.left)

    def clamp(self, at_us: Micros) -> float:
        """The place of a moment, at the border when it is outside of the window."""
        return min(self.right, max(self.left, self.x(at_us)))

    def shows(self, at_us: Micros) -> bool:
        """Whether a moment is inside of the window."""
        return self.since_us <= at_us <= self.until_us

    def overlaps(self, since_us: Micros, until_us: Micros) -> bool:
        """Whether any part of a time is inside of the window."""
        return since_us <= self.until_us and until_us >= self.since_us

    def ticks(self) -> Iterator[tuple[float, str]]:
        """About a dozen round numbers of milliseconds with their places."""
        since_ms, until_ms = self.since_us / 1000, self.until_us / 1000
        step = _round_step((until_ms - since_ms) / 12)
        for number in range(ceil(since_ms / step - 1e-9), floor(until_ms / step + 1e-9) + 1):
            value = number * step
            yield self.x(round(value * 1000)), f"{value:,.0f}" if step >= 1 else f"{value:.3g}"


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


class Labels:
    """Finds free places for labels."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float, float, float]] = []

    def reserve(self, x: float, y: float, half: float) -> None:
        """Keep labels away from a mark."""
        self.taken.append((x - half, y - half, x + half, y + half))

    def reserve_path(self, corners: Sequence[tuple[float, float]], half: float) -> None:
        """Keep labels away from a polyline."""
        for (x1, y1), (x2, y2) in pairwise(corners):
            steps = max(1, ceil(hypot(x2 - x1, y2 - y1) / (2 * half)))
            for step in range(steps + 1):
                share = step / steps
                self.reserve(x1 + share * (x2 - x1), y1 + share * (y2 - y1), half)

    def place(
        self, text: str, wishes: Iterable[tuple[float, float]], size: float = 9.0
    ) -> tuple[float, float] | None:
        """The first of the wished places that is free, now taken; a place is the left end of a baseline."""
        width = len(text) * size * 0.58
        for x, y in wishes:
            box = (x - 1, y - size, x + width + 1, y + 1.5)
            if not any(_overlap(box, other) for other in self.taken):
                self.taken.append(box)
                return x, y
        return None


def _overlap(
    one: tuple[float, float, float, float], two: tuple[float, float, float, float]
) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]
