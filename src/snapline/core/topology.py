"""The physical graph: tasks and the channels between them, as protocols and recovery see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapline.ids import ChannelId, TaskId


@dataclass(frozen=True, slots=True)
class Channel:
    """A FIFO edge between two tasks."""

    id: ChannelId
    source: TaskId
    target: TaskId
    port: str = "in"  # the input of the target operator that it feeds
    feedback: bool = False  # a back edge: declared by the user, closes a cycle


@dataclass(frozen=True, slots=True)
class Topology:
    """All tasks and channels of a job. Order is part of the value: it is the same in every process."""

    tasks: tuple[TaskId, ...]
    channels: tuple[Channel, ...]
    inputs: Mapping[TaskId, tuple[Channel, ...]] = field(init=False, repr=False, compare=False)
    outputs: Mapping[TaskId, tuple[Channel, ...]] = field(init=False, repr=False, compare=False)
    by_id: Mapping[ChannelId, Channel] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inputs: dict[TaskId, list[Channel]] = {task: [] for task in self.tasks}
        outputs: dict[TaskId, list[Channel]] = {task: [] for task in self.tasks}
        for channel in self.channels:
            inputs[channel.target].append(channel)
            outputs[channel.source].append(channel)
        object.__setattr__(self, "inputs", {t: tuple(c) for t, c in inputs.items()})
        object.__setattr__(self, "outputs", {t: tuple(c) for t, c in outputs.items()})
        object.__setattr__(self, "by_id", {c.id: c for c in self.channels})

    @property
    def sources(self) -> tuple[TaskId, ...]:
        """The tasks without any input."""
        return tuple(task for task in self.tasks if not self.inputs[task])

    @property
    def cyclic(self) -> bool:
        """Whether a feedback edge exists."""
        return any(channel.feedback for channel in self.channels)
