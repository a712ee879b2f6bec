"""Rows that windows by rows have missed: how many of each key were sent while their task was away.

Had they come, each would have driven the oldest row out of its window. So when the task is back, as many
rows of its windows are *stale*: a record would meet rows there that should be gone. Keys are named by their
hashes, so whoever counts need not know what a key is made of.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.state.columns import Int64s
from snapline.dataflow.state.hashing import Hashes, hash_columns


def key_hashes(rows: Batch, keys: Sequence[str]) -> Hashes:
    """The hash of each row's key; without key columns all rows have the same."""
    if not keys or not rows.length:
        return np.zeros(rows.length, np.uint64)
    return hash_columns([rows[name] for name in keys])


@dataclass(frozen=True, slots=True)
class MissedRows:
    """How many rows of each key were missed."""

    hashes: Hashes  # of the keys: rising, each once
    counts: Int64s

    @classmethod
    def of(cls, rows: Iterable[Hashes]) -> Self:
        """Count rows, given by the hashes of their keys."""
        every = [np.zeros(0, np.uint64), *rows]
        hashes, counts = np.unique(np.concatenate(every), return_counts=True)
        return cls(hashes, counts.astype(np.int64))

    @classmethod
    def summed(cls, parts: Sequence["MissedRows"]) -> Self:
        """What was missed in all of these ways together."""
        every = np.concatenate([np.zeros(0, np.uint64), *(part.hashes for part in parts)])
        hashes, places = np.unique(every, return_inverse=True)
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(
            counts, places, np.concatenate([np.zeros(0, np.int64), *(p.counts for p in parts)])
        )
        return cls(hashes, counts)

    @classmethod
    def shared_out(cls, total: int, living: Hashes) -> Self:
        """An estimate if only the number of all rows is known: keys share it as they share living rows."""
        hashes, rows = np.unique(living, return_counts=True)
        shares = total * rows / max(int(rows.sum()), 1)
        return cls(hashes, np.rint(shares).astype(np.int64))

    def among(self, keys: Hashes) -> Int64s:
        """How many rows were missed of each of these keys."""
        if not len(self.hashes):
            return np.zeros(len(keys), np.int64)
        at = np.minimum(np.searchsorted(self.hashes, keys), len(self.hashes) - 1)
        return np.where(self.hashes[at] == keys, self.counts[at], 0)

    @property
    def total(self) -> int:
        """How many rows were missed in all."""
        return int(self.counts.sum())
