"""Aggregates per key and sliding window of event time, emitted once, when the window closes.

Every result has its key, `window` (its start), the aggregates, and `time`: the latest of the records behind
it. A key has a result for every window in which it has a record, so one record is behind as many results
as a window has panes.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.dataflow.operators.aggregate import TIME
from snapline.dataflow.operators.fold import STATE
from snapline.dataflow.operators.join import LABEL
from snapline.dataflow.operators.known import Known, windowed
from snapline.dataflow.operators.operator import IN, OUT, TENTATIVE, Capture, Operator, Outputs
from snapline.dataflow.operators.window import LATE, WINDOW, Starts, take_rows
from snapline.dataflow.sliding.panes import Pane, Panes, Sliding
from snapline.dataflow.sliding.partials import Layout
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.rolling import Rolling
from snapline.ids import Millis


class SlidingTimeWindows(Operator):
    """Emits the aggregates of a sliding window when it closes; late records go to `late`."""

    uses_time = True

    def __init__(self, plan: SlidingPlan, shape: Sliding) -> None:
        self.reads = (*plan.keys, *plan.columns)
        self._plan: Final = plan
        self._shape: Final = shape
        layout = Layout(plan)
        self._panes: Final = Panes(shape, partial(Pane, layout), LABEL)
        self._rolling: Final = Rolling(layout, shape, self._panes.get)

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A result has its key, its window and what was aggregated; late records stay as they are."""
        columns = given[IN]
        results = self._plan.meanings(columns) if columns is not None else {}
        closed = windowed(columns, self._plan.keys, self._shape.time, results)
        return columns if output == LATE else closed

    def process(self, port: str, batch: Batch) -> Outputs:
        """Add the records that are in time to their panes; pass the late ones on."""
        starts = self._shape.starts(batch)
        late = self._panes.late(starts)
        if late is None:
            self._add(batch, starts)
            return ()
        if not late.all():
            self._add(batch.take(~late), starts.take(~late))
        return ((LATE, batch.take(late)),)

    def _add(self, batch: Batch, starts: Starts) -> None:
        self._rolling.forget_from(starts.lowest)
        for start, rows in starts.runs():
            self._panes.add(start, take_rows(batch, rows))

    def on_watermark(self, time: Millis) -> Outputs:
        """Emit the windows that have closed, the oldest first."""
        closed = [self._result(start) for start in self._panes.closing(self._shape, time)]
        return ((OUT, concat(closed)),) if closed else ()

    def _result(self, start: Millis) -> Batch:
        keys, partials = self._rolling.window(start)
        latest = partials["max", self._plan.time]
        window = np.full(len(latest), start, np.int64)
        results = self._plan.put_together(partials)
        return Batch({**keys, WINDOW: window, **results, TIME: latest}, len(latest))

    @property
    def windows_closed(self) -> int:
        """How many windows were closed."""
        return self._panes.closed

    def expire(self, time: Millis) -> int:
        """Forget the windows that have ended by then."""
        return self._ended(time)[0]

    def mark_stale(self, time: Millis) -> Outputs:
        """Emit the windows that have ended by then as tentative."""
        return [(TENTATIVE, batch) for _, batch in self._ended(time)[1]]

    def _ended(self, time: Millis) -> tuple[int, Outputs]:
        """Close the windows that have ended, uncounted: how many there were, and their results."""
        before = self._panes.closed
        outputs = self.on_watermark(time)
        ended, self._panes.closed = self._panes.closed - before, before
        return ended, outputs

    def capture(self, *, full: bool) -> Capture:
        """Capture the panes, or what changed in them."""
        return self._panes.capture({STATE: methodcaller("capture", full=full)}, full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the panes."""
        self._panes.restore(captures, {STATE: Pane.restore})
