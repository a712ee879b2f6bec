"""A dataflow run in one thread, to its end, with nothing that could fail: what its output should be.

No protocol, no messages, no checkpoints: sources are read, and what comes out of an operator is put into
the next at once. It shares the operators with the engine, and nothing else, so it can judge the engine.

What a dataflow computes may depend on the order in which its inputs come together. `order` picks one of
the many that are possible: where two orders give different output, no single output is right.
"""

import random
from collections import deque
from collections.abc import Sequence

from snapline.batch import Batch, concat
from snapline.core.messages import END_OF_TIME
from snapline.core.topology import Channel
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operator import OUT
from snapline.dataflow.partition import split
from snapline.engine.watermarks import Watermarks
from snapline.errors import UsageError
from snapline.ids import ChannelId, Millis, TaskId
from snapline.storage.api import Ingress

BATCHES, BATCH_RECORDS_MAX = 20, 3_000
"""A partition is read in at least so many batches: the fewer, the fewer orders there are."""


def reference_output(deployment: Deployment, order: int) -> dict[str, Batch]:
    """The output of each sink, for one of the possible orders of the input."""
    return _Reference(deployment, random.Random(f"{order}:reference")).run()


class _Reference:
    def __init__(self, deployment: Deployment, dice: random.Random) -> None:
        self.plans = deployment.plans
        self.sinks = deployment.sinks
        self.dice = dice
        self.operators = {task: plan.operator() for task, plan in self.plans.items()}
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
        self.written: dict[TaskId, list[Batch]] = {task: [] for task in self.plans}
        self.queue: deque[tuple[ChannelId, Batch | None, Millis | None]] = deque()

    def run(self) -> dict[str, Batch]:
        """Read everything, in an order of the dice."""
        sources = [_Source(plan) for plan in self.plans.values() if plan.ingress is not None]
        for source in sources:
            self._put(source.plan, (), source.low)
        self._drain()
        while open_sources := [source for source in sources if not source.ended]:
            source = self.dice.choice(open_sources)
            batches = source.read(self.dice)
            self._put(source.plan, [(OUT, batch) for batch in batches], source.low)
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
        task = channel.target
        operator, marks = self.operators[task], self.marks[task]
        outputs: list[tuple[str, Batch]] = []
        if batch is not None:
            outputs += operator.process(channel.port, batch)
        rose = marks.advance(name, watermark)
        if rose and operator.uses_time:
            outputs += operator.on_watermark(marks.low)
        if self.plans[task].sink is not None:
            self.written[task] += [b for output, b in outputs if output == OUT and b.length]
        else:
            self._put(self.plans[task], outputs, marks.low if rose else None)

    def _put(
        self, plan: TaskPlan, outputs: Sequence[tuple[str, Batch]], watermark: Millis | None
    ) -> None:
        for name, batch in outputs:
            for route in plan.routes:
                if route.output == name and batch.length:
                    self.queue += [(c.id, part, None) for c, part in split(route, batch)]
        if watermark is not None:
            self.queue += [(c.id, None, watermark) for c in self.timed[plan.task]]


class _Source:
    """How far one source has been read."""

    def __init__(self, plan: TaskPlan) -> None:
        assert plan.ingress is not None
        self.plan = plan
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
        """Whether all was read."""
        return self.offsets == self.ends

    @property
    def low(self) -> Millis:
        """Nothing that is still to come is older."""
        marks = (self.ingress.watermark(p, offset) for p, offset in self.offsets.items())
        return min(marks, default=END_OF_TIME)

    def read(self, dice: random.Random) -> list[Batch]:
        """Some more of every partition."""
        batches = []
        for partition, offset in self.offsets.items():
            end = self.ends[partition]
            most = min(max(1, 2 * end // BATCHES), BATCH_RECORDS_MAX)
            stop = min(offset + dice.randint(1, most), end)
            if stop > offset:
                batches.append(self.ingress.read(partition, offset, stop))
                self.offsets[partition] = stop
        return batches
