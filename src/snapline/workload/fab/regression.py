"""The model of a step, an operator as a user would write it: it predicts the yield of a lot, then learns.

A straight line through what the readings of a wafer show (least squares, of which the older a lot is the
less it counts). A lot is predicted with what is known from the lots before it, once it is over. Sums are of
whole numbers and the equations are solved in fractions, so a model that has had the same lots predicts the
same to the last digit, in whatever order the records of a lot came, and on every machine.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.operators.operator import OUT, Operator, Outputs
from snapline.ids import Millis
from snapline.workload.fab.model import BIAS, MEMORY, RIDGE


class YieldModel(Operator):
    """Takes readings with the test of their wafer; puts out each lot that is over, with its prediction."""

    uses_time = True
    saved = ("squares", "products", "held", "closed_ms")

    def __init__(self, features: int) -> None:
        self._features: Final = features
        size = features + 1
        self.squares = np.zeros((size, size), np.int64)  #: sums of products of properties
        self.products = np.zeros(size, np.int64)  #: of properties and yields
        self.held = np.zeros((0, 6), np.int64)  #: readings of lots that are not over
        self.closed_ms = -1  #: lots that were over by then are done

    def process(self, port: str, batch: Batch) -> Outputs:
        """Hold readings until their lot is over; those of a lot that is done come too late."""
        columns = ("closes", "lot", "wafer", "sensor", "value", "yield")
        rows = np.column_stack([batch[name] for name in columns])
        self.held = np.concatenate([self.held, rows[rows[:, 0] > self.closed_ms]])
        return ()

    def on_watermark(self, time: Millis) -> Outputs:
        """Predict the lots that are over, the oldest first, and learn from each before the next."""
        over = self._over(time)
        results = [self._close(over[over[:, 1] == lot]) for lot in np.unique(over[:, 1])]
        if not results:
            return ()
        names = ("lot", "predicted", "actual", "wafers", "time")
        return ((OUT, Batch(dict(zip(names, np.array(results, np.int64).T.copy(), strict=True)))),)

    def _over(self, time: Millis) -> Array:
        """Give up the readings of lots that are over."""
        self.closed_ms = max(self.closed_ms, time)
        is_over = self.held[:, 0] <= time
        over, self.held = self.held[is_over], self.held[~is_over]
        return over

    def _close(self, rows: Array) -> tuple[int, int, int, int, int]:
        wafers, first, at = np.unique(rows[:, 2], return_index=True, return_inverse=True)
        shown, yields = self._shown(rows, at, len(wafers)), rows[first, 5]
        equations = self.squares + RIDGE * np.eye(self._features + 1, dtype=np.int64)
        line = solved(equations.tolist(), self.products.tolist())
        total = sum(a * b for a, b in zip(line, shown.sum(axis=0).tolist(), strict=True))
        self.squares = self.squares - self.squares // MEMORY + shown.T @ shown
        self.products = self.products - self.products // MEMORY + shown.T @ yields
        count = len(wafers)
        lot, closes = int(rows[0, 1]), int(rows[0, 0])
        return lot, int(total // count), int(yields.sum()) // count, count, closes

    def _shown(self, rows: Array, at: Array, wafers: int) -> Array:
        """The properties of each wafer: the means of the readings of its sensors."""
        shown = np.full((wafers, self._features + 1), BIAS, np.int64)
        sums = np.zeros((wafers, self._features), np.int64)
        counts = np.zeros((wafers, self._features), np.int64)
        feature = rows[:, 3] % self._features
        np.add.at(sums, (at, feature), rows[:, 4])
        np.add.at(counts, (at, feature), 1)
        shown[:, 1:] = sums // np.maximum(counts, 1)
        return shown

    def expire(self, time: Millis) -> int:
        """Forget the readings of lots that were over by then: some of them were lost."""
        return len(np.unique(self._over(time)[:, 1]))


def solved(rows: Sequence[Sequence[int]], right: Sequence[int]) -> list[Fraction]:
    """The solution of linear equations with whole numbers, which must have one."""
    table = [[*map(Fraction, row), Fraction(value)] for row, value in zip(rows, right, strict=True)]
    for n in range(len(table)):
        pivot = next(m for m in range(n, len(table)) if table[m][n])
        table[n], table[pivot] = table[pivot], table[n]
        head = table[n][n]
        table[n] = [value / head for value in table[n]]
        for m in range(len(table)):
            if m != n and table[m][n]:
                factor = table[m][n]
                table[m] = [a - factor * b for a, b in zip(table[m], table[n], strict=True)]
    return [row[-1] for row in table]
