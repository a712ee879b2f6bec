"""The binary forms of all that goes over a connection; nothing that is read can execute anything.

Data between slots is packed into structs and raw columns: on the way out a packet refers to the columns
of the batch itself, on the way in the batch is a view of the bytes that were received. A channel is a
small number, its place in the topology, which is the same in every process. All else is a
control message, written as JSON (`control_messages`). Both directions are here, side by side. What cannot
be read raises WireError and nothing else.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final, Self

from snapline.core.events import SHARED_COMMANDS, Command
from snapline.core.messages import Marker, Message
from snapline.engine.control import Credit, Frame, Stored
from snapline.engine.job import Job
from snapline.ids import ChannelId
from snapline.net.framing import (
    BODY_BYTES_MAX,
    CONTROL,
    CREDIT,
    HEAD,
    MAGIC,
    MARKER,
    MESSAGE,
    VERSION,
    Body,
    Packet,
    WireError,
    check_size,
    packet,
    padding,
)
from snapline.runtime.wire import columns as raw_columns
from snapline.runtime.wire.control_messages import ControlMessage, ControlText

# The head of the frame; channel and life; seq, watermark, epoch, rows, sizes of schema and header.
_MESSAGE: Final = struct.Struct("<HBBIIIIIQqIIII")
_MESSAGE_BODY: Final = struct.Struct("<IIIIQqIIII")
# Channel and life; checkpoint or number of messages; whether the marker overtakes.
_SHORT: Final = struct.Struct("<IIIIQQ")

MARKER_BYTES: Final = HEAD.size + _SHORT.size
"""The size of the frame of a marker."""

_NO_WATERMARK: Final = -(1 << 63)
_JOIN_BELOW: Final = 4096
"""Smaller columns are copied into one buffer: that costs less than naming each to the kernel."""


class Wire:
    """Packs and unpacks for one topology and one protocol. Control messages need no channels."""

    def __init__(
        self,
        channels: Sequence[ChannelId] = (),
        commands: Iterable[type[Command]] = SHARED_COMMANDS,
    ) -> None:
        self._text = ControlText(commands)
        self._channels = tuple(channels)
        self._numbers = {channel: number for number, channel in enumerate(self._channels)}
        #: what was packed so far: reports of stored checkpoints ...
        self.metadata_bytes = 0
        self.control_bytes = 0  #: ... and all else but messages and markers

    @classmethod
    def of(cls, job: Job) -> Self:
        """What the processes of a job speak: all of them know its channels and its protocol."""
        return cls([channel.id for channel in job.topology.channels], job.protocol.all_commands)

    def pack(self, item: Frame | ControlMessage) -> Packet:
        """What to send for a frame or a control message."""
        if not isinstance(item, Frame):
            made = packet(CONTROL, self._text.write(item))
            if isinstance(item, Stored):
                self.metadata_bytes += made.size
            else:
                self.control_bytes += made.size
            return made
        payload = item.payload
        if isinstance(payload, Message):
            return self._pack_message(item, payload)
        if isinstance(payload, Marker):
            return self._pack_short(MARKER, item, payload.checkpoint, payload.overtaking)
        made = self._pack_short(CREDIT, item, payload.messages, False)
        self.control_bytes += made.size
        return made

    def unpack(self, kind: int, body: Body) -> Frame | ControlMessage:
        """The frame or the control message that was packed into a body of this kind."""
        if kind == CONTROL:
            return self._text.read(body)
        try:
            if kind == MESSAGE:
                return self._unpack_message(body)
            return self._unpack_short(kind, body)
        except (struct.error, ValueError, TypeError, IndexError, OverflowError) as error:
            raise WireError(f"this is no frame of ours: {error}") from error

    # Messages.

    def _pack_message(self, frame: Frame, message: Message) -> Packet:
        schema, buffers, size = raw_columns.encode(message.batch)
        header = message.header
        size += _MESSAGE_BODY.size + len(schema) + len(header) + -len(header) % 8
        check_size(size, BODY_BYTES_MAX)
        watermark = _NO_WATERMARK if message.watermark is None else message.watermark
        head = _MESSAGE.pack(
            MAGIC,
            VERSION,
            MESSAGE,
            size,
            self._numbers[frame.channel],
            *frame.life,
            message.seq,
            watermark,
            message.epoch,
            message.batch.length,
            len(schema),
            len(header),
        )
        head += schema
        if header:
            head += header + padding(len(header))
        buffers.insert(0, head)
        size += HEAD.size
        if size < _JOIN_BELOW:
            return Packet(size, [b"".join(buffers)])  # type: ignore[arg-type]  # arrays are buffers
        return Packet(size, buffers)

    def _unpack_message(self, body: Body) -> Frame:
        number, epoch, sender, receiver, seq, watermark, message_epoch, rows, schema_size, size = (
            _MESSAGE_BODY.unpack_from(body)
        )
        channel = self._channels[number]
        header_at = _MESSAGE_BODY.size + schema_size
        columns_at = header_at + size + -size % 8
        schema = bytes(body[_MESSAGE_BODY.size : header_at])
        message = Message(
            channel,
            seq,
            message_epoch,
            raw_columns.decode(schema, rows, body, columns_at),
            bytes(body[header_at : header_at + size]) if size else b"",
            None if watermark == _NO_WATERMARK else watermark,
        )
        return Frame(channel, (epoch, sender, receiver), message)

    # Markers and credit.

    def _pack_short(self, kind: int, frame: Frame, number: int, flag: bool) -> Packet:
        channel = self._numbers[frame.channel]
        return packet(kind, _SHORT.pack(channel, *frame.life, number, flag))

    def _unpack_short(self, kind: int, body: Body) -> Frame:
        channel, epoch, sender, receiver, number, flag = _SHORT.unpack(body)
        if flag > (kind == MARKER):
            raise WireError(f"a frame of kind {kind} has the flag {flag}")
        payload = Marker(number, bool(flag)) if kind == MARKER else Credit(number)
        return Frame(self._channels[channel], (epoch, sender, receiver), payload)
