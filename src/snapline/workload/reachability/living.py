"""State with deletions: tombstones, and rows that are removed when an event behind them is deleted.

A row is found by its node, and by each event that it is made of, so a deletion touches only the rows that
have to go. Removed rows are skipped at first; when there are more of them than of the others, the table is
built anew, so a removal costs a constant on average.

A capture holds new rows and new tombstones, never a removal: what is left follows from the tombstones.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, concat
from snapline.dataflow.state.columns import Rows
from snapline.dataflow.state.key_index import KeyIndex
from snapline.dataflow.state.multi_map import MultiMap
from snapline.workload.common.generated import Ints

REMOVED_MIN = 256
"""With fewer removed rows than this the table is not built anew."""

Events: TypeAlias = Callable[[Batch], tuple[Ints, Ints]]
"""The events that the rows of a batch are made of: positions of rows, and an event for each."""


class Tombstones:
    """The events that were deleted."""

    def __init__(self) -> None:
        self._known: Final = KeyIndex()
        self._rows: Final = Rows()

    def add(self, events: Ints) -> Ints:
        """Take deletions; return those that are new."""
        new = np.unique(events[~self.among(events)])
        if len(new):
            self._known.locate(new)
            self._rows.append({"id": new}, len(new))
        return new

    def among(self, events: Ints) -> npt.NDArray[np.bool_]:
        """Which of these events were deleted."""
        deleted: npt.NDArray[np.bool_] = self._known.find(np.ascontiguousarray(events)) >= 0
        return deleted

    def capture(self, *, full: bool) -> Batch:
        """All tombstones, or the new ones."""
        return self._rows.capture(full=full)

    def restore(self, batches: Sequence[Batch]) -> None:
        """Take back tombstones that were captured."""
        for batch in batches:
            if batch.length:
                self.add(batch["id"])
        self._rows.mark()


class Living:
    """Rows by node, none of them made of an event that was deleted."""

    def __init__(
        self, tombstones: Tombstones, nodes: Callable[[Batch], Ints], events: Events
    ) -> None:
        self._tombstones: Final = tombstones
        self._nodes: Final = nodes
        self._events: Final = events
        self._begin()

    def _begin(self) -> None:
        self._rows = MultiMap()
        self._made_of = MultiMap()  # by event: the numbers of the rows

    def add(self, batch: Batch) -> Batch:
        """Keep the rows without a deleted event, and return them."""
        positions, events = self._events(batch)
        deleted = self._tombstones.among(events)
        if deleted.any():
            alive = np.ones(batch.length, np.bool_)
            alive[positions[deleted]] = False
            batch = batch.take(alive)
            positions, events = self._events(batch)
        if batch.length:
            first = self._rows.add(self._nodes(batch), batch)
            self._made_of.add(events, Batch({"row": first + positions}))
        return batch

    def find(self, nodes: Ints) -> tuple[Ints, Ints]:
        """All rows at these nodes: positions in `nodes`, and the numbers of the rows."""
        return self._rows.find(nodes)

    def view(self) -> Batch:
        """The rows by number, without a copy; those that were removed are among them."""
        return self._rows.rows.view()

    def remove(self, events: Ints) -> None:
        """Remove the rows that are made of these events."""
        _, found = self._made_of.find(events)
        if len(found):
            self._rows.remove(self._made_of.rows.take(found)["row"])
            if self._rows.removed > max(len(self._rows), REMOVED_MIN):
                self._put_together()

    def _put_together(self) -> None:
        """Build the table anew from the rows that are left; those already captured stay marked so."""
        captured, new = self._rows.left()
        self._begin()
        if captured.length:
            self.add(captured)
            self._rows.rows.mark()
        if new.length:
            self.add(new)

    def capture(self, *, full: bool) -> Batch:
        """All rows that are left; or the new ones, of which some may have been removed."""
        return self._rows.capture(full=full)

    def restore(self, batches: Sequence[Batch]) -> None:
        """Take back rows that were captured; the tombstones are there already."""
        if known := [batch for batch in batches if batch.length]:
            self.add(concat(known))
            self._rows.rows.mark()
