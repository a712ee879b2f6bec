"""What the fields of NexMark's records are computed from: random numbers, numbers of people, hot keys.

People and auctions are numbered densely over all partitions: the n-th of partition p has the number
n * partitions + p. Partitions advance together, so what is there at an offset is there in all of them.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from snapline.kernels import generating
from snapline.workload.common.base import Params
from snapline.workload.common.generated import (
    Hottest,
    Ints,
    draw,
    draw_bits,
    heated,
    next_of,
)


class NexmarkRows:
    """Some records of a partition of a stream."""

    def __init__(
        self, stream: str, params: Params, partition: int, offsets: Ints, bidders: int | None
    ) -> None:
        """The records at these offsets; `bidders` is how many people bid, if not those who registered."""
        self.stream = stream
        self.params = params
        self.partition = partition
        self.offsets = offsets
        self.bidders = bidders

    def pick(self, field: str, below: int | Ints) -> Ints:
        """Evenly distributed random numbers below this one, for this field alone."""
        return draw(self.params, f"{self.stream}.{field}", self.partition, self.offsets, below)

    def part(self, first: int, width: int, below: int) -> Ints:
        """Evenly distributed random numbers below this one, from bits of a draw that several fields share.

        A draw costs as much as all else about a field. Fields that take different bits are independent.
        """
        return generating.parts(self._bits, first, width, below)

    def entry(self, first: int, width: int, table: Ints) -> Ints:
        """Evenly distributed random entries of a table, from such bits."""
        return generating.entries(self._bits, first, width, table)

    def latest(self, first: int, width: int, count: int, most: int, *, ahead: bool = False) -> Ints:
        """One of the latest `most` of all partitions, from such bits, or the one that comes next.

        There is one of them in each partition at first; each partition gets `count` in the end.
        """
        params = self.params
        when = (count, params.records, params.partitions)
        return generating.latest(self._whole, self._bits, first, width, *when, most, int(ahead))

    @cached_property
    def _whole(self) -> Ints:
        return np.ascontiguousarray(self.offsets, np.int64)

    @cached_property
    def _bits(self) -> npt.NDArray[np.uint64]:
        return draw_bits(self.params, self.stream, self.partition, self.offsets)

    @property
    def numbers(self) -> Ints:
        """The numbers of these people or auctions."""
        return self.offsets * self.params.partitions + self.partition

    def heated(self, field: str, keys: Ints, hottest: Callable[[str], Hottest]) -> Ints:
        """The keys of a field, some of them replaced by the hot one."""
        if not self.params.hot:
            return keys
        name, params = f"{self.stream}.{field}", self.params
        hot = hottest(name)
        return heated(params, name, self.partition, self.offsets, params.records, keys, hot)

    def any_of(self, below: int) -> Callable[[str], Hottest]:
        """Any key below this one as the hot key."""
        return lambda field: next_of(self.params, field, below)

    def latest_of(self, count: int) -> Callable[[str], Hottest]:
        """The hot key was the latest one when it became hot; each partition has `count` keys in the end."""
        params = self.params

        def hottest(field: str) -> Hottest:
            partition = draw(params, f"{field}.hot", 0, np.zeros(1, np.int64), params.partitions)

            def hot(moves: Ints) -> Ints:
                latest = moves * params.hot_ms * count // params.duration_ms
                return latest * params.partitions + partition

            return hot

        return hottest
