"""The watermark of a task: the least over its inputs that carry time and are not idle."""

from collections.abc import Sequence

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import BEFORE_TIME, IDLE
from snapline.core.topology import Channel
from snapline.ids import ChannelId, Millis


class Watermarks:
    """Keeps the last watermark seen on each input; they are part of every snapshot."""

    def __init__(self, inputs: Sequence[Channel], timed: frozenset[ChannelId]) -> None:
        self.by_channel: dict[ChannelId, Millis] = {
            channel.id: BEFORE_TIME for channel in inputs if channel.id in timed
        }
        self.low: Millis = BEFORE_TIME  #: the task's own watermark; never falls

    def advance(self, channel: ChannelId, watermark: Millis | None) -> bool:
        """Take the watermark of a message; True if the task's own watermark rose."""
        known = self.by_channel.get(channel)
        if watermark is None or known is None:
            return False
        if watermark <= known and IDLE not in (watermark, known):
            return False
        self.by_channel[channel] = watermark
        spoken = [mark for mark in self.by_channel.values() if mark != IDLE]
        low = min(spoken, default=self.low)
        if low <= self.low:
            return False
        self.low = low
        return True

    def capture(self) -> Batch:
        """The state for a snapshot."""
        marks = [self.low, *self.by_channel.values()]
        return Batch({"watermark": np.array(marks, np.int64)}, len(marks))

    def restore(self, batch: Batch) -> None:
        """Take back a captured state; the inputs are the same, in the same order."""
        self.low, *marks = batch["watermark"].tolist()
        self.by_channel = dict(zip(self.by_channel, marks, strict=True))
