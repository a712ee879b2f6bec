"""Unaligned rounds: markers overtake queued messages, which become channel state.

Theory of operation.  Alignment makes a round as slow as its slowest channel. Here a task need not take a
marker to join a round: to *sight* it, behind whatever is queued, is enough. It snapshots at once, adds to
the snapshot all that stands before the marker on every input and all its own output that has not left
yet, and sends its marker past that output. The next task sights it within one transfer, however full
the queues are. The cut is the same as that of `aligned`; only its in-flight messages are stored.

Storing them costs, so with `align_timeout_ms > 0` a task first tries to align, from its first sighting
of the round on, and goes unaligned when the time is over. A marker that overtook says that somebody before
us ran out of time: whoever sights it does not wait either. A source overtakes only without a time-out;
with one its marker goes in band, and the first task that waits too long begins to overtake.

Cycles.  Alignment would wait for ever for the markers of back edges, which come from the task itself. As
in `aligned-cyclic`, alignment therefore concerns regular inputs only; a back edge without its marker is
recorded when the rest is aligned. Regular inputs depend on no back edge, so alignment ends by itself
even if the time-out is long. (Going unaligned at once in tasks on a cycle would be correct as well, but
would store every queue of the cycle in every round.)

At most once there is no channel state: nothing is recorded and nothing overtaken, a task that does not
wait merely snapshots at the first sighting. What the channels carry at the cut is lost by a rollback.

Invariants (and those of `aligned` and `aligned-cyclic`, but I7 only while a task aligns)
  U1  a round is joined at the first sighting; an alignment timer is set exactly while `aligning`.
  U2  the messages of an input up to its marker are in the state or in the channel state of the snapshot;
      those behind the marker are in neither.
  U3  overtaken output stands behind the marker for its receiver: it is in the channel state of its sender.
"""

from dataclasses import dataclass

from snapline.core.effects import CancelTimer, Forward, Record, Seal, SetTimer, Snapshot
from snapline.core.events import Timer
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.core.protocol import CheckpointProtocol, TaskContext, TaskEffects
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, CheckpointNo
from snapline.protocols.aligned import AlignedCoordinator, AlignedTask
from snapline.protocols.aligned_cyclic import AlignedCyclicTask


@dataclass(frozen=True, slots=True)
class AlignmentTimeout(Timer):
    """Ends the alignment of round `checkpoint`: the task overtakes instead of waiting longer."""

    is_timeout = True
    checkpoint: CheckpointNo


class UnalignedTask(AlignedCyclicTask):
    """Joins a round at the first sighting of its marker; aligns for a limited time only."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.aligning = False  #: whether `round` was joined and is still being aligned (U1)

    def on_marker_sighted(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Join the round: at once, or after some time for alignment."""
        if marker.checkpoint < self.round:
            return  # I2
        if marker.checkpoint > self.round:
            yield from self._expect(marker.checkpoint)
        if marker.overtaking or not self.context.options.align_timeout_ms:
            yield from self._overtake()
        elif not self.aligning:
            self.aligning = True
            timeout_ms = self.context.options.align_timeout_ms
            yield SetTimer(AlignmentTimeout(self.round), timeout_ms)

    def on_marker(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        """Note the marker of one more input, and block it, while aligning."""
        joined = self.round if self.aligning else self.round - 1
        if marker.checkpoint > joined:  # U1
            raise ProtocolViolation(f"{self.context.task} took {marker} before it was sighted")
        yield from super().on_marker(channel, marker)

    def on_timer(self, timer: Timer) -> TaskEffects:
        """Stop aligning when its time is over, and overtake."""
        if not (self.aligning and timer == AlignmentTimeout(self.round)):
            yield from super().on_timer(timer)  # raises
        self.aligning = False
        yield from self._overtake()

    def _begin_at_source(self) -> TaskEffects:
        if self.context.options.align_timeout_ms:
            yield from self._finish_round()
        else:
            yield from self._overtake()

    def _overtake(self) -> TaskEffects:
        """Snapshot now; all that the marker passes becomes channel state."""
        if not self.recording:
            yield from AlignedTask._finish_round(self)
            return
        yield Snapshot(self.round, open=True)
        for channel in self.context.inputs:
            if channel.id not in self.cut:
                yield Record(channel.id)  # U2
        yield Forward(Marker(self.round, overtaking=True), overtake=True)  # U3
        yield Seal(self.round)
        yield from self._expect(self.round + 1)

    def _expect(self, round_next: CheckpointNo) -> TaskEffects:
        if self.aligning:  # U1
            self.aligning = False
            yield CancelTimer(AlignmentTimeout(self.round))
        yield from super()._expect(round_next)


UNALIGNED = CheckpointProtocol(
    name="unaligned",
    summary="markers overtake queued messages, which become channel state",
    task=UnalignedTask,
    coordinator=AlignedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    reads=("align_timeout_ms", "deadline_ms", "kept_lines"),
    shows=(
        "round aborted",
        "crash during a round",
        "overtaken",
        "replayed",
        "early back-edge marker",
    ),
    timers=(AlignmentTimeout,),
)
