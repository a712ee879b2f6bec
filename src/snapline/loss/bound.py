"""What a run may lose at most: from its policies, its input and the faults that struck, and nothing else.

A fault that takes a slot away at time t (a *blow*) costs what was due from `t - lag - interval` on, until
the slot is back at `t + detection + restart + away`, and what credit lets be under way on its channels.
`interval` is that of its tasks: of one that keeps state and is never saved, all since the start. The
runtime's own journal is not asked: whoever may declare its own bound can declare everything lost.

How long a lost slot takes to be noticed and started again, and how far a job that keeps up is behind its
input, no policy says. There are allowances for these, and every verdict states them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from snapline.chaos.faults import (
    Damage,
    Delay,
    Fault,
    Kill,
    KillCoordinator,
    KillDriver,
    KillExecutor,
    LaunchSlow,
    PauseCoordinator,
    PauseDriver,
    StoreSlow,
    parse,
)
from snapline.chaos.strikes import Strike
from snapline.chaos.targets import aimed, slots_of
from snapline.core.messages import END_OF_TIME
from snapline.core.policy import Intake
from snapline.dataflow.deploy import TaskPlan
from snapline.durations import write_duration
from snapline.engine.job import Job
from snapline.ids import Millis, SlotId, TaskId


@dataclass(frozen=True, slots=True)
class Allowances:
    """How long things may take about which no policy says anything."""

    lag_ms: Millis  # how far a job that keeps up is behind what is due
    detection_ms: Millis  # from the end of a slot until it is given up
    restart_ms: Millis  # from then until its next life is let go
    save_ms: Millis  # from the capture of a checkpoint until it counts

    def __str__(self) -> str:
        spans = {"lag": self.lag_ms, "detection": self.detection_ms, "restart": self.restart_ms}
        return ", ".join(f"{name} {write_duration(ms)}" for name, ms in spans.items())


REAL: Final = Allowances(lag_ms=2_000, detection_ms=2_000, restart_ms=30_000, save_ms=5_000)
"""For real runs: the silence after which a slot is given up, and what starting a process may take."""

SIMULATED: Final = Allowances(lag_ms=600, detection_ms=300, restart_ms=700, save_ms=400)
"""For simulated ones, whose worlds are a few seconds long."""


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault that took slots away, or may have."""

    statement: str
    slots: frozenset[SlotId]
    at_ms: Millis
    away_ms: Millis  # how long it keeps them away


@dataclass(frozen=True, slots=True)
class StruckFaults:
    """The faults of a run that struck, as far as losses depend on them."""

    blows: tuple[Blow, ...]
    disturbed_ms: Millis  # how long faults that take nothing away can have held the job up, in all
    damaged: int  # checkpoints that could not be read

    def of(self, slot: SlotId) -> list[Blow]:
        """The blows to a slot, in the order of time."""
        return sorted((b for b in self.blows if slot in b.slots), key=lambda blow: blow.at_ms)


def struck_by(strikes: Iterable[Strike], job: Job) -> StruckFaults:
    """What the faults that struck can have taken away."""
    blows: list[Blow] = []
    disturbed, damaged = 0, 0
    everybody = frozenset(job.slots)
    for strike in strikes:
        if strike.at_ms is None:
            continue
        (fault,) = aimed(parse(strike.statement), job.deployment.pools)
        damaged += isinstance(fault, Damage)
        if not isinstance(fault, Kill):
            disturbed += _held_up_ms(fault)
        slots = _taken_away(fault, everybody)
        if slots:
            away = fault.for_ms if isinstance(fault, Kill | KillCoordinator) else 0
            blows.append(Blow(strike.statement, slots, strike.at_ms, away))
    return StruckFaults(tuple(blows), disturbed, damaged)


def _taken_away(fault: Fault, everybody: frozenset[SlotId]) -> frozenset[SlotId]:
    """The slots that may be given up because of a fault; an executor may have hosted them all."""
    if isinstance(fault, KillCoordinator | KillDriver | PauseCoordinator | PauseDriver):
        return everybody
    if isinstance(fault, KillExecutor):
        return everybody
    return frozenset() if isinstance(fault, Damage) else frozenset(slots_of(fault))


def _held_up_ms(fault: Fault) -> Millis:
    delay = fault.delay_ms if isinstance(fault, Delay | StoreSlow | LaunchSlow) else 0
    return delay + getattr(fault, "for_ms", 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a run may lose at most."""

    job: Job
    struck: StruckFaults
    allowed: Allowances

    @property
    def lag_ms(self) -> Millis:
        """How long before a blow something can have been due that was still under way then."""
        waits = any(policy.intake is not Intake.DROP for policy in self.job.policies.values())
        waited = sum(map(self.back_within_ms, self.struck.blows)) if waits else 0
        return self.allowed.lag_ms + self.struck.disturbed_ms + waited

    def back_within_ms(self, blow: Blow) -> Millis:
        """How long after a blow its slots are back."""
        allowed, struck = self.allowed, self.struck
        return allowed.detection_ms + allowed.restart_ms + blow.away_ms + struck.disturbed_ms

    def interval_ms(self, task: TaskId) -> Millis | None:
        """How far back the checkpoint of a task may lie; None: it has state and is never saved."""
        plan = self.job.deployment.plans[task]
        if not plan.stateful:
            return 0
        every_ms = self._every_ms(plan)
        if every_ms is None:
            return None
        behind = self.allowed.save_ms + self.struck.disturbed_ms
        return every_ms * (1 + self.struck.damaged) + behind

    def _every_ms(self, plan: TaskPlan) -> Millis | None:
        if not self.job.protocol.saves or not plan.policy.saved:
            return None
        return plan.policy.every_ms or self.job.options.interval_ms

    def death_ms(self, slot: SlotId, after_ms: Millis, to_ms: Millis) -> Millis | None:
        """When the slot died that was let go at `to_ms`, its life before at `after_ms`; None: it did not.

        If it was struck again before it was back, the first of these blows counts.
        """
        blows = [blow for blow in self.struck.of(slot) if after_ms <= blow.at_ms <= to_ms]
        if not blows or blows[-1].at_ms + self.back_within_ms(blows[-1]) < to_ms:
            return None
        death_ms = blows[-1].at_ms
        for before, later in pairwise(blows[::-1]):
            if later.at_ms + self.back_within_ms(later) < before.at_ms:
                break
            death_ms = later.at_ms
        return death_ms

    def records(self) -> int:
        """How many records may be lost at most."""
        spans = merged([self._span(blow) for blow in self.struck.blows])
        due = sum(self._due_in(*span) for span in spans)
        under_way = (self._under_way(slot) for blow in self.struck.blows for slot in blow.slots)
        return min(due + sum(under_way), self._due_in(0, END_OF_TIME))

    def _span(self, blow: Blow) -> tuple[Millis, Millis]:
        """From when to when records were due that a blow can have cost."""
        hosted = (task for slot in blow.slots for task in self.job.hosted.get(slot, ()))
        intervals = [self.interval_ms(task) for task in hosted]
        until = blow.at_ms + self.back_within_ms(blow)
        known = [interval for interval in intervals if interval is not None]
        if len(known) < len(intervals):
            return 0, until
        return max(blow.at_ms - self.lag_ms - max(known, default=0), 0), until

    def _due_in(self, from_ms: Millis, to_ms: Millis) -> int:
        return sum(
            plan.ingress.due_through(p, to_ms) - plan.ingress.due_through(p, from_ms - 1)
            for plan in self.job.deployment.plans.values()
            if plan.ingress is not None
            for p in plan.partitions
        )

    def _under_way(self, slot: SlotId) -> int:
        """How many records the credit of the channels to and from a slot lets be under way."""
        where, settings = self.job.slot_by_task, self.job.settings
        channels = [
            channel
            for channel in self.job.topology.channels
            if slot in (where[channel.source], where[channel.target])
        ]
        return len(channels) * settings.credit * settings.batch_max_records


def merged(spans: Sequence[tuple[Millis, Millis]]) -> list[tuple[Millis, Millis]]:
    """The same stretches of time, those that overlap as one."""
    result: list[tuple[Millis, Millis]] = []
    for start, stop in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], stop))
        else:
            result.append((start, stop))
    return result
