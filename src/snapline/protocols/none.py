"""No checkpoints at all: the baseline against which every other protocol is measured.

Theory of operation.  Every message is delivered as it comes. A lost slot restarts its tasks empty, its
sources go on at the offset that is due by then, and nobody else goes back. Nothing is saved, so no line
is ever committed and output is public as soon as it is written. The base classes in `core.protocol` are
this protocol; here it only gets its name.

Invariants
  I1  a task has at most one checkpoint: its initial state.
  I2  a failure touches no task outside the lost slot.
"""

from snapline.core.guarantee import Guarantee
from snapline.core.protocol import CheckpointProtocol, CoordinatorProtocol, TaskProtocol

NONE = CheckpointProtocol(
    name="none",
    summary="no checkpoints: a lost slot restarts empty, the others go on",
    task=TaskProtocol,
    coordinator=CoordinatorProtocol,
    guarantees=(Guarantee.NOTHING, Guarantee.BOUNDED_LOSS),
    cycles=True,
    publishes_at_once=True,
    saves=False,
)
