"""Panes: a sliding window by time is cut where the next one begins, and each part of it is a pane.

A window [start, start + size) begins at every multiple of `every`, so it has size / every panes, and a pane
belongs to as many windows. A record is added to its pane only, so what it costs does not depend on the
size of the windows, and a delta has the panes that records came to. Windows close in order, each when the
watermark has passed its end by the allowed lateness; a pane is dropped with the window that begins with it,
the last one that it belongs to. A record behind the watermark still counts for those of its windows that
are open. If none is, it is late.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from snapline.batch import Batch
from snapline.dataflow.operators.window import Starts, Windows, starts_of
from snapline.dataflow.sliding.partials import Layout, add_records
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.errors import GraphError
from snapline.ids import Millis


@dataclass(frozen=True, slots=True)
class Sliding:
    """The shape of windows by time that overlap."""

    size_ms: Millis
    every_ms: Millis
    time: str = "time"  # the column with the event time
    lateness_ms: Millis = 0  # how far past its end the watermark must be to close a window

    def __post_init__(self) -> None:
        if self.every_ms < 1 or self.size_ms < 1:
            raise GraphError("the size of a sliding window and `every` are at least 1ms")
        if self.size_ms % self.every_ms:
            raise GraphError(
                f"a sliding window of {self.size_ms}ms cannot begin every {self.every_ms}ms: its size has "
                "to be a multiple of `every`"
            )
        if self.lateness_ms < 0:
            raise GraphError(f"the lateness of a window is at least 0ms, not {self.lateness_ms}ms")

    @property
    def panes(self) -> int:
        """How many panes a window has."""
        return self.size_ms // self.every_ms

    def starts(self, batch: Batch) -> Starts:
        """The start of each record's pane."""
        return starts_of(batch, self.time, self.every_ms)


class Pane:
    """The partial results of the records of one pane, per key."""

    def __init__(self, layout: Layout) -> None:
        self._layout: Final = layout
        self._state: KeyedState | None = None  # made with the first records, which fix the types

    @property
    def state(self) -> KeyedState:
        """The table."""
        if self._state is None:
            self._state = KeyedState(self._layout.plan.key_names, self._layout.fills)
        return self._state

    def add(self, batch: Batch) -> None:
        """Add the records of a batch."""
        numbers, plan = self._layout.numbers(batch), self._layout.plan
        rows = self.state.locate(plan.key_columns(batch))
        self.state.touch(rows)
        add_records(self.state, plan, rows, numbers)

    def capture(self, *, full: bool) -> Batch:
        """All keys, or those that changed."""
        return self.state.capture(full=full)

    def restore(self, batches: Sequence[Batch]) -> None:
        """Restore what was captured."""
        self._layout.learn(batches[0])
        self.state.restore(batches)


class Panes(Windows[Pane]):
    """The panes of all windows that are open."""

    def __init__(self, shape: Sliding, new: Callable[[], Pane], label: str) -> None:
        super().__init__(shape, new, label)
        self._changed: set[Millis] = set()  # those that have something that was not captured

    def add(self, start: Millis, batch: Batch) -> None:
        """Add records to their pane."""
        self._changed.add(start)
        self.at(start).add(batch)

    def _to_capture(self, full: bool) -> list[Millis]:
        """Of a delta the panes to which records came: the others cost nothing, however many there are."""
        changed, self._changed = self._changed, set()
        return sorted(self._open if full else changed & self._open.keys())

    def closing(self, shape: Sliding, watermark: Millis) -> Iterator[Millis]:
        """Take a watermark; yield the start of each window that it closes and that has records, in order.

        The panes of a window are there while it is yielded, and the first of them is gone afterwards.
        """
        every = shape.every_ms
        before = self._horizon // every * every  # the last window that was closed
        self.raise_to(watermark)
        while self._starts:
            start = max(before + every, self._starts[0] - shape.size_ms + every)
            if start > self._horizon:
                return
            yield start
            self.closed += 1
            self._changed.difference_update(pane for pane, _ in self.drop_through(start))
            before = start

    def get(self, start: Millis) -> Pane | None:
        """A pane, if it has records."""
        return self._open.get(start)
