"""What a judgement says, whoever made it: in process, on Spark, or while the system runs.

The same inputs and outputs give the same `Judged` in every form; a test holds them equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.validate.causes import BREAKS, OF_A_WINDOW, Cause

Answer: TypeAlias = Literal["yes", "no", "unknown"]
"""Whether a guarantee was kept."""

PROMISES = (Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE)


@dataclass(frozen=True, slots=True)
class Witness:
    """The smallest example of a cause: the lowest (window, resource, position, id) that shows it.

    Strings are compared by code points (bytes of UTF-8); what is None comes last. Which id shows a cause:
    one that is no event (invented); one that is not right (wrong window, wrong pair, misplaced); one that
    is claimed more than once (twice inside); one that an earlier output of the same (resource, window)
    claims, too (duplicate); any of the output (wrong value); the lost, or late, event. The lowest of them.
    """

    cause: Cause
    #: as the output says; of the event, if it is lost or late; None for an invented late id
    resource: int | str | None
    window: Millis | None  # likewise
    id: int | None  # None if the output claims none
    #: of the output; of a late event the lowest in the late output; None if events are lost
    position: int | None
    #: wrong window, wrong pair, misplaced: the window of the event. Duplicate: the lowest position of an
    #: output of the same (resource, window) that claims the id (None if it is forgotten: see incremental).
    #: Incomplete: the lowest one of an output of the (resource, window). Late and windowed: the lowest
    #: position of an output in which the event occurs rightly. Late twice: its second in the late output.
    other: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """All that is to be said about inputs and outputs."""

    inputs: int
    outputs: int
    late: int  # rows of the late output
    lost: int  # events that occur nowhere
    repeated: int  # events that occur more than once, the late output included
    #: events that occur once: late, or rightly, in an output whose counts are the numbers of its ids
    reliable: int
    causes: Mapping[Cause, int] = field(default_factory=dict)  # only those found
    witnesses: Mapping[Cause, Witness] = field(default_factory=dict)  # one for each of them
    #: why something may be unknown: the output is incomplete, what is lost may yet come
    undecided: str | None = None

    @property
    def leading(self) -> Cause | None:
        """The cause to look at first."""
        return next((cause for cause in Cause if cause in self.causes), None)

    def kept(self, guarantee: Guarantee) -> Answer:
        """Whether a guarantee was kept. Of an incomplete output nobody can say that something is lost."""
        certain = self.causes if self.undecided is None else self.causes.keys() - {*OF_A_WINDOW}
        if any(guarantee in BREAKS[cause] for cause in certain):
            return "no"
        return "yes" if self.undecided is None else "unknown"

    @property
    def reliability(self) -> float:
        """Percent of the events that were processed reliably."""
        return 100.0 * self.reliable / self.inputs if self.inputs else 100.0
