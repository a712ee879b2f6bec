"""Holds the answer of a run against the right one: what an oracle knows, or what comes without failures.

One function for both worlds. It numbers the rows of both answers by their identity, so that `metrics` need
not know what rows are.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.engine.reference.reference import reference_output
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.metrics.deviation import AnswerRows, DeviationFigures, as_they_stand, deviation
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.losses import Ints
from snapline.workload.oracles.codes import Codes

_NONE: Final = Batch({}, 0)


def right_answer(
    answer: AnswerColumns, flow: Dataflow, slots: int, right: Callable[[], Batch] | None
) -> Batch:
    """What the answer should be: what `right` computes, or what comes out without failures."""
    if right is not None:
        return right()
    return reference_output(deploy(flow, slots), 0).get(answer.sink, _NONE)


def deviation_of(
    answer: AnswerColumns, right: Batch, found: Batch, written_ms: Ints, from_ms: Millis
) -> DeviationFigures:
    """How far rows that were written at these times are from the right ones, from a moment on.

    Raises UsageError if the answer has no such columns.
    """
    for batch in (right, found):
        if len(batch):
            _check(answer, batch)
    # What comes without failures is in the order in which it was written, and not in that of its times.
    latest, _ = _latest(answer, right, np.zeros(len(right), np.int64))
    known = latest, _column(latest, answer.time)
    came = _latest(answer, found, written_ms)
    codes = Codes(_identity(answer, known[0]))
    order = np.argsort(codes.own, kind="stable")
    if (np.diff(codes.own[order]) == 0).any():
        raise UsageError(
            f"the answer of {answer.sink} has rows that cannot be told apart by "
            f"{', '.join(answer.identity)}: name more columns"
        )
    expected = _rows(answer, known, np.arange(len(known[0]), dtype=np.int64))
    numbers = _places(codes.own[order], order, codes.of(_identity(answer, came[0])))
    rows = _rows(answer, came, numbers)
    if answer.replaces:
        rows = as_they_stand(expected, rows, from_ms)
    return deviation(expected, rows, from_ms)


def _check(answer: AnswerColumns, batch: Batch) -> None:
    for name in (*answer.identity, *answer.columns):
        column = batch.columns.get(name)
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iufb":
            there = "is no column of numbers" if column is not None else "is not there"
            raise UsageError(f"{name!r} {there} in the output {answer.sink!r}")


def _column(batch: Batch, name: str) -> Ints:
    if name not in batch.columns:
        return np.zeros(len(batch), np.int64)
    column: Ints = batch[name]
    return column


def _identity(answer: AnswerColumns, batch: Batch) -> Sequence[Array]:
    """The columns that tell rows apart; beside each, whether it has a number at all.

    NaN equals nothing, not even itself, so as a number it would make the right row a stranger.
    """
    columns = [_column(batch, name) for name in answer.identity]
    none = [np.isnan(column) for column in columns]
    numbers = [np.where(nan, 0, column) for nan, column in zip(none, columns, strict=True)]
    return [*numbers, *none]


def _places(known: Ints, order: Ints, codes: Ints) -> Ints:
    """The number of the right row for each of these codes; -1 if there is none."""
    if not len(known):
        return np.full(len(codes), -1, np.int64)
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    found: Ints = np.where(known[at] == codes, order[at], -1)
    return found


def _rows(answer: AnswerColumns, rows: tuple[Batch, Ints], numbers: Ints) -> AnswerRows:
    batch, at_ms = rows
    values = {name: _column(batch, name).astype(np.float64) for name in answer.columns}
    return AnswerRows(numbers, at_ms, values)


def _latest(answer: AnswerColumns, batch: Batch, at_ms: Ints) -> tuple[Batch, Ints]:
    """Of rows that replace each other the last one of each identity."""
    if not answer.replaces or not len(batch):
        return batch, at_ms
    codes = Codes(_identity(answer, batch)).own
    order = np.lexsort((at_ms, codes))  # those of one moment stay as they were read
    chosen = order[np.flatnonzero(np.diff(codes[order], append=-1))]
    return batch.take(chosen), at_ms[chosen]
