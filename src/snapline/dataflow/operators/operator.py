"""What an operator is. One instance belongs to one task; everything it knows is in its state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from snapline.batch import Batch
from snapline.ids import Millis

Outputs: TypeAlias = Sequence[tuple[str, Batch]]
"""Batches per named output, in order. The usual output is called `out`."""

OUT = "out"
IN = "in"


@dataclass(frozen=True, slots=True)
class Capture:
    """A snapshot of an operator's state: whole, or what changed since the capture before.

    The columns must never change after the capture: they are encoded and written in the background while
    the operator goes on.
    """

    full: bool
    parts: Mapping[str, Batch]
    #: bytes of a delta that are new and replace nothing: by these the state itself has grown
    grown: int = 0


class Operator:
    """The base class; as it stands, a stateless operator that passes everything on."""

    #: whether it needs `on_watermark`; edges that lead to no such operator carry no watermarks
    uses_time: bool = False
    #: the columns on which what it puts on `out` depends, those of its key too; None: all of them
    reads: Collection[str] | None = None

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take a batch of an input; return what goes out. The batch is never empty."""
        return ((OUT, batch),)

    def on_watermark(self, time: Millis) -> Outputs:
        """No record older than `time` will come any more."""
        return ()

    def capture(self, *, full: bool) -> Capture:
        """A snapshot of the state. With `full=False` it may be a delta to the capture before."""
        return Capture(True, {})

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take back a state: a full capture, then deltas in order. Called on a fresh instance."""
