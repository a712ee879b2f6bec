"""Gives a system its input as it becomes due, whether the system keeps up or not (an open loop).

Records are given to the system when they are due, a piece of every stream each time. A system that is dead
or slow gets them all the same and finds them when it is back, as it would in a log that others write to.
"""

from collections.abc import Callable, Mapping

from snapline.batch import Batch, concat
from snapline.ids import Millis
from snapline.storage.api import Ingress

PIECE_MS: Millis = 400
"""How much input is given at once; the last pieces of a run may be smaller."""


class Feeder:
    """Gives the records of some sources as they become due."""

    def __init__(self, sources: Mapping[str, Ingress], give: Callable[[str, Batch], None]) -> None:
        self._sources = sources
        self._give = give
        self._given = {name: [0] * source.partitions for name, source in sources.items()}
        self._next_ms: Millis = PIECE_MS
        self.records = 0  #: how many were given so far

    @property
    def done(self) -> bool:
        """Whether all records were given."""
        return all(
            given == source.end(partition)
            for name, source in self._sources.items()
            for partition, given in enumerate(self._given[name])
        )

    def due(self, now_ms: Millis) -> int:
        """How many records are due by now, whether they were given or not."""
        return sum(
            source.due_through(partition, now_ms)
            for source in self._sources.values()
            for partition in range(source.partitions)
        )

    def feed(self, now_ms: Millis) -> None:
        """Give the records that have become due, if enough time has passed for another piece."""
        if now_ms < self._next_ms or self.done:
            return
        self._next_ms = now_ms - now_ms % PIECE_MS + PIECE_MS
        for name in self._sources:
            piece = self._piece(name, now_ms)
            if len(piece):
                self.records += len(piece)
                self._give(name, piece)

    def _piece(self, name: str, now_ms: Millis) -> Batch:
        source, given = self._sources[name], self._given[name]
        due = [source.due_through(partition, now_ms) for partition in range(source.partitions)]
        parts = [source.read(p, given[p], due[p]) for p in range(source.partitions)]
        given[:] = due
        return concat(parts)
