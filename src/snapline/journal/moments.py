"""Finds the moments for which faults wait in the journal of a coordinator, simulated or real."""

from collections.abc import Iterator
from typing import Literal

from snapline.core import effects
from snapline.ids import Epoch
from snapline.journal.entry import COORDINATOR, Entry, Handled, Happened
from snapline.journal.happenings import LineDecided


class Moments:
    """Finds where a line is committed, and where a recovery or a round begins.

    A coordinator that was replaced may go on for a while before it notices. What it does then has no
    effect, so it is left out.
    """

    def __init__(self) -> None:
        self._epoch: Epoch = 0  #: the job's epoch by the last decision
        self._decision = 0  #: the number of that decision

    def see(self, entry: Entry) -> Iterator[Literal["line", "recovery", "round"]]:
        """The moments that come with an entry, in order."""
        if isinstance(entry, Happened):
            what = entry.what
            if isinstance(what, LineDecided) and what.number > self._decision:
                self._decision, self._epoch = what.number, what.epoch
                if self._epoch == entry.epoch:  # else it begins an epoch, and commits nothing new
                    yield "line"
        elif isinstance(entry, Handled) and entry.actor == COORDINATOR:
            for effect in entry.effects if entry.epoch >= self._epoch else ():
                match effect:
                    case effects.Order(_, command) if command.begins is not None:
                        yield "round"
                    case effects.Rollback():
                        yield "recovery"
                    case _:
                        pass
