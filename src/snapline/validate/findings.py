"""From facts to a judgement: a finding for each output, late event and window that is not as it should be.

The lowest finding of each cause becomes its witness.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from snapline.validate.causes import OF_A_WINDOW, Cause
from snapline.validate.columns import Bools, Ints
from snapline.validate.facts import CAUSES, FINE, NUMBER, Facts, of_event
from snapline.validate.judged import Judged, Witness
from snapline.validate.lineage import NOBODY, Lineage

_MISPLACED: Final = (Cause.WRONG_WINDOW, Cause.WRONG_PAIR, Cause.MISPLACED)


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong, each a row; `witness` reads one."""

    case: Ints
    cause: Ints
    placed: Bools  # resource and window are known
    window: Ints
    resource: Ints
    position: Ints
    named: Bools  # an id is known
    id: Ints
    told: Bools  # there is an `other`
    other: Ints

    def __len__(self) -> int:
        return len(self.case)

    def witness(self, row: int, tables: Lineage) -> Witness:
        """A finding in the words of a judgement."""
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
        """The rows by case, by cause, and the lowest of each first."""
        keys = (self.id, ~self.named, self.position, self.resource, self.window, ~self.placed)
        return np.lexsort((*keys, self.cause, self.case))


def findings(tables: Lineage, known: Facts) -> Findings:
    """All that is wrong."""
    parts = (of_outputs(tables, known), of_late(tables, known), of_lost(tables, known))
    return Findings(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Findings))
    )


def of_outputs(tables: Lineage, known: Facts) -> Findings:
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


def of_late(tables: Lineage, known: Facts) -> Findings:
    """One finding for each late event that is also elsewhere, or twice, and for each that is no event."""
    events, late = tables.events, tables.late
    order = np.lexsort((late.position, late.event))
    row = late.event[order]
    invented, order = order[row == NOBODY], order[row != NOBODY]
    event = late.event[order]
    starts = starts_of(event)
    second = late.position[order[np.minimum(starts + 1, len(order) - 1)]]
    bad = (known.rightly[event[starts]] > 0) | (known.late[event[starts]] > 1)
    starts, second = starts[bad], second[bad]
    event = event[starts]
    windowed = known.rightly[event] > 0
    return Findings(
        np.concatenate((events.case[event], late.case[invented])),
        np.concatenate(
            (
                np.where(windowed, NUMBER[Cause.LATE_AND_WINDOWED], NUMBER[Cause.LATE_TWICE]),
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
                np.where(windowed, _right_positions(tables, known, event), second),
                np.zeros(len(invented), np.int64),
            )
        ),
    )


def _right_positions(tables: Lineage, known: Facts, event: Ints) -> Ints:
    """The lowest position of an output in which each of these events occurs rightly."""
    claims = tables.claims
    lowest = np.full(len(tables.events.id), np.iinfo(np.int64).max)
    right = np.flatnonzero(known.right)
    right = right[np.isin(claims.event[right], event)] if len(event) else right[:0]
    np.minimum.at(lowest, claims.event[right], tables.outputs.position[claims.output[right]])
    return lowest[event]


def of_lost(tables: Lineage, known: Facts) -> Findings:
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


def judgements(tables: Lineage, known: Facts, undecided: str | None = None) -> list[Judged]:
    """What is to be said of each case."""
    found = findings(tables, known)
    order = found.order()
    starts = starts_of(found.case[order] * FINE + found.cause[order])
    causes: list[dict[Cause, int]] = [{} for _ in tables.cases]
    witnesses: list[dict[Cause, Witness]] = [{} for _ in tables.cases]
    for start, count in zip(starts, np.diff(starts, append=len(order)), strict=True):
        row = int(order[start])
        witness = found.witness(row, tables)
        causes[found.case[row]][witness.cause] = int(count)
        witnesses[found.case[row]][witness.cause] = witness
    return [
        Judged(*numbers, causes[case], witnesses[case], undecided)  # type: ignore[arg-type, call-arg]
        for case, numbers in enumerate(_sums(tables, known))
    ]


def _sums(tables: Lineage, known: Facts) -> Sequence[tuple[int, ...]]:
    """The numbers of each case, in the order in which a judgement has them."""
    case = tables.events.case
    occurs = known.occurs + known.late
    columns = [case, tables.outputs.case, tables.late.case]
    columns += [case[occurs == 0], case[occurs > 1], case[known.reliable]]
    sums = [np.bincount(column, minlength=len(tables.cases)).tolist() for column in columns]
    return list(zip(*sums, strict=True))
