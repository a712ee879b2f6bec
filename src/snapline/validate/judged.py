"""A judgement, whichever judge made it: in process, on Spark, or while the system runs.

The same inputs and outputs give the same `Judged` in every form; a test holds them equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.validate.causes import BREAKS, MAY_HEAL, OF_A_WINDOW, Cause
from snapline.wording import are, plural

Answer: TypeAlias = Literal["yes", "no", "unknown"]
"""Whether a guarantee was kept."""

PROMISES = (Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE)


@dataclass(frozen=True, slots=True)
class Witness:
    """The smallest example of a cause: the lowest (window, resource, position, id) that shows it.

    Strings are compared by code points (bytes of UTF-8); what is None comes last. Which id shows a cause:
    one that is no event (invented); one that is not right (wrong window, wrong pair, misplaced); one that
    is claimed more than once (twice inside); one that an earlier output of the same (resource, window)
    claims, too (duplicate); one that the first of several outputs lacks (split); any of the output (wrong
    value); the lost, or late, event. The lowest of them.
    """

    cause: Cause
    #: as the output says; of the event, if it is lost or late; None for an invented late id
    resource: int | str | None
    window: Millis | None  # likewise
    id: int | str | None  # None if the output claims none
    #: of the output, of the first one if several share its events; of a late event the lowest in the late
    #: output; None if events are lost
    position: int | None
    #: wrong window, wrong pair, misplaced: the window of the event. Duplicate: the lowest position of an
    #: output of the same (resource, window) that claims the id (None if it is forgotten: see incremental).
    #: Incomplete: the lowest one of an output of the (resource, window). Late and windowed: the lowest
    #: position of an output in which the event occurs rightly. Split: the lowest of an output that has the
    #: event. Late twice: its second in the late output. Not late: the highest possible watermark.
    other: int | None = None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """What was not judged because its windows end after the time up to which the user wants a verdict."""

    events: int = 0
    windows: int = 0  # how many windows these events have


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement on inputs and outputs: counts, causes and witnesses."""

    inputs: int
    outputs: int
    late: int  # rows of the late output
    lost: int  # events that occur nowhere
    repeated: int  # events that occur more than once, the late output included
    #: events that occur once: rightly, in an output whose counts are the numbers of its ids and which is
    #: not one of several parts; or among the late, if they may have been late
    reliable: int
    counted: int  # events that occur rightly in an output: what came out in time
    late_events: int  # events that occur in the late output
    causes: Mapping[Cause, int] = field(default_factory=dict)  # only those found
    witnesses: Mapping[Cause, Witness] = field(default_factory=dict)  # one for each of them
    #: why something may be unknown: the output is incomplete, what is lost may yet come
    undecided: str | None = None
    unjudged: Unjudged = field(default_factory=Unjudged)
    max_late: float | None = None  # the share of events that may be late; None: any

    @property
    def leading(self) -> Cause | None:
        """The first cause that was found, in the order of `Cause`."""
        return next((cause for cause in Cause if cause in self.causes), None)

    def kept(self, guarantee: Guarantee) -> Answer:
        """Whether a guarantee was kept. In an incomplete output nothing counts as lost: it may come yet."""
        if guarantee is Guarantee.BOUNDED_LOSS:  # what was declared as lost is not known here
            exact = self.kept(Guarantee.EXACTLY_ONCE)
            return "unknown" if exact == "no" else exact
        certain = {*self.causes}
        if self.undecided is not None:
            certain -= {*OF_A_WINDOW}
            if guarantee is Guarantee.AT_LEAST_ONCE:
                certain -= MAY_HEAL
        if self.is_too_late or any(guarantee in BREAKS[cause] for cause in certain):
            return "no"
        return "yes" if self.doubt is None else "unknown"

    @property
    def doubt(self) -> str | None:
        """Why the answer cannot be yes although nothing wrong was found; None if it can."""
        if self.undecided is not None:
            return self.undecided
        if not self.inputs:
            return "no event was judged, so nothing was compared"
        if not self.counted:
            return (
                f"no output counts an event in time, so nothing was compared: of "
                f"{plural(self.inputs, 'event')} {self.late_events:,} {are(self.late_events)} late and "
                f"{self.lost:,} lost"
            )
        return None

    @property
    def late_share(self) -> float:
        """Which share of the events is late, from 0 to 1."""
        return self.late_events / self.inputs if self.inputs else 0.0

    @property
    def is_too_late(self) -> bool:
        """Whether more events are late than may be."""
        return self.max_late is not None and self.late_share > self.max_late

    @property
    def reliability(self) -> float:
        """Percent of the events that were processed reliably."""
        return 100.0 * self.reliable / self.inputs if self.inputs else 100.0
