"""A tiny language for the tests of protocols: tasks with named inputs, coordinators, events.

Task `t` has the inputs that a test names, each from a task of the same name in lower case; `A*` is a
back edge. Numbers begin at 1, as in the papers.
"""

import random
from typing import Any

from snapline.batch import Batch
from snapline.core.effects import CoordinatorEffect, TaskEffect
from snapline.core.events import (
    Command,
    CommandArrived,
    JobStarted,
    MarkerArrived,
    MarkerSighted,
    MessageArrived,
    Progressed,
    SnapshotStored,
    Started,
    StoreFailed,
    TasksLost,
    Timer,
    TimerFired,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine
from snapline.core.protocol import (
    CheckpointProtocol,
    CoordinatorProtocol,
    JobContext,
    Options,
    TaskContext,
    TaskProtocol,
)
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, CheckpointNo, TaskId

A, B, L, M = (ChannelId(name) for name in "ABLM")


def edge(name: str, source: str = "", target: str = "t") -> Channel:
    """Channel `A` comes from task `a`; `A*` is a back edge."""
    plain = name.removesuffix("*")
    origin = TaskId(source or plain.lower())
    return Channel(ChannelId(plain), origin, TaskId(target), feedback=name.endswith("*"))


class TaskScene:
    """The task side of a protocol at task `t`, and short names for what may happen to it."""

    def __init__(
        self,
        protocol: CheckpointProtocol,
        inputs: str = "",
        *,
        me: str = "t",
        peers: str = "a b t",
        guarantee: Guarantee | None = None,
        first: CheckpointNo = 1,
        **options: Any,
    ) -> None:
        self.protocol: Any = protocol.task(
            TaskContext(
                task=TaskId(me),
                inputs=tuple(edge(name, target=me) for name in inputs.split()),
                outputs=(),
                peers=tuple(TaskId(peer) for peer in peers.split()),
                options=Options(**{"interval_ms": 1_000, "deadline_ms": 9_000, **options}),
                guarantee=guarantee or protocol.guarantees[0],
                first_checkpoint=first,
                rng=random.Random(1),
            )
        )
        assert isinstance(self.protocol, TaskProtocol)

    def start(self) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(Started())

    def sight(self, channel: str, number: int, **kind: bool) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(MarkerSighted(ChannelId(channel), Marker(number, **kind)))

    def marker(self, channel: str, number: int, **kind: bool) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(MarkerArrived(ChannelId(channel), Marker(number, **kind)))

    def command(self, command: Command) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(CommandArrived(command))

    def timer(self, timer: Timer) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(TimerFired(timer))

    def progress(self, records: int, windows: int = 0, pending: int = 0) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(Progressed(records, windows, pending))

    def take(self, message: Message) -> tuple[TaskEffect, ...]:
        return self.protocol.handle(MessageArrived(message))

    def send(self, target: str, seq: int = 1) -> Message:
        """What a message to a task would carry."""
        me = self.protocol.context.task
        stamp = self.protocol.stamp(Channel(ChannelId(f"{me}>{target}"), me, TaskId(target)))
        return message(f"{me}>{target}", seq, stamp.header)


def message(channel: str, seq: int = 1, header: bytes = b"") -> Message:
    return Message(ChannelId(channel), seq, 1, Batch({}, 0), header)


class CoordinatorScene:
    """The coordinator side of a protocol; the job is `A: a -> t` and `B: b -> t` unless said."""

    def __init__(
        self,
        protocol: CheckpointProtocol,
        *,
        tasks: str = "a b t",
        channels: tuple[Channel, ...] = (edge("A"), edge("B")),
        guarantee: Guarantee | None = None,
        first: CheckpointNo = 1,
        **options: int,
    ) -> None:
        self.tasks = tuple(TaskId(task) for task in tasks.split())
        self.protocol: Any = protocol.coordinator(
            JobContext(
                Topology(self.tasks, channels),
                Options(**{"interval_ms": 1_000, "deadline_ms": 9_000, **options}),
                guarantee or protocol.guarantees[0],
                random.Random(1),
            )
        )
        assert isinstance(self.protocol, CoordinatorProtocol)
        self.began = self.start(first)

    def start(self, first: CheckpointNo) -> tuple[CoordinatorEffect, ...]:
        return self.protocol.handle(JobStarted(first))

    def timer(self, timer: Timer) -> tuple[CoordinatorEffect, ...]:
        return self.protocol.handle(TimerFired(timer))

    def stored(self, task: str, number: int, **counters: Any) -> tuple[CoordinatorEffect, ...]:
        return self.protocol.handle(SnapshotStored(meta(task, number, **counters)))

    def store_failed(self, task: str, number: int) -> tuple[CoordinatorEffect, ...]:
        return self.protocol.handle(StoreFailed(TaskId(task), number))

    def lost(self, *tasks: str) -> tuple[CoordinatorEffect, ...]:
        return self.protocol.handle(TasksLost(tuple(TaskId(task) for task in tasks)))


def meta(task: str, number: int, **counters: Any) -> CheckpointMeta:
    return CheckpointMeta(TaskId(task), number, **counters)


def line(**checkpoints: int) -> RecoveryLine:
    return RecoveryLine({TaskId(task): number for task, number in checkpoints.items()})
