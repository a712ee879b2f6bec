"""Tumbling windows over event time: which window a record belongs to, and which windows are open.

A window [start, start + size) closes when the watermark has passed its end by the allowed lateness. Its
state is an object of its own and is dropped whole, so nothing is kept behind the watermark. A record
whose window has closed is late and leaves through the output `late`. The watermark belongs to the
state: after a restore the same records are late.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from snapline.batch import Array, Batch, concat, kind_of
from snapline.dataflow.operators.operator import Capture
from snapline.dataflow.state.columns import Int64s
from snapline.errors import GraphError, UsageError
from snapline.ids import Millis
from snapline.kernels import windows

LATE: Final = "late"
WINDOW: Final = "window"
CLOCK: Final = "clock"
NO_WATERMARK: Final[Millis] = -(1 << 62)
"""The watermark of an operator that has heard of none: earlier than any time, also those before 1970."""

_FEW: Final = 8  # windows of a batch that are looked for one by one


class Starts(NamedTuple):
    """The start of each record's window, with the lowest and the highest: most batches have one."""

    each: Int64s
    lowest: Millis
    highest: Millis

    def take(self, chosen: Array) -> "Starts":
        """The starts of some of the records."""
        each = self.each[chosen]
        return Starts(each, int(each.min()), int(each.max()))

    def runs(self) -> Iterator[tuple[Millis, Array | None]]:
        """The distinct windows with their records, as `runs` has them."""
        return iter(((self.lowest, None),)) if self.lowest == self.highest else runs(self.each)


@dataclass(frozen=True, slots=True)
class Tumbling:
    """The shape of windows that follow each other without a gap."""

    size_ms: Millis
    time: str = "time"  # the column with the event time
    lateness_ms: Millis = 0  # how far past its end the watermark must be to close a window

    def __post_init__(self) -> None:
        if self.size_ms < 1:
            raise GraphError(f"the size of a window is at least 1ms, not {self.size_ms}ms")
        if self.lateness_ms < 0:
            raise GraphError(f"the lateness of a window is at least 0ms, not {self.lateness_ms}ms")

    def starts(self, batch: Batch) -> Starts:
        """The start of each record's window."""
        return starts_of(batch, self.time, self.size_ms)


def starts_of(batch: Batch, time: str, size: Millis) -> Starts:
    """The last multiple of `size` that is not behind each time. Raises UsageError."""
    times = batch.columns[time]
    if not isinstance(times, np.ndarray) or times.dtype.kind not in "iu":
        raise UsageError(
            f"windows go by whole milliseconds, and the column '{time}' has values of the kind "
            f"{kind_of(times)}"
        )
    times = times.astype(np.int64, copy=False)
    each = np.empty(len(times), np.int64)
    lowest, highest = windows.assign(np.ascontiguousarray(times), size, each)
    return Starts(each, lowest, highest)


class Shape(Protocol):
    """The shape of windows: where each begins, and when it closes."""

    @property
    def time(self) -> str:
        """The column with the event time."""
        ...

    def starts(self, batch: Batch) -> Starts:
        """The start of what each record is added to."""
        ...

    @property
    def size_ms(self) -> Millis:
        """How long a window is."""
        ...

    @property
    def lateness_ms(self) -> Millis:
        """How far past its end the watermark must be to close a window."""
        ...


State = TypeVar("State")


class Windows(Generic[State]):
    """The open windows, each with a state of its own, and the watermark that closes them."""

    def __init__(self, shape: Shape, new: Callable[[], State], label: str = WINDOW) -> None:
        self.shape: Final = shape
        self._new: Final = new
        self._label: Final = label  # the column of a captured part that names the window of a row
        self._open: dict[Millis, State] = {}
        self._starts: list[Millis] = []  # a heap of the starts of the open windows
        self._watermark: Millis = NO_WATERMARK
        self.closed = 0  #: how many were closed by now
        #: the bound between closed and open: windows that start here or earlier have closed
        self._horizon: Millis = NO_WATERMARK - shape.size_ms - shape.lateness_ms

    def at(self, start: Millis) -> State:
        """The state of a window, which is opened if it is not open."""
        state = self._open.get(start)
        if state is None:
            state = self._open[start] = self._new()
            heapq.heappush(self._starts, start)
        return state

    def late(self, starts: Starts) -> Array | None:
        """A mask of the windows that have closed; None if none has."""
        return None if starts.lowest > self._horizon else starts.each <= self._horizon

    def advance(self, watermark: Millis) -> list[tuple[Millis, State]]:
        """Take a watermark; return the windows that it closes, and forget them."""
        self.raise_to(watermark)
        closed = self.drop_through(self._horizon)
        self.closed += len(closed)
        return closed

    def raise_to(self, watermark: Millis) -> None:
        """Take a watermark; one that is behind the last one says nothing."""
        if watermark > self._watermark:
            self._watermark = watermark
            self._horizon = watermark - self.shape.size_ms - self.shape.lateness_ms

    def drop_through(self, last: Millis) -> list[tuple[Millis, State]]:
        """Forget all that starts at `last` or earlier, and return it in order."""
        dropped = []
        while self._starts and self._starts[0] <= last:
            start = heapq.heappop(self._starts)
            dropped.append((start, self._open.pop(start)))
        return dropped

    def capture(self, parts: Mapping[str, Callable[[State], Batch]], *, full: bool) -> Capture:
        """The watermark, and each part of all open windows in one batch, labelled by window."""
        windows = [(start, self._open[start]) for start in self._to_capture(full)]
        captured = {
            part: self._stack([(start, capture(state)) for start, state in windows])
            for part, capture in parts.items()
        }
        clock = Batch.of(watermark=np.array([self._watermark], np.int64))
        return Capture(full, {**captured, CLOCK: clock})

    def expire(self, watermark: Millis) -> list[tuple[Millis, State]]:
        """As `advance`, for windows that are stale: they do not count as closed."""
        self.raise_to(watermark)
        return self.drop_through(self._horizon)

    def _to_capture(self, full: bool) -> list[Millis]:
        """The starts of what may have something to capture, in order."""
        return sorted(self._open)

    def _stack(self, parts: Sequence[tuple[Millis, Batch]]) -> Batch:
        labelled = [
            batch.with_columns(**{self._label: np.full(batch.length, start, np.int64)})
            for start, batch in parts
            if batch.length
        ]
        return concat(labelled) if labelled else Batch({})

    def restore(
        self,
        captures: Sequence[Capture],
        parts: Mapping[str, Callable[[State, Sequence[Batch]], None]],
    ) -> None:
        """Restore captures, each part window by window; rows of windows that have closed are left out."""
        if not captures:
            return
        self.advance(int(captures[-1].parts[CLOCK]["watermark"][0]))
        for part, restore in parts.items():
            for start, batches in self._by_window([c.parts[part] for c in captures]).items():
                restore(self.at(start), batches)

    def _by_window(self, stacked: Sequence[Batch]) -> dict[Millis, list[Batch]]:
        """The rows of every window that has not closed, one batch per capture."""
        found: dict[Millis, list[Batch]] = {}
        for batch in stacked:
            columns = [name for name in batch.columns if name != self._label]
            for start, rows in runs(batch[self._label]) if batch.length else ():
                if start > self._horizon:
                    found.setdefault(start, []).append(take_rows(batch.select(*columns), rows))
        return found


def runs(starts: Int64s) -> Iterator[tuple[Millis, Array | None]]:
    """The distinct windows of a batch with their rows; None for the rows means all of them."""
    first = int(starts[0])
    if len(starts) == 1 or (starts == first).all():
        yield first, None
        return
    distinct = np.unique(starts)
    if len(distinct) <= _FEW:
        for start in distinct.tolist():
            yield start, np.flatnonzero(starts == start)
        return
    order = np.argsort(starts, kind="stable")
    bounds = np.searchsorted(starts[order], distinct)[1:]
    yield from zip(distinct.tolist(), np.split(order, bounds), strict=True)


def take_rows(batch: Batch, rows: Array | None) -> Batch:
    """The rows of one window out of a batch, without a copy if the window has them all."""
    return batch if rows is None else batch.take(rows)
