"""What a run may lose at most: from its policies, its input and the faults that struck, and nothing else.

A fault that takes a slot away at time t (a *blow*) costs what was due from `t - lag - interval` on, until
the slot is back at `t + detection + restart + away`, and what credit lets be under way on its channels.
`interval` is that of its tasks: of one that keeps state and is never saved, all since the start. The
runtime's own journal is not asked: whoever may declare its own bound can declare everything lost.

A slot that did not die but was given up (it stood still, or was cut off) *lingers*: it goes on, and puts
out what its next life puts out as well, until its lease has lapsed.

How long a lost slot takes to be noticed and started again, and how far a job that keeps up is behind its
input, no policy says. There are allowances for these, and every verdict states them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from snapline.chaos.faults import (
    Damage,
    Delay,
    Fault,
    Kill,
    KillCoordinator,
    KillDriver,
    KillExecutor,
    LaunchFailing,
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
    lease_ms: Millis  # from when a slot hears no more of its coordinator until it ends itself
    driver_ms: Millis = 0  # until a driver that was killed has another session of Spark, besides

    def __str__(self) -> str:
        spans = {"lag": self.lag_ms, "detection": self.detection_ms, "restart": self.restart_ms}
        return ", ".join(f"{name} {write_duration(ms)}" for name, ms in spans.items())


REAL: Final = Allowances(
    lag_ms=2_000,
    detection_ms=2_000,
    restart_ms=30_000,
    save_ms=5_000,
    lease_ms=5_000,
    driver_ms=30_000,
)
"""For real runs: the silence after which a slot is given up, and what starting a process may take."""

SIMULATED: Final = Allowances(
    lag_ms=600, detection_ms=300, restart_ms=700, save_ms=400, lease_ms=400
)
"""For simulated ones, whose worlds are a few seconds long."""


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault that took slots away, or may have."""

    statement: str
    slots: frozenset[SlotId]
    at_ms: Millis
    away_ms: Millis  # how long it keeps them away
    holds_ms: Millis | None = (
        None  # they linger, and cannot learn of it for so long; None: they died
    )
    usurps: bool = False  # their coordinator may go on, too, until it decides something
    of_driver: bool = False  # the driver is gone with them, and has to be started anew


@dataclass(frozen=True, slots=True)
class StruckFaults:
    """The faults of a run that struck, as far as losses depend on them."""

    blows: tuple[Blow, ...]
    disturbed_ms: Millis  # how long faults that take nothing away can have held the job up, in all
    damaged: tuple[tuple[SlotId, Millis], ...]  # where and when checkpoints were damaged

    def of(self, slot: SlotId) -> list[Blow]:
        """The blows to a slot, in the order of time."""
        return sorted((b for b in self.blows if slot in b.slots), key=lambda blow: blow.at_ms)


def struck_by(strikes: Iterable[Strike], job: Job) -> StruckFaults:
    """What the faults that struck can have taken away."""
    blows: list[Blow] = []
    disturbed = 0
    damaged: list[tuple[SlotId, Millis]] = []
    everybody = frozenset(job.slots)
    for strike in strikes:
        if strike.at_ms is None:
            continue
        (fault,) = aimed(parse(strike.statement), job.deployment.pools)
        if isinstance(fault, Damage):
            damaged.append((fault.slot, strike.at_ms))
        if not isinstance(fault, Kill):
            disturbed += _held_up_ms(fault)
        slots = _taken_away(fault, everybody)
        if slots:
            away = fault.for_ms if isinstance(fault, Kill | KillCoordinator) else 0
            holds = _held_up_ms(fault) if _lets_live(fault) else None
            usurps = isinstance(fault, PauseCoordinator | PauseDriver)
            of_driver = isinstance(fault, KillDriver)
            blows.append(
                Blow(strike.statement, slots, strike.at_ms, away, holds, usurps, of_driver)
            )
    return StruckFaults(tuple(blows), disturbed, tuple(damaged))


def _taken_away(fault: Fault, everybody: frozenset[SlotId]) -> frozenset[SlotId]:
    """The slots that may be given up because of a fault; an executor may have hosted them all."""
    if isinstance(fault, KillCoordinator | KillDriver | PauseCoordinator | PauseDriver):
        return everybody
    if isinstance(fault, KillExecutor):
        return everybody
    return frozenset() if isinstance(fault, Damage) else frozenset(slots_of(fault))


def _lets_live(fault: Fault) -> bool:
    """Whether slots that are given up because of a fault may go on for a while."""
    return not isinstance(fault, Kill | KillExecutor | LaunchFailing | LaunchSlow)


def _held_up_ms(fault: Fault) -> Millis:
    delay = fault.delay_ms if isinstance(fault, Delay | StoreSlow | LaunchSlow) else 0
    return delay + getattr(fault, "for_ms", 0)


@dataclass(frozen=True, slots=True)
class End:
    """How a life of a slot ended, as far as the faults tell."""

    death_ms: Millis  # the earliest moment at which it can have been lost
    last_ms: Millis  # the latest at which it can have put something out
    back_ms: Millis  # the latest at which the next life is let go
    lingers: bool  # whether it may have gone on when its next life had begun
    spare: tuple[Blow, ...] = ()  # other blows by then: one may have struck the next life already


@dataclass(frozen=True, slots=True)
class Bound:
    """What a run may lose at most."""

    job: Job
    struck: StruckFaults
    allowed: Allowances

    @property
    def lag_ms(self) -> Millis:
        """How long before something passes a task it can have been due."""
        return self.lag_before(END_OF_TIME)

    def lag_before(self, at_ms: Millis) -> Millis:
        """The same of what passed a task by then: nobody had waited yet for slots struck later."""
        waits = any(policy.intake is not Intake.DROP for policy in self.job.policies.values())
        before = (blow for blow in self.struck.blows if blow.at_ms < at_ms) if waits else ()
        return (
            self.allowed.lag_ms + self.struck.disturbed_ms + sum(map(self.back_within_ms, before))
        )

    def back_within_ms(self, blow: Blow) -> Millis:
        """How long after a blow its slots are back."""
        allowed, struck = self.allowed, self.struck
        driver_ms = allowed.driver_ms if blow.of_driver else 0
        restart_ms = allowed.detection_ms + allowed.restart_ms + driver_ms
        return restart_ms + blow.away_ms + struck.disturbed_ms

    def last_ms(self, blow: Blow) -> Millis:
        """Until when slots that it struck may put something out, or be given up because of it."""
        if blow.holds_ms is None:
            return blow.at_ms
        decides_ms = self._decides_within_ms if blow.usurps else 0
        knows_ms = blow.at_ms + blow.holds_ms + decides_ms
        return knows_ms + self.allowed.detection_ms + self.allowed.lease_ms

    @property
    def _decides_within_ms(self) -> Millis:
        """How long a coordinator goes on that does not know of another: until it decides a checkpoint."""
        every = map(self._every_ms, self.job.deployment.plans.values())
        known = [every_ms for every_ms in every if every_ms is not None]
        return min(known) + self.allowed.save_ms if known else 0

    def interval_ms(self, task: TaskId, death_ms: Millis, back_ms: Millis) -> Millis | None:
        """How far before its death the checkpoint of a task may lie; None: there may be none.

        Until it is back, at `back_ms`, faults may still take checkpoints away that it had.
        """
        if not self.job.deployment.plans[task].stateful:
            return 0
        return self.checkpoint_ms(task, death_ms, back_ms)

    def checkpoint_ms(self, task: TaskId, death_ms: Millis, back_ms: Millis) -> Millis | None:
        """The same, also of a task without state: which input it has had is saved, too, if it is kept."""
        plan = self.job.deployment.plans[task]
        every_ms = self._every_ms(plan)
        if every_ms is None:
            return None
        damaged = [
            at_ms for where, at_ms in self.struck.damaged if where == plan.slot and at_ms <= back_ms
        ]
        # Of the newest checkpoints so many may be damaged, or build on one that is.
        unreadable = 2 + max(0, death_ms - min(damaged)) // every_ms if damaged else 0
        if unreadable and unreadable >= self._versions(plan, back_ms):
            return None
        return every_ms * (1 + unreadable) + self.allowed.save_ms + self.struck.disturbed_ms

    def _versions(self, plan: TaskPlan, back_ms: Millis) -> int:
        """How many checkpoints are kept: a coordinator that resumes knows only those that were decided."""
        everybody = frozenset(self.job.slots)
        blows = self.struck.blows
        resumed = any(blow.slots == everybody and blow.at_ms <= back_ms for blow in blows)
        return 1 if resumed else plan.policy.versions

    def _every_ms(self, plan: TaskPlan) -> Millis | None:
        if not self.job.protocol.saves or not plan.policy.saved:
            return None
        return plan.policy.every_ms or self.job.options.interval_ms

    def end_of(
        self, slot: SlotId, after_ms: Millis, to_ms: Millis, spare: Sequence[Blow] = ()
    ) -> "End | None":
        """How the slot ended that was let go at `to_ms`, its life before at `after_ms`; None: it did not.

        If it was struck again before it was back, the first of these blows counts. `spare` are blows before
        `after_ms` that were not needed to explain how the life before that one ended: a life can be let go
        when it is dead already, and nobody has noticed yet.
        """
        could = [
            blow
            for blow in self.struck.of(slot)
            if blow.at_ms <= to_ms and (self.last_ms(blow) >= after_ms or blow in spare)
        ]
        result: End | None = None
        for number, blow in enumerate(could):
            at_ms, last_ms = max(blow.at_ms, after_ms), self.last_ms(blow)
            back_ms = last_ms + self.back_within_ms(blow)
            if result is None or result.back_ms < at_ms:
                lingers = blow.holds_ms is not None
                result = End(at_ms, last_ms, back_ms, lingers, tuple(could[number + 1 :]))
            else:
                result = replace(
                    result,
                    last_ms=max(result.last_ms, last_ms),
                    back_ms=max(result.back_ms, back_ms),
                    lingers=result.lingers or blow.holds_ms is not None,
                )
        return None if result is None or result.back_ms < to_ms else result

    def records(self) -> int:
        """How many records may be lost at most."""
        spans = merged([self._span(blow) for blow in self.struck.blows])
        due = sum(self._due_in(*span) for span in spans)
        under_way = (self._under_way(slot) for blow in self.struck.blows for slot in blow.slots)
        return min(due + sum(under_way), self._due_in(0, END_OF_TIME))

    def _span(self, blow: Blow) -> tuple[Millis, Millis]:
        """From when to when records were due that a blow can have cost."""
        hosted = (task for slot in blow.slots for task in self.job.hosted.get(slot, ()))
        until = blow.at_ms + self.back_within_ms(blow)
        intervals = [
            None if self._lacks_groups(task, until) else self.interval_ms(task, blow.at_ms, until)
            for task in hosted
        ]
        known = [interval for interval in intervals if interval is not None]
        if len(known) < len(intervals):
            return 0, until
        return max(blow.at_ms - self.lag_ms - max(known, default=0), 0), until

    def _lacks_groups(self, task: TaskId, back_ms: Millis) -> bool:
        """Whether a task may go back to windows by rows of which a group, however old, was damaged."""
        plan = self.job.deployment.plans[task]
        damaged = (at_ms for slot, at_ms in self.struck.damaged if slot == plan.slot)
        return bool(plan.row_keys) and any(at_ms <= back_ms for at_ms in damaged)

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
