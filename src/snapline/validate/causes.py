"""What can be wrong with outputs that name the inputs behind them: each *cause* has one name and one rule.

Words. An *event* is an input with an id. Its *window* begins at `time - time % size` (the rest is never
negative), its *side* is GET or POST, its *place* is (resource, window, side). An output claims ids; each
claim is an *occurrence*, and it is *right* if the event has the output's resource and window and stands
on the side on which it is claimed. An event is *lost* if it occurs in no output and not in the late output.
Of two outputs the *earlier* one has the lower position; positions are unique (rows in order where not).

Rules. Every output gets at most one cause: the first of `OF_AN_OUTPUT` whose rule it meets. An event gets
at most one of `OF_A_LATE_EVENT`: the first. Lost events give the causes of `OF_A_WINDOW`, one for each
(resource, window) concerned; an event that occurs anywhere is not lost, however wrong the place, so that
one fault does not look like two. A row of the late output that names no event is `INVENTED`, each for
itself. A (resource, window) whose events lie in several outputs, none of which has them all, is `SPLIT`,
whatever else is wrong with those outputs: each row has to be right by itself, and two wrong counts do not
become right because their sum is. An output need not contain events that are late. The *leading* cause of
a judgement is the first in the order of `Cause` that was found.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from snapline.core.guarantee import Guarantee


class Cause(StrEnum):
    """Why an output is not what it should be, in the order in which causes are looked for."""

    #: it claims an id that is no event, or no id at all
    INVENTED = "invented"
    #: all its ids have its resource, stand on their side, and have one and the same window: another one
    WRONG_WINDOW = "wrong window"
    #: of its two sides (both claimed) one is right in every id; the ids of the other stand on their side,
    #: and all have one and the same (resource, window): another one
    WRONG_PAIR = "wrong pair"
    #: it claims an id that is not right, in any other way: another resource, several windows, wrong side
    MISPLACED = "misplaced"
    #: it claims an id more than once, on both sides together: the event was counted twice in the state
    TWICE_INSIDE = "twice inside"
    #: its counts are not the numbers of its ids, side by side
    WRONG_VALUE = "wrong value"
    #: an earlier output of the same (resource, window) claims one of its ids already
    DUPLICATE = "duplicate"
    #: of the events of a (resource, window) that are not late and occur rightly, no output has all
    SPLIT = "split"
    #: an event is in the late output and has a right occurrence as well
    LATE_AND_WINDOWED = "late and windowed"
    #: an event is in the late output more than once
    LATE_TWICE = "late twice"
    #: an event is in the late output, although the watermark cannot have closed its window when it came
    NOT_LATE = "not late"
    #: lost events, no output of their (resource, window), and no output of any resource has a window that
    #: is the same or later
    TRUNCATED = "truncated"
    #: lost events, and no output of their (resource, window)
    MISSING = "missing"
    #: lost events, although there is an output of their (resource, window)
    INCOMPLETE = "incomplete"


OF_AN_OUTPUT: Final = (
    Cause.INVENTED,
    Cause.WRONG_WINDOW,
    Cause.WRONG_PAIR,
    Cause.MISPLACED,
    Cause.TWICE_INSIDE,
    Cause.WRONG_VALUE,
    Cause.DUPLICATE,
)
OF_A_LATE_EVENT: Final = (Cause.LATE_AND_WINDOWED, Cause.LATE_TWICE, Cause.NOT_LATE)
OF_A_WINDOW: Final = (Cause.TRUNCATED, Cause.MISSING, Cause.INCOMPLETE)

_EXCESS: Final = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.EXACTLY_ONCE})
_LACK: Final = frozenset({Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE})
_BOTH: Final = _EXCESS | _LACK

#: the guarantees that each cause breaks: something is there twice, is lost, or is wrong
BREAKS: Final[Mapping[Cause, frozenset[Guarantee]]] = {
    Cause.INVENTED: _EXCESS,
    Cause.WRONG_WINDOW: _BOTH,
    Cause.WRONG_PAIR: _BOTH,
    Cause.MISPLACED: _BOTH,
    Cause.TWICE_INSIDE: _EXCESS,
    Cause.WRONG_VALUE: _BOTH,
    Cause.DUPLICATE: _EXCESS,
    Cause.SPLIT: _BOTH,
    Cause.LATE_AND_WINDOWED: _EXCESS,
    Cause.LATE_TWICE: _EXCESS,
    Cause.NOT_LATE: _LACK,
    Cause.TRUNCATED: _LACK,
    Cause.MISSING: _LACK,
    Cause.INCOMPLETE: _LACK,
}

MAY_HEAL: Final = frozenset({Cause.SPLIT, Cause.NOT_LATE})
"""Causes that break at least once only if the output is over: a later output may still be whole."""
