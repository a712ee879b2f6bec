"""Communication-induced checkpoints with one index (BCS; CheckMate III-C).

Theory of operation.  As `uncoordinated`, but every checkpoint has an index `lc`. A local checkpoint
raises it by one; every message carries its sender's; a message with a larger index than the
receiver's forces a checkpoint with that index before it is delivered. So a message sent behind a
checkpoint of index x is delivered behind a checkpoint of an index of at least x: for every x, the first
checkpoint of each task with an index of at least x together have no orphan. Every checkpoint thus
belongs to a consistent line, and none is useless.

A forced checkpoint restarts neither the local timer, as in the papers, nor the count of `every_records`.
Restarting would be cheaper, but then the number of local checkpoints, which the comparison takes as given,
would depend on traffic.

The binary form of a header and of a memo is `lc`, a little-endian int64. An empty memo is the initial
state: a checkpoint of index 0.

Invariants (and those of `uncoordinated`)
  I5  a message is delivered only where `lc` is at least its own.
  I6  a memo is the index of its own checkpoint: a task restored from it goes on exactly there.
"""

import struct

from snapline.core.effects import Deliver
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Message, Stamp
from snapline.core.protocol import CheckpointProtocol, TaskContext, TaskEffects
from snapline.core.topology import Channel
from snapline.protocols.uncoordinated import (
    UNCOORDINATED,
    UncoordinatedCoordinator,
    UncoordinatedTask,
)

_INDEX = struct.Struct("<q")


class BcsTask(UncoordinatedTask):
    """Forces a checkpoint before it delivers a message with a larger index than its own."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.lc = 0  #: the index of the last checkpoint

    def restore(self, memo: bytes) -> None:
        """Restore the index from the memo of a checkpoint."""
        if memo:
            (self.lc,) = _INDEX.unpack(memo)

    def stamp(self, channel: Channel) -> Stamp:
        """Put the index on every message."""
        return Stamp(_INDEX.pack(self.lc), self.log)

    def only_delivers(self, message: Message) -> bool:
        """Whether a message can be delivered without a forced checkpoint."""
        return bool(_INDEX.unpack(message.header)[0] <= self.lc)

    def learns_nothing(self, message: Message) -> bool:
        """Whether a message has no larger index than we: only such a one is news."""
        return self.only_delivers(message)

    def on_message(self, message: Message) -> TaskEffects:
        """Force a checkpoint if the message has a larger index, then deliver it."""
        (lc,) = _INDEX.unpack(message.header)
        if lc > self.lc:
            self.lc = lc
            yield from self._take(forced=True)  # I5: before delivery
        yield Deliver(message)

    def _local_checkpoint(self) -> TaskEffects:
        self.lc += 1
        yield from super()._local_checkpoint()

    def _memo(self) -> bytes:
        return _INDEX.pack(self.lc)  # I6


BCS = CheckpointProtocol(
    name="bcs",
    summary="uncoordinated, and one piggybacked index forces checkpoints",
    task=BcsTask,
    coordinator=UncoordinatedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    no_useless=True,
    reads=UNCOORDINATED.reads,
    shows=("replayed", "forced"),
)
