"""Coordinated markers on graphs with cycles (ABS, algorithm 2, corrected).

Theory of operation.  Without its back edges the graph is acyclic, and there the round is that of
`aligned`: a task snapshots when the markers of all *regular* inputs are in. Waiting for back edges would
wait for ever, since their markers come from this very task. So messages that a back edge still carries
in front of its marker become channel state: the snapshot stays open and records them, while they are
delivered in their turn, until the marker comes around.

The published algorithm assumes that the markers of back edges come last. With parallel tasks they need
not: a neighbour may finish the round, and its marker travel a back edge, before this task has aligned.
Messages behind that marker belong to the next round but would enter this snapshot, and the comparison
`marked = regular` would never hold. Here an early back edge is blocked like a regular input until the
local snapshot, records nothing (everything in front of its marker is in the state), and only the marked
regular inputs are compared with the regular inputs. The blocking cannot deadlock: the snapshot waits for
regular inputs alone, and those depend on no back edge.

At least once nothing is blocked, as in `aligned`. At most once nothing is recorded: what the back edges
carry at the cut is lost by a rollback.

Invariants (and those of `aligned`)
  I6  a local snapshot depends on regular inputs only.
  I7  an early-marked back edge is blocked until the local snapshot and records nothing.
  I8  of every other back edge the snapshot holds exactly the messages between it and the marker.
"""

from snapline.core.effects import Forward, Record, Seal, Snapshot
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.core.protocol import CheckpointProtocol, TaskContext, TaskEffects
from snapline.protocols.aligned import AlignedCoordinator, AlignedTask


class AlignedCyclicTask(AlignedTask):
    """Aligns on the regular inputs; records the back edges until their markers return."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.awaited = tuple(c.id for c in context.inputs if not c.feedback)  # I6
        self.back_edges = tuple(c.id for c in context.inputs if c.feedback)
        self.recording = context.guarantee is not Guarantee.AT_MOST_ONCE

    def _finish_round(self) -> TaskEffects:
        late = [edge for edge in self.back_edges if edge not in self.cut]  # I7
        if not (late and self.recording):
            yield from super()._finish_round()
            return
        yield Snapshot(self.round, open=True)
        yield from [Record(edge) for edge in late]  # I8: the engine ends each at its marker
        yield Forward(Marker(self.round))
        yield Seal(self.round)
        yield from self._expect(self.round + 1)  # so the markers that return are stale to us


ALIGNED_CYCLIC = CheckpointProtocol(
    name="aligned-cyclic",
    summary="aligned on the graph without back edges, whose messages join the snapshot",
    task=AlignedCyclicTask,
    coordinator=AlignedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    reads=("deadline_ms", "kept_lines"),
    shows=("round aborted", "crash during a round", "replayed", "early back-edge marker"),
)
