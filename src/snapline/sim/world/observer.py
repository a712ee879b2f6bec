"""What the simulated world tells whoever watches it, before it does something and after.

An observer may raise `InvariantBroken`, which ends the run at the step that broke it.
"""

from collections.abc import Mapping
from typing import Protocol

from snapline.core.messages import Message
from snapline.engine.coordinator.ledger import Decision
from snapline.ids import TaskId
from snapline.journal.entry import Entry
from snapline.storage.api import Extent


class WorldObserver(Protocol):
    """Whoever watches a world."""

    @property
    def commits(self) -> int:
        """How many lines were committed so far, by its own account."""
        ...

    def see(self, entry: Entry) -> None:
        """Something was written into the journal."""
        ...

    def sending(self, message: Message) -> None:
        """A message is about to be sent for the first time."""
        ...

    def wrote(self) -> None:
        """A sink wrote records."""
        ...

    def publishing(self, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """A manifest is about to be written."""
        ...

    def resuming(self, past: Decision | None) -> None:
        """A coordinator is about to resume the run at this decision."""
        ...

    def finishing(self, author: str) -> None:
        """A coordinator is about to end the run."""
        ...

    def stopping(self) -> None:
        """The run is about to stop with a last line, after which it is resumed."""
        ...

    def deleting(self, key: str) -> None:
        """A coordinator is about to delete an object."""
        ...
