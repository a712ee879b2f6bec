"""Finds out whether the job is done, by two equal waves of counters.

A job is quiet when all sources are at their end, or held because a line is to hold everything, no slot has
unread input or replay, and in two successive waves of one epoch the counters are equal, with as many
messages received as sent on every channel. One wave would not do: a message can be counted as not yet sent
at its sender, and as received by a receiver that was asked later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapline.core.messages import END_OF_TIME, CheckpointMeta
from snapline.core.topology import Topology
from snapline.engine.control import Counters
from snapline.ids import ChannelId, Seq, SlotId, TaskId


@dataclass(slots=True)
class QuietDetector:
    """Collects the waves of counters of one epoch, and judges them."""

    slots: tuple[SlotId, ...]
    read: dict[SlotId, None] = field(default_factory=dict)  #: slots that have read all their input
    wave: int = 0
    answers: dict[SlotId, Counters] = field(default_factory=dict)  #: of the wave under way
    before: Mapping[ChannelId, int] | None = None  #: counters of the last wave, if they agreed
    seqs: dict[ChannelId, Seq] = field(default_factory=dict)  #: the last message of each channel
    #: rows written by each task that has no channels
    rows: dict[TaskId, int] = field(default_factory=dict)

    @property
    def all_read(self) -> bool:
        """Whether every slot has read all its input."""
        return len(self.read) == len(self.slots)

    def input_read(self, slot: SlotId) -> bool:
        """Note that a slot has read all its input; True if it was the last one."""
        self.read[slot] = None
        return self.all_read

    def next_wave(self) -> int:
        """Begin another wave, and return its number."""
        self.wave += 1
        self.answers = {}
        return self.wave

    def answer(self, slot: SlotId, counters: Counters) -> bool:
        """Take an answer; True if the wave is complete."""
        if counters.wave == self.wave:
            self.answers[slot] = counters
        return len(self.answers) == len(self.slots)

    def is_quiet(self, *, held: bool = False) -> bool:
        """Whether the job is quiet, by a complete wave and the one before it.

        `held`: all sources were told to read no more, before the first of these waves was asked for.
        """
        sent: dict[ChannelId, int] = {}
        received: dict[ChannelId, int] = {}
        for counters in self.answers.values():
            sent.update(counters.sent)
            received.update(counters.received)
            self.seqs.update(counters.seqs)
            self.rows.update(counters.rows)
        busy = any(counters.busy for counters in self.answers.values())
        channels = dict.fromkeys([*sent, *received])
        agree = not busy and all(sent.get(c, 0) == received.get(c, 0) for c in channels)
        quiet = agree and self.before == sent and (held or self.all_read)
        self.before = sent if agree else None
        return quiet

    def final(self) -> "Final":
        """What a line must hold to be the last one of a job that is quiet."""
        return Final(dict(self.seqs), None if self.all_read else dict(self.rows))

    def lost(self, slot: SlotId) -> None:
        """Forget what a slot said, and the waves so far: it restarts alone."""
        self.read.pop(slot, None)
        self.before = None
        self.answers = {}


@dataclass(frozen=True, slots=True)
class Final:
    """The last message on each channel and, if the job stops, the rows of tasks without channels."""

    seqs: Mapping[ChannelId, Seq]
    rows: Mapping[TaskId, int] | None = None  # None: all input is read


def covers(topology: Topology, line: Mapping[TaskId, CheckpointMeta], final: Final) -> bool:
    """Whether a line holds everything: all that was ever sent, on both ends of every channel.

    A task that reads input and writes output itself has no channel: its input must be at its end or, where
    the job is stopped before that, all rows that it wrote must be in the line.
    """
    alone = (t for t in topology.tasks if not topology.inputs[t] and not topology.outputs[t])
    return all(_holds_alone(line[task], final) for task in alone) and all(
        line[channel.source].sent.get(channel.id, 0) == final.seqs[channel.id]
        and line[channel.target].received.get(channel.id, 0) == final.seqs[channel.id]
        for channel in topology.channels
    )


def _holds_alone(meta: CheckpointMeta, final: Final) -> bool:
    if final.rows is None:
        return meta.watermark == END_OF_TIME
    return meta.position == final.rows.get(meta.task, 0)
