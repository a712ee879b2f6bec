"""Vectorised steps that the graph workloads share: pairing by key, and columns of lists."""

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Batch, Varlen
from snapline.workload.common.generated import Ints


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


def spread(column: Varlen, width: int) -> Ints:
    """The lists as rows of a matrix, filled up with -1; none may be longer than `width`."""
    lengths = list_lengths(column)
    matrix = np.full((len(column), width), -1, np.int64)
    matrix[np.arange(width) < lengths[:, None]] = column.compact().values
    return matrix


def with_steps(batch: Batch, name: str, width: int) -> Batch:
    """The batch with a column of lists as columns of numbers besides: those of `step_names(width)`."""
    steps = spread(batch[name], width).T
    names = step_names(width)
    return batch.with_columns(**dict(zip(names, [list_lengths(batch[name]), *steps], strict=True)))


def step_names(width: int) -> tuple[str, ...]:
    """The columns that tell lists of up to this length apart: the length, and each item."""
    return ("(steps)", *(f"(step {number})" for number in range(width)))


def longest(column: Varlen) -> int:
    """The greatest length of a list."""
    return int(list_lengths(column).max(initial=0))


def gathered(matrix: Ints) -> Varlen:
    """The rows of a matrix as lists."""
    rows, width = matrix.shape
    return Varlen("list", np.arange(rows + 1) * width, matrix.reshape(-1))


def list_lengths(column: Varlen) -> Ints:
    """The number of items in every list."""
    return np.diff(column.offsets)


def any_item(column: Varlen, hit: Array) -> npt.NDArray[np.bool_]:
    """Whether a list has an item that is hit; `hit` is a mask over the values of a compact column."""
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(hit, dtype=np.int64)])
    return running[column.offsets[1:]] > running[column.offsets[:-1]]
