"""One job: what runs, under which protocol, at which level, with which settings."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from snapline.core.events import Command, Timer
from snapline.core.guarantee import Guarantee
from snapline.core.policy import DEFAULT_POLICY, Intake, Policy
from snapline.core.protocol import CheckpointProtocol, JobContext, Options, TaskContext
from snapline.core.topology import Channel, Topology
from snapline.dataflow.deploy import Deployment
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, CheckpointNo, Millis, Seq, SlotId, TaskId


@dataclass(frozen=True, slots=True)
class Settings:
    """How the engine works; none of it changes what is computed."""

    batch_max_records: int = 4_000
    batch_growth: int = 4  # batches become so much larger while a source lags behind by that much
    linger_ms: Millis = 1  # how long due records gather before a source is read again
    credit: int = 32  # messages that may be under way on a channel
    full_every: int = 8  # so many snapshots of a task are deltas before a full one, for every 4 MB
    group_rows: int = 0  # of sliding windows that are stored as one object; 0: as many as suit
    whole_every: int = 64  # so many decisions apart have the whole line, not only what changed
    publish_lag: int = 0  # lines to commit after a line before its output is public
    compress: bool = False  # whether snapshots and logged messages are compressed
    watermark_ms: Millis = 100  # a watermark alone is sent when it rose by this much
    probe_ms: Millis = 50  # between two waves of counters, once all input was read
    retry_ms: Millis = 100  # before a failed call to the store is made again
    feedback_high: int = 1_000  # queued messages on a back edge at which sources are held ...
    feedback_low: int = 100  # ... and at which they are let go

    def batch_limit(self, behind: int) -> int:
        """How many records a source that is so many behind reads at once: large batches cost less."""
        large = self.batch_max_records * self.batch_growth
        return large if behind >= large else self.batch_max_records


@dataclass(frozen=True)
class Job:
    """Everything that slots and coordinator agree on before they start."""

    name: str
    deployment: Deployment
    protocol: CheckpointProtocol
    options: Options
    guarantee: Guarantee
    settings: Settings = field(default_factory=Settings)
    seed: int = 1
    run: str = ""  # which run this is: its decisions carry it, so that another's are recognised

    @property
    def topology(self) -> Topology:
        """The physical graph: all tasks and channels."""
        return self.deployment.topology

    @cached_property
    def slots(self) -> tuple[SlotId, ...]:
        """The numbers of all slots."""
        return tuple(range(self.deployment.slots))

    @cached_property
    def hosted(self) -> dict[SlotId, tuple[TaskId, ...]]:
        """The tasks of each slot, in the job's order."""
        return self.by_slot(self.topology.tasks)

    def by_slot(self, tasks: Iterable[TaskId]) -> dict[SlotId, tuple[TaskId, ...]]:
        """Tasks, by the slot that hosts them."""
        hosted: dict[SlotId, list[TaskId]] = {}
        for task in tasks:
            hosted.setdefault(self.slot_by_task[task], []).append(task)
        return {slot: tuple(those) for slot, those in hosted.items()}

    def by_sender(self, logs: Mapping[ChannelId, Seq]) -> dict[SlotId, dict[ChannelId, Seq]]:
        """Numbers of logged messages, by the slot that sends on their channel."""
        found: dict[SlotId, dict[ChannelId, Seq]] = {}
        for channel, seq in logs.items():
            slot = self.slot_by_task[self.topology.by_id[channel].source]
            found.setdefault(slot, {})[channel] = seq
        return found

    @cached_property
    def slot_by_task(self) -> dict[TaskId, SlotId]:
        """Where each task runs."""
        return {task: plan.slot for task, plan in self.deployment.plans.items()}

    def context(self, rng: random.Random) -> JobContext:
        """What the protocol's coordinator side knows about the job."""
        return JobContext(self.topology, self.options, self.guarantee, rng, self.policies)

    def task_context(
        self, task: TaskId, first_checkpoint: CheckpointNo, rng: random.Random
    ) -> TaskContext:
        """What the protocol's task side knows about one task."""
        return TaskContext(
            task,
            self.topology.inputs[task],
            self.topology.outputs[task],
            self.topology.tasks,
            self.options,
            self.guarantee,
            first_checkpoint,
            rng,
            self.policies[task],
            self.kept,
        )

    @cached_property
    def policies(self) -> dict[TaskId, Policy]:
        """How each task is protected, where the protocol heeds that."""
        heeds = self.protocol.heeds_policies
        plans = self.deployment.plans
        return {task: plan.policy if heeds else DEFAULT_POLICY for task, plan in plans.items()}

    @cached_property
    def kept(self) -> frozenset[ChannelId]:
        """The channels whose receivers are sent again what they missed."""
        if not self.protocol.heeds_policies:
            return frozenset()
        channels = self.topology.channels
        return frozenset(c.id for c in channels if self.policies[c.target].intake is Intake.KEEP)

    def kept_from(self, slot: SlotId) -> list[Channel]:
        """Those of them on which a slot sends."""
        slots = self.slot_by_task
        return [c for c in self.topology.channels if c.id in self.kept and slots[c.source] == slot]

    @cached_property
    def recalled(self) -> dict[ChannelId, Sequence[str]]:
        """The channels whose senders remember the keys of what they sent, with the columns of the keys.

        Their receivers have windows by rows, go back to a checkpoint when they are lost, and are not sent
        again what they missed. So they ask how many rows that were, because as many of theirs are stale.
        """
        if not self.protocol.heeds_policies:
            return {}
        found: dict[ChannelId, Sequence[str]] = {}
        for channel in self.topology.channels:
            policy = self.policies[channel.target]
            keys = self.deployment.plans[channel.target].row_keys.get(channel.port)
            if keys is not None and policy.saved and policy.intake is Intake.DROP:
                found[channel.id] = keys
        return found

    def remembered_between(self, sender: SlotId, receiver: SlotId) -> list[Channel]:
        """Those of the remembered channels that lead from one slot to another."""
        slots, ends = self.slot_by_task, (sender, receiver)
        channels = (c for c in self.topology.channels if c.id in self.remembered)
        return [c for c in channels if (slots[c.source], slots[c.target]) == ends]

    @cached_property
    def remembered(self) -> frozenset[ChannelId]:
        """The channels whose senders can tell what was sent on them since a checkpoint of the receiver."""
        return self.kept.union(self.recalled)

    def check_known(self, said: Command | Timer) -> None:
        """Raise ProtocolViolation if the protocol uses a command or timer that it does not list.

        Without this, a run in the simulator would accept what no other process could read.
        """
        protocol = self.protocol
        brought = "timers" if isinstance(said, Timer) else "commands"
        known = protocol.all_timers if isinstance(said, Timer) else protocol.all_commands
        if type(said) not in known:
            raise ProtocolViolation(
                f"the protocol {protocol.name} uses {said} and does not list {type(said).__name__} "
                f"among its {brought}="
            )

    @cached_property
    def timed(self) -> frozenset[ChannelId]:
        """The channels that carry watermarks."""
        return frozenset(
            channel.id
            for plan in self.deployment.plans.values()
            for route in plan.routes
            if route.timed
            for channel in route.channels
        )
