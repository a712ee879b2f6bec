"""The rules of `causes` over whole columns: what is true of every claim, every output and every event.

Every rule of an output is a pair: which claims show it, and which outputs meet it. The first that is met is
the cause of the output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Array
from snapline.validate.causes import OF_AN_OUTPUT, Cause
from snapline.validate.columns import Bools, Ints
from snapline.validate.lineage import NOBODY, LineageColumns

CAUSES: Final = tuple(Cause)
NUMBER: Final[Mapping[Cause, int]] = {cause: number for number, cause in enumerate(CAUSES)}
FINE: Final = len(CAUSES)
"""Stands in the place of the number of a cause for an output with which nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of every claim, output and event, each a column with a row for each of them."""

    right: Bools  # of a claim: whether it is right, as `causes` defines it
    shows: Bools  # of a claim: it shows the cause of its output
    #: of a claim: the row of the first output of the (resource, window) that claims the id, or NOBODY
    first: Ints
    cause: Ints  # of an output: the number of its cause, or FINE
    occurs: Ints  # of an event: how often in outputs
    rightly: Ints  # of an event: how often rightly
    #: of an event: how often rightly in an output whose counts are the numbers of its ids
    soundly: Ints
    late: Ints  # of an event: how often in the late output
    timely: Bools  # of an event: it cannot have been late
    split: Bools  # of an event that is not late: no output has all that were counted of its place

    @property
    def reliable(self) -> Bools:
        """Of every event whether it occurs once: in a right output, or rightly in the late output."""
        once: Bools = (self.occurs + self.late == 1) & (self.soundly + self.late == 1)
        return once & ~self.split & ~(self.timely & (self.late > 0))


def facts(tables: LineageColumns) -> Facts:
    """Compare every claim with the events."""
    events, outputs, claims = tables.events, tables.outputs, tables.claims
    known, everyone = claims.event != NOBODY, np.ones(len(claims.id), np.bool_)
    sided = known & (of_event(events.post, claims.event) == claims.post)
    right = sided & (of_event(events.group, claims.event) == outputs.group[claims.output])
    twice, again, first = _repeats(tables)
    rules = {
        Cause.INVENTED: (~known, any_claim(tables, ~known) | ~any_claim(tables, everyone)),
        Cause.WRONG_WINDOW: (~right, _wrong_window(tables, sided)),
        Cause.WRONG_PAIR: (~right, _wrong_pair(tables, sided, right)),
        Cause.MISPLACED: (~right, any_claim(tables, ~right)),
        Cause.TWICE_INSIDE: (twice, any_claim(tables, twice)),
        Cause.WRONG_VALUE: (everyone, ~outputs.honest),
        Cause.DUPLICATE: (again, any_claim(tables, again)),
    }
    cause = np.select(
        [rules[cause][1] for cause in OF_AN_OUTPUT], [NUMBER[cause] for cause in OF_AN_OUTPUT], FINE
    )
    of_claim = cause[claims.output]
    shows = np.select(
        [of_claim == NUMBER[cause] for cause in OF_AN_OUTPUT],
        [rules[cause][0] for cause in OF_AN_OUTPUT],
        False,
    )
    sound = right & outputs.honest[claims.output]
    count = len(events.id)
    late = np.bincount(tables.late.event[tables.late.event != NOBODY], minlength=count)
    return Facts(
        right,
        shows,
        first,
        cause,
        np.bincount(claims.event[known], minlength=count),
        np.bincount(claims.event[right], minlength=count),
        np.bincount(claims.event[sound], minlength=count),
        late,
        events.timely,
        _split(tables, right & (of_event(late, claims.event) == 0)),
    )


def of_event(values: Array, event: Ints) -> Array:
    """The values of events by their rows; zero for NOBODY."""
    return np.append(values, values.dtype.type(0))[event]


def any_claim(tables: LineageColumns, hit: Bools) -> Bools:
    """Of every output whether one of its claims is `hit`."""
    return np.bincount(tables.claims.output[hit], minlength=len(tables.outputs.group)) > 0


def _one(tables: LineageColumns, among: Bools, value: Ints) -> tuple[Bools, Ints]:
    """Of every output whether its claims `among` all have one value, and which; False if it has none."""
    rows, values = tables.claims.output[among], value[among]
    chosen = np.zeros(len(tables.outputs.group), np.int64)
    chosen[rows] = values
    several = np.bincount(rows[values != chosen[rows]], minlength=len(chosen)) > 0
    return any_claim(tables, among) & ~several, chosen


def _wrong_window(tables: LineageColumns, sided: Bools) -> Bools:
    events, outputs, claims = tables.events, tables.outputs, tables.claims
    resource = of_event(events.resource, claims.event)
    same = sided & (resource == outputs.resource[claims.output])
    one, window = _one(tables, np.ones_like(sided), of_event(events.window, claims.event))
    elsewhere: Bools = window != outputs.window
    return one & ~any_claim(tables, ~same) & elsewhere


def _wrong_pair(tables: LineageColumns, sided: Bools, right: Bools) -> Bools:
    events, outputs, claims = tables.events, tables.outputs, tables.claims
    wrong = np.zeros(len(outputs.group), np.bool_)
    if not claims.post.any():
        return wrong
    group = of_event(events.group, claims.event)
    for side in (claims.post, ~claims.post):
        one, place = _one(tables, side, group)
        elsewhere = one & ~any_claim(tables, side & ~sided) & (place != outputs.group)
        wrong |= elsewhere & any_claim(tables, ~side) & ~any_claim(tables, ~side & ~right)
    return wrong


def _repeats(tables: LineageColumns) -> tuple[Bools, Bools, Ints]:
    """Of every claim: is the id twice in its output, in an earlier one of its place, and in which first?"""
    outputs, claims = tables.outputs, tables.claims
    twice, again = (np.zeros(len(claims.id), np.bool_) for _ in range(2))
    first = claims.output.copy()
    known = np.flatnonzero(claims.event != NOBODY)
    often = np.bincount(claims.event[known]) > 1 if len(known) else np.zeros(0, np.bool_)
    some = known[often[claims.event[known]]]
    if not len(some):
        return twice, again, first
    rank = np.empty(len(outputs.group), np.int64)
    rank[np.argsort(outputs.position, kind="stable")] = np.arange(len(rank))
    row = claims.output[some]
    some = some[np.lexsort((rank[row], outputs.group[row], claims.event[some]))]
    row, event = claims.output[some], claims.event[some]
    fresh = np.ones(len(some), np.bool_)  # True: the first row of an (event, group)
    fresh[1:] = (event[1:] != event[:-1]) | (outputs.group[row[1:]] != outputs.group[row[:-1]])
    starts = np.flatnonzero(fresh)
    head = np.repeat(row[starts], np.diff(starts, append=len(some)))
    same = ~fresh[1:] & (row[1:] == row[:-1])
    twice[some[1:][same]] = twice[some[:-1][same]] = True
    again[some] = row != head
    first[some] = head
    return twice, again, first


def _split(tables: LineageColumns, part: Bools) -> Bools:
    """Of every event whether its place has several outputs, and none of them has all events."""
    outputs, claims, events = tables.outputs, tables.claims, tables.events
    places, place, rows = np.unique(outputs.group, return_inverse=True, return_counts=True)
    part = part & (rows[place] > 1)[claims.output]
    some = np.flatnonzero(part)
    split = np.zeros(len(events.id), np.bool_)
    if not len(some):
        return split
    some = some[np.lexsort((claims.event[some], claims.output[some]))]
    row, event = claims.output[some], claims.event[some]
    fresh = np.ones(len(some), np.bool_)  # False: the same event once more in the same output
    fresh[1:] = (row[1:] != row[:-1]) | (event[1:] != event[:-1])
    most = np.zeros(len(places), np.int64)
    np.maximum.at(most, place, np.bincount(row[fresh], minlength=len(place)))
    event = np.unique(event)
    at = np.searchsorted(places, events.group[event])
    split[event] = (most < np.bincount(at, minlength=len(places)))[at]
    return split


def correct(tables: LineageColumns, known: Facts) -> Bools:
    """Of every output whether its counts are those of all events of its place but the late ones.

    Which ids it names does not matter here: whether each event was processed is for `Facts.reliable`.
    """
    events, outputs = tables.events, tables.outputs
    places, place = np.unique(np.concatenate((events.group, outputs.group)), return_inverse=True)
    of_events, of_outputs = place[: len(events.group)], place[len(events.group) :]
    right = np.ones(len(outputs.group), np.bool_)
    for counts, side in ((outputs.gets, ~events.post), (outputs.posts, events.post)):
        due = np.bincount(of_events[side & (known.late == 0)], minlength=len(places))
        right &= counts == due[of_outputs]
    return right
