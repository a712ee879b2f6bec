"""What the parts of a driver ask of the run as a whole."""

from typing import Protocol

from snapline.engine.coordinator.coordinator import Coordinator
from snapline.ids import Epoch
from snapline.journal.happenings import Happening


class RunControl(Protocol):
    """The run, as its receiver, its killer and its injector see it."""

    @property
    def engine(self) -> Coordinator:
        """The coordinator, which is told what happens to slots."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the run is over, so that no process is replaced any more."""
        ...

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write down what happened to an actor."""
        ...

    def finish(self, problem: str | None) -> None:
        """End the run; `problem` says why it could not go on."""
        ...
