"""What an operator asks of fault tolerance, and what a job promises as a whole."""

from dataclasses import dataclass
from enum import Enum

from snapline.ids import Millis


class Guarantee(Enum):
    """How often each record counts in the published output, whatever fails."""

    NOTHING = "nothing"
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class Loss(Enum):
    """What an operator may lose when its slot dies (SPADE's partial fault tolerance)."""

    NOTHING = "nothing"
    INPUT = "input"  # messages that were under way to it
    STATE = "state"  # everything since its last checkpoint, or ever


@dataclass(frozen=True, slots=True)
class FaultTolerance:
    """The policy of one operator. Protocols that treat all operators alike ignore it."""

    checkpoint: bool = True  # save its state at all
    interval_ms: Millis | None = None  # its own interval, if not the job's
    log_inputs: bool = True  # keep what was sent to it until it is saved
    may_lose: Loss = Loss.NOTHING
