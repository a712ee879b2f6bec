"""Which rows are judged, if not all are: those of windows up to some time, or of closed windows.

First everything is compared with everything, so that an event that stands in an output after that time is
not lost, and an output that claims a later event is not invented. Only then the rows are left out that are
not to be judged.
"""

from dataclasses import dataclass, replace

import numpy as np

from snapline.ids import Millis
from snapline.validate.columns import Bools, Ints
from snapline.validate.facts import FINE, Facts, of_event
from snapline.validate.judged import Unjudged
from snapline.validate.lineage import NOBODY, LateColumns, LineageColumns


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Of every row of the three tables whether it is judged."""

    events: Bools
    outputs: Bools
    late: Bools


def everything(tables: LineageColumns) -> JudgedRows:
    """All rows are judged."""
    sizes = (tables.events.id, tables.outputs.group, tables.late.id)
    return JudgedRows(*(np.ones(len(column), np.bool_) for column in sizes))


def until(tables: LineageColumns, size_ms: Millis, until_ms: Millis) -> JudgedRows:
    """The rows of windows that end then or before; late rows are left out if their event is later."""
    events = tables.events.window <= until_ms - size_ms
    of_row = tables.late.event
    late = (of_row == NOBODY) | of_event(events, of_row)
    return JudgedRows(events, tables.outputs.window <= until_ms - size_ms, late)


def within(tables: LineageColumns, known: Facts, scope: JudgedRows) -> tuple[LineageColumns, Facts]:
    """Tables and facts changed so that nothing is wrong with rows that are not judged."""
    known = replace(
        known,
        shows=known.shows & scope.outputs[tables.claims.output],
        cause=np.where(scope.outputs, known.cause, FINE),
        occurs=np.where(scope.events, known.occurs, 1),
        split=known.split & scope.events,
    )
    return replace(tables, late=take(tables.late, tables.late.event, scope.late)), known


def take(late: LateColumns, event: Ints, rows: Bools) -> LateColumns:
    """Some rows of the late output, with the events that they name."""
    return LateColumns(late.case[rows], late.id[rows], late.position[rows], event[rows])


def unjudged(tables: LineageColumns, scope: JudgedRows) -> list[Unjudged]:
    """How many events and windows of each case are not judged."""
    rest = ~scope.events
    case, window = tables.events.case[rest], tables.events.window[rest]
    events = np.bincount(case, minlength=len(tables.cases))
    windows = np.zeros(len(tables.cases), np.int64)
    if len(case):
        pairs = np.unique(np.stack((case, window)), axis=1)
        windows = np.bincount(pairs[0], minlength=len(tables.cases))
    return [Unjudged(*counts) for counts in zip(events.tolist(), windows.tolist(), strict=True)]
