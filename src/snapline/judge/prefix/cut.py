"""How far a run had come at a line: which records it had read, and how late it was for each of its tasks.

A run that stops ends with a line across which no message is on its way: its sources were held, and its
channels have drained (`engine/coordinator/holding.py`). Then its state and its public output are those of
the dataflow after it was given exactly the records before the line, whatever the protocol. Checkpoints show
whether a line is such a line: on every channel, what was sent was received. With `aligned` every line is.
One across which messages were on their way is not judged: their records were read, and what comes of them
is not public yet.

Time did not end at that line. A window that no watermark has closed has put out nothing, and is neither
expected nor wrong. A watermark comes to a task with a delay: one that goes alone is sent only when it rose
by some milliseconds (`Settings.watermark_ms`). So the checkpoints say how far each task was, and the input
says whether that can be: a task that was further behind than this delay explains is not believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from snapline.core.messages import BEFORE_TIME, END_OF_TIME, CheckpointMeta
from snapline.dataflow.chain import Chain
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.errors import SnaplineError
from snapline.ids import ChannelId, Millis, TaskId, task_id
from snapline.rundir.program import Offsets
from snapline.storage.streams.ingress import StreamIngress


class NoCut(SnaplineError):
    """Nobody can say what should have come out by the last line; the text says why."""


@dataclass(frozen=True, slots=True)
class LineCut:
    """How far a run had come at a line."""

    offsets: Offsets
    watermarks: Mapping[TaskId, Millis]  # of every task of every operator, chained or not
    passed_ms: Millis  # every task that uses time had this watermark, or a later one
    reached_ms: Millis  # none can have had a later one than this, by what was read

    @property
    def records(self) -> int:
        """How many records were read."""
        return sum(sum(each) for each in self.offsets.values())


def cut_at(
    deployment: Deployment, line: Mapping[TaskId, CheckpointMeta], watermark_ms: Millis
) -> LineCut:
    """What a line holds. Raises NoCut if that is not all that was read, or cannot be."""
    _check_drained(deployment, line)
    marks = _by_the_input(deployment, line)
    plans = deployment.plans.values()
    _check_believable(deployment, line, marks, watermark_ms)
    uses = [plan.task for plan in plans if plan.operator().uses_time]
    return LineCut(
        _offsets(deployment, line),
        {name: line[plan.task].watermark for plan in plans for name in _operators(plan)},
        min((line[task].watermark for task in uses), default=END_OF_TIME),
        max((marks[task] for task in uses), default=END_OF_TIME),
    )


def of_chains(deployment: Deployment, watermarks: Mapping[TaskId, Millis]) -> dict[TaskId, Millis]:
    """The watermarks of the tasks of a deployment, in which operators may be chained."""
    return {
        plan.task: min(watermarks.get(name, END_OF_TIME) for name in _operators(plan))
        for plan in deployment.plans.values()
    }


def _operators(plan: TaskPlan) -> list[TaskId]:
    """The operators that a task consists of, as if each were a task of its own; the first one reads."""
    operator = plan.operator()
    own = (plan.task.rpartition("/")[0],)
    names = operator.names if isinstance(operator, Chain) else own
    return [task_id(name, plan.slot) for name in names]


def _check_drained(deployment: Deployment, line: Mapping[TaskId, CheckpointMeta]) -> None:
    for channel in deployment.topology.channels:
        sent = line[channel.source].sent.get(channel.id, 0)
        received = line[channel.target].received.get(channel.id, 0)
        if sent != received:
            raise NoCut(
                f"messages were on their way across its last line: {channel.source} had sent {sent} to "
                f"{channel.target}, and {received} had been received"
            )


def _offsets(deployment: Deployment, line: Mapping[TaskId, CheckpointMeta]) -> Offsets:
    found: dict[str, dict[int, int]] = {}
    for plan in deployment.plans.values():
        if plan.ingress is not None:
            source = _operators(plan)[0].rpartition("/")[0]
            read = {p: line[plan.task].offsets.get(p, 0) for p in plan.partitions}
            found.setdefault(source, {}).update(read)
    return {source: tuple(by[p] for p in sorted(by)) for source, by in found.items()}


# Time.


def _timed(deployment: Deployment) -> frozenset[ChannelId]:
    routes = (route for plan in deployment.plans.values() for route in plan.routes if route.timed)
    return frozenset(channel.id for route in routes for channel in route.channels)


def _by_the_input(
    deployment: Deployment, line: Mapping[TaskId, CheckpointMeta]
) -> dict[TaskId, Millis]:
    """The watermark that each task would have if watermarks came without any delay."""
    timed, marks = _timed(deployment), dict[TaskId, Millis]()
    for task in deployment.topology.tasks:  # in topological order
        plan = deployment.plans[task]
        if plan.ingress is not None:
            read = ((p, line[task].offsets.get(p, 0)) for p in plan.partitions)
            known = [plan.ingress.watermark(p, offset) for p, offset in read]
            marks[task] = min(known, default=END_OF_TIME)
        else:
            inputs = [c for c in deployment.topology.inputs[task] if c.id in timed]
            marks[task] = min((marks[c.source] for c in inputs), default=BEFORE_TIME)
    return marks


def _check_believable(
    deployment: Deployment,
    line: Mapping[TaskId, CheckpointMeta],
    marks: Mapping[TaskId, Millis],
    watermark_ms: Millis,
) -> None:
    """Raise NoCut if a task cannot have been where its checkpoint says, by what was read."""
    timed = _timed(deployment)
    streams = any(isinstance(p.ingress, StreamIngress) for p in deployment.plans.values())
    hops: dict[TaskId, int] = {}
    for task in deployment.topology.tasks:
        inputs = [c for c in deployment.topology.inputs[task] if c.id in timed]
        hops[task] = max((hops[c.source] + 1 for c in inputs), default=0)
        was, mark = line[task].watermark, marks[task]
        if streams:  # which may have grown since
            if was > mark:
                raise NoCut(
                    f"a stream was idle when the run came to its last line: {task} did not wait for it, "
                    "and a run without pauses does"
                )
        elif mark - hops[task] * watermark_ms > max(was, 0):
            raise NoCut(
                f"the watermark of {task} was {was} ms at its last line, and by its input it should have "
                f"been about {mark} ms: nobody can say which windows should have closed"
            )
