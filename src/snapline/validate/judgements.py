"""Makes a judgement of the findings of each case: counts, causes, and the lowest example of each cause."""

from collections.abc import Sequence

import numpy as np

from snapline.ids import Millis
from snapline.validate.causes import Cause
from snapline.validate.facts import FINE, Facts
from snapline.validate.findings import findings, starts_of
from snapline.validate.judged import Judged, Witness
from snapline.validate.lineage import LineageColumns
from snapline.validate.scope import JudgedRows, everything, unjudged, until, within


def judgements(
    tables: LineageColumns,
    known: Facts,
    size_ms: Millis,
    *,
    until_ms: Millis | None = None,
    undecided: str | None = None,
) -> list[Judged]:
    """The judgement on each case: on all windows, or on those that end at `until_ms` or before."""
    scope = everything(tables) if until_ms is None else until(tables, size_ms, until_ms)
    judged_tables, judged_facts = within(tables, known, scope)
    found = findings(judged_tables, judged_facts)
    order = found.order()
    starts = starts_of(found.case[order] * FINE + found.cause[order])
    causes: list[dict[Cause, int]] = [{} for _ in tables.cases]
    witnesses: list[dict[Cause, Witness]] = [{} for _ in tables.cases]
    for start, count in zip(starts, np.diff(starts, append=len(order)), strict=True):
        row = int(order[start])
        witness = found.witness(row, tables)
        causes[found.case[row]][witness.cause] = int(count)
        witnesses[found.case[row]][witness.cause] = witness
    numbers = zip(_sums(tables, known, scope), unjudged(tables, scope), strict=True)
    return [
        Judged(*sums, causes[case], witnesses[case], undecided, rest)  # type: ignore[arg-type, call-arg]
        for case, (sums, rest) in enumerate(numbers)
    ]


def _sums(tables: LineageColumns, known: Facts, scope: JudgedRows) -> Sequence[tuple[int, ...]]:
    """The numbers of each case, in the order in which a judgement has them."""
    case, inside, occurs = tables.events.case, scope.events, known.occurs + known.late
    columns = [case[inside], tables.outputs.case[scope.outputs], tables.late.case[scope.late]]
    flags = (occurs == 0, occurs > 1, known.reliable, known.rightly > 0, known.late > 0)
    columns += [case[inside & flag] for flag in flags]
    sums = [np.bincount(column, minlength=len(tables.cases)).tolist() for column in columns]
    return list(zip(*sums, strict=True))
