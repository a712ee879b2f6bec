"""What happens next if nothing unusual does, and what else could happen.

The usual order is fixed, so that a run is described by where it leaves it. Orders and reports come
first, then whatever is left of a failure. Sources read ahead: a record each, then the round begins (or
the sources' own checkpoints), then the next record each. So the channels are full when the markers
come. Then slots take what has arrived, links deliver, tasks take checkpoints of their own, and the
store comes last.

A run may leave this order in three ways. It *holds* a lane: what waits there happens only when nothing else
can. It lets a timer *fire* before its turn. It *crashes* a slot.
"""

from typing import NamedTuple

from snapline.core.events import LocalCheckpoint, RoundDeadline
from snapline.engine.shell import TimerAlarm
from snapline.ids import TaskId, slot_of
from snapline.journal.entry import COORDINATOR
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.world import SteppedWorld

CRASHES_MAX = 2
FIRES_MAX = 1
"""How often each timer goes off in an epoch while there is something else to do."""

_RANKS = {"order": 0, "report": 0, "detect": 1, "launch": 1, "take": 4, "replay": 4, "link": 5}
_READ, _LOCAL, _STORE, _LATER, _NEVER = 3, 6, 7, 8, 9


class Deviation(NamedTuple):
    """One way in which a run leaves the usual order."""

    kind: str  # hold, fire or crash
    lane: Lane  # for a crash, only the slot in it counts


class Choices(NamedTuple):
    """What can happen next."""

    usual: Lane | None  # None: nothing can happen any more
    others: tuple[Deviation, ...]


def rank(world: SteppedWorld, lane: Lane) -> tuple[int, int]:
    """The place of a lane in the usual order."""
    kind = lane.kind
    if kind in _RANKS:
        return _RANKS[kind], 0
    if kind == "read":
        engine = world.slot(lane.actor).engine
        return _READ, 2 * sum(engine.tasks[TaskId(lane.name)].offsets.values())
    if kind == "timer":
        return _timer_rank(world, lane)
    quick = lane.actor == COORDINATOR or lane.name.startswith("fetch")
    return (2, 0) if quick else (_STORE, 0)


def _timer_rank(world: SteppedWorld, lane: Lane) -> tuple[int, int]:
    alarm = world.lanes[lane][0].payload
    if not isinstance(alarm, TimerAlarm):
        return _LATER, 0
    if isinstance(alarm.timer, RoundDeadline):
        return _NEVER, 0
    fired = world.fired.get((lane.actor, lane.name, alarm.epoch), 0)
    if fired >= FIRES_MAX or alarm.timer.is_timeout:
        return _LATER, 1
    local = isinstance(alarm.timer, LocalCheckpoint) and alarm.task is not None
    if local and world.job.topology.inputs[TaskId(alarm.task or "")]:
        return _LOCAL, 0
    return _READ, 2 * fired + 1


def choices(world: SteppedWorld, held: tuple[Lane, ...]) -> Choices:
    """What is next, and what could come instead."""
    best: tuple[int, ...] = (_LATER,)
    usual: Lane | None = None
    more = 0
    later: tuple[tuple[int, int], Lane] | None = None
    timers: list[Lane] = []
    for lane in world.possible():
        place = rank(world, lane)
        if lane.kind == "timer":
            timers.append(lane)
        if place[0] >= _LATER:
            if place[0] == _LATER and (later is None or (place, lane) < later):
                later = (place, lane)
        else:
            more += 1
            if lane not in held and (usual is None or (place, lane) < (best, usual)):
                best, usual = place, lane
    if usual is None and more:
        usual = next(lane for lane in held if lane in world.possible())
    if usual is None and later is not None:
        usual = later[1]
    others = [Deviation("hold", usual)] if more > 1 and usual is not None else []
    others += [
        Deviation("fire", lane) for lane in timers if lane != usual and may_fire(world, lane)
    ]
    if world.crashes < CRASHES_MAX:
        others += [Deviation("crash", Lane("crash", p.actor)) for p in world.living()]
    return Choices(usual, tuple(others))


def may_fire(world: SteppedWorld, lane: Lane) -> bool:
    """Whether a timer may go off before its turn: `FIRES_MAX` times in an epoch."""
    alarm = world.lanes[lane][0].payload
    if not isinstance(alarm, TimerAlarm):
        return False
    return world.fired.get((lane.actor, lane.name, alarm.epoch), 0) < FIRES_MAX


def crashing(lane: Lane) -> int:
    """The slot that a crash strikes."""
    return slot_of(TaskId(lane.actor.partition(".")[0]))
