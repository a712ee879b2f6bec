"""The columns of the three tables: which are needed, of which type, and the defaults of optional ones.

- input: `id`, `time` (event time, ms), `resource` (whole numbers or strings); optional `post` (else a GET)
  and `watermark` (ms): the highest that there can have been when the event came.
- output: `resource`, `window` (its start, ms), and `count`, `ids` of one stream, or `gets`, `get_ids`,
  `posts`, `post_ids` of two; optional `position` (else the number of the row).
- late: `id`; optional `position`.

All have a `case` if many judgements are made at once. The functions here return tables with all columns: an
output of one stream becomes one of two streams without POSTs. They raise UsageError for a wrong column.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Column, Varlen, kind_of
from snapline.errors import UsageError

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

INPUT: Final = "input"
OUTPUT: Final = "output"
LATE: Final = "late output"
FAR: Final = (
    "a time lies so far from 1970 that its window does not begin and end within 64 bits of milliseconds: "
    "if it means that there is no time, leave the event out, or fill it"
)
"""What is said of a time with which nobody can calculate, such as the lowest of all numbers."""


def as_inputs(table: Batch) -> Batch:
    """The inputs with all their columns."""
    post = np.zeros(len(table), np.bool_)
    if "post" in table.columns:
        column = _column(table, INPUT, "post")
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "bui":
            raise UsageError("the input's column 'post' must be true or false")
        post = column.astype(np.bool_, copy=False)
    names = ("id", "time", *_case(table), *(("watermark",) if "watermark" in table.columns else ()))
    columns = {name: _numbers(table, INPUT, name) for name in names}
    return Batch({**columns, "resource": _resource(table, INPUT), "post": post}, len(table))


def as_outputs(table: Batch | None, first: int = 0) -> Batch:
    """The outputs with all their columns, of two streams; `first` is the number of the first row."""
    if table is None or not len(table):
        return _NO_OUTPUT
    columns: dict[str, Column] = {"window": _numbers(table, OUTPUT, "window")}
    columns |= {name: _numbers(table, OUTPUT, name) for name in _case(table)}
    columns |= {"resource": _resource(table, OUTPUT), "position": _positions(table, OUTPUT, first)}
    if {"count", "ids"} & table.columns.keys():
        nothing = np.zeros(len(table) + 1, np.int64)
        columns |= {"gets": _numbers(table, OUTPUT, "count"), "get_ids": _lists(table, "ids")}
        columns |= {"posts": nothing[1:], "post_ids": Varlen("list", nothing, nothing[:0])}
    else:
        columns |= {name: _numbers(table, OUTPUT, name) for name in ("gets", "posts")}
        columns |= {name: _lists(table, name) for name in ("get_ids", "post_ids")}
    return Batch(columns, len(table))


def as_late(table: Batch | None, first: int = 0) -> Batch:
    """The late events with all their columns; `first` is the number of the first row."""
    if table is None or not len(table):
        return _NO_LATE
    columns = {name: _numbers(table, LATE, name) for name in ("id", *_case(table))}
    return Batch({**columns, "position": _positions(table, LATE, first)}, len(table))


def _case(table: Batch) -> tuple[str, ...]:
    return ("case",) if "case" in table.columns else ()


def _positions(table: Batch, what: str, first: int) -> Ints:
    if "position" in table.columns:
        return _numbers(table, what, "position")
    return np.arange(first, first + len(table), dtype=np.int64)


def _resource(table: Batch, what: str) -> Column:
    column = _column(table, what, "resource")
    if isinstance(column, np.ndarray):
        return _numbers(table, what, "resource")
    if kind_of(column) not in ("str", "words"):
        raise UsageError(f"the {what}'s column 'resource' must hold whole numbers or strings")
    return column


def _lists(outputs: Batch, name: str) -> Varlen:
    column = _column(outputs, OUTPUT, name)
    if not isinstance(column, Varlen) or column.kind != "list":
        raise UsageError(f"the output's column {name!r} must hold lists of ids (int64)")
    return column


def _numbers(table: Batch, what: str, name: str) -> Ints:
    column = _column(table, what, name)
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
        raise UsageError(f"the {what}'s column {name!r} must hold whole numbers (int64)")
    return column.astype(np.int64, copy=False)


def _column(table: Batch, what: str, name: str) -> Column:
    if name not in table.columns:
        raise UsageError(
            f"the {what} has no column {name!r}, only {', '.join(table.columns) or 'nothing'}"
        )
    column: Column = table[name]
    return column


_NO_OUTPUT: Final = as_outputs(
    Batch.of(resource=[0], window=[0], count=[0], ids=[[]], case=[0])
).slice(0, 0)
_NO_LATE: Final = as_late(Batch.of(id=[0], case=[0])).slice(0, 0)
