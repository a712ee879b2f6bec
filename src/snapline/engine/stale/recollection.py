"""What a sender remembers of a channel, so that it can say how many rows its receiver has missed.

Where messages to a lost receiver are dropped, its windows by rows are restored as they were, but the rows
that were sent since would have driven others out. So the sender keeps the keys of all that it has sent, or
discarded, since the oldest checkpoint to which its receiver may go back: references to columns that were
there anyway, and no copies. What a receiver missed that its sender cannot remember, because that was lost
as well, has to be estimated.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from snapline.batch import Batch
from snapline.core.topology import Channel
from snapline.dataflow.state.missed_rows import MissedRows, key_hashes
from snapline.engine.control import RowsByKey
from snapline.ids import ChannelId, Seq, same_life


class Recollection:
    """The keys of what one life of a sender has sent on one channel."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._sent: deque[tuple[Seq, Batch]] = deque()

    def add(self, seq: Seq, rows: Batch) -> None:
        """Remember the rows of a message."""
        if rows.length:
            self._sent.append((seq, rows.select(*self._keys)))

    def prune(self, through: Seq) -> None:
        """Forget messages up to a number: every checkpoint of the receiver has them."""
        while self._sent and self._sent[0][0] <= through:
            self._sent.popleft()

    def missed(self, after: Seq) -> RowsByKey:
        """What was sent behind a message."""
        rows = (key_hashes(rows, self._keys) for seq, rows in self._sent if seq > after)
        found = MissedRows.of(rows)
        return RowsByKey(tuple(found.hashes.tolist()), tuple(found.counts.tolist()))


def recollections(
    recalled: Mapping[ChannelId, Sequence[str]], outputs: Iterable[Channel]
) -> dict[ChannelId, Recollection]:
    """For each output that has to be remembered an empty recollection."""
    return {c.id: Recollection(recalled[c.id]) for c in outputs if c.id in recalled}


def recall(
    known: Mapping[ChannelId, Recollection],
    sent: Mapping[ChannelId, Seq],
    asked: Mapping[ChannelId, Seq],
) -> dict[ChannelId, RowsByKey]:
    """What was sent on channels behind these messages, as far as this life of their sender sent them."""
    return {
        channel: known[channel].missed(after)
        for channel, after in asked.items()
        if channel in known and same_life(after, sent[channel])
    }
