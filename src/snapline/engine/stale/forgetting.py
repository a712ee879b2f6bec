"""What is stale in a task that went back alone: windows that have ended, and rows that should be gone.

*Windows by time* that ended while the task was away missed records, and are done away with as soon as it
knows the time of the others. *Windows by rows* are as they were at the checkpoint. Where messages to a
lost task are dropped, it never gets the rows that were sent to it since then; but these would have driven
others out. As far as their senders remember how many of each key they were, exactly those are forgotten.
Where a sender was lost as well, SPADE's estimate serves: the time since the checkpoint, times the rate at
which rows came before; keys share that as they share the rows in the windows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from snapline.batch import Batch, Words
from snapline.core.messages import Message
from snapline.core.policy import Policy, Stale
from snapline.core.topology import Channel
from snapline.dataflow.operators.guard import Guard
from snapline.dataflow.state.missed_rows import MissedRows
from snapline.engine.control import RowsByKey
from snapline.engine.shell import SlotShell
from snapline.ids import ChannelId, Millis
from snapline.journal.loss_happenings import StaleDropped
from snapline.storage.api import Life


def expire(
    guard: Guard, policy: Policy, life: Life, shell: SlotShell, time: Millis
) -> Sequence[tuple[str, Batch]]:
    """Do away with windows that ended while a task was away; return what is put out of them."""
    if policy.stale is Stale.MARK:
        return guard.mark_stale(time)
    if windows := guard.expire(time):
        shell.note(life.task, life.epoch, StaleDropped(life.task, windows))
    return ()


ARRIVALS: Final = "@arrivals"
"""The engine's own part of a snapshot with how many rows have come to windows by rows, on each input."""


class Arrivals:
    """How many rows have come to a task on each input of its windows by rows, and since when."""

    def __init__(
        self, recalled: Mapping[ChannelId, Sequence[str]], inputs: Iterable[Channel], now_ms: Millis
    ) -> None:
        self.rows: dict[ChannelId, int] = {c.id: 0 for c in inputs if c.id in recalled}
        self.since_ms = now_ms
        self.until_ms: Millis | None = None  #: the time of the checkpoint to which it went back

    def count(self, messages: Iterable[Message]) -> None:
        """Count the rows of messages that are taken in."""
        for message in messages:
            if message.channel in self.rows:
                self.rows[message.channel] += message.batch.length

    def capture(self) -> dict[str, Batch]:
        """What a snapshot has of it: nothing, if there is no such input."""
        if not self.rows:
            return {}
        channels = Words(np.arange(len(self.rows), dtype=np.int32), tuple(self.rows))
        rows = np.array([*self.rows.values()], np.int64)
        return {
            ARRIVALS: Batch.of(channel=channels, rows=rows, since=np.full(len(rows), self.since_ms))
        }

    def restore(self, part: Batch | None, taken_ms: Millis) -> None:
        """Take back what a snapshot has, which was taken then."""
        self.until_ms = taken_ms
        if part is not None:
            for channel, rows, since_ms in part.select("channel", "rows", "since").rows():
                self.rows[channel] = rows
                self.since_ms = since_ms

    def expected(self, channel: ChannelId, now_ms: Millis) -> int:
        """How many rows will have come on a channel since the checkpoint, by the rate before it."""
        if self.until_ms is None or self.until_ms <= self.since_ms:
            return 0
        rate = self.rows[channel] / (self.until_ms - self.since_ms)
        return round(rate * max(0, now_ms - self.until_ms))


def forget_stale(
    guard: Guard,
    ports: Mapping[str, Iterable[ChannelId]],
    arrivals: Arrivals,
    missed: Mapping[ChannelId, RowsByKey],
    now_ms: Millis,
) -> int:
    """Have a task that went back alone forget the rows that are stale; return how many.

    `ports` has its inputs, and `missed` what their senders say, as far as they know it.
    """
    if arrivals.until_ms is None:
        return 0  # it began empty
    forgotten = 0
    for port, channels in ports.items():
        known: list[MissedRows] = []
        for channel in (each for each in channels if each in arrivals.rows):
            if (told := missed.get(channel)) is not None:
                hashes = np.array(told.hashes, np.uint64)
                known.append(MissedRows(hashes, np.array(told.counts, np.int64)))
            elif rows := arrivals.expected(channel, now_ms):
                known.append(MissedRows.shared_out(rows, guard.operator.living(port)))
        if known:
            forgotten += guard.forget_stale(port, MissedRows.summed(known))
    return forgotten
