"""What the tasks of a run have discarded, counted."""

from collections.abc import Iterable

from snapline.ids import ChannelId
from snapline.storage.discards.port import Discard


def records_of(found: Iterable[tuple[str, Discard]]) -> dict[ChannelId, int]:
    """How many records were discarded on each channel."""
    counts: dict[ChannelId, int] = {}
    for _, discard in found:
        counts[discard.channel] = counts.get(discard.channel, 0) + len(discard.identities)
    return counts
