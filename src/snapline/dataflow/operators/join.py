"""The incremental inner join: every record meets all earlier ones of the other side with the same key.

Each side keeps its rows in append-only columns, and a chain through them per key (`multi_map.py`). A batch
is put in front of the chains of its side and then walks those of the other side.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Batch, concat
from snapline.dataflow.operators.known import Known, free_name, paired, windowed
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.dataflow.operators.window import WINDOW, Starts, Tumbling, Windows, take_rows
from snapline.dataflow.state.columns import Int64s, Rows
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.dataflow.state.multi_map import Chains
from snapline.ids import Millis

LEFT: Final = "left"
RIGHT: Final = "right"
SIDES: Final = (LEFT, RIGHT)
LABEL: Final = "(window)"  # unlike `window`, no column of the rows is called so

Keys: TypeAlias = Mapping[str, tuple[str, ...]]
"""The key columns of each side; the first of one is compared with the first of the other, and so on."""


class _Side:
    """The rows of one side, chained per key."""

    def __init__(self) -> None:
        self.rows: Final = Rows()
        self.chains: Final = Chains()

    def add(self, batch: Batch, keys: Int64s, known: int) -> None:
        """Put rows in front of the chains of their keys, which are given by number."""
        self.rows.append(batch.columns, batch.length)
        self.chains.add(keys, known)


class JoinState:
    """The rows of both sides of a join, and the numbers of the keys."""

    def __init__(self, keys: Keys) -> None:
        self._keys: Final = keys
        #: key columns with the same name on both sides: a pair has only those of the left side
        self._shared: Final = {a for a, b in zip(keys[LEFT], keys[RIGHT], strict=True) if a == b}
        self._numbers: Final = KeyedState(keys[LEFT], {})
        self._sides: Final = {side: _Side() for side in SIDES}

    def add(self, side: str, batch: Batch) -> Int64s:
        """Keep the rows of a batch; return the numbers of their keys."""
        keys = self._numbers.locate([batch[name] for name in self._keys[side]])
        self._sides[side].add(batch, keys, len(self._numbers))
        return keys

    def match(self, side: str, batch: Batch) -> Batch | None:
        """Keep the rows of a batch and pair them with those of the other side."""
        keys = self.add(side, batch)
        other = RIGHT if side == LEFT else LEFT
        positions, rows = self._sides[other].chains.walk(keys, len(self._numbers))
        if not len(rows):
            return None
        kept = self._sides[other].rows
        if side == LEFT:
            return pair_up(batch.take(positions), kept.take(rows, self._shared))
        mine = batch.select(*(name for name in batch.columns if name not in self._shared))
        return pair_up(kept.take(rows), mine.take(positions))

    def capture(self, side: str, *, full: bool) -> Batch:
        """All rows of a side, or those since the capture before."""
        return self._sides[side].rows.capture(full=full)

    def restore(self, side: str, batches: Sequence[Batch]) -> None:
        """Restore the rows of several captures, all at once."""
        if rows := [batch for batch in batches if batch.length]:
            self.add(side, concat(rows))
            self._sides[side].rows.mark()


def pair_up(left: Batch, right: Batch) -> Batch:
    """The columns of both batches; those of the right whose names are taken end in `_right`."""
    columns = dict(left.columns)
    for name, column in right.columns.items():
        columns[free_name(name, columns)] = column
    return Batch(columns, left.length)


class Join(Operator):
    """Joins the ports `left` and `right` over all time."""

    def __init__(self, left: Sequence[str], right: Sequence[str]) -> None:
        self._pairs: Final = tuple(zip(left, right, strict=True))
        self._state: Final = JoinState({LEFT: tuple(left), RIGHT: tuple(right)})

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A pair has the columns of both sides."""
        return paired(given[LEFT], given[RIGHT], self._pairs)

    def process(self, port: str, batch: Batch) -> Outputs:
        """Pair the records with all earlier ones of the other port."""
        pairs = self._state.match(port, batch)
        return ((OUT, pairs),) if pairs is not None else ()

    def capture(self, *, full: bool) -> Capture:
        """Capture the rows of both sides, all or those that are new. No row is ever replaced."""
        parts = {side: self._state.capture(side, full=full) for side in SIDES}
        return Capture(full, parts, 0 if full else sum(part.nbytes for part in parts.values()))

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows."""
        for side in SIDES:
            self._state.restore(side, [capture.parts[side] for capture in captures])


class WindowJoin(Operator):
    """Joins the ports `left` and `right` within each window; late records go to `late-<port>`.

    Pairs have a column `window`, in place of one that the records may have.
    """

    uses_time = True

    def __init__(self, left: Sequence[str], right: Sequence[str], shape: Tumbling) -> None:
        keys = {LEFT: tuple(left), RIGHT: tuple(right)}
        self._pairs: Final = tuple(zip(left, right, strict=True))
        self._windows: Final = Windows(shape, partial(JoinState, keys), LABEL)

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """A pair has the columns of both sides, and its window; late records stay as they are."""
        time = self._windows.shape.time
        sides = {side: windowed(given[side], (), time, {}) for side in SIDES}
        if output != OUT:
            return given[output.removeprefix("late-")]
        pairs, left = paired(given[LEFT], given[RIGHT], self._pairs), sides[LEFT]
        return {**pairs, WINDOW: left[WINDOW]} if pairs is not None and left is not None else None

    def process(self, port: str, batch: Batch) -> Outputs:
        """Pair the records with earlier ones of the other port in the same window."""
        starts = self._windows.shape.starts(batch)
        late = self._windows.late(starts)
        if late is None:
            return self._match(port, batch, starts)
        outputs = [(f"late-{port}", batch.take(late))]
        if not late.all():
            outputs += self._match(port, batch.take(~late), starts.take(~late))
        return outputs

    def _match(self, port: str, batch: Batch, starts: Starts) -> list[tuple[str, Batch]]:
        outputs = []
        for start, rows in starts.runs():
            pairs = self._windows.at(start).match(port, take_rows(batch, rows))
            if pairs is not None:
                window = np.full(pairs.length, start, np.int64)
                outputs.append((OUT, pairs.with_columns(window=window)))
        return outputs

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
        """Capture the rows of the open windows, all or those that are new."""
        parts = {side: methodcaller("capture", side, full=full) for side in SIDES}
        return self._windows.capture(parts, full=full)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore the rows."""
        self._windows.restore(captures, {side: partial(_restore, side) for side in SIDES})


def _restore(side: str, state: JoinState, batches: Sequence[Batch]) -> None:
    state.restore(side, batches)
