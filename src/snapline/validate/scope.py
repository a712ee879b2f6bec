"""What is judged and what is only looked at: windows up to some time, or those that are closed.

Everything is held against everything, so that an event that stands in an output behind the time is not
lost, and an output that claims an event behind it is not invented. Only then is left out what is not to be
judged.
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
    """Windows that end then or before; of the late output all rows but those of other windows' events."""
    events = tables.events.window <= until_ms - size_ms
    of_row = tables.late.event
    late = (of_row == NOBODY) | of_event(events, of_row)
    return JudgedRows(events, tables.outputs.window <= until_ms - size_ms, late)


def within(tables: LineageColumns, known: Facts, scope: JudgedRows) -> tuple[LineageColumns, Facts]:
    """Tables and facts in which nothing is wrong with what is not judged."""
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
    """What is left out of each case."""
    rest = ~scope.events
    case, window = tables.events.case[rest], tables.events.window[rest]
    events = np.bincount(case, minlength=len(tables.cases))
    windows = np.zeros(len(tables.cases), np.int64)
    if len(case):
        pairs = np.unique(np.stack((case, window)), axis=1)
        windows = np.bincount(pairs[0], minlength=len(tables.cases))
    return [Unjudged(*counts) for counts in zip(events.tolist(), windows.tolist(), strict=True)]
