"""The watermark of a task: the least over its inputs that carry time and are not idle.

A task all of whose inputs are idle is idle itself, and says so: it holds nobody back until it has something
to say. What was decided meanwhile stays: records that come behind the watermark of others are late.
"""

from collections.abc import Sequence

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import BEFORE_TIME, END_OF_TIME, IDLE
from snapline.core.topology import Channel
from snapline.ids import ChannelId, Millis


class Watermarks:
    """Keeps the last watermark seen on each input; they are part of every snapshot."""

    def __init__(self, inputs: Sequence[Channel], timed: frozenset[ChannelId]) -> None:
        self.by_channel: dict[ChannelId, Millis] = {
            channel.id: BEFORE_TIME for channel in inputs if channel.id in timed
        }
        self.low: Millis = BEFORE_TIME  #: the task's own watermark; never falls
        self.idle = False  #: whether it says nothing about time; a source sets it itself

    @property
    def said(self) -> Millis:
        """What the task says about time to whoever listens."""
        return IDLE if self.idle else self.low

    def advance(self, channel: ChannelId, watermark: Millis | None) -> bool:
        """Take the watermark of a message; True if the task's own watermark rose."""
        known = self.by_channel.get(channel)
        if watermark is None or known is None:
            return False
        if watermark <= known and IDLE not in (watermark, known):
            return False
        self.by_channel[channel] = watermark
        spoken = [mark for mark in self.by_channel.values() if mark != IDLE]
        self.idle = not spoken
        low = min(spoken, default=self.low)
        if low <= self.low:
            return False
        self.low = low
        return True

    def look(self, marks: Sequence[Millis]) -> bool:
        """Take the watermarks of the partitions of a source; True if its own watermark rose."""
        spoken = [mark for mark in marks if mark != IDLE]
        self.idle = bool(marks) and not spoken
        low = self.low if self.idle else min(spoken, default=END_OF_TIME)
        rose = low > self.low
        self.low = max(low, self.low)
        return rose

    def capture(self) -> Batch:
        """The state for a snapshot; a source that is idle has one mark more."""
        idle = [IDLE] if self.idle and not self.by_channel else []
        marks = [self.low, *self.by_channel.values(), *idle]
        return Batch({"watermark": np.array(marks, np.int64)}, len(marks))

    def restore(self, batch: Batch) -> None:
        """Take back a captured state; the inputs are the same, in the same order."""
        self.low, *marks = batch["watermark"].tolist()
        self.idle = set(marks) == {IDLE}
        if self.by_channel:
            self.by_channel = dict(zip(self.by_channel, marks, strict=True))
