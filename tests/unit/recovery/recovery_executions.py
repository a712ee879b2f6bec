"""Executions to recover from: drawn by hand in a tiny language, or at random by hypothesis.

`"p: s1 c1 | q: r1 c1"` has two tasks. Each lists what it did, in order: `s1` sends message 1, `r1` receives
it, `c1` takes checkpoint 1. Whoever sends a message has a channel to whoever receives it, `p>q`.
"""

from dataclasses import dataclass, field
from itertools import product

from hypothesis import strategies as st

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, TaskId, first_checkpoint


def parse(story):
    """The topology and the checkpoints, task by task, of an execution in the tiny language."""
    scripts = {}
    for part in story.split("|"):
        task, _, events = part.partition(":")
        scripts[TaskId(task.strip())] = events.split()
    sender = {e[1:]: t for t, events in scripts.items() for e in events if e[0] == "s"}
    receiver = {e[1:]: t for t, events in scripts.items() for e in events if e[0] == "r"}
    assert sorted(sender) == sorted(receiver), "every message is sent and received"
    ends = dict.fromkeys((sender[m], receiver[m]) for m in sender)
    channels = tuple(Channel(ChannelId(f"{i}>{j}"), i, j) for i, j in ends)
    metas = []
    for task, events in scripts.items():
        sent, received = {}, {}
        for event in events:
            kind, name = event[0], event[1:]
            if kind == "c":
                metas.append(CheckpointMeta(task, int(name), dict(sent), dict(received)))
            else:
                counters = sent if kind == "s" else received
                channel = ChannelId(f"{sender[name]}>{receiver[name]}")
                counters[channel] = counters.get(channel, 0) + 1
    return Topology(tuple(scripts), channels), metas


def line(**checkpoints):
    return RecoveryLine(checkpoints)


def at(metas, recovery_line):
    """The metadata of a line."""
    known = {(m.task, m.checkpoint): m for m in metas}
    return {
        task: known.get((task, number)) or initial_meta(task)
        for task, number in recovery_line.checkpoints.items()
    }


def all_lines(topology, metas):
    """Every choice of one checkpoint per task, consistent or not, as metadata."""
    choices = [
        [initial_meta(task), *(m for m in metas if m.task == task)] for task in topology.tasks
    ]
    for chosen in product(*choices):
        yield dict(zip(topology.tasks, chosen, strict=True))


def without_orphans(topology, chosen):
    """Consistency, straight from its definition."""
    return all(
        chosen[c.target].received.get(c.id, 0) <= chosen[c.source].sent.get(c.id, 0)
        for c in topology.channels
    )


def brute_force_line(topology, metas):
    """The consistent line that no consistent line exceeds anywhere."""
    lines = [
        {task: meta.checkpoint for task, meta in chosen.items()}
        for chosen in all_lines(topology, metas)
        if without_orphans(topology, chosen)
    ]
    largest = {task: max(each[task] for each in lines) for task in topology.tasks}
    assert largest in lines
    return RecoveryLine(largest)


@dataclass
class Execution:
    """A job that sends, receives, takes checkpoints and rolls back, as it is told."""

    topology: Topology
    sent: dict = field(default_factory=dict)
    received: dict = field(default_factory=dict)
    epoch: int = 1
    taken: dict = field(default_factory=dict)
    sent_in: dict = field(default_factory=dict)  # (channel, seq) -> checkpoints taken by then
    received_in: dict = field(default_factory=dict)

    def send(self, channel):
        seq = self.sent[channel.id] = self.sent.get(channel.id, 0) + 1
        self.sent_in[channel.id, seq] = self.taken.get(channel.source, 0)

    def receive(self, channel):
        seq = self.received[channel.id] = self.received.get(channel.id, 0) + 1
        self.received_in[channel.id, seq] = self.taken.get(channel.target, 0)

    def communicate(self, kind, which):
        """Send a message, or receive one if any is under way; `which` chooses the channel."""
        channels = self.topology.channels
        waiting = [c for c in channels if self.received.get(c.id, 0) < self.sent.get(c.id, 0)]
        if kind == "r" and waiting:
            self.receive(waiting[which % len(waiting)])
        elif channels:
            self.send(channels[which % len(channels)])

    def checkpoint(self, task, parent=None):
        number = first_checkpoint(self.epoch) + self.taken.get(task, 0)
        self.taken[task] = self.taken.get(task, 0) + 1
        outputs, inputs = self.topology.outputs[task], self.topology.inputs[task]
        return CheckpointMeta(
            task,
            number,
            sent={c.id: self.sent[c.id] for c in outputs if c.id in self.sent},
            received={c.id: self.received[c.id] for c in inputs if c.id in self.received},
            epoch=self.epoch,
            parent=parent,
        )

    def roll_back(self, metas):
        """All tasks take back the counters of a line; what is under way will be received again."""
        self.epoch += 1
        self.taken = {}
        self.sent = {c: seq for meta in metas for c, seq in meta.sent.items()}
        self.received = {c: seq for meta in metas for c, seq in meta.received.items()}


@st.composite
def topologies(draw, tasks_max=4, channels_max=8):
    """A few tasks and any channels between them: cycles, loops and parallel channels included."""
    tasks = tuple(TaskId(f"{name}/0") for name in "pqrs"[: draw(st.integers(1, tasks_max))])
    count = draw(st.integers(0, channels_max))
    end = st.tuples(st.sampled_from(tasks), st.sampled_from(tasks))
    ends = draw(st.lists(end, min_size=count, max_size=count))
    return Topology(
        tasks,
        tuple(
            Channel(ChannelId(f"{i}>{j}#{port}"), i, j, str(port))
            for port, (i, j) in enumerate(ends)
        ),
    )


def steps(kinds, most):
    """What happens, one after the other: a kind and a number that chooses whom it happens to."""
    # Bytes are drawn at once and fast; their length apart, or nearly all would be very short.
    drawn = st.integers(0, most).flatmap(lambda n: st.binary(min_size=n, max_size=n))
    return drawn.map(lambda data: [(kinds[b % len(kinds)], b // len(kinds)) for b in data])


@st.composite
def timelines(draw, tasks_max=4, checkpoints_max=5, events_max=60):
    """A random execution without rollbacks, and its checkpoints in the order they were taken."""
    topology = draw(topologies(tasks_max))
    execution = Execution(topology)
    metas = []
    for kind, which in draw(steps("srrcc", events_max)):
        task = topology.tasks[which % len(topology.tasks)]
        if kind != "c":
            execution.communicate(kind, which)
        elif execution.taken.get(task, 0) < checkpoints_max:
            metas.append(execution.checkpoint(task))
    return execution, metas


def executions(tasks_max=4, checkpoints_max=5):
    """A topology and the checkpoints of a random execution on it, in the order they were taken."""
    drawn = timelines(tasks_max, checkpoints_max)
    return drawn.map(lambda timeline: (timeline[0].topology, timeline[1]))
