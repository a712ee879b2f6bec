"""A dataflow run in one thread, to its end, with nothing that could fail: what its output should be.

No protocol, no messages, no checkpoints: sources are read, and what comes out of an operator is put into
the next at once. It shares the operators with the engine, and nothing else, so it can judge the engine.

What a dataflow computes may depend on the order in which its inputs come together. `order` picks one of
the many that are possible: where two orders give different output, no single output is right.

A run that stopped has not seen the end of time, and tasks hear of a watermark a little later than their
sources know it. So what a run had put out by a line is that of its input up to there, where no task goes
beyond the watermark that it had at the line (`Watermarked`).

What one operator does with its input is a *stage*. Usually that is the operator itself (`Plain`). Others
restore it now and then (`rehearsal.py`), or break it on purpose (`mishaps.py`).
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from snapline.batch import Batch, concat
from snapline.core.messages import BEFORE_TIME, END_OF_TIME
from snapline.core.topology import Channel
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.guard import text_of
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.partition import split
from snapline.engine.slot.watermarks import Watermarks
from snapline.errors import SnaplineError, UsageError
from snapline.ids import ChannelId, Millis, TaskId
from snapline.storage.api import Ingress

BATCHES, BATCH_RECORDS_MAX = (20, 20, 100), 3_000
"""About how many batches a partition is read in, by order, since few batches have few orders; and the
most records that a batch may have."""

SKEW = 4.0
"""How many times as often as its neighbour a source may be read, so that sources fall behind."""

Put: TypeAlias = list[tuple[str, Batch]]
"""What an operator has put out: batches per named output, in order."""


Watermarked: TypeAlias = Mapping[TaskId, Millis]
"""The watermarks beyond which tasks do not go; a task that is absent goes as far as its input says."""

UNBOUNDED: Watermarked = MappingProxyType({})


class Step(NamedTuple):
    """What a task takes between two moments at which it may be captured."""

    port: str
    batches: tuple[Batch, ...]
    time: Millis | None  # its watermark, if that rose behind the batches


class Stage(Protocol):
    """Whatever does the work of one task."""

    def take(self, step: Step) -> Put:
        """Do one step, and return what comes out."""
        ...


class Plain:
    """A stage that gives its steps to the operator unchanged."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def take(self, step: Step) -> Put:
        """Give the step to the operator."""
        outputs: Put = []
        for batch in step.batches:
            outputs += self.operator.process(step.port, batch)
        if step.time is not None and self.operator.uses_time:
            outputs += self.operator.on_watermark(step.time)
        return outputs


def plain_stage(plan: TaskPlan) -> Stage:
    """The stage of a task that runs its operator unchanged."""
    return Plain(plan.operator())


def reference_output(
    deployment: Deployment,
    order: int,
    stage: Callable[[TaskPlan], Stage] = plain_stage,
    watermarked: Watermarked = UNBOUNDED,
) -> dict[str, Batch]:
    """The output of each sink, for one of the possible orders of the input.

    The rows of a sink's tasks follow each other, those of one task in the order in which it wrote them.
    """
    dice = random.Random(f"{order}:reference")
    return _Reference(deployment, dice, stage, watermarked).run(order)


class _Reference:
    def __init__(
        self,
        deployment: Deployment,
        dice: random.Random,
        stage: Callable[[TaskPlan], Stage],
        watermarked: Watermarked,
    ) -> None:
        self.plans = deployment.plans
        self.sinks = deployment.sinks
        self.dice = dice
        self.stages = {task: stage(plan) for task, plan in self.plans.items()}
        self.by_id = deployment.topology.by_id
        timed = frozenset(
            channel.id
            for plan in self.plans.values()
            for route in plan.routes
            if route.timed
            for channel in route.channels
        )
        self.timed = {
            task: [c for c in deployment.topology.outputs[task] if c.id in timed]
            for task in self.plans
        }
        self.marks = {
            task: Watermarks(deployment.topology.inputs[task], timed) for task in self.plans
        }
        self.watermarked = watermarked
        self.told = dict.fromkeys(self.plans, BEFORE_TIME)  #: the watermark of each task so far
        self.written: dict[TaskId, list[Batch]] = {task: [] for task in self.plans}
        self.sent: Counter[ChannelId] = Counter()
        self.queue: deque[tuple[ChannelId, Batch | None, Millis | None]] = deque()

    def run(self, order: int) -> dict[str, Batch]:
        """Read all input in a random order, and return the output of each sink."""
        batches = BATCHES[order % len(BATCHES)]
        plans = [plan for plan in self.plans.values() if plan.ingress is not None]
        sources = [_Source(plan, batches) for plan in plans]
        weights = _weights(order, len(sources), self.dice)
        weighed = list(zip(sources, weights, strict=True))
        for source in sources:
            self._work(source.plan, Step(IN, (), self._rise(source.plan.task, source.low)))
        self._drain()
        while weighed := [(source, weight) for source, weight in weighed if not source.ended]:
            ((source, _),) = self.dice.choices(weighed, [weight for _, weight in weighed])
            read = tuple(source.read(self.dice))
            self._work(source.plan, Step(IN, read, self._rise(source.plan.task, source.low)))
            self._drain()
        return {
            sink: concat([batch for task in tasks for batch in self.written[task]])
            if any(self.written[task] for task in tasks)
            else Batch({}, 0)
            for sink, tasks in self.sinks.items()
        }

    def _drain(self) -> None:
        while self.queue:
            self._take(*self.queue.popleft())

    def _take(self, name: ChannelId, batch: Batch | None, watermark: Millis | None) -> None:
        channel: Channel = self.by_id[name]
        marks = self.marks[channel.target]
        marks.advance(name, watermark)
        batches = () if batch is None else (batch,)
        step = Step(channel.port, batches, self._rise(channel.target, marks.low))
        self._work(self.plans[channel.target], step)

    def _rise(self, task: TaskId, low: Millis) -> Millis | None:
        """The watermark of a task whose input has come so far, if it rose; else None."""
        low = min(low, self.watermarked.get(task, END_OF_TIME))
        if low <= self.told[task]:
            return None
        self.told[task] = low
        return low

    def _work(self, plan: TaskPlan, step: Step) -> None:
        """Let a task do a step: what comes out is written at a sink, and goes on elsewhere."""
        try:
            outputs = self.stages[plan.task].take(step)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # The operator is the user's: whatever it raises says something about it, not about us.
            said = f"{type(error).__name__}: {text_of(error)}"
            raise SnaplineError(f"without any failure {plan.task} raises {said}") from error
        if plan.sink is not None:
            self.written[plan.task] += [b for name, b in outputs if name == OUT and b.length]
        else:
            self._put(plan, outputs, step.time)

    def _put(
        self, plan: TaskPlan, outputs: Sequence[tuple[str, Batch]], watermark: Millis | None
    ) -> None:
        for name, batch in outputs:
            for route in plan.routes:
                if route.output == name and batch.length:
                    parts = split(route, batch, self.sent)
                    self.sent.update(channel.id for channel, _ in parts)
                    self.queue += [(channel.id, part, None) for channel, part in parts]
        if watermark is not None:
            self.queue += [(c.id, None, watermark) for c in self.timed[plan.task]]


def _weights(order: int, sources: int, dice: random.Random) -> list[float]:
    """How often each source is read, compared with the others.

    In a real run any source may fall behind. So only the first order reads all alike; the second and the
    third are each other's opposites, and later ones are drawn.
    """
    match order:
        case 0:
            return [1.0] * sources
        case 1 | 2:
            ascending = [SKEW**place for place in range(sources)]
            return ascending if order == 1 else ascending[::-1]
        case _:
            return [SKEW ** dice.uniform(0, sources) for _ in range(sources)]


class _Source:
    """How far one source has been read."""

    def __init__(self, plan: TaskPlan, batches: int) -> None:
        assert plan.ingress is not None
        self.plan = plan
        self.batches = batches
        self.ingress: Ingress = plan.ingress
        self.ends = {p: self._end(p) for p in plan.partitions}
        self.offsets = dict.fromkeys(plan.partitions, 0)

    def _end(self, partition: int) -> int:
        end = self.ingress.end(partition)
        if end is None:
            raise UsageError(f"{self.plan.task} never ends: only bounded input has a reference")
        return end

    @property
    def ended(self) -> bool:
        """Whether all input was read."""
        return self.offsets == self.ends

    @property
    def low(self) -> Millis:
        """The watermark: nothing that is still to come is older."""
        marks = (self.ingress.watermark(p, offset) for p, offset in self.offsets.items())
        return min(marks, default=END_OF_TIME)

    def read(self, dice: random.Random) -> list[Batch]:
        """Read some more of every partition."""
        batches = []
        for partition, offset in self.offsets.items():
            end = self.ends[partition]
            most = min(max(1, 2 * end // self.batches), BATCH_RECORDS_MAX)
            stop = min(offset + dice.randint(1, most), end)
            if stop > offset:
                batches.append(self.ingress.read(partition, offset, stop))
                self.offsets[partition] = stop
        return batches
