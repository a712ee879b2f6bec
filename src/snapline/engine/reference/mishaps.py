"""Runs a dataflow that is broken on purpose, in one way and at one place, to see its output.

A judge that compares only what does not depend on the order of input may be blind to a fault. To find that
out, the fault is made to happen here, and the judge must notice.
"""

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapline.batch import Batch
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.operator import Operator
from snapline.dataflow.operators.stateless import Filter, Map, MapRecords
from snapline.engine.reference.reference import (
    UNBOUNDED,
    Plain,
    Put,
    Stage,
    Step,
    Watermarked,
    reference_output,
)
from snapline.errors import SnaplineError
from snapline.ids import TaskId, operator_of

MishapKind: TypeAlias = Literal["forgets", "loses", "repeats"]
"""An operator forgets its whole state; it loses a batch on its way in; it gets a batch twice."""

_WITHOUT_STATE = (Operator, Map, Filter, MapRecords)


@dataclass(frozen=True, slots=True)
class Mishap:
    """What happens once to every task of an operator, somewhere in the middle of its input."""

    kind: MishapKind
    operator: str


def mishaps_of(deployment: Deployment) -> list[Mishap]:
    """The mishaps that are possible: operators with state forget; sources and sinks lose or repeat."""
    found: dict[Mishap, None] = {}
    for task, plan in deployment.plans.items():
        name = operator_of(task)
        if type(plan.operator()) not in _WITHOUT_STATE:
            found[Mishap("forgets", name)] = None
        if plan.ingress is not None or plan.sink is not None:
            found[Mishap("loses", name)] = None
            found[Mishap("repeats", name)] = None
    return list(found)


class Breaker:
    """A dataflow in one order of its input, as it is (`plain`) and broken."""

    def __init__(
        self, deployment: Deployment, order: int, watermarked: Watermarked = UNBOUNDED
    ) -> None:
        self._deployment = deployment
        self._order = order
        self._watermarked = watermarked
        self._stages: dict[TaskId, _Counted] = {}
        self.plain = reference_output(deployment, order, self._counted, watermarked)

    def _counted(self, plan: TaskPlan) -> Stage:
        self._stages[plan.task] = _Counted(plan)
        return self._stages[plan.task]

    def broken(self, mishap: Mishap, attempt: int) -> dict[str, Batch] | None:
        """The output of each sink if this happens; None if that makes the dataflow raise.

        Each attempt is another moment; in the last of three, batches go wrong at the very end, where what
        comes later cannot make up for it.
        """

        def stage(plan: TaskPlan) -> Stage:
            if operator_of(plan.task) != mishap.operator or not self._stages[plan.task].steps:
                return Plain(plan.operator())
            return _Unlucky(plan, mishap.kind, self._moment(mishap, plan.task, attempt))

        try:
            return reference_output(self._deployment, self._order, stage, self._watermarked)
        except SnaplineError:
            return None

    def _moment(self, mishap: Mishap, task: TaskId, attempt: int) -> int:
        """The number, from 1 on, of the step with records at which the mishap strikes a task."""
        steps = self._stages[task].steps
        if mishap.kind != "forgets" and attempt % 3 == 2:
            return steps
        dice = random.Random(f"{attempt}:{mishap}:{task}")
        return dice.randint(steps // 4, 3 * steps // 4) + 1


class _Counted(Plain):
    """An operator, and how many steps with records it was given."""

    def __init__(self, plan: TaskPlan) -> None:
        super().__init__(plan.operator())
        self.steps = 0

    def take(self, step: Step) -> Put:
        """Do the step as usual, and count it if it has records."""
        self.steps += bool(step.batches)
        return super().take(step)


class _Unlucky(Plain):
    """An operator that a mishap strikes at its step number `at`; only steps with records count."""

    def __init__(self, plan: TaskPlan, kind: MishapKind, at: int) -> None:
        super().__init__(plan.operator())
        self._plan = plan
        self._kind = kind
        self._left = at

    def take(self, step: Step) -> Put:
        """Do the step, broken by the mishap if it is the one."""
        self._left -= bool(step.batches)
        if self._left == 0 and step.batches:
            match self._kind:
                case "forgets":
                    self.operator = self._plan.operator()
                case "loses":
                    step = step._replace(batches=())
                case "repeats":
                    step = step._replace(batches=step.batches * 2)
        return super().take(step)
