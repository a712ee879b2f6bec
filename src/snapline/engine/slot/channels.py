"""The channels of one slot: what has arrived and was not taken, and how much may be sent.

Credit is per channel, so a blocked channel never blocks its neighbours. It is asked before an input is
taken; the output of that input is then always accepted, so nothing waits in the middle of a step. A back
edge has no credit: a cycle that waits for itself would wait for ever.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from snapline.batch import Schema
from snapline.core.messages import Marker, Message
from snapline.core.policy import Intake
from snapline.core.topology import Channel
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, Seq, same_life


class Inputs:
    """The inboxes of all inputs of a slot."""

    def __init__(self, channels: Iterable[Channel] = ()) -> None:
        self.inbox: dict[ChannelId, deque[Message | Marker]] = {c.id: deque() for c in channels}
        self.waiting: dict[ChannelId, None] = {}  #: inputs with something in their inbox, in order
        self.taken: dict[ChannelId, int] = {}  #: messages since the channel's younger end started
        self._owed: dict[ChannelId, int] = {}  #: taken, and not yet given back as credit
        self._injected: dict[ChannelId, int] = {}  #: in the inbox without having cost a credit
        self.joining: set[ChannelId] = set()  #: inputs whose first message may have any number
        self.severed: set[ChannelId] = set()  #: inputs of a lost sender, until all is taken

    def push(self, channel: ChannelId, payload: Message | Marker) -> int:
        """Put what arrived into its inbox, and return the length of the inbox."""
        if self.severed:
            self.severed.discard(channel)  # it is from the next life of its sender
        inbox = self.inbox[channel]
        inbox.append(payload)
        self.waiting[channel] = None
        return len(inbox)

    def inject(self, channel: ChannelId, messages: Sequence[Message]) -> None:
        """Put channel state of a snapshot into an inbox, before all else.

        It costs no credit: that was spent when the message was first sent, in an earlier life.
        """
        if messages:
            self.inbox[channel].extend(messages)
            self._injected[channel] = len(messages)
            self.waiting[channel] = None

    def pop(self, channel: ChannelId) -> Message | Marker:
        """Take the first message or marker out of an inbox."""
        inbox = self.inbox[channel]
        payload = inbox.popleft()
        if not inbox:
            del self.waiting[channel]
        return payload

    def gather(
        self,
        first: Message,
        beside: Iterable[ChannelId],
        received: Mapping[ChannelId, Seq],
        room: int,
        accepts: Callable[[Message], bool],
    ) -> list[Message]:
        """The message that was popped, and what an operator can take with it: `room` records in all.

        These stand behind it, and in the inboxes `beside` it, have its schema, and are accepted.
        """
        found = [first]
        room -= first.batch.length
        schema: Schema | None = None  # costs more than all else, and is mostly not needed
        for channel in (first.channel, *beside):
            if channel not in self.waiting or channel in self.joining:
                continue
            inbox = self.inbox[channel]
            seq = first.seq if channel == first.channel else received[channel]
            while inbox and isinstance(behind := inbox[0], Message):
                schema = first.batch.schema if schema is None else schema
                alike = not behind.batch.length or behind.batch.schema == schema
                fits = behind.seq == seq + 1 and behind.batch.length <= room and alike
                if not fits or not accepts(behind):
                    break
                seq += 1
                room -= behind.batch.length
                found.append(behind)
                self.pop(channel)
        return found

    def check_order(self, message: Message, received: Seq, kept: Container[ChannelId] = ()) -> bool:
        """Check that a message follows the last one received; False if that was received already.

        It may be so only on channels that send again what may have been missed: `kept`.
        """
        if message.seq == received + 1:
            return True
        if message.channel in kept and message.seq <= received:
            return False
        if message.seq > received and not same_life(message.seq, received):
            return True  # of the next life of its sender, which numbers its messages apart
        if message.channel not in self.joining:
            raise ProtocolViolation(
                f"{message.channel} delivers message {message.seq} where {received + 1} is next"
            )
        if not self._injected.get(message.channel):  # else the sender's last life is not over yet
            self.joining.remove(message.channel)
        return True

    def owe(self, channel: ChannelId) -> int:
        """Note that a message was taken, and return the credit owed to its sender; 0 if injected."""
        if self._injected and (injected := self._injected.get(channel)):
            self._injected[channel] = injected - 1
            return 0
        self.taken[channel] = self.taken.get(channel, 0) + 1
        owed = self._owed[channel] = self._owed.get(channel, 0) + 1
        return owed

    def settle(self, channel: ChannelId) -> None:
        """Note that the sender was given all credit that it was owed."""
        self._owed[channel] = 0

    def sever(self, channel: ChannelId) -> None:
        """Note that the sender is gone: what is here of it is left, and costs the next life no credit.

        The first message of that life may have any number.
        """
        here = sum(isinstance(payload, Message) for payload in self.inbox[channel])
        self.taken[channel] = self._owed[channel] = 0
        self._injected[channel] = here
        self.joining.add(channel)
        self.severed.add(channel)

    def longest(self, channels: Iterable[ChannelId]) -> int:
        """The length of the longest of these inboxes."""
        return max((len(self.inbox[channel]) for channel in channels), default=0)


@dataclass(slots=True)
class Missed:
    """What was not sent to a receiver while its slot was away."""

    intake: Intake = Intake.DROP
    room: int = 0  # messages that are held back before the sender has to wait
    messages: int = 0  #: that were discarded
    records: int = 0  #: in them
    held: deque[Message] = field(default_factory=deque)  #: messages that wait for the receiver

    def add(self, message: Message) -> None:
        """Discard a message, or hold it back; one that is kept is in the log already."""
        if self.intake is Intake.WAIT:
            self.held.append(message)
        elif self.intake is Intake.DROP:
            self.messages += 1
            self.records += message.batch.length

    @property
    def full(self) -> bool:
        """Whether the sender has to wait."""
        return self.intake is Intake.WAIT and len(self.held) >= self.room


class Outputs:
    """The credit of all outputs of a slot."""

    def __init__(self, channels: Iterable[Channel] = (), credit: int = 0) -> None:
        self._full = credit
        self.credit: dict[ChannelId, int] = {c.id: credit for c in channels if not c.feedback}
        self.dry: set[ChannelId] = set()  #: outputs whose receiver has no room
        self.sent: dict[ChannelId, int] = {}  #: messages since the channel's younger end started
        self.severed: dict[ChannelId, Missed] = {}  #: outputs whose receiver is lost

    def may_send(self, channel: ChannelId) -> bool:
        """Whether the receiver has room."""
        return channel not in self.dry

    def spend(self, channel: ChannelId) -> None:
        """Use one credit for a message that is sent."""
        self.sent[channel] = self.sent.get(channel, 0) + 1
        credit = self.credit.get(channel)
        if credit is not None:
            self.credit[channel] = credit = credit - 1
            if credit <= 0:
                self.dry.add(channel)

    def refund(self, channel: ChannelId, messages: int) -> None:
        """Get credit back for so many messages that the receiver took."""
        self.credit[channel] += messages
        if self.dry and self.credit[channel] > 0:
            self.dry.discard(channel)

    def sever(self, channel: ChannelId, intake: Intake = Intake.DROP, room: int = 0) -> None:
        """Send nothing from now on: the receiver is lost, and restarts alone.

        All credit is back, because nothing will be under way to its next life.
        """
        missed = self.severed.setdefault(channel, Missed(intake, room))
        self.sent[channel] = 0
        if channel in self.credit:
            self.credit[channel] = self._full
            self.dry.discard(channel)
        self._settle(channel, missed)

    def miss(self, channel: ChannelId, message: Message) -> None:
        """Do with a message what is done while its receiver is away."""
        missed = self.severed[channel]
        missed.add(message)
        self._settle(channel, missed)

    def _settle(self, channel: ChannelId, missed: Missed) -> None:
        if missed.full:
            self.dry.add(channel)

    def reconnect(self, channel: ChannelId) -> Missed | None:
        """Send again: the receiver is back. Returns what it missed; None if it was not away."""
        missed = self.severed.pop(channel, None)
        if missed is not None and missed.full:
            self.dry.discard(channel)
        return missed
