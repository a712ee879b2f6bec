"""Records by the row of their key: numbered within it, counted, and brought together.

Rows are dense: the keys of a table are numbered 0, 1, 2, ... in the order in which they came.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import loop_of

Int64s: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_FEW: Final = 12


def occurrences(rows: Int64s, ranks: Int64s) -> None:
    """Write for each record how many earlier ones have the same row."""
    if len(rows) > _FEW:
        order, begins = _sorted(rows)
        starts = begins.nonzero()[0]
        ranks[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
        return
    seen: dict[int, int] = {}
    for i, row in enumerate(rows.tolist()):
        ranks[i] = seen.get(row, 0)
        seen[row] = int(ranks[i]) + 1


@loop_of(occurrences, "const int64[:]", "int64[:]")
def _occurrences(rows: Int64s, ranks: Int64s) -> None:
    size = 16
    while size < 2 * len(rows):
        size *= 2
    seen = np.zeros(2 * size, np.int64)  # a table by row: row + 1, and how often it was seen
    for i in range(len(rows)):
        row = rows[i] + 1
        at = row & (size - 1)
        while seen[2 * at] != 0 and seen[2 * at] != row:
            at = (at + 1) & (size - 1)
        seen[2 * at] = row
        ranks[i] = seen[2 * at + 1]
        seen[2 * at + 1] += 1


def tally(rows: Int64s, counts: Int64s, live: Int64s, dirty: Bools) -> None:
    """Count each record at its row, in `live`, and write the count that it makes into `counts`.

    Rows are marked in `dirty`.
    """
    ranks = np.empty(len(rows), np.int64)
    occurrences(rows, ranks)
    counts[:] = live[rows] + ranks + 1
    live[rows] = counts  # if a row occurs twice, the last count is kept: the largest
    dirty[rows] = True


@loop_of(tally, "const int64[:]", "int64[:]", "int64[:]", "boolean[:]")
def _tally(rows: Int64s, counts: Int64s, live: Int64s, dirty: Bools) -> None:
    for i in range(len(rows)):
        row = rows[i]
        live[row] += 1
        counts[i] = live[row]
        dirty[row] = True


def group(rows: Int64s, bounds: Int64s, order: Int64s) -> None:
    """Write the positions of the records into `order`, row by row, and into `bounds` where each begins.

    `bounds` comes as zeros, one more than there are rows; its last is the number of records. Within a row
    the order is that of arrival.
    """
    np.cumsum(np.bincount(rows, minlength=len(bounds) - 1), out=bounds[1:])
    order[:] = _sorted(rows)[0]


@loop_of(group, "const int64[:]", "int64[:]", "int64[:]")
def _group(rows: Int64s, bounds: Int64s, order: Int64s) -> None:
    for i in range(len(rows)):
        bounds[rows[i] + 1] += 1
    for row in range(len(bounds) - 1):
        bounds[row + 1] += bounds[row]
    free = bounds.copy()
    for i in range(len(rows)):
        row = rows[i]
        order[free[row]] = i
        free[row] += 1


def _sorted(rows: Int64s) -> tuple[Int64s, Bools]:
    """Positions in the order of their rows, then of arrival; and which of them begin a row.

    Values packed of row and position are sorted: twice as fast as a stable argsort.
    """
    bits = len(rows).bit_length()
    packed = np.sort((rows << bits) | np.arange(len(rows)))
    ids = packed >> bits
    begins = np.ones(len(rows), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=begins[1:])
    return packed & ((1 << bits) - 1), begins
