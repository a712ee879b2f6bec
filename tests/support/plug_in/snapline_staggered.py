"""Aligned rounds that begin at one source after the other.

Theory of operation.  As in `aligned`, a marker cuts every channel and a task snapshots when all its inputs
are marked. But the coordinator does not begin a round at all sources at once, so their snapshots do not
reach the store together: it orders the first, sets a timer, and orders the next one when it fires.

Invariants (I1 to I5 of `aligned` hold, too)
  T1  a round is committed only after every source had its turn: until then their snapshots are missing.
  T2  a turn of a round that was given up is ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from snapline.core.effects import Order, SetTimer
from snapline.core.events import Command, RoundDeadline, Timer, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import CheckpointProtocol, CoordinatorEffects, TaskEffects
from snapline.ids import CheckpointNo, TaskId
from snapline.protocols.aligned import AlignedCoordinator, AlignedTask
from snapline.systems.registry import Entry
from snapline.workload.counting.query import COUNTING

TURN_MS = 10


@dataclass(frozen=True, slots=True)
class TakeTurn(Command):
    """Begin round `checkpoint` at this source; these sources come later."""

    checkpoint: CheckpointNo
    later: tuple[TaskId, ...]
    first: bool

    @property
    def begins(self) -> CheckpointNo | None:
        """The round, if this is its first turn."""
        return self.checkpoint if self.first else None


@dataclass(frozen=True, slots=True)
class NextTurn(Timer):
    """It is time for the next source of round `checkpoint`."""

    checkpoint: CheckpointNo
    sources: tuple[TaskId, ...]


class StaggeredTask(AlignedTask):
    """As an aligned task; a source begins a round in its turn."""

    def on_command(self, command: Command) -> TaskEffects:
        """Begin a round at a source, or give one up."""
        match command:
            case TakeTurn(checkpoint):
                yield from super().on_command(TriggerRound(checkpoint))
            case _:
                yield from super().on_command(command)


class StaggeredCoordinator(AlignedCoordinator):
    """As an aligned coordinator; it begins a round at one source after the other."""

    def on_timer(self, timer: Timer) -> CoordinatorEffects:
        """Give the next source its turn, or do as an aligned coordinator does."""
        match timer:
            case NextTurn(checkpoint, sources):
                if checkpoint == self.round and self.waiting:  # T2
                    yield from self._turns(sources, first=False)
            case _:
                yield from super().on_timer(timer)

    def _begin_round(self) -> CoordinatorEffects:
        self.round += 1
        self.waiting = list(self.context.topology.tasks)  # T1
        yield from self._turns(self.context.topology.sources, first=True)
        yield SetTimer(RoundDeadline(self.round), self.context.options.deadline_ms)

    def _turns(self, sources: tuple[TaskId, ...], first: bool) -> Iterator[Order | SetTimer]:
        source, *later = sources
        yield Order((source,), TakeTurn(self.round, tuple(later), first))
        if later:
            yield SetTimer(NextTurn(self.round, tuple(later)), TURN_MS)


STAGGERED = CheckpointProtocol(
    name="staggered",
    summary="aligned rounds that begin at one source after the other",
    task=StaggeredTask,
    coordinator=StaggeredCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE),
    cycles=False,
    shows=("round aborted", "crash during a round"),
    reads=("deadline_ms",),
    commands=(TakeTurn,),
    timers=(NextTurn,),
)

TALLIES = replace(COUNTING, name="tallies", summary="counting, under another name")


def _no_system(**options: str) -> None:
    raise NotImplementedError


ECHO = Entry("a system that cannot be started", _no_system, {"loud": "loud=yes"})
