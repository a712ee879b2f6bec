"""The promises of the uncoordinated family, on random runs of a toy world with FIFO channels."""

import random
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import message, meta

from snapline.core.effects import Deliver, Forward, Snapshot, TaskEffect
from snapline.core.events import (
    CommandArrived,
    LocalCheckpoint,
    MarkerArrived,
    MessageArrived,
    TimerFired,
    TriggerRound,
)
from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.core.protocol import CheckpointProtocol, Options, TaskContext
from snapline.core.topology import Channel, Topology
from snapline.ids import TaskId
from snapline.protocols import PROTOCOLS
from snapline.recovery.zpaths import useless_checkpoints

TASKS = ("p", "q", "r")
MESH = Topology(
    TASKS,
    tuple(Channel(f"{i}>{j}", i, j, feedback=i > j) for i in TASKS for j in TASKS if i != j),
)


class Toy:
    """Every task talks to every other; who does what next is drawn from a seed."""

    def __init__(self, protocol: CheckpointProtocol, seed: int) -> None:
        self.rng = random.Random(seed)
        self.tasks: dict[str, Any] = {
            task: protocol.task(self.context(protocol, task)) for task in TASKS
        }
        self.queues: dict[str, deque[Message | Marker]] = {c.id: deque() for c in MESH.channels}
        self.sent = {task: {c.id: 0 for c in MESH.outputs[task]} for task in TASKS}
        self.received = {task: {c.id: 0 for c in MESH.inputs[task]} for task in TASKS}
        self.metas: list[CheckpointMeta] = []

    def context(self, protocol: CheckpointProtocol, task: TaskId) -> TaskContext:
        return TaskContext(
            task=task,
            inputs=MESH.inputs[task],
            outputs=MESH.outputs[task],
            peers=TASKS,
            options=Options(),
            guarantee=protocol.guarantees[0],
            first_checkpoint=1,
            rng=self.rng,
        )

    def handle(self, task: TaskId, event: Any) -> None:
        for effect in self.tasks[task].handle(event):
            self.perform(task, effect)

    def perform(self, task: TaskId, effect: TaskEffect) -> None:
        match effect:
            case Snapshot(checkpoint, _, forced):
                counters = {"sent": dict(self.sent[task]), "received": dict(self.received[task])}
                self.metas.append(meta(task, checkpoint, forced=forced, **counters))
            case Deliver(delivered):
                self.received[task][delivered.channel] = delivered.seq
            case Forward(marker):
                for channel in MESH.outputs[task]:
                    self.queues[channel.id].append(marker)

    def checkpoint(self, task: TaskId) -> None:
        self.handle(task, TimerFired(LocalCheckpoint()))

    def send(self, channel: Channel) -> None:
        self.sent[channel.source][channel.id] += 1
        stamp = self.tasks[channel.source].stamp(channel)
        seq = self.sent[channel.source][channel.id]
        self.queues[channel.id].append(message(channel.id, seq, stamp.header))

    def take(self, channel: Channel) -> None:
        if not self.queues[channel.id]:
            return
        head = self.queues[channel.id].popleft()
        arrived = MessageArrived(head) if isinstance(head, Message) else None
        self.handle(channel.target, arrived or MarkerArrived(channel.id, head))

    def run(self, steps: int) -> "Toy":
        for _ in range(steps):
            match self.rng.choice("cssssrrrr"):
                case "c":
                    self.checkpoint(self.rng.choice(TASKS))
                case "s":
                    self.send(self.rng.choice(MESH.channels))
                case "r":
                    self.take(self.rng.choice(MESH.channels))
        return self


def useless(name: str, seed: int) -> tuple[object, ...]:
    toy = Toy(PROTOCOLS[name], seed).run(150)
    for task in TASKS:
        toy.checkpoint(task)
    return useless_checkpoints(MESH, toy.metas)


@pytest.mark.parametrize("name", ["hmnr", "bcs"])
@given(seed=st.integers(0, 1 << 30))
def test_no_checkpoint_is_ever_useless(name, seed):
    assert useless(name, seed) == ()


def test_without_forced_checkpoints_the_same_runs_do_have_useless_ones():
    assert any(useless("uncoordinated", seed) for seed in range(10))


def forced(name: str) -> int:
    """Checkpoints that local ones force, all along the same runs."""
    return sum(m.forced for seed in range(20) for m in Toy(PROTOCOLS[name], seed).run(150).metas)


def test_hmnr_forces_fewer_checkpoints_than_bcs():
    """CheckMate III-C chooses it for that."""
    assert 0 < forced("hmnr") < forced("bcs")


@pytest.mark.parametrize("name", ["uncoordinated", "hmnr", "bcs"])
@given(seed=st.integers(0, 1 << 30))
def test_the_checkpoints_of_a_consistent_round_have_no_orphan(name, seed):
    toy = Toy(PROTOCOLS[name], seed).run(60)
    joined: dict[str, CheckpointMeta] = {}

    def note() -> None:
        for task in TASKS:
            if task not in joined and toy.tasks[task].round == 7:
                joined[task] = [m for m in toy.metas if m.task == task][-1]

    toy.handle("p", CommandArrived(TriggerRound(7)))
    note()
    while len(joined) < len(TASKS):
        toy.run(1)
        note()
    for channel in MESH.channels:
        received = joined[channel.target].received[channel.id]
        assert received <= joined[channel.source].sent[channel.id]
