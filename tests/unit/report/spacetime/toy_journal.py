"""A toy of a simulator: three slots of (bids, count, sink) that write a plausible journal.

It knows two ways to checkpoint, aligned markers and local timers with a log, and one story: a job
that runs, loses a slot, goes back to a line, replays and goes on. Times come from one seed.
"""

import heapq
import random
from typing import Any

from snapline.batch import Batch
from snapline.core.effects import Block, Commit, Deliver, Forward, Rollback, Snapshot, Unblock
from snapline.core.events import (
    CommandArrived,
    LocalCheckpoint,
    MarkerArrived,
    MessageArrived,
    SnapshotStored,
    Started,
    TasksLost,
    TimerFired,
    TriggerRound,
)
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine, Stamp
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, TaskId, first_checkpoint, slot_of, task_id
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened, Stamped
from snapline.journal.fault_happenings import ProcessContinued, ProcessKilled, ProcessPaused
from snapline.journal.happenings import Happening, JobRunning, MessageReplayed, SlotRestored


def topology(slots: int = 3) -> Topology:
    """Every source feeds every counter; a counter feeds the sink of its slot."""
    names = ("bids", "count", "sink")
    tasks = tuple(task_id(name, slot) for name in names for slot in range(slots))
    pairs = [(task_id("bids", i), task_id("count", j)) for i in range(slots) for j in range(slots)]
    pairs += [(task_id("count", i), task_id("sink", i)) for i in range(slots)]
    return Topology(tasks, tuple(Channel(ChannelId(f"{a}>{b}"), a, b) for a, b in pairs))


class Toy:
    """The run so far."""

    def __init__(self, seed: int, *, markers: bool) -> None:
        self.topology = topology()
        self.rng = random.Random(seed)
        self.markers = markers
        self.entries: list[Entry] = []
        self.queue: list[tuple[int, int, Any]] = []
        self.ticket = 0
        self.epoch = 1
        self.dead: tuple[TaskId, ...] = ()
        self.sent: dict[TaskId, dict[ChannelId, int]] = {t: {} for t in self.topology.tasks}
        self.received: dict[TaskId, dict[ChannelId, int]] = {t: {} for t in self.topology.tasks}
        self.cut: dict[TaskId, list[ChannelId]] = {t: [] for t in self.topology.tasks}
        self.held: dict[ChannelId, list[Any]] = {c.id: [] for c in self.topology.channels}
        self.last_arrival: dict[ChannelId, int] = {}
        self.next_no: dict[TaskId, int] = {}
        self.metas: dict[TaskId, list[CheckpointMeta]] = {t: [] for t in self.topology.tasks}

    def later(self, at: int, call: Any, *arguments: Any) -> None:
        self.ticket += 1
        heapq.heappush(self.queue, (at, self.ticket, (self.epoch, call, arguments)))

    def run(self, until: int) -> None:
        while self.queue and self.queue[0][0] <= until:
            at, _, (epoch, call, arguments) = heapq.heappop(self.queue)
            if epoch == self.epoch:
                call(at, *arguments)

    def start(self, at: int) -> None:
        for task in self.topology.tasks:
            self.next_no[task] = first_checkpoint(self.epoch)
            self.entries.append(Built(at, task, self.epoch, 1, f"{task}", None))
            self.handled(at, task, Started(), ())
            if task.startswith("bids"):
                self.later(at + self.rng.randrange(5_000, 40_000), self.produce, task)
            if not self.markers:
                self.later(at + self.rng.randrange(60_000, 300_000), self.local, task)
        if self.markers:
            self.later(at + 150_000, self.round, first_checkpoint(self.epoch))

    def handled(self, at: int, actor: str, event: Any, effects: tuple[Any, ...]) -> None:
        self.entries.append(Handled(at, actor, self.epoch, 1, event, effects))

    def happened(self, at: int, actor: str, what: Happening) -> None:
        self.entries.append(Happened(at, actor, self.epoch, what))

    # Data.

    def produce(self, at: int, task: TaskId) -> None:
        if task not in self.dead:
            self.send(at, self.rng.choice(self.topology.outputs[task]))
            self.later(at + self.rng.randrange(25_000, 55_000), self.produce, task)

    def send(self, at: int, channel: Channel) -> None:
        seq = self.sent[channel.source].get(channel.id, 0) + 1
        self.sent[channel.source][channel.id] = seq
        self.entries.append(
            Stamped(at, channel.source, self.epoch, 1, channel.id, seq, Stamp(), 10)
        )
        self.travel(at, channel, Message(channel.id, seq, self.epoch, Batch({}, 10)))

    def travel(self, at: int, channel: Channel, payload: Any) -> None:
        local = slot_of(channel.source) == slot_of(channel.target)
        delay = self.rng.randrange(3_000, 9_000) if local else self.rng.randrange(12_000, 60_000)
        arrival = max(at + delay, self.last_arrival.get(channel.id, 0) + 1_000)  # FIFO
        self.last_arrival[channel.id] = arrival
        self.later(arrival, self.arrive, channel, payload)

    def arrive(self, at: int, channel: Channel, payload: Any) -> None:
        task = channel.target
        if task in self.dead:
            return
        if channel.id in self.cut[task]:
            self.held[channel.id].append(payload)
        elif isinstance(payload, Marker):
            self.marker(at, channel, payload)
        else:
            self.message(at, channel, payload)

    def message(self, at: int, channel: Channel, message: Message) -> None:
        task = channel.target
        forced = not self.markers and self.rng.random() < 0.05
        effects: tuple[Any, ...] = (Deliver(message),)
        if forced:
            effects = (self.snapshot(at, task, forced=True), *effects)
        self.received[task][channel.id] = message.seq
        self.handled(at, task, MessageArrived(message), effects)
        for output in self.topology.outputs[task]:
            self.send(at + 1_000, output)

    # Checkpoints.

    def snapshot(self, at: int, task: TaskId, *, forced: bool = False) -> Snapshot:
        number, self.next_no[task] = self.next_no[task], self.next_no[task] + 1
        meta = CheckpointMeta(
            task,
            number,
            dict(self.sent[task]),
            dict(self.received[task]),
            self.epoch,
            1,
            position=10 * sum(self.received[task].values()) if "sink" in task else 0,
            forced=forced,
        )
        self.later(at + self.rng.randrange(15_000, 45_000), self.store, meta)
        return Snapshot(number, forced=forced)

    def store(self, at: int, meta: CheckpointMeta) -> None:
        if meta.task in self.dead:
            return
        self.metas[meta.task].append(meta)
        line = {task: metas[-1].checkpoint for task, metas in self.metas.items() if metas}
        whole = len(line) == len(self.topology.tasks) and len(dict.fromkeys(line.values())) == 1
        commit = (Commit(RecoveryLine(line)),) if self.markers and whole else ()
        self.handled(at, COORDINATOR, SnapshotStored(meta), commit)

    def local(self, at: int, task: TaskId) -> None:
        if task not in self.dead:
            self.handled(at, task, TimerFired(LocalCheckpoint()), (self.snapshot(at, task),))
            self.later(at + self.rng.randrange(180_000, 260_000), self.local, task)

    def round(self, at: int, number: int) -> None:
        for task in self.topology.sources:
            if task not in self.dead:
                at += self.rng.randrange(1_000, 6_000)
                self.finish_round(at, task, CommandArrived(TriggerRound(number)), ())
        self.later(at + 200_000, self.round, number + 1)

    def marker(self, at: int, channel: Channel, marker: Marker) -> None:
        task = channel.target
        self.cut[task].append(channel.id)
        event = MarkerArrived(channel.id, marker)
        if len(self.cut[task]) < len(self.topology.inputs[task]):
            self.handled(at, task, event, (Block(channel.id),))
        else:
            self.finish_round(at, task, event, (Block(channel.id),))

    def finish_round(self, at: int, task: TaskId, event: Any, before: tuple[Any, ...]) -> None:
        snapshot = self.snapshot(at, task)
        marker = Marker(snapshot.checkpoint)
        cut, self.cut[task] = self.cut[task], []
        unblock = tuple(Unblock(channel) for channel in cut)
        self.handled(at, task, event, (*before, snapshot, Forward(marker), *unblock))
        for channel in self.topology.outputs[task]:
            self.travel(at, channel, marker)
        for blocked in cut:
            held, self.held[blocked] = self.held[blocked], []
            for payload in held:
                at += 500
                self.later(at, self.arrive, self.topology.by_id[blocked], payload)

    # Failure and recovery.

    def crash(self, at: int, slot: int) -> None:
        self.happened(at, f"slot/{slot}", ProcessKilled())
        self.dead = tuple(task for task in self.topology.tasks if slot_of(task) == slot)

    def recover(self, at: int) -> None:
        line = self.line()
        self.handled(
            at,
            COORDINATOR,
            TasksLost(self.dead),
            (Rollback(RecoveryLine({t: m.checkpoint for t, m in line.items()})),),
        )
        self.epoch, dead, self.dead = self.epoch + 1, slot_of(self.dead[0]), ()
        for task, meta in line.items():
            self.sent[task], self.received[task] = dict(meta.sent), dict(meta.received)
            self.cut[task], self.metas[task] = [], [meta] if meta.checkpoint else []
        self.held = {channel: [] for channel in self.held}
        self.last_arrival = {}
        for slot in range(3):
            self.happened(
                at + (90_000 if slot == dead else 30_000), f"slot/{slot}", SlotRestored(1)
            )
        self.happened(at + 95_000, COORDINATOR, JobRunning())
        self.start(at + 96_000)
        self.replay(at + 97_000)

    def line(self) -> dict[TaskId, CheckpointMeta]:
        """The last complete round; else roll back receivers of orphans until there are none."""
        if self.markers:
            last = min(metas[-1].checkpoint if metas else 0 for metas in self.metas.values())
            return {
                task: next((m for m in metas if m.checkpoint == last), CheckpointMeta(task, 0))
                for task, metas in self.metas.items()
            }
        chosen = {t: [CheckpointMeta(t, 0), *metas] for t, metas in self.metas.items()}
        while True:
            orphaned = [
                channel.target
                for channel in self.topology.channels
                if chosen[channel.target][-1].received.get(channel.id, 0)
                > chosen[channel.source][-1].sent.get(channel.id, 0)
            ]
            if not orphaned:
                return {task: metas[-1] for task, metas in chosen.items()}
            chosen[orphaned[0]].pop()

    def replay(self, at: int) -> None:
        for channel in self.topology.channels:
            first = self.received[channel.target].get(channel.id, 0)
            for seq in range(first + 1, self.sent[channel.source].get(channel.id, 0) + 1):
                at += 700
                message = Message(channel.id, seq, self.epoch, Batch({}, 10))
                self.happened(at, channel.source, MessageReplayed(message=message))
                self.travel(at, channel, message)


def toy_run(*, markers: bool, seed: int = 3) -> tuple[list[Entry], Topology]:
    """A second of a job that loses slot 1 after 0.55 s."""
    toy = Toy(seed, markers=markers)
    toy.start(0)
    toy.run(200_000)
    toy.happened(200_000, "slot/2", ProcessPaused())
    toy.happened(240_000, "slot/2", ProcessContinued())
    toy.run(550_000)
    toy.crash(550_000, 1)
    toy.run(640_000)
    toy.recover(640_000)
    toy.run(1_250_000)
    return sorted(toy.entries, key=lambda entry: entry.at_us), toy.topology
