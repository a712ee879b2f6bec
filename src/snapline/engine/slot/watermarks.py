"""The watermark of a task: the least over its inputs that carry time and are not idle.

A task all of whose inputs are idle is idle itself, and says so: it holds nobody back until it has something
to say. What was decided meanwhile stays: records that come behind the watermark of others are late.

The tasks of one operator are idle together, or not at all. They learn one after the other that a stream
goes on; if the first of them were believed alone, what the others still have to read would be late. So as
long as one of them speaks, those that are idle count with what they said last. An input at its end speaks
no more: time does not end for a task as long as an idle input may go on.

An input whose sender is lost is *severed*, and does not count at all until the next life of its sender has
said something: nobody waits for the dead. What then comes behind the watermark is late. A task all of whose
inputs are severed is *orphaned*: it says so, and then its receivers do not wait for it either. Likewise one
that restarted alone until all its inputs have spoken: the time in its checkpoint is long past, and whoever
took it for the present would close windows again that were closed before.
"""

from collections.abc import Sequence

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import AWAY, BEFORE_TIME, END_OF_TIME, IDLE
from snapline.core.topology import Channel
from snapline.ids import ChannelId, Millis


class Watermarks:
    """Keeps the last watermark seen on each input; they are part of every snapshot."""

    def __init__(self, inputs: Sequence[Channel], timed: frozenset[ChannelId]) -> None:
        known = [channel for channel in inputs if channel.id in timed]
        self.by_channel: dict[ChannelId, Millis] = dict.fromkeys((c.id for c in known), BEFORE_TIME)
        self.idle_inputs: set[ChannelId] = set()
        self.severed: set[ChannelId] = set()  #: inputs whose senders are lost, and not yet back
        self._senders = {c.id: c.source.rpartition("/")[0] or c.source for c in known}  #: operators
        self.low: Millis = BEFORE_TIME  #: the task's own watermark; never falls
        self.idle = False  #: whether it says nothing about time; a source sets it itself
        self.orphaned = False  #: whether that is because all its senders are lost
        self.unheard = False  #: whether it restarted alone, and does not know the present time yet

    @property
    def said(self) -> Millis:
        """What the task says about time to whoever listens."""
        if self.orphaned or self.unheard:
            return AWAY
        return IDLE if self.idle else self.low

    def advance(self, channel: ChannelId, watermark: Millis | None) -> bool:
        """Take the watermark of a message; True if the task's own watermark rose."""
        known = self.by_channel.get(channel)
        if watermark is None or known is None:
            return False
        if watermark == AWAY:
            self.severed.add(channel)
            return self.rises()
        if back := channel in self.severed:
            self.severed.remove(channel)
        if watermark == IDLE:
            self.idle_inputs.add(channel)
        elif back or channel in self.idle_inputs:
            self.idle_inputs.discard(channel)
            self.by_channel[channel] = max(known, watermark)
        elif watermark <= known:
            return False
        else:
            self.by_channel[channel] = watermark
        return self.rises()

    def sever(self, channel: ChannelId) -> None:
        """Let an input whose sender is lost count no more; `rises` then tells what follows."""
        if channel in self.by_channel:
            self.severed.add(channel)

    def rises(self) -> bool:
        """Take what all inputs say into account; True if the task's own watermark rose."""
        low = self._least() if self.by_channel else self.low
        self.unheard = self.unheard and not self._all_spoke()
        if low <= self.low:
            return False
        self.low = low
        return True

    def _least(self) -> Millis:
        if not self.idle_inputs and not self.severed:
            self.idle = self.orphaned = False
            return min(self.by_channel.values())
        marks = [(c, mark) for c, mark in self.by_channel.items() if c not in self.severed]
        self.orphaned = not marks
        speaking = [c for c, mark in marks if c not in self.idle_inputs and mark != END_OF_TIME]
        awake = {self._senders[channel] for channel in speaking}
        self.idle = not awake
        heard = (mark for channel, mark in marks if self._senders[channel] in awake)
        return min(heard, default=self.low)

    def _all_spoke(self) -> bool:
        """Whether all inputs have said something about time, but for those whose senders are lost."""
        return all(
            mark != BEFORE_TIME or channel in self.idle_inputs
            for channel, mark in self.by_channel.items()
            if channel not in self.severed
        )

    def look(self, marks: Sequence[Millis]) -> bool:
        """Take the watermarks of the partitions of a source; True if its own watermark rose."""
        self.unheard = False
        spoken = [mark for mark in marks if mark != IDLE]
        self.idle = bool(marks) and not spoken
        low = self.low if self.idle else min(spoken, default=END_OF_TIME)
        rose = low > self.low
        self.low = max(low, self.low)
        return rose

    def hear_again(self) -> None:
        """Wait until every input has spoken: what they said when the state was saved is long past."""
        self.by_channel = dict.fromkeys(self.by_channel, BEFORE_TIME)
        self.idle_inputs = set()
        self.unheard = self.low != END_OF_TIME

    def capture(self) -> Batch:
        """The state for a snapshot: that of the task, and behind it that of each input."""
        marks = [self.low, *self.by_channel.values()]
        idle = [self.idle, *(channel in self.idle_inputs for channel in self.by_channel)]
        columns = {"watermark": np.array(marks, np.int64), "idle": np.array(idle, np.int64)}
        return Batch(columns, len(marks))

    def restore(self, batch: Batch) -> None:
        """Take back a captured state; the inputs are the same, in the same order."""
        self.low, *marks = batch["watermark"].tolist()
        idle, *idle_inputs = map(bool, batch["idle"].tolist())
        self.idle = idle
        self.idle_inputs = {c for c, it in zip(self.by_channel, idle_inputs, strict=True) if it}
        self.by_channel = dict(zip(self.by_channel, marks, strict=True))
