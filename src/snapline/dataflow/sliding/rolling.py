"""The results of sliding windows, one after the other, for the price of one pane each.

Minimum and maximum cannot be taken back as a sum can, and a sum of fractions that were taken back is off by
what was rounded. So nothing is taken back by arithmetic. Panes are numbered, and numbers that are multiples
of the panes per window cut them into blocks. A window then is the end of one block, the *front*, and the
beginning of the next, the *back*. Towards the back each window adds one pane. The front is built once per
block, from its last pane to its first, and keeps for every pane what it has replaced; each window puts the
replaced values of one pane back. So a window costs its first pane, its last pane and its results, and a
block as many panes as it has, once in as many windows.

What comes out is a function of the panes alone, to the last bit: it does not matter whether the operator
was restored in between. Nothing of this is captured, therefore.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from snapline.batch import Array, Column
from snapline.dataflow.sliding.panes import Pane, Sliding
from snapline.dataflow.sliding.partials import Columns, Layout, columns_of, combined
from snapline.dataflow.sliding.plan import ALL, COUNT, Partial
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.ids import Millis

_FRONT: Final = "front"
_BACK: Final = "back"


class _Replaced(NamedTuple):
    """What the front held of the keys of a pane before the pane was added."""

    rows: Int64s
    values: dict[str, Array]


class Rolling:
    """Front and back of one window, by key, in one table."""

    def __init__(
        self, layout: Layout, shape: Sliding, pane_at: Callable[[Millis], Pane | None]
    ) -> None:
        self._layout: Final = layout
        self._shape: Final = shape
        self._pane_at: Final = pane_at
        self._table: KeyedState | None = None  # None: nothing is known of any window
        self._window = 0  # the number of its first pane
        self._replaced: list[_Replaced | None] = []  # by pane of the front, the first one last

    def forget_from(self, start: Millis) -> None:
        """A pane that starts here, or later ones, have changed: begin anew if they were used."""
        used = (self._window + self._shape.panes) * self._shape.every_ms
        if self._table is not None and start < used:
            self._table = None

    def window(self, start: Millis) -> tuple[dict[str, Column], dict[Partial, Array]]:
        """The keys of a window that have records in it, and their partial results."""
        self._move_to(start // self._shape.every_ms)
        table = self._table
        assert table is not None, "it was just moved"
        counts = table[_named(_FRONT, COUNT)] + table[_named(_BACK, COUNT)]
        rows = np.flatnonzero(counts)
        whole = len(rows) == len(counts)
        partials = {}
        for partial in self._layout.plan.partials:
            front, back = (self._columns(side, partial) for side in (_FRONT, _BACK))
            (values, *_) = combined(partial, front, back)
            partials[partial] = values if whole else values[rows]
        keys = table.keys_at(rows)
        return {name: column for name, column in keys.items() if name != ALL}, partials

    def _move_to(self, number: int) -> None:
        panes = self._shape.panes
        if self._table is None or number != self._window + 1 or number % panes == 0:
            self._build(number)
        else:
            self._put_back()
            self._add(_BACK, number + panes - 1)
        self._window = number

    def _build(self, number: int) -> None:
        """Make front and back of the window that begins with this pane."""
        fills = self._layout.fills
        both = {f"{side} {name}": fill for side in (_FRONT, _BACK) for name, fill in fills.items()}
        self._table = KeyedState(self._layout.plan.key_names, both)
        panes = self._shape.panes
        border = (number // panes + 1) * panes
        self._replaced = [self._add(_FRONT, pane) for pane in range(border - 1, number - 1, -1)]
        for pane in range(border, number + panes):
            self._add(_BACK, pane)

    def _add(self, side: str, number: int) -> _Replaced | None:
        """Add a pane; return what was there before, None if the pane has no records."""
        pane, table = self._pane_at(number * self._shape.every_ms), self._table
        if pane is None or table is None:
            return None
        rows = table.locate(list(pane.state.keys().values()))
        before: dict[str, Array] = {}
        for partial in self._layout.plan.partials:
            live = self._columns(side, partial)
            held = [column[rows] for column in live]
            added = [pane.state[name] for name in columns_of(partial)]
            names = columns_of(partial)
            before |= zip(names, held, strict=True)
            for column, new in zip(live, combined(partial, held, added), strict=True):
                column[rows] = new
        return _Replaced(rows, before)

    def _put_back(self) -> None:
        """Take the first pane out of the front."""
        replaced, table = self._replaced.pop(), self._table
        if replaced is not None and table is not None:
            for name, values in replaced.values.items():
                table[f"{_FRONT} {name}"][replaced.rows] = values

    def _columns(self, side: str, partial: Partial) -> Columns:
        assert self._table is not None, "columns are asked for only while there is a table"
        return [self._table[f"{side} {name}"] for name in columns_of(partial)]


def _named(side: str, partial: Partial) -> str:
    return f"{side} {columns_of(partial)[0]}"
