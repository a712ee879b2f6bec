"""A single-threaded executor for tests: runs a deployment under random interleavings.

Channels are FIFO; everything else is chosen by the seed: which task acts next, how many records a source
reads, where a batch is cut. Now and then the state of a task is captured, whole or what is new, and now
and then a task is replaced by a fresh one that takes back its captures through the binary form. `faults`
names deliveries, by number, that are made 0 or 2 times.
"""

import random
from collections import deque
from dataclasses import dataclass, field

from snapline.batch import Batch, concat
from snapline.batch_form import decode, encode
from snapline.core.messages import BEFORE_TIME, END_OF_TIME
from snapline.core.topology import Channel
from snapline.dataflow.deploy import deploy
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.dataflow.partition import split
from snapline.ids import operator_of


@dataclass
class Result:
    output: dict[str, Batch]
    state: dict[str, dict[str, Batch]]
    delivered: int  # messages with records


@dataclass
class Task:
    operator: Operator
    offsets: dict[int, int] = field(default_factory=dict)
    watermark: int = BEFORE_TIME
    captures: list[Capture] = field(default_factory=list)  # a full one, and what was new since


class Interleaver:
    def __init__(self, flow, slots, seed, faults):
        self.faults = faults
        self.delivered = 0
        self.rng = random.Random(seed)
        self.deployment = deploy(flow, slots)
        self.plans = self.deployment.plans
        topology = self.deployment.topology
        self.tasks = {
            t: Task(p.operator(), dict.fromkeys(p.partitions, 0)) for t, p in self.plans.items()
        }
        self.queues = {channel.id: deque() for channel in topology.channels}
        self.channels = topology.by_id
        self.regular = {t: [c.id for c in topology.inputs[t] if not c.feedback] for t in self.tasks}
        self.watermarks = dict.fromkeys(self.queues, BEFORE_TIME)
        self.written = {sink: [] for sink in self.deployment.sinks}

    def run(self) -> Result:
        for task, plan in self.plans.items():
            if plan.ingress is not None and not plan.partitions:
                self._advance(task, END_OF_TIME)  # nothing will ever come from here
        while steps := self._steps():
            kind, at = self.rng.choice(steps)
            if kind == "read":
                self._read(*at)
            else:
                self._take(self.channels[at])
            if self.rng.random() < 0.06:
                self._capture(self.rng.choice(list(self.tasks)))
            if self.rng.random() < 0.02:
                self._replace(self.rng.choice(list(self.tasks)))
        output = {sink: concat(batches) for sink, batches in self.written.items() if batches}
        return Result(output, self._state(), self.delivered)

    def _steps(self):
        reads = [
            ("read", (task, partition))
            for task, plan in self.plans.items()
            for partition, offset in self.tasks[task].offsets.items()
            if offset < plan.ingress.end(partition)
        ]
        return reads + [("take", channel) for channel, queue in self.queues.items() if queue]

    def _read(self, task, partition):
        ingress, offsets = self.plans[task].ingress, self.tasks[task].offsets
        start = offsets[partition]
        batch = ingress.read(partition, start, start + self.rng.randint(1, 16))
        offsets[partition] = start + batch.length
        self._send(task, self.tasks[task].operator.process("in", batch))
        self._advance(task, min(ingress.watermark(p, o) for p, o in offsets.items()))

    def _take(self, channel: Channel):
        batch, watermark = self.queues[channel.id].popleft()
        if batch.length > 1 and self.rng.random() < 0.5:
            cut = self.rng.randint(1, batch.length - 1)
            self.queues[channel.id].appendleft((batch.slice(cut, batch.length), watermark))
            batch, watermark = batch.slice(0, cut), None
        task = channel.target
        if batch.length:
            self.delivered += 1
            for _ in range(self.faults.get(self.delivered, 1)):
                self._send(task, self.tasks[task].operator.process(channel.port, batch))
        if watermark is not None:
            self.watermarks[channel.id] = watermark
            self._advance(task, min(self.watermarks[c] for c in self.regular[task]))

    def _advance(self, task, watermark):
        if watermark <= self.tasks[task].watermark:
            return
        self.tasks[task].watermark = watermark
        if self.tasks[task].operator.uses_time:
            self._send(task, self.tasks[task].operator.on_watermark(watermark))
        for route in self.plans[task].routes:
            for channel in route.channels if route.timed else ():
                self.queues[channel.id].append((Batch({}, 0), watermark))

    def _send(self, task, outputs: Outputs):
        plan = self.plans[task]
        for output, batch in outputs:
            if plan.sink is not None and output == OUT:
                self.written[plan.sink].append(batch)
            for route in plan.routes:
                if route.output == output:
                    for channel, part in split(route, batch):
                        self.queues[channel.id].append((part, None))

    def _capture(self, task):
        running = self.tasks[task]
        captured = running.operator.capture(full=not running.captures or self.rng.random() < 0.3)
        stored = {name: decode(encode(batch)) for name, batch in captured.parts.items()}
        before = [] if captured.full else running.captures
        running.captures = [*before, Capture(captured.full, stored)]

    def _replace(self, task):
        self._capture(task)
        running = self.tasks[task]
        if running.captures[-1].parts:
            running.operator = self.plans[task].operator()
            running.operator.restore(running.captures)

    def _state(self):
        assert all(t.watermark in (BEFORE_TIME, END_OF_TIME) for t in self.tasks.values())
        parts: dict[str, dict[str, list[Batch]]] = {}
        for task, running in self.tasks.items():
            for name, batch in running.operator.capture(full=True).parts.items():
                parts.setdefault(operator_of(task), {}).setdefault(name, []).append(batch)
        return {o: {n: _stacked(b) for n, b in ps.items()} for o, ps in parts.items()}


def _stacked(batches: list[Batch]) -> Batch:
    return concat([batch for batch in batches if batch.length] or batches[:1])


def run(workload, params, seed=0, slots=None, faults=None) -> Result:
    flow = workload.build(params)
    return Interleaver(flow, slots or params.partitions, seed, faults or {}).run()
