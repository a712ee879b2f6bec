"""What a judgement says, whoever made it: in process, on Spark, or while the system runs.

The same inputs and outputs give the same `Judged` in every form; a test holds them equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.validate.causes import BREAKS, Cause

Answer: TypeAlias = Literal["yes", "no", "unknown"]
"""Whether a guarantee was kept."""

PROMISES = (Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE)


@dataclass(frozen=True, slots=True)
class Witness:
    """The smallest example of a cause: the lowest (window, resource, position, id) that shows it."""

    cause: Cause
    resource: (
        int | str | None
    )  # as the output says, or of the lost event; None for an invented late id
    window: Millis | None  # likewise
    id: int | None  # the lowest id that shows it; None if the output claims none
    position: int | None  # of the output, or in the late output; None if something is missing
    other: int | None = (
        None  # duplicate: position of the first output; wrong window: the right window
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """All that is to be said about inputs and outputs."""

    inputs: int
    outputs: int
    late: int  # rows of the late output
    lost: int  # events that occur nowhere
    repeated: int  # events that occur more than once, the late output included
    reliable: int  # events that occur once: in an output of their place, or late
    causes: Mapping[Cause, int] = field(default_factory=dict)  # only those found
    witnesses: Mapping[Cause, Witness] = field(default_factory=dict)  # one for each of them
    undecided: str | None = (
        None  # why something may be unknown: a judgement over an incomplete output
    )

    @property
    def leading(self) -> Cause | None:
        """The cause to look at first."""
        return next((cause for cause in Cause if cause in self.causes), None)

    def kept(self, guarantee: Guarantee) -> Answer:
        """Whether a guarantee was kept."""
        if any(guarantee in BREAKS[cause] for cause in self.causes):
            return "no"
        return "yes" if self.undecided is None else "unknown"

    @property
    def reliability(self) -> float:
        """Percent of the events that were processed reliably."""
        return 100.0 * self.reliable / self.inputs if self.inputs else 100.0
