"""What is right: for every lot what the models predict that have had all lots before it, in their order.

It is computed from the whole input at once, and the equations are solved in another way than the models do
it. Where records may be lost or repeated, nobody knows what a model has learnt: then only the lots, and how
many of their wafers came, can be judged, and that a row agrees with itself.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import losses_of
from snapline.workload.fab import model
from snapline.workload.fab.lossy_lots import judge_lossy_lots
from snapline.workload.fab.model import BIAS, MEMORY, RIDGE, STEPS, shape_of
from snapline.workload.fab.stays import lot_losses
from snapline.workload.oracles.bounds_verdict import judge_at_least, judge_at_most
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of

SINK: Final = "quality"
VALUES: Final = ("wafers", "predicted", "actual", "quality", "time")


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Every lot once, with what both models predict for it and what its tests say."""
    findings, right, found = Problems(level), expected(params), output.get(SINK)
    excuses = losses_of(params)
    if level is Guarantee.AT_MOST_ONCE:
        judge_at_most(findings, right, found, ("lot",), "wafers", describe, ("time",))
    elif level is Guarantee.AT_LEAST_ONCE:
        judge_at_least(findings, right, found, ("lot",), "wafers", describe)
    elif excuses is not None:
        losses = lot_losses(params, excuses, right, SINK)
        judge_lossy_lots(findings, right, found, losses, describe)
    else:
        judge_table(findings, [right], found, ("lot",), VALUES, describe)
        return findings.problems
    _agrees_with_itself(findings, found)
    return findings.problems


def describe(lot: int) -> str:
    """A lot as people read it."""
    return f"lot {lot}"


def _agrees_with_itself(findings: Problems, found: Batch | None) -> None:
    if found is None or not len(found):
        return
    wrong = np.flatnonzero(found["quality"] != found["predicted"] - found["actual"])[:LIMIT]
    for lot, predicted, actual, quality in rows_of(
        found.take(wrong), "lot", "predicted", "actual", "quality"
    ):
        because = f"it was predicted as {predicted} and is {actual}, which are not {quality} apart"
        findings.instead(describe(lot), because)


@lru_cache(maxsize=8)
def _expected(params: Params) -> Batch:
    tested = model.tests(params).everything()
    tested = tested.take(np.argsort(tested["wafer"]))
    lots, first, wafers = np.unique(tested["lot"], return_index=True, return_counts=True)
    actual = np.add.reduceat(tested["yield"], first) // wafers
    etch, polish = (_predicted(params, step, tested, first) for step in STEPS)
    predicted = (etch + polish) // 2
    columns = {"lot": lots, "wafers": wafers, "predicted": predicted, "actual": actual}
    closes = tested["closes"][first]
    return Batch({**columns, "quality": predicted - actual, "time": closes})


def expected(params: Params) -> Batch:
    """What should come out."""
    return _expected(params)


def _predicted(params: Params, step: str, tested: Batch, first: Ints) -> Ints:
    """What the model of a step predicts for each lot; the wafers of lot n begin at `first[n]`."""
    shown = _shown(params, step, len(tested))
    size = shown.shape[1]
    squares, products = np.zeros((size, size), np.int64), np.zeros(size, np.int64)
    found = np.zeros(len(first), np.int64)
    for n, (start, stop) in enumerate(zip(first, [*first[1:], len(tested)], strict=True)):
        ours, yields = shown[start:stop], tested["yield"][start:stop]
        equations = (squares + RIDGE * np.eye(size, dtype=np.int64)).tolist()
        whole = determinant(equations)
        total = 0
        for column, wanted in enumerate(ours.sum(axis=0).tolist()):
            total += wanted * determinant(_replaced(equations, column, products.tolist()))
        found[n] = total // (whole * len(ours))
        squares = squares - squares // MEMORY + ours.T @ ours
        products = products - products // MEMORY + ours.T @ yields
    return found


def _shown(params: Params, step: str, wafers: int) -> Ints:
    """The properties of each wafer, as the readings of a step show them."""
    features = shape_of(params).features(step)
    readings = model.readings(params, step).everything()
    cell = readings["wafer"] * features + readings["sensor"] % features
    sums = np.zeros(wafers * features, np.int64)
    np.add.at(sums, cell, readings["value"])
    means = sums // np.bincount(cell, minlength=wafers * features)
    bias = np.full((wafers, 1), BIAS, np.int64)
    return np.concatenate([bias, means.reshape(wafers, features)], axis=1)


def _replaced(rows: list[list[int]], column: int, values: list[int]) -> list[list[int]]:
    return [
        [*row[:column], value, *row[column + 1 :]] for row, value in zip(rows, values, strict=True)
    ]


def determinant(rows: Sequence[Sequence[int]]) -> int:
    """The determinant of a matrix of whole numbers, without fractions (Bareiss)."""
    table, before, sign = [list(row) for row in rows], 1, 1
    for n in range(len(table) - 1):
        if not table[n][n]:
            pivot = next((m for m in range(n + 1, len(table)) if table[m][n]), None)
            if pivot is None:
                return 0
            table[n], table[pivot], sign = table[pivot], table[n], -sign
        for m in range(n + 1, len(table)):
            for k in range(n + 1, len(table)):
                cross = table[m][k] * table[n][n] - table[m][n] * table[n][k]
                table[m][k] = cross // before
        before = table[n][n]
    return sign * table[-1][-1]
