"""The steps of a stream that say how the operator behind it is protected: see `core/policy.py`."""

from typing import Self

from snapline.dataflow.usage.hints import Hinted
from snapline.dataflow.usage.policies import BEST_EFFORT, Saying, to_checkpoint, to_take
from snapline.ids import Millis


class Protectable(Hinted):
    """A stream of which it can be said how the operator behind it is protected.

    This is for protocols that heed it; others save all operators alike, and refuse the dataflow. The steps
    add up: `windows.checkpoint(every="10s").inputs("keep")`.
    """

    __slots__ = ()

    def checkpoint(
        self,
        *,
        every: str | Millis | None = None,
        versions: int | None = None,
        stale: str | None = None,
    ) -> Self:
        """Save the state of the operator behind this stream: `model.checkpoint(every="10s")`.

        Args:
            every: the time between two checkpoints of a task; the interval of the run if it is not given.
            versions: how many checkpoints of a task are kept, 2 if it is not given: if the newest is
                damaged, the task goes on from the one before.
            stale: what becomes of windows that ended while their task was away: `"drop"` discards and
                counts them, `"mark"` puts them out, as far as they are known, on the output `tentative`.
        """
        self._protect(to_checkpoint(every, versions, stale))
        return self

    def inputs(self, how: str, *, buffer: int | None = None) -> Self:
        """Say what becomes of messages to the operator behind this stream while its slot is away.

        `"drop"` discards and counts them, which is what happens if nobody says anything. `"wait"` has
        their senders wait, with `buffer` only once so many messages of a channel are held back. `"keep"`
        has their senders log them first and send them again; the operator has to be saved.
        """
        self._protect(to_take(how, buffer))
        return self

    def buffered(self) -> Self:
        """Keep all input of the operator behind this stream: short for `inputs("keep")`."""
        return self.inputs("keep")

    def best_effort(self) -> Self:
        """Never save the operator behind this stream: when it is lost, it begins anew, empty.

        Its input is dropped while it is away, unless `inputs` has it wait.
        """
        self._protect(BEST_EFFORT)
        return self

    def _protect(self, said: Saying) -> None:
        raise NotImplementedError
