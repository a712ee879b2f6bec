"""Windows of one size that follow each other: where the one begins that a time belongs to."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import loop_of

Int64s: TypeAlias = npt.NDArray[np.int64]

_FEW: Final = 12


def assign(times: Int64s, size: int, starts: Int64s) -> tuple[int, int]:
    """Write the start of each time's window; return the lowest and the highest. There is a time."""
    np.floor_divide(times, size, out=starts)
    np.multiply(starts, size, out=starts)
    if len(starts) <= _FEW:
        few = starts.tolist()
        return min(few), max(few)
    return int(starts.min()), int(starts.max())


@loop_of(assign, "const int64[:]", "int64", "int64[:]")
def _assign(times: Int64s, size: int, starts: Int64s) -> tuple[int, int]:
    start = lowest = highest = times[0] // size * size
    fits = False  # of a window that begins before the lowest number, `start` is the wrong way round
    for i in range(len(times)):
        time = times[i]
        past = np.uint64(time) - np.uint64(start)
        if not fits or time < start or past >= np.uint64(size):  # to divide takes longer than this
            start = time // size * size
            lowest = min(lowest, start)
            highest = max(highest, start)
            fits = start <= time
        starts[i] = start
    return lowest, highest
