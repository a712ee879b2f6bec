"""Whether operators survive a restore: each is captured and restored while it works, and has to go on.

Beside the operator of every task works a second instance, which gets the same steps. At random moments
(of a seed: the same every time) it is captured; at others it is thrown away, a fresh instance is restored
from what was captured, and gets again the steps since. A capture that is not needed any more is tried in
the same way, before it is dropped. What the two put out must be the same in every step, as a multiset.
So whatever `capture` forgets, `restore` ignores or the stored form cannot hold shows itself at the operator
that is to blame, whatever the operators behind it make of it.

Captures take the way of real ones (`checkpoints.py` and `restore.py` in `engine/slot`): the first one of
an instance is full, deltas follow it, and each is encoded when it is taken and decoded when it is needed.
It is encoded once more when it is done with: what was captured must never change, since real runs encode
it later.

An operator that does not do the same twice cannot be judged in this way, be it without a restore, or with
restores at the same moments. It depends on a clock or on dice, or keeps state outside its instances, where
nothing captures it.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeAlias

from snapline.batch import Batch
from snapline.dataflow.chain import Chain
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.guard import text_of
from snapline.dataflow.operators.operator import Capture, Operator
from snapline.engine.groups.content import Content
from snapline.engine.reference.difference import difference
from snapline.engine.reference.reference import (
    UNBOUNDED,
    Plain,
    Put,
    Stage,
    Step,
    Watermarked,
    plain_stage,
    reference_output,
)
from snapline.engine.slot.task import NOTHING, WATERMARKS
from snapline.errors import OperatorFailed
from snapline.ids import TaskId
from snapline.storage.codec import decode_snapshot

GAP, GROWTH = 1.5, 1.07
"""Steps between two captures or restores, at first and on average; later ever more, to save time. In every
second round it is the other way round: they are dense at the end."""

DELTAS_MAX = 8

RESTORES_MIN, ROUNDS_MIN, ROUNDS_MAX = 10, 2, 4
"""A rehearsal is repeated, at other moments, until every task was restored so often, at least and at most
so many rounds. Small input needs several, and is quick."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What to tell the user of an operator that does not survive a restore, or that cannot be judged."""

    operator: str  # as people are to read it
    because: str  # one sentence about `it`
    certain: bool = True  # False: it may well survive, but nobody can tell


class _Broken(Exception):
    """An operator does not survive a restore; the text says how that was seen."""


@dataclass(slots=True)
class _Taken:
    """A capture, in memory and as it would be stored."""

    capture: Capture
    stored: bytes
    steps: list[tuple[Step, Put]] = field(default_factory=list)  # those until the next capture


_Reference: TypeAlias = Callable[[Callable[[TaskPlan], Stage]], dict[str, Batch]]
"""A dataflow in one order of its input, whatever does the work of its tasks."""


def rehearse(
    deployment: Deployment, order: int, watermarked: Watermarked = UNBOUNDED
) -> tuple[dict[str, Batch], Complaint | None]:
    """The output of each sink, as `reference_output` gives it, and the first complaint, if there is one."""
    reference: _Reference = partial(reference_output, deployment, order, watermarked=watermarked)
    outputs: dict[str, Batch] = {}
    restores: dict[TaskId, int] = {}
    steps: dict[TaskId, int] = {}
    for number in range(ROUNDS_MAX):
        rehearsal = _Rehearsal(f"{order}:{number}", steps if number % 2 else {})
        outputs = reference(rehearsal.stage)
        for task, rehearsed in rehearsal.stages.items():
            if problem := rehearsed.end():
                return outputs, _complaint(deployment.plans[task], reference, rehearsal, problem)
            restores[task] = restores.get(task, 0) + rehearsal.restored[task].restores
            steps[task] = rehearsed.steps
        enough = min(restores.values(), default=RESTORES_MIN) >= RESTORES_MIN
        if enough and number + 1 >= ROUNDS_MIN:
            break
    return outputs, None


class _Rehearsal:
    """All tasks but those that only pass records on, in one round.

    Where it is known how many `steps` a task will take, most captures come towards their end; else most
    come at the beginning.
    """

    def __init__(self, seed: str, steps: Mapping[TaskId, int]) -> None:
        self.seed = seed
        self.steps = steps
        self.stages: dict[TaskId, _Rehearsed] = {}
        self.restored: dict[TaskId, _Restored] = {}

    def stage(self, plan: TaskPlan) -> Stage:
        """The stage of a task: an operator beside an instance that is restored, a source or sink alone."""
        operator = plan.operator()
        if type(operator) is Operator:
            return Plain(operator)  # a source or a sink
        restored = self.second(plan)
        self.restored[plan.task] = restored
        self.stages[plan.task] = _Rehearsed(operator, restored)
        return self.stages[plan.task]

    def second(self, plan: TaskPlan) -> "_Restored":
        """The second instance of a task: at the same moments whenever it is made."""
        dice = random.Random(f"{self.seed}:{plan.task}:rehearsal")
        return _Restored(plan, dice, self.steps.get(plan.task))


def _complaint(
    plan: TaskPlan, reference: _Reference, rehearsal: _Rehearsal, problem: str
) -> Complaint:
    """Complain about a task, unless it does not do the same twice.

    Without a restore it has to do as another instance does; and what was wrong with restores at some
    moments has to be wrong again, at the same step, with restores at the same moments.
    """

    def again(second: _Second) -> _Rehearsed:
        rehearsed = _Rehearsed(plan.operator(), second)
        reference(lambda other: rehearsed if other is plan else plain_stage(other))
        rehearsed.end()
        return rehearsed

    name = _name(plan)
    alike = again(_Twin(plan)).wrong_at is None
    if alike and again(rehearsal.second(plan)).wrong_at == rehearsal.stages[plan.task].wrong_at:
        return Complaint(name, problem)
    because = (
        "it does not do the same twice with the same input: it depends on a clock or on dice, or keeps "
        "state outside its instances (in its class, its module or a function), where nothing captures it"
    )
    return Complaint(name, because, certain=False)


def _name(plan: TaskPlan) -> str:
    operator = plan.operator()
    if isinstance(operator, Chain):
        names = [name for name, member in operator.members if type(member) is not Operator]
        return "operator " + " or ".join(f"'{name}'" for name in names)
    return f"operator '{plan.task.rpartition('/')[0]}'"


class _Second(Protocol):
    """The second instance of an operator, which has to do as the first one does."""

    def take(self, step: Step, right: Put) -> None:
        """Do a step for which the first instance put out `right`; raises _Broken if this one differs."""
        ...

    def end(self) -> None:
        """Check what is left to check after the last step; raises _Broken."""
        ...


class _Rehearsed:
    """An operator, and beside it a second instance, as long as that does the same."""

    def __init__(self, operator: Operator, second: _Second) -> None:
        self._first = Plain(operator)
        self._second = second
        self._problem: str | None = None
        self.steps = 0  #: that were done
        self.wrong_at: int | None = None  #: the step at which the second one was wrong

    def take(self, step: Step) -> Put:
        """Let both do the step; what the first one put out counts."""
        outputs = self._first.take(step)
        self.steps += 1
        if self._problem is None:
            try:
                self._second.take(step, outputs)
            except _Broken as broken:
                self._problem, self.wrong_at = str(broken), self.steps
        return outputs

    def end(self) -> str | None:
        """What was wrong with the second instance, after the last step; None if nothing was."""
        if self._problem is None:
            try:
                self._second.end()
            except _Broken as broken:
                self._problem, self.wrong_at = str(broken), self.steps + 1
        return self._problem


class _Twin:
    """An instance that is never captured nor restored."""

    def __init__(self, plan: TaskPlan) -> None:
        self._stage = Plain(plan.operator())

    def take(self, step: Step, right: Put) -> None:
        """Do the step; raises _Broken if something else comes out than of the first instance."""
        with _failing("it raises {}"):
            outputs = self._stage.take(step)
        if difference(right, outputs) is not None:
            raise _Broken("it differs")

    def end(self) -> None:
        """Do nothing: each step was compared when it was done."""


class _Restored:
    """An instance that is captured and restored at random moments.

    These are dense at first, or towards the end of its `steps`, if it is known how many there will be.
    """

    def __init__(self, plan: TaskPlan, dice: random.Random, steps: int | None) -> None:
        self._plan = plan
        self._dice = dice
        self._left = steps
        self._stage = Plain(plan.operator())
        self._became = "captured"  # what was done to the instance before its last steps
        self._chain: list[_Taken] = []  # a full capture, and the deltas behind it
        self._gap: float = GAP
        self._wait = 1
        self.restores = 0  #: how often it was thrown away and restored from its captures

    def take(self, step: Step, right: Put) -> None:
        """Do a step; before it, the dice may have the operator captured or restored."""
        self._wait -= 1
        self._left = None if self._left is None else self._left - 1
        if self._wait <= 0:
            self._wait = self._dice.randint(1, round(2 * self._next_gap()))
            if self._chain and self._dice.random() < 0.5:
                self._restore()
            else:
                self._capture()
        _compare(self._stage, step, right, self._became)
        if self._chain:
            self._chain[-1].steps.append((step, right))

    def end(self) -> None:
        """Check that the instance could be restored from the last captures."""
        if self._chain:
            self._revived()

    def _next_gap(self) -> float:
        """How many steps pass on average until the next capture or restore."""
        if self._left is not None:
            return max(GAP, self._left * (GROWTH - 1))
        self._gap *= GROWTH
        return self._gap

    def _capture(self) -> None:
        full = not self._chain or len(self._chain) > DELTAS_MAX
        with _failing("it raises {} when it is captured"):
            capture = self._stage.operator.capture(full=full)
        try:
            stored = _stored(capture)
            decode_snapshot(stored)
        except Exception as error:
            raise _Broken(f"it captures what cannot be stored: {_said(error)}") from error
        if full and not capture.full:
            raise _Broken("it was asked for a full capture, and gives a delta")
        if capture.full and self._chain:
            self._revived()
            self._chain = []
        self._chain.append(_Taken(capture, stored))

    def _restore(self) -> None:
        """Throw the instance away, and go on from one of its captures."""
        self._stage, self._became = self._revived(), "restored"
        self._chain = []  # the first capture of an instance is full

    def _revived(self) -> Plain:
        """A fresh instance, restored from one of the captures, that has done all steps since."""
        self._check_unchanged(self._chain)
        last = self._dice.randint(1, len(self._chain))
        kept, later = self._chain[:last], self._chain[last - 1 :]
        captures = [_loaded(taken.stored) for taken in kept]
        stage = Plain(self._plan.operator())
        self.restores += 1
        with _failing("it raises {} when it is restored"):
            stage.operator.restore(captures)
        for taken in later:
            for step, right in taken.steps:
                _compare(stage, step, right, "restored")
        return stage

    def _check_unchanged(self, chain: Sequence[_Taken]) -> None:
        for taken in chain:
            try:
                unchanged = _stored(taken.capture) == taken.stored
            except Exception:
                unchanged = False
            if not unchanged:
                raise _Broken(
                    "it changes what it has captured afterwards, while that is being written: "
                    "capture must return copies"
                )


def _compare(stage: Plain, step: Step, right: Put, became: str) -> None:
    """Let an instance do a step; raises _Broken if it puts out something else than the first one."""
    with _failing(f"it raises {{}} once it was {became}"):
        outputs = stage.take(step)
    differs = difference(right, outputs)
    if differs is not None:
        raise _Broken(f"it does not go on as before once it was {became}: {differs}")


def _stored(capture: Capture) -> bytes:
    """The bytes of a snapshot with this capture, made as the engine makes them."""
    parts = {**capture.parts, WATERMARKS: NOTHING}
    return bytes(Content(replace(capture, parts=parts), b"", ())())


def _loaded(stored: bytes) -> Capture:
    loaded = decode_snapshot(stored)
    parts = {name: part for name, part in loaded.parts.items() if name != WATERMARKS}
    return Capture(loaded.full, parts)


@contextmanager
def _failing(story: str) -> Iterator[None]:
    """Make _Broken of whatever code of the user's raises, SystemExit too: it must not end the judge."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _Broken(story.format(_said(error))) from error


def _said(error: BaseException) -> str:
    if isinstance(error, OperatorFailed):  # a chain says which of its members it was
        return error.cause
    return f"{type(error).__name__}: {text_of(error)}"
