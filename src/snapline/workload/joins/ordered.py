"""The join of sliding windows by rows where records meet in the order of their times, not of their arrival.

Records are held until the watermark says that a step of time is complete; then those that are stored enter
their windows, in the order of their ids, and those that ask meet them. So the result is the same in every
run, and an oracle can say what it is. What comes for a step that is over is dropped.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.messages import BEFORE_TIME
from snapline.dataflow.operators.join import LEFT, RIGHT, SIDES
from snapline.dataflow.operators.operator import Capture, Outputs
from snapline.dataflow.sliding.matching import Match
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.ids import Millis

_HELD: Final = "(held) "
_CLOCK: Final = "(clock)"


class OrderedRowJoin(SlidingRowJoin):
    """Joins `right`, whose rows are stored, with `left`, whose records ask; both have `id` and `time`."""

    uses_time = True

    def __init__(self, plan: RowJoinPlan, match: Match | None, tick_ms: Millis) -> None:
        super().__init__(plan, match)
        self._tick_ms: Final = tick_ms
        self._held: dict[str, list[Batch]] = {side: [] for side in SIDES}
        self._over_ms: Millis = BEFORE_TIME  # steps that had ended by then are over

    def process(self, port: str, batch: Batch) -> Outputs:
        """Hold the records."""
        if self._over_ms > BEFORE_TIME:
            batch = batch.take(self._ends(batch) > self._over_ms)
        if batch.length:
            self._held[port].append(batch)
        return ()

    def _ends(self, batch: Batch) -> np.ndarray:
        time = batch["time"]
        ends: np.ndarray = time - time % self._tick_ms + self._tick_ms
        return ends

    def on_watermark(self, time: Millis) -> Outputs:
        """Let the records of all steps meet that are over."""
        over = self._release(time)
        ends = {side: self._ends(rows) for side, rows in over.items()}
        outputs: list[tuple[str, Batch]] = []
        for end in np.unique(np.concatenate([np.zeros(0, np.int64), *ends.values()])):
            for side in (RIGHT, LEFT):
                if side in over:
                    first, last = np.searchsorted(ends[side], [end, end + 1])
                    if last > first:
                        outputs += super().process(side, over[side].slice(first, last))
        return outputs

    def _release(self, time: Millis) -> dict[str, Batch]:
        """Give up the records of steps that are over, in the order of steps and ids."""
        self._over_ms = max(self._over_ms, time)
        over = {}
        for side, held in self._held.items():
            if not held:
                continue
            rows = concat(held)
            ends = self._ends(rows)
            self._held[side] = [rest] if (rest := rows.take(ends > time)).length else []
            chosen = np.flatnonzero(ends <= time)
            if len(chosen):
                over[side] = rows.take(chosen[np.lexsort((rows["id"][chosen], ends[chosen]))])
        return over

    def expire(self, time: Millis) -> int:
        """Forget the records of steps that are over: others that belong to them were lost."""
        return len({int(end) for rows in self._release(time).values() for end in self._ends(rows)})

    def capture(self, *, full: bool) -> Capture:
        """Capture the windows, and all that is held."""
        taken = super().capture(full=full)
        parts = dict(taken.parts)
        for side, held in self._held.items():
            parts[_HELD + side] = concat(held) if held else Batch({})
        parts[_CLOCK] = Batch.of(over=np.array([self._over_ms], np.int64))
        return replace(taken, parts=parts)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the windows, and hold again what was held."""
        super().restore(captures)
        if captures:
            parts = captures[-1].parts
            for side in SIDES:
                rows = parts[_HELD + side]
                self._held[side] = [rows] if rows.length else []
            self._over_ms = int(parts[_CLOCK]["over"][0])
