"""Inputs, outputs and late events as columns of numbers that can be sorted, found and compared at once.

Every claim of an output becomes a row of its own, with the row of the event that it names. A string
resource becomes its rank among all of them, so that numbers compare as the strings do. Tables of many cases
(a column `case`) are judged together: the case is part of every key, so that they do not mix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, Column, Varlen, Words
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.validate.columns import FAR, Bools, Ints, as_inputs, as_late, as_outputs

NOBODY: Final = -1
"""The row of an event that does not exist."""

_NUMBERS_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The inputs."""

    case: Ints
    id: Ints
    resource: Ints
    window: Ints
    post: Bools
    group: Ints  # a number for (case, resource, window)
    watermark: Ints  # the highest possible one when the event came; without meaning if unknown
    timely: Bools  # whether its window cannot have been closed when it came


@dataclass(frozen=True, slots=True)
class OutputColumns:
    """The outputs, without their lists of ids."""

    case: Ints
    resource: Ints
    window: Ints
    position: Ints
    honest: Bools  # whether the counts are the numbers of the ids
    group: Ints
    gets: Ints  # the counts
    posts: Ints


@dataclass(frozen=True, slots=True)
class Claims:
    """Every id that an output claims, as often as it claims it: first all GETs, then all POSTs."""

    output: Ints  # the row of the output
    id: Ints
    post: Bools
    event: Ints  # the row of the event, or NOBODY


@dataclass(frozen=True, slots=True)
class LateColumns:
    """The rows of the late output."""

    case: Ints
    id: Ints
    position: Ints
    event: Ints


@dataclass(frozen=True, slots=True)
class LineageColumns:
    """The three tables as columns of numbers."""

    events: EventColumns
    outputs: OutputColumns
    claims: Claims
    late: LateColumns
    cases: Ints  # the cases that exist; a column `case` above has their ranks
    words: Sequence[str] | None  # the resources behind their numbers, if they are strings

    def resource(self, number: int) -> int | str:
        """The resource behind its number."""
        return number if self.words is None else self.words[number]


def _check_near(times: Ints, reach_ms: Millis) -> None:
    """Raise UsageError if a time is so far away that adding or subtracting `reach_ms` would overflow."""
    limits = np.iinfo(np.int64)
    if (
        len(times)
        and not limits.min + reach_ms <= times.min() <= times.max() <= limits.max - reach_ms
    ):
        raise UsageError(FAR)


def lineage(
    inputs: Batch,
    outputs: Batch | None,
    late: Batch | None,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    cases: bool = False,
) -> LineageColumns:
    """Read the three tables. Raises UsageError if their columns are not what they should be.

    `lateness_ms`: a window is closed so long after its end.
    """
    if size_ms <= 0:
        raise UsageError(f"a window is longer than nothing; {size_ms} ms is not")
    inputs, outputs, late = as_inputs(inputs), as_outputs(outputs), as_late(late)
    of_event, of_output, of_late, known = _cases((inputs, outputs, late), asked=cases)
    resource, claimed, words = _resources(inputs, outputs)
    _check_near(inputs["time"], 2 * size_ms + lateness_ms)
    window = inputs["time"] - inputs["time"] % size_ms
    group = numbered(
        np.concatenate((of_event, of_output)),
        np.concatenate((resource, claimed)),
        np.concatenate((window, outputs["window"])),
    )
    ids = inputs["id"]
    row, claim, post, honest = _claims(outputs)
    key = numbered(
        np.concatenate((of_event, of_output[row], of_late)),
        np.concatenate((ids, claim, late["id"])),
    )
    event = _find(key[: len(ids)], key[len(ids) :], ids)
    group, output_group = group[: len(ids)], group[len(ids) :]
    watermark, timely = _watermarks(inputs, window + size_ms + lateness_ms)
    return LineageColumns(
        EventColumns(of_event, ids, resource, window, inputs["post"], group, watermark, timely),
        OutputColumns(
            *(of_output, claimed, outputs["window"], outputs["position"], honest, output_group),
            *(outputs["gets"], outputs["posts"]),
        ),
        Claims(row, claim, post, event[: len(row)]),
        LateColumns(of_late, late["id"], late["position"], event[len(row) :]),
        known,
        words,
    )


def _watermarks(inputs: Batch, closing: Ints) -> tuple[Ints, Bools]:
    """The watermark of every event, and whether that is before the closing of its window."""
    if "watermark" not in inputs.columns:
        return np.zeros(len(inputs), np.int64), np.zeros(len(inputs), np.bool_)
    return inputs["watermark"], closing > inputs["watermark"]


def numbered(*columns: Ints) -> Ints:
    """One number for each row: two are equal, or ordered, as the rows are, first column first."""
    numbers, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns if len(columns[0]) else ():
        low = int(column.min())
        span = int(column.max()) - low + 1
        if span > _NUMBERS_MAX // size:  # too large for a number: use ranks instead of distances
            values, ranks = np.unique(column, return_inverse=True)
            column, low, span = ranks.astype(np.int64), 0, len(values)
        if span > _NUMBERS_MAX // size:
            values, ranks = np.unique(numbers, return_inverse=True)
            numbers, size = ranks.astype(np.int64), len(values)
        numbers, size = numbers * span + (column - low), size * span
    return numbers


def _find(known: Ints, wanted: Ints, ids: Ints) -> Ints:
    """The row of each wanted key among the known ones, or NOBODY. No key may be known twice."""
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        raise UsageError(
            f"the id {ids[order[twice[0]]]} stands twice in the input: an event needs an id of its own"
        )
    if not len(known):
        return np.full(len(wanted), NOBODY)
    at = np.minimum(np.searchsorted(ordered, wanted), len(known) - 1)
    return np.where(ordered[at] == wanted, order[at], NOBODY)


def _claims(outputs: Batch) -> tuple[Ints, Ints, Bools, Bools]:
    """Of every claim its output, id and side; and of every output whether its counts are right."""
    sides = [outputs["get_ids"].compact(), outputs["post_ids"].compact()]
    lengths = [np.diff(side.offsets) for side in sides]
    rows = [np.repeat(np.arange(len(outputs)), length) for length in lengths]
    post = np.repeat((False, True), [len(side.values) for side in sides])
    honest: Bools = (outputs["gets"] == lengths[0]) & (outputs["posts"] == lengths[1])
    return np.concatenate(rows), np.concatenate([side.values for side in sides]), post, honest


def _cases(tables: Sequence[Batch], *, asked: bool) -> tuple[Ints, Ints, Ints, Ints]:
    """The rank of every row's case, table by table, and the cases."""
    if not asked:
        first, second, third = (np.zeros(len(table), np.int64) for table in tables)
        return first, second, third, np.zeros(1, np.int64)
    if not all("case" in table.columns for table in tables):
        raise UsageError("many cases are judged by a column 'case' in all three tables")
    columns = [table["case"] for table in tables]
    known = np.unique(np.concatenate(columns))
    first, second, third = (np.searchsorted(known, column) for column in columns)
    return first, second, third, known


def _resources(inputs: Batch, outputs: Batch) -> tuple[Ints, Ints, Sequence[str] | None]:
    """The resources of inputs and outputs as numbers, and the words behind them if they are strings."""
    first, second = inputs["resource"], outputs["resource"]
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first, second, None
    coded = [_coded(column) for column in (first, second)]
    words = sorted({word for _, values in coded for word in values})
    ranks = {word: rank for rank, word in enumerate(words)}
    numbers = [
        np.array([ranks[word] for word in values], np.int64)[codes] for codes, values in coded
    ]
    return numbers[0], numbers[1], words


def _coded(column: Column) -> tuple[Array, Sequence[str]]:
    """A column of strings as codes into its distinct values.

    Large tables come with `Words`, whose codes were made where they were read. Other strings are looked up
    one by one: about half a second for a million of them.
    """
    if isinstance(column, Words):
        return column.codes, column.values
    if isinstance(column, Varlen):
        text, codes = column.compact().values.tobytes(), dict[bytes, int]()
        ends = pairwise((column.offsets - column.offsets[0]).tolist())
        coded = (codes.setdefault(text[start:end], len(codes)) for start, end in ends)
        return np.fromiter(coded, np.int64, len(column)), [word.decode() for word in codes]
    if len(column):
        raise UsageError("the resources of input and output are of one type: numbers or strings")
    return np.zeros(0, np.int64), ()
