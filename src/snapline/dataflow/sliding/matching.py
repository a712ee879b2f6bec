"""Which rows of two windows match, where a function of the user's says so."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from snapline.batch import Array, Batch
from snapline.errors import UsageError

Match: TypeAlias = Callable[[Batch, Batch], Array]
"""(left rows, right rows), as many of each -> a mask of those that match."""


def mask_of(function: Match, left: Batch, right: Batch) -> Array:
    """Which of these pairs of rows a function chooses. Raises UsageError."""
    mask = np.asarray(function(left, right))
    if mask.dtype != np.bool_ or mask.shape != (left.length,):
        raise UsageError(
            f"the function of a join got {left.length} pairs of rows, and has to return as many "
            "bools, such as left['price'] > right['price']"
        )
    return mask
