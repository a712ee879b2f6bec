"""From facts to findings: one for each output, late event and window that is not as it should be.

The lowest finding of each cause becomes its witness.
"""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from snapline.validate.causes import OF_A_LATE_EVENT, OF_A_WINDOW, Cause
from snapline.validate.columns import Bools, Ints
from snapline.validate.facts import CAUSES, FINE, NUMBER, Facts, of_event
from snapline.validate.judged import Witness
from snapline.validate.lineage import NOBODY, LineageColumns

_MISPLACED: Final = (Cause.WRONG_WINDOW, Cause.WRONG_PAIR, Cause.MISPLACED)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is wrong, a row for each finding; `witness` reads one of them."""

    case: Ints
    cause: Ints
    placed: Bools  # whether resource and window are known
    window: Ints
    resource: Ints
    position: Ints
    named: Bools  # whether an id is known
    id: Ints
    told: Bools  # whether `other` has a meaning
    other: Ints

    def __len__(self) -> int:
        return len(self.case)

    def witness(self, row: int, tables: LineageColumns) -> Witness:
        """One finding as a witness."""
        cause = CAUSES[self.cause[row]]
        placed = bool(self.placed[row])
        return Witness(
            cause,
            tables.resource(int(self.resource[row])) if placed else None,
            int(self.window[row]) if placed else None,
            int(self.id[row]) if self.named[row] else None,
            None if cause in OF_A_WINDOW else int(self.position[row]),
            int(self.other[row]) if self.told[row] else None,
        )

    def order(self) -> Ints:
        """The rows ordered by case, then by cause, then the lowest first."""
        keys = (self.id, ~self.named, self.position, self.resource, self.window, ~self.placed)
        return np.lexsort((*keys, self.cause, self.case))


def findings(tables: LineageColumns, known: Facts) -> Findings:
    """All that is wrong."""
    makers = (of_outputs, of_split, of_late, of_lost)
    parts = [make(tables, known) for make in makers]
    return Findings(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Findings))
    )


def of_outputs(tables: LineageColumns, known: Facts) -> Findings:
    """One finding for each output that has a cause."""
    outputs, claims = tables.outputs, tables.claims
    rows = np.flatnonzero(known.cause != FINE)
    shown = np.flatnonzero(known.shows)
    shown = shown[np.lexsort((claims.id[shown], claims.output[shown]))]
    shown = shown[starts_of(claims.output[shown])]  # the lowest id of each output
    at = np.searchsorted(rows, claims.output[shown])
    named = np.zeros(len(rows), np.bool_)
    named[at] = True
    id, window, first = (np.zeros(len(rows), np.int64) for _ in range(3))
    id[at] = claims.id[shown]
    window[at] = of_event(tables.events.window, claims.event[shown])
    first[at] = np.append(outputs.position, 0)[known.first[shown]]
    cause = known.cause[rows]
    duplicate = cause == NUMBER[Cause.DUPLICATE]
    told = np.isin(cause, [NUMBER[cause] for cause in _MISPLACED]) | duplicate
    told[at] &= known.first[shown] != NOBODY
    return Findings(
        outputs.case[rows],
        cause,
        np.ones(len(rows), np.bool_),
        outputs.window[rows],
        outputs.resource[rows],
        outputs.position[rows],
        named,
        id,
        told,
        np.where(duplicate, first, window),
    )


def of_split(tables: LineageColumns, known: Facts) -> Findings:
    """One finding for each (resource, window) whose events lie in several outputs, but not all in one."""
    outputs, claims = tables.outputs, tables.claims
    some = np.flatnonzero(known.right & of_event(known.split, claims.event))
    rank = np.empty(len(outputs.group), np.int64)
    rank[np.argsort(outputs.position, kind="stable")] = np.arange(len(rank))
    row = claims.output[some]
    some = some[np.lexsort((rank[row], outputs.group[row]))]
    starts = starts_of(outputs.group[claims.output[some]])
    first = np.repeat(claims.output[some[starts]], np.diff(starts, append=len(some)))
    there = np.zeros(len(tables.events.id), np.bool_)  # in the first output of its place
    there[claims.event[some[claims.output[some] == first]]] = True
    lacks = ~there[claims.event[some]]
    some, first = some[lacks], first[lacks]
    row = claims.output[some]
    order = np.lexsort((rank[row], claims.id[some], outputs.group[row]))
    order = order[starts_of(outputs.group[row[order]])]  # the lowest id of each place
    some, first = some[order], first[order]
    everyone = np.ones(len(some), np.bool_)
    return Findings(
        outputs.case[first],
        np.full(len(some), NUMBER[Cause.SPLIT]),
        everyone,
        outputs.window[first],
        outputs.resource[first],
        outputs.position[first],
        everyone,
        claims.id[some],
        everyone,
        outputs.position[claims.output[some]],
    )


def of_late(tables: LineageColumns, known: Facts) -> Findings:
    """One finding for each late event that is counted too, late twice, not late, or no event at all."""
    events, late = tables.events, tables.late
    order = np.lexsort((late.position, late.event))
    row = late.event[order]
    invented, order = order[row == NOBODY], order[row != NOBODY]
    event = late.event[order]
    starts = starts_of(event)
    second = late.position[order[np.minimum(starts + 1, len(order) - 1)]]
    late_event = event[starts]
    bad = (known.rightly[late_event] > 0) | (known.late[late_event] > 1) | known.timely[late_event]
    starts, second = starts[bad], second[bad]
    event = event[starts]
    windowed, twice = known.rightly[event] > 0, known.late[event] > 1
    numbers = [NUMBER[cause] for cause in OF_A_LATE_EVENT]
    return Findings(
        np.concatenate((events.case[event], late.case[invented])),
        np.concatenate(
            (
                np.select([windowed, twice], numbers[:2], numbers[2]),
                np.full(len(invented), NUMBER[Cause.INVENTED]),
            )
        ),
        np.repeat((True, False), (len(event), len(invented))),
        np.concatenate((events.window[event], np.zeros(len(invented), np.int64))),
        np.concatenate((events.resource[event], np.zeros(len(invented), np.int64))),
        late.position[np.concatenate((order[starts], invented))],
        np.ones(len(event) + len(invented), np.bool_),
        late.id[np.concatenate((order[starts], invented))],
        np.repeat((True, False), (len(event), len(invented))),
        np.concatenate(
            (
                np.select(
                    [windowed, twice],
                    [_right_positions(tables, known, event), second],
                    events.watermark[event],
                ),
                np.zeros(len(invented), np.int64),
            )
        ),
    )


def _right_positions(tables: LineageColumns, known: Facts, event: Ints) -> Ints:
    """The lowest position of an output in which each of these events occurs rightly."""
    claims = tables.claims
    lowest = np.full(len(tables.events.id), np.iinfo(np.int64).max)
    right = np.flatnonzero(known.right)
    right = right[np.isin(claims.event[right], event)] if len(event) else right[:0]
    np.minimum.at(lowest, claims.event[right], tables.outputs.position[claims.output[right]])
    return lowest[event]


def of_lost(tables: LineageColumns, known: Facts) -> Findings:
    """One finding for each (resource, window) of which an event occurs nowhere."""
    events, outputs = tables.events, tables.outputs
    lost = np.flatnonzero((known.occurs == 0) & (known.late == 0))
    lost = lost[np.lexsort((events.id[lost], events.group[lost]))]
    lost = lost[starts_of(events.group[lost])]  # the lowest id of each
    firsts = np.lexsort((outputs.position, outputs.group))
    firsts = firsts[starts_of(outputs.group[firsts])]
    at = np.searchsorted(outputs.group[firsts], events.group[lost])
    there = np.append(outputs.group[firsts], -1)[at] == events.group[lost]
    last = np.full(len(tables.cases), np.iinfo(np.int64).min)
    np.maximum.at(last, outputs.case, outputs.window)
    ended = events.window[lost] > last[events.case[lost]]
    cause = np.select(
        [there, ended], [NUMBER[Cause.INCOMPLETE], NUMBER[Cause.TRUNCATED]], NUMBER[Cause.MISSING]
    )
    return Findings(
        events.case[lost],
        cause,
        np.ones(len(lost), np.bool_),
        events.window[lost],
        events.resource[lost],
        np.zeros(len(lost), np.int64),
        np.ones(len(lost), np.bool_),
        events.id[lost],
        there,
        np.append(outputs.position[firsts], 0)[at],
    )


def starts_of(ordered: Ints) -> Ints:
    """Where each run of equal values begins."""
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)
