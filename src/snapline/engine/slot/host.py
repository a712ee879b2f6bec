"""What a task asks of the slot that hosts it."""

from collections.abc import Iterable
from typing import Protocol

from snapline.core.events import Timer
from snapline.core.messages import Marker, Message
from snapline.core.topology import Channel
from snapline.engine.shell import SlotShell
from snapline.ids import ChannelId, Millis
from snapline.storage.api import Life


class Host(Protocol):
    """What a task asks of its slot."""

    shell: SlotShell

    def send(self, channel: Channel, payload: Message | Marker) -> None:
        """Send on an output."""
        ...

    def overtake(self, channel: Channel, marker: Marker) -> list[Message]:
        """Send a marker ahead of output that has not left; return what it passed."""
        ...

    def queued(self, channel: ChannelId) -> Iterable[Message | Marker]:
        """What has arrived on an input and was not taken yet."""
        ...

    def set_timer(self, life: Life, timer: Timer, delay_ms: Millis) -> None:
        """Set a timer of the task's protocol."""
        ...

    def cancel_timer(self, life: Life, timer: Timer) -> None:
        """Cancel a timer of the task's protocol."""
        ...
