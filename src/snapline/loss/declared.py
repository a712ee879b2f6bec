"""Declared losses, held against the faults that struck: each of them follows one, and is bounded.

A loss without a blow to the slot of its task is none of ours: nobody took anything away. One that lasts
longer than a restart may, or goes back further than the task's checkpoints may lie, is more than was
promised.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from snapline.core.policy import Intake
from snapline.engine.job import Job
from snapline.ids import ChannelId, Millis, SlotId, TaskId
from snapline.journal.loss_happenings import Declared, GroupLost, RowsMissed, TaskLoss
from snapline.loss.bound import Blow, Bound, End
from snapline.workload.common.base import Problem


@dataclass(frozen=True, slots=True)
class Lost:
    """A declared loss, with the blow behind it."""

    task: TaskId
    slot: SlotId
    from_ms: Millis
    death_ms: Millis  # when its slot was struck
    to_ms: Millis
    lag_ms: Millis  # how long before something passed it, it can have been due
    #: from when to when it may have put out what its next life put out again; None: nothing came again
    again: tuple[Millis, Millis] | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What a run may be excused for, and what is wrong with what it has declared."""

    losses: tuple[Lost, ...]
    problems: tuple[Problem, ...]


def settle(declared: Iterable[Declared], bound: Bound) -> Settled:
    """Hold declared losses against what can have been lost."""
    losses: list[Lost] = []
    problems: list[Problem] = []
    before: dict[TaskId, TaskLoss] = {}  # the loss that a task declared before ...
    spare: dict[TaskId, tuple[Blow, ...]] = {}  # ... and which blows were more than enough for that
    where = bound.job.slot_by_task
    for found in sorted(_by_loss(declared, bound.job), key=lambda found: found.loss.to_ms):
        each = found.loss
        slot = where.get(each.task)
        if slot is None:
            problems.append(_refused(each, "there is no such task"))
            continue
        last = before.get(each.task)
        let_go_ms = 0 if last is None else last.to_ms
        end = bound.end_of(slot, let_go_ms, each.to_ms, spare.get(each.task, ()))
        before[each.task] = each
        spare[each.task] = () if end is None else end.spare
        if end is None:
            problems.append(_refused(each, _without_a_fault(each, slot, bound)))
        elif why := _too_far_back(each, end.death_ms, bound, last):
            problems.append(_refused(each, why))
        else:
            problems += _without_a_reason(found, slot, bound)
            # Whoever forgets rows by an estimate, or lacks a group, may lack any that were in its windows.
            from_ms = 0 if found.unknown or found.groups else each.from_ms
            lag_ms, again = bound.lag_before(end.last_ms), _again(each, end, bound)
            losses.append(Lost(each.task, slot, from_ms, end.death_ms, each.to_ms, lag_ms, again))
    return Settled(tuple(losses), tuple(problems))


@dataclass(slots=True)
class _Told:
    """A loss of a task, and what else was said of it."""

    loss: TaskLoss
    unknown: list[ChannelId]  # inputs on which nobody knows how many rows did not come
    groups: int = 0  # groups of rows that could not be read


def _by_loss(declared: Iterable[Declared], job: Job) -> list[_Told]:
    """Each loss of a task, with what the run said of it next."""
    found: list[_Told] = []
    last: dict[TaskId, _Told] = {}
    for each in declared:
        if isinstance(each, TaskLoss):
            last[each.task] = _Told(each, [])
            found.append(last[each.task])
        elif isinstance(each, GroupLost) and each.task in last:
            last[each.task].groups += 1
        elif isinstance(each, RowsMissed) and each.estimated:
            channel = job.topology.by_id.get(each.channel)
            if channel is not None and channel.target in last:
                last[channel.target].unknown.append(each.channel)
    return found


def _without_a_reason(told: _Told, slot: SlotId, bound: Bound) -> Iterator[Problem]:
    """What was said of a loss, and cannot be.

    A group can be read unless it was damaged, and a sender that was not lost must know how many rows did
    not come.
    """
    job, loss = bound.job, told.loss
    damaged = [at_ms for where, at_ms in bound.struck.damaged if where == slot]
    if told.groups and not any(at_ms <= loss.to_ms for at_ms in damaged):
        yield _refused(
            loss, f"a group of its rows was lost, but nothing of slot {slot} was damaged"
        )
    for channel in told.unknown:
        sender = job.slot_by_task[job.topology.by_id[channel].source]
        if not any(blow.at_ms <= loss.to_ms for blow in bound.struck.of(sender)):
            why = f"nobody knows how many rows did not come on {channel}, but no fault struck slot {sender}"
            yield _refused(loss, why)


def _again(loss: TaskLoss, end: End, bound: Bound) -> tuple[Millis, Millis] | None:
    """From when to when a task may have put out what its next life put out again.

    Input that is kept is sent again, so what the task made of it since its checkpoint is made again. What
    lingers does the work of its next life, too.
    """
    if bound.job.policies[loss.task].intake is Intake.KEEP:
        first_ms = loss.from_ms
        if not bound.job.deployment.plans[
            loss.task
        ].stateful:  # it declares no time of a checkpoint
            since_ms = bound.checkpoint_ms(loss.task, end.death_ms, loss.to_ms)
            first_ms = end.death_ms - (since_ms or end.death_ms)
        return min(first_ms, end.death_ms), end.last_ms
    return (end.death_ms, end.last_ms) if end.lingers else None


def _refused(loss: TaskLoss, why: str) -> Problem:
    span = f"{loss.from_ms:,} to {loss.to_ms:,} ms"
    return Problem("wrong", f"declared loss of {loss.task} from {span}", why)


def _without_a_fault(loss: TaskLoss, slot: SlotId, bound: Bound) -> str:
    blows = [blow for blow in bound.struck.of(slot) if blow.at_ms <= loss.to_ms]
    if not blows:
        return f"no fault struck slot {slot} before that"
    last = blows[-1]
    most = bound.last_ms(last) + bound.back_within_ms(last)
    return (
        f"'{last.statement}' struck at {last.at_ms:,} ms, and with the allowances ({bound.allowed}) all "
        f"that it costs was due by {most:,} ms"
    )


def _too_far_back(
    loss: TaskLoss, death_ms: Millis, bound: Bound, before: TaskLoss | None
) -> str | None:
    """Why a loss begins too early; None if it does not. What has no state cannot have lost any.

    A task that died again before its next checkpoint was due goes back to where it went `before`.
    """
    interval_ms = bound.interval_ms(loss.task, death_ms, loss.to_ms)
    if interval_ms is None or not bound.job.deployment.plans[loss.task].stateful:
        return None
    first_ms = death_ms - interval_ms
    if before is not None and before.to_ms > first_ms:
        first_ms = min(first_ms, before.from_ms)
    if loss.from_ms >= min(first_ms, death_ms):
        return None
    return (
        f"its slot was struck at {death_ms:,} ms, and the policy has its checkpoints at most "
        f"{interval_ms:,} ms apart"
    )


def outage_ms(losses: Sequence[Lost]) -> Millis:
    """The longest time that a slot was away, from the blow until it was let go."""
    return max((loss.to_ms - loss.death_ms for loss in losses), default=0)
