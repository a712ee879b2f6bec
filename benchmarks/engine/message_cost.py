"""What one message costs in engine and protocol, in microseconds of CPU.

    python -m benchmarks.engine.message_cost [--messages N] [--rounds N] [--profile PROTOCOL]

The job is `a/1 -> pass/0 -> b/1`; measured is slot 0, whose operator passes everything on. *task*: the
protocol takes the message, the operator runs, its output is numbered, stamped and handed to the slot.
*slot*: the same, and before it the frame is checked, queued, chosen and credited. The world does nothing:
the log is called but keeps nothing, and the journal is brief: it wants no messages. The other tasks of the
job exist only for those protocols whose headers grow with them. Each figure is the best of several rounds,
in CPU time of this process.
"""

import argparse
import cProfile
import pstats
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from snapline.batch import Batch
from snapline.core.events import MessageArrived
from snapline.core.messages import Message
from snapline.core.protocol import CheckpointProtocol, Options, TaskContext
from snapline.core.topology import Channel, Topology
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.operator import OUT, Operator
from snapline.dataflow.partition import OneToOne, Route
from snapline.engine.control import Frame, Go, Restore
from snapline.engine.job import Job, Settings
from snapline.engine.slot.slot import Slot
from snapline.ids import ChannelId, TaskId
from snapline.protocols import PROTOCOLS

A, PASS, B = TaskId("a/1"), TaskId("pass/0"), TaskId("b/1")
IN = Channel(ChannelId("a/1>pass/0"), A, PASS)
AFTER = Channel(ChannelId("pass/0>b/1"), PASS, B)
BATCH = Batch.of(key=[7], value=[42])
NO_LIMIT = 1 << 40
TASKS = (3, 500)


class IdleWorld:
    """A shell behind which nothing happens; also the log that it opens."""

    journals_messages = False  # as in a real run, unless its journal is to be full
    gathers = False

    def rng(self, name: str) -> random.Random:
        return random.Random(name)

    def now_ms(self) -> int:
        return 0

    def now_us(self) -> int:
        return 0

    def choose(self, count: int) -> int:
        return 0

    def open_log(self, life: object) -> "IdleWorld":
        return self

    def _nothing(self, *arguments: object, **named: object) -> None:
        pass

    append = journal = note = performing = report = sent = set_alarm = transmit = worked = _nothing


def build_job(protocol: CheckpointProtocol, tasks: int) -> Job:
    others = [TaskId(f"other{n}/1") for n in range(tasks - 3)]
    topology = Topology((A, PASS, B, *others), (IN, AFTER))
    plans = {
        task: TaskPlan(
            task,
            slot=0 if task == PASS else 1,
            operator=Operator,
            stateful=False,
            ingress=None,
            partitions=(),
            sink=None,
            routes=(Route(OUT, OneToOne(), (AFTER,), timed=False),) if task == PASS else (),
        )
        for task in topology.tasks
    }
    deployment = Deployment("cost", 2, topology, plans, {}, "")
    settings = Settings(credit=NO_LIMIT)
    return Job("cost", deployment, protocol, Options(), protocol.guarantees[0], settings)


def running_slot(job: Job) -> Slot:
    world: Any = IdleWorld()
    slot = Slot(0, 1, job, world)
    slot.order(Restore(1, {0: 1, 1: 1}, {}, {}, ()))
    slot.order(Go(1))
    return slot


def header_of(job: Job) -> bytes:
    """What the neighbour's messages carry."""
    context = TaskContext(
        A, (), (IN,), job.topology.tasks, job.options, job.guarantee, 1, random.Random(1),
    )  # fmt: skip
    return job.protocol.task(context).stamp(IN).header


def through_task(slot: Slot, messages: Sequence[Message]) -> None:
    task = slot.tasks[PASS]
    for message in messages:
        task.handle(MessageArrived(message))


def through_slot(slot: Slot, messages: Sequence[Message]) -> None:
    for message in messages:
        slot.receive(1, Frame(IN.id, (1, 1, 1), message))
        slot.step()


WAYS: Mapping[str, Callable[[Slot, Sequence[Message]], None]] = {
    "task": through_task,
    "slot": through_slot,
}


def cost_us(job: Job, way: str, count: int, rounds: int) -> float:
    header = header_of(job)
    messages = [Message(IN.id, seq, 1, BATCH, header) for seq in range(1, count + 1)]
    best = float("inf")
    for _ in range(rounds):
        slot = running_slot(job)
        began = time.process_time()
        WAYS[way](slot, messages)
        best = min(best, time.process_time() - began)
    return best / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", metavar="PROTOCOL", help="tell where its time goes instead")
    asked = parser.parse_args()
    if asked.profile:
        job = build_job(PROTOCOLS[asked.profile], TASKS[-1])
        profiler = cProfile.Profile()
        profiler.runcall(cost_us, job, "slot", asked.messages, 1)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        return
    titles = [f"{way}, {tasks} tasks" for tasks in TASKS for way in WAYS]
    print(f"{'protocol':<15}" + "".join(f"{t:>17}" for t in titles) + f"{'header bytes':>15}")
    for name, protocol in PROTOCOLS.items():
        jobs = [build_job(protocol, tasks) for tasks in TASKS]
        costs = [cost_us(job, way, asked.messages, asked.rounds) for job in jobs for way in WAYS]
        figures = "".join(f"{cost:>14.1f} us" for cost in costs)
        print(f"{name:<15}{figures}{len(header_of(jobs[-1])):>15,}", flush=True)


if __name__ == "__main__":
    main()
