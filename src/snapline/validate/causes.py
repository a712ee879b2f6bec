"""What can be wrong with outputs that name the inputs behind them: every cause has one name and one rule.

Words. An *event* is an input with an id. Its *place* is (resource, window of its time, GET or POST). An
output claims ids; each claim is an *occurrence*. An event is *lost* if it occurs in no output and not in
the late output. The *first* output of a (resource, window) is the one with the lowest position.

Rules. Every output gets at most one cause: the first of `OF_AN_OUTPUT` whose rule it meets. Lost events
give the causes of `OF_A_WINDOW`, one for each (resource, window) concerned; an event that occurs anywhere
is not lost, however wrong the place, so that one fault does not look like two. Late events give
`OF_A_LATE_EVENT`. The *leading* cause of a judgement is the first in the order of `Cause` that was found.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from snapline.core.policy import Guarantee


class Cause(StrEnum):
    """Why an output is not what it should be, in the order in which causes are looked for."""

    #: it claims an id that is no event, or no id at all
    INVENTED = "invented"
    #: all its ids have one and the same place, but for the window: that is another one
    WRONG_WINDOW = "wrong window"
    #: of its two sides (GET and POST, both claimed) one has the place it claims, the other another one
    WRONG_PAIR = "wrong pair"
    #: it claims ids of another place in any other way: of another resource, several windows, the wrong side
    MISPLACED = "misplaced"
    #: it claims an id more than once: the event was counted twice in the state
    TWICE_INSIDE = "twice inside"
    #: its counts are not the numbers of its ids
    WRONG_VALUE = "wrong value"
    #: an earlier output of the same (resource, window) claims one of its ids already
    DUPLICATE = "duplicate"
    #: an event is in the late output and occurs in an output of its own place
    LATE_AND_WINDOWED = "late and windowed"
    #: an event is in the late output more than once
    LATE_TWICE = "late twice"
    #: lost events, no output of their (resource, window), and no output at all from that window on
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
#: an id in the late output that is no event is `INVENTED`, too
OF_A_LATE_EVENT: Final = (Cause.LATE_AND_WINDOWED, Cause.LATE_TWICE)
OF_A_WINDOW: Final = (Cause.TRUNCATED, Cause.MISSING, Cause.INCOMPLETE)

_EXCESS: Final = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.EXACTLY_ONCE})
_LACK: Final = frozenset({Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE})
_BOTH: Final = _EXCESS | _LACK

#: what each cause breaks: there is too much, too little, or something wrong in the place of right
BREAKS: Final[Mapping[Cause, frozenset[Guarantee]]] = {
    Cause.INVENTED: _EXCESS,
    Cause.WRONG_WINDOW: _BOTH,
    Cause.WRONG_PAIR: _BOTH,
    Cause.MISPLACED: _BOTH,
    Cause.TWICE_INSIDE: _EXCESS,
    Cause.WRONG_VALUE: _BOTH,
    Cause.DUPLICATE: _EXCESS,
    Cause.LATE_AND_WINDOWED: _EXCESS,
    Cause.LATE_TWICE: _EXCESS,
    Cause.TRUNCATED: _LACK,
    Cause.MISSING: _LACK,
    Cause.INCOMPLETE: _LACK,
}
