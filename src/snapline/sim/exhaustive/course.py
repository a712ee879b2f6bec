"""One run of a stepped world: in the usual order except where it is told to leave it, and judged.

It is judged as every simulated run is: by the monitor and its invariants at each step, and at the end by an
oracle that knows only the input. A run that can go no further, other than by giving up a round at its
deadline, has not ended by itself.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from snapline.core.guarantee import Guarantee
from snapline.engine.job import Job
from snapline.errors import InvariantBroken, ProtocolViolation, StorageError
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.order import Choices, Deviation, choices, crashing
from snapline.sim.exhaustive.small import Small
from snapline.sim.exhaustive.world import SteppedWorld
from snapline.sim.run import Violation, outputs, states
from snapline.sim.watch import invariants

STEPS_MAX = 600
"""A run of this many steps counts as endless: the longest that ends has less than half of them."""


@dataclass(slots=True)
class SteppedRun:
    """A world in the middle of a run, with the steps that were taken so far."""

    small: Small
    world: SteppedWorld
    held: tuple[Lane, ...] = ()
    taken: list[Lane] = field(default_factory=list)  #: the steps since all slots run
    violation: Violation | None = None

    @staticmethod
    def begin(small: Small, job: Job, *, keep_journal: bool = False) -> "SteppedRun":
        """A world in which all slots have just begun to run."""
        world = SteppedWorld(job, keep_journal=keep_journal)
        course = SteppedRun(small, world)
        while not (world.living() and all(process.engine.running for process in world.living())):
            usual = choices(world, ()).usual
            if usual is None:
                course.finish()
            else:
                course._guarded(partial(world.take, usual))
            if course.over:
                break
        return course

    @property
    def state(self) -> int:
        """A number that stands for the state of the world, and for what is held."""
        held = [self.world.past.code(str(lane)) for lane in self.held]
        return hash((self.world.state(), *held))

    @property
    def over(self) -> bool:
        """Whether the run has ended, or broken an invariant."""
        return self.world.finished or self.violation is not None

    def choices(self) -> Choices:
        """What can happen next."""
        return choices(self.world, self.held)

    def leave(self, deviation: Deviation) -> None:
        """Leave the usual order: hold a lane, or take a step before its turn."""
        if deviation.kind == "hold":
            kept = [lane for lane in self.held if lane != deviation.lane]
            self.held = (*kept, deviation.lane)
        else:
            self.take(deviation.lane)

    def take(self, lane: Lane) -> None:
        """Take a step; a lane that was held is an ordinary one again after it."""
        self.taken.append(lane)
        if lane in self.held:
            self.held = tuple(other for other in self.held if other != lane)
        if lane.kind == "crash":
            self._guarded(lambda: self.world.crash(crashing(lane)))
            self.held = tuple(other for other in self.held if lane.actor not in other)
        else:
            self._guarded(lambda: self.world.take(lane))

    def may_take(self, lane: Lane) -> bool:
        """Whether a step is possible."""
        if lane.kind == "crash":
            return any(process.actor == lane.actor for process in self.world.living())
        return lane in self.world.possible()

    def follow(self, lanes: Iterable[Lane]) -> None:
        """Take these steps until the run is over, without those that are not possible."""
        for lane in lanes:
            if not self.over and self.may_take(lane):
                self.take(lane)

    def conclude(self) -> None:
        """Judge the end of a run that followed given steps, if it can go no further."""
        endless = len(self.taken) >= STEPS_MAX
        if self.violation is None and (endless or self._goes_no_further()):
            self.finish()

    def _goes_no_further(self) -> bool:
        """Whether no task has anything left to do; what store and coordinator have left is done."""
        while not self.over and (usual := self.choices().usual) is not None:
            if usual.kind in ("take", "read", "link", "replay") or len(self.taken) >= STEPS_MAX:
                return False
            self.take(usual)
        return self.violation is None

    def finish(self) -> None:
        """Judge how the run ended."""
        self._guarded(self._judge)

    def _judge(self) -> None:
        world = self.world
        if not world.finished:
            how = "it goes on and on"
            if self.choices().usual is None:
                left = ", ".join(lane.name for lane in world.possible())
                how = "nothing can happen any more" + (f" but a time-out: {left}" if left else "")
            invariants.broken("run_ends_by_itself", f"after {len(self.taken)} steps {how}")
        if world.problem is not None:
            invariants.broken("run_goes_on", f"nothing was damaged, but: {world.problem}")
        invariants.no_checkpoint_is_useless(world.monitor)
        level = world.job.guarantee
        problems = self.small.judge(outputs(world), states(world), level)
        if problems and level is not Guarantee.NOTHING:
            invariants.broken(f"output_is_{level.value}", problems[0])

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except InvariantBroken as error:
            self.violation = Violation(error.name, error.story)
        except (ProtocolViolation, StorageError) as error:
            self.violation = Violation(type(error).__name__, str(error))
