"""What becomes of the tasks of one operator when their slot is lost, where each operator may say so itself.

Most protocols treat all tasks alike, and know no policies. Under one that heeds them, an operator is saved
as often as losing its state would hurt, and says what happens to its input while it is away. What nobody
says about an operator is decided by whether it has state, and by the interval of the run.
"""

from dataclasses import dataclass
from enum import Enum

from snapline.ids import Millis


class Intake(Enum):
    """What becomes of messages to a task while its slot is away."""

    DROP = "drop"  # they are discarded, and counted
    WAIT = "wait"  # their senders wait
    KEEP = "keep"  # their senders log them before they are sent, and send them again


class Stale(Enum):
    """What becomes of windows that ended while the task that had them was away."""

    DROP = "drop"  # they are discarded, and counted
    MARK = "mark"  # they are put out, and marked as tentative


@dataclass(frozen=True, slots=True)
class Policy:
    """How the tasks of an operator are protected."""

    saved: bool | None = None  # whether they take checkpoints; None: if they have state
    every_ms: Millis | None = (
        None  # between two checkpoints of a task; None: the interval of the run
    )
    versions: int = (
        2  # checkpoints of a task that are kept, so that damage leaves one to go back to
    )
    intake: Intake = Intake.DROP
    buffer: int = (
        0  # under WAIT: messages per channel that are held back before their sender waits, too
    )
    stale: Stale = Stale.DROP


DEFAULT_POLICY = Policy()
"""That of an operator about which nobody said anything."""
