"""The beginning of an input: as much of each partition as a run had read when it stopped."""

from collections.abc import Sequence
from dataclasses import dataclass

from snapline.batch import Batch, Schema
from snapline.ids import Millis
from snapline.storage.api import Ingress


@dataclass(frozen=True, slots=True)
class PrefixIngress:
    """An `Ingress` that has the first records of another one; time does not end behind them."""

    whole: Ingress
    stops: Sequence[int]  # of each partition: the first offset that is left out

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self.whole.schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return self.whole.partitions

    def end(self, partition: int) -> int:
        """The number of records in the partition, as far as it is not left out."""
        return self.stops[partition]

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return self.whole.due_ms(partition, offset)

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        return min(self.whole.due_through(partition, now_ms), self.stops[partition])

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        return self.whole.read(partition, offset, min(stop, self.stops[partition]))

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`, as whoever reads the whole input has it there."""
        return self.whole.watermark(partition, offset)
