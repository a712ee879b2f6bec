"""Non-negative least squares, after Lawson and Hanson (1974), for a handful of unknowns.

A cost is never negative, and an ordinary fit makes some of them so. Where the runs cannot tell two costs
apart, because one kind of work always came with the other, a slight pull towards zero (`RIDGE`) makes the
two share what they cost together.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

RIDGE: Final = 1e-3
"""The pull towards zero, relative to columns of length one."""

_TINY: Final = 1e-10


def nonnegative(matrix: Floats, target: Floats) -> Floats:
    """The x >= 0 with the least |matrix x - target|, with the pull towards zero."""
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0] = 1.0
    count = matrix.shape[1]
    scaled = np.vstack([matrix / lengths, RIDGE * np.eye(count)])
    wanted = np.concatenate([target, np.zeros(count)])
    return np.asarray(_solve(scaled, wanted) / lengths)


def _solve(matrix: Floats, target: Floats) -> Floats:
    count = matrix.shape[1]
    free = np.zeros(count, bool)  # the unknowns that are not held at zero
    found = np.zeros(count)
    while not free.all():
        slope = matrix.T @ (target - matrix @ found)
        slope[free] = -np.inf
        if slope.max() <= _TINY:
            break
        free[int(slope.argmax())] = True
        found = _settle(matrix, target, found, free)
    return found


def _settle(matrix: Floats, target: Floats, found: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """The best values of the free unknowns; those that would become negative are held at zero again."""
    while True:
        best = np.zeros_like(found)
        best[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        if best[free].min(initial=0.0) >= 0:
            return best
        sinking = free & (best < 0)
        step = (found[sinking] / np.maximum(found[sinking] - best[sinking], _TINY)).min()
        found = found + step * (best - found)
        free &= found > _TINY
        found[~free] = 0.0
