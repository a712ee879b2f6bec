"""The running count per key and window: one output per record, nothing waits for the window to close."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.operators.fold import COUNT, STATE
from snapline.dataflow.operators.known import Known, windowed
from snapline.dataflow.operators.operator import IN, OUT, Capture, Operator, Outputs
from snapline.dataflow.operators.window import LATE, WINDOW, Starts, Tumbling, Windows, take_rows
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.ids import Millis


class WindowCount(Operator):
    """Numbers the records of each key within their window."""

    uses_time = True

    def __init__(self, keys: Sequence[str], shape: Tumbling) -> None:
        self._keys: Final = tuple(keys)
        self.reads = (*keys, shape.time)
        self._windows: Final = Windows(shape, partial(KeyedState, self._keys, {COUNT: 0}))

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has the key of its record, and its window and time; late records stay as they are."""
        counts = windowed(given[IN], self._keys, self._windows.shape.time, {COUNT: None})
        return given[IN] if output == LATE else counts

    def process(self, port: str, batch: Batch) -> Outputs:
        """Count the records that are in time; pass the late ones on."""
        starts = self._windows.shape.starts(batch)
        late = self._windows.late(starts)
        if late is None:
            return ((OUT, self._count(batch, starts)),)
        outputs = [(LATE, batch.take(late))]
        if not late.all():
            outputs.append((OUT, self._count(batch.take(~late), starts.take(~late))))
        return outputs

    def _count(self, batch: Batch, starts: Starts) -> Batch:
        columns = batch.columns
        keys = {name: columns[name] for name in self._keys}
        counts: Int64s
        if starts.lowest == starts.highest:
            counts = self._windows.at(starts.lowest).count_up(COUNT, [*keys.values()])
        else:
            counts = np.empty(batch.length, np.int64)
            for start, rows in starts.runs():
                part = list(take_rows(Batch(keys, batch.length), rows).columns.values())
                counts[rows] = self._windows.at(start).count_up(COUNT, part)
        time = columns[self._windows.shape.time]
        return Batch({**keys, WINDOW: starts.each, COUNT: counts, "time": time}, batch.length)

    def on_watermark(self, time: Millis) -> Outputs:
        """Free the windows that have closed."""
        self._windows.advance(time)
        return ()

    @property
    def windows_closed(self) -> int:
        """How many windows were closed."""
        return self._windows.closed

    def expire(self, time: Millis) -> int:
        """Forget the windows that have ended by then."""
        return len(self._windows.expire(time))

    def capture(self, *, full: bool) -> Capture:
        """Capture the counts of the open windows, all or those that changed."""
        return self._windows.capture({STATE: methodcaller("capture", full=full)}, full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the counts."""
        self._windows.restore(captures, {STATE: KeyedState.restore})
