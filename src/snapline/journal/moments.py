"""The moments for which faults wait, found in what a coordinator writes down: the same in both worlds."""

from collections.abc import Iterator
from typing import Literal

from snapline.core import effects
from snapline.ids import Epoch
from snapline.journal.entry import COORDINATOR, Entry, Handled, Happened
from snapline.journal.happenings import LineDecided


class Moments:
    """Finds where a line is committed, and where a recovery or a round begins.

    What a coordinator does that was replaced, and does not know it yet, comes to nothing: it is left out.
    """

    def __init__(self) -> None:
        self._epoch: Epoch = 0  #: in which the last decision has put the job
        self._decision = 0  #: its number

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
