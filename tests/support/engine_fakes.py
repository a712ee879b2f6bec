"""The smallest world in which parts of the engine run: a job of two tasks, and shells that write down.

The job is `a -> b`; `b` is a sink. A shell does nothing by itself: a test reads what was asked of it in
`calls` and answers as it likes.
"""

from dataclasses import dataclass, field
from typing import Any

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Message, RecoveryLine
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.core.topology import Channel, Topology
from snapline.dataflow.deploy import Deployment
from snapline.engine.job import Job, Settings
from snapline.ids import ChannelId, TaskId
from snapline.protocols.aligned import ALIGNED

A, B = TaskId("a"), TaskId("b")
AB = ChannelId("a>b")
TOPOLOGY = Topology((A, B), (Channel(AB, A, B),))


def job(
    protocol: CheckpointProtocol = ALIGNED,
    topology: Topology = TOPOLOGY,
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
    kept_lines: int = 2,
    **settings: Any,
) -> Job:
    """A job without operators, for those parts of the engine that run none."""
    deployment = Deployment("test", 1, topology, {}, {}, "fingerprint")
    options = Options(kept_lines=kept_lines)
    return Job("test", deployment, protocol, options, guarantee, Settings(**settings))


def meta(task: str, number: int, **fields: Any) -> CheckpointMeta:
    """A checkpoint; what a test does not name is as in a fresh one."""
    return CheckpointMeta(TaskId(task), number, **fields)


def line(**checkpoints: int) -> RecoveryLine:
    """A line by the names of its tasks."""
    return RecoveryLine({TaskId(task): number for task, number in checkpoints.items()})


def message(seq: int, channel: str = AB, records: int = 1) -> Message:
    """A message that holds its own number, so often."""
    return Message(ChannelId(channel), seq, 1, Batch.of(n=[seq] * records))


@dataclass
class ShellSpy:
    """A shell of a slot or of the coordinator that writes down every request, with its arguments."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def write_down(*arguments: Any) -> None:
            self.calls.append((name, *arguments))

        return write_down

    def captured(self, *arguments: Any) -> None:
        """Told for measuring alone: nothing depends on it."""

    def taken(self) -> list[tuple[Any, ...]]:
        """The requests since the last look."""
        calls, self.calls = self.calls, []
        return calls
