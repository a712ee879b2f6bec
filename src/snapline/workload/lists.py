"""Vectorised steps that the graph workloads share: pairing by key, and columns of lists."""

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Varlen
from snapline.workload.generated import Ints


def pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The positions (i, j) of all equal keys, in order of i, then of j."""
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    first = np.searchsorted(ordered, left, side="left")
    counts = np.searchsorted(ordered, left, side="right") - first
    i = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, order[np.repeat(first, counts) + within]


def empty_lists(length: int) -> Varlen:
    """A column of lists without items."""
    return Varlen("list", np.zeros(length + 1, np.int64), np.zeros(0, np.int64))


def append(column: Varlen, items: Ints) -> Varlen:
    """Every list with one more item at its end."""
    column = column.compact()
    values = np.insert(column.values, column.offsets[1:], items)
    return Varlen("list", column.offsets + np.arange(len(column.offsets)), values)


def list_lengths(column: Varlen) -> Ints:
    """The number of items in every list."""
    return np.diff(column.offsets)


def any_item(column: Varlen, hit: Array) -> npt.NDArray[np.bool_]:
    """Whether a list has an item that is hit; `hit` is a mask over the values of a compact column."""
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(hit, dtype=np.int64)])
    return running[column.offsets[1:]] > running[column.offsets[:-1]]
