"""Who wants the sources to read no more input: full back edges, slots that leave, whoever stops the run.

A stop with a last line goes like this. The coordinator holds all sources and asks for waves of counters,
until everything in flight is delivered (`quiet`). Then the protocol takes a last checkpoint, as at the end
of a job, and the run ends when a decided line holds everything (`covers`). A failure meanwhile begins
another epoch, as always; in the new epoch the sources are held before any slot may go on.

A slot that is to leave goes in the same way: when a decided line holds everything, the run does not end,
but the slot is let go, and its next life begins there, with nothing to replay. If it dies before that, it
is lost like any other. If the run comes to its end meanwhile, or is stopped, nobody needs to leave.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from snapline.ids import SlotId
from snapline.journal import happenings

STOPPED: Final = "stopped with a last line"
"""The problem of a run that was asked to stop: it is not over, and a resume goes on from that line."""


@dataclass(slots=True)
class SourceHold:
    """Holds sources as long as anybody wants it; `tell` is called whenever that changes."""

    tell: Callable[[bool], None]
    pressed: dict[SlotId, None] = field(default_factory=dict)  #: their back edges hold too much
    leaving: dict[SlotId, None] = field(default_factory=dict)  #: their present lives are to end
    stopping: bool = False  #: the run is to end with a last line; it stays so in all later epochs

    @property
    def draining(self) -> bool:
        """Whether a line is awaited that holds everything; it stays so in later epochs."""
        return self.stopping or bool(self.leaving)

    @property
    def held(self) -> bool:
        """Whether sources are to read no more for now."""
        return self.draining or bool(self.pressed)

    def forget(self, slot: SlotId) -> None:
        """Forget what a life of a slot wanted that is over; nobody is told."""
        self.pressed.pop(slot, None)
        self.leaving.pop(slot, None)

    def press(self, slot: SlotId, high: bool) -> None:
        """Note that the back edges of a slot hold too much, or no longer do."""
        before = self.held
        if high:
            self.pressed[slot] = None
        else:
            self.pressed.pop(slot, None)
        if before != self.held:
            self.tell(self.held)


def how_it_ended(problem: str | None, line: int | None) -> happenings.JobHappening:
    """What the journal has of the end of a job; `line` is the last decision of a run with lines."""
    if problem is None:
        return happenings.JobFinished(line is not None)
    return happenings.JobSuspended(line) if problem == STOPPED else happenings.JobStopped(problem)
