"""The binary forms of what is kept: messages, snapshots, and frames of any of them.

All forms are fixed structs around raw column buffers; none of them can execute anything when it is read.
A *frame* puts a length and a checksum before its payload, so that a file which ends in the middle of a
write is recognised: reading stops at the first frame that is not whole. A checksum may depend on a *seed*:
whoever reads with another one finds no frame. What cannot be decoded raises ObjectDamaged, never a struct
or numpy error.

Messages and snapshots may be compressed (`packing`). Their form says so itself: whoever reads need not know
how they were written.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from xxhash import xxh3_64, xxh3_64_intdigest, xxh3_128, xxh3_128_hexdigest

from snapline import batch_form as columns
from snapline.batch import Batch, Buffer, bytes_of, size_of
from snapline.core.messages import Message
from snapline.errors import ObjectDamaged
from snapline.ids import ChannelId, Epoch, Seq
from snapline.storage.packing import FAST, SMALL, pack, unpack


def digest_of(data: bytes) -> str:
    """The digest that every store keeps of an object. It detects damage, but not forgery."""
    return xxh3_128_hexdigest(data)


class Pieces:
    """The bytes of a large object in pieces, which lie where they are: to join them would copy it all."""

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        self.buffers: Final = [bytes_of(buffer) for buffer in buffers]
        self.size: Final = sum(map(len, self.buffers))

    @cached_property
    def digest(self) -> str:
        """What `digest_of` says of the bytes."""
        digest = xxh3_128()
        for view in self.buffers:
            digest.update(view)
        return digest.hexdigest()

    def __bytes__(self) -> bytes:
        return b"".join(self.buffers)


# Frames.

_FRAME = struct.Struct("<II")  # length of the payload, checksum of length and payload
# The length is added to the seed: the zeros that a lost page leaves must not look like empty frames.
_SEED = 0x534C
_CHECKSUM = (1 << 32) - 1
_WORD = (1 << 64) - 1
FRAME_OVERHEAD = _FRAME.size


def frame(payload: bytes, seed: int = 0) -> bytes:
    """The payload with its length and checksum before it."""
    return _FRAME.pack(len(payload), _checksum(payload, seed)) + payload


def frame_head(pieces: Sequence[Buffer], size: int, seed: int = 0) -> bytes:
    """The length and checksum that stand before a payload, which is given in pieces."""
    checksum = xxh3_64(seed=_SEED + size + seed & _WORD)
    for piece in pieces:
        checksum.update(piece)  # type: ignore[arg-type]  # arrays are buffers
    return _FRAME.pack(size, checksum.intdigest() & _CHECKSUM)


def unframe(data: bytes | memoryview, at: int = 0, seed: int = 0) -> memoryview | None:
    """The payload of the frame at this place, or None if no whole, undamaged frame stands there."""
    start = at + FRAME_OVERHEAD
    if start > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, at)
    payload = memoryview(data)[start : start + length]
    if len(payload) < length or _checksum(payload, seed) != checksum:
        return None
    return payload


def payload_size(head: bytes) -> int:
    """The length of the payload behind the first bytes of a frame."""
    length: int = _FRAME.unpack_from(head)[0]
    return length


def _checksum(payload: bytes | memoryview, seed: int) -> int:
    return xxh3_64_intdigest(payload, _SEED + len(payload) + seed & _WORD) & _CHECKSUM


# Messages.

_MESSAGE = struct.Struct("<HIQIq")  # sizes of channel and header, seq, epoch, watermark
_NO_WATERMARK = -(1 << 63)
_PACKED = 1 << 31  # added to the size of the header: header and records are packed
PACKED_FROM: Final = 256
"""A message with fewer bytes of header and records is never compressed: that would save next to nothing."""


def message_pieces(message: Message, *, compress: bool = False) -> list[Buffer]:
    """The binary form of a message in pieces, so that its columns need not be copied.

    Where it is compressed, channel and numbers stay as they are, for `peek_message`.
    """
    channel = message.channel.encode()
    watermark = _NO_WATERMARK if message.watermark is None else message.watermark
    size = len(message.header)
    if compress and message.batch.nbytes + size >= PACKED_FROM:
        head = _MESSAGE.pack(len(channel), size | _PACKED, message.seq, message.epoch, watermark)
        return [head + channel, *pack(columns.pieces_of(message.batch, message.header), FAST)]
    head = _MESSAGE.pack(len(channel), size, message.seq, message.epoch, watermark)
    return columns.pieces_of(message.batch, head + channel + message.header)


def decode_message(data: bytes | memoryview) -> Message:
    """Read a message from its binary form. Its columns are views of `data`, unless it was compressed."""
    with _damage_if_malformed("message"):
        view = memoryview(data)
        channel_size, header_size, seq, epoch, watermark = _MESSAGE.unpack_from(view)
        at = _MESSAGE.size + channel_size
        rest = view[at:]
        if header_size & _PACKED:
            header_size, rest = header_size ^ _PACKED, memoryview(unpack(rest, FAST))
        return Message(
            ChannelId(str(view[_MESSAGE.size : at], "utf-8")),
            seq,
            epoch,
            columns.decode(rest[header_size:]),
            bytes(rest[:header_size]),
            None if watermark == _NO_WATERMARK else watermark,
        )


def peek_message(data: bytes | memoryview) -> tuple[ChannelId, Seq, Epoch]:
    """Channel, seq and epoch of an encoded message, without its records."""
    with _damage_if_malformed("message"):
        channel_size, _, seq, epoch, _ = _MESSAGE.unpack_from(data)
        raw = memoryview(data)[_MESSAGE.size : _MESSAGE.size + channel_size]
        return ChannelId(str(raw, "utf-8")), seq, epoch


# Snapshots.


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """What a snapshot object holds: operator state, the protocol's memory, recorded messages."""

    full: bool  # False: a delta to the snapshot that the metadata names as parent
    parts: Mapping[str, Batch]
    memo: bytes
    messages: tuple[Message, ...]


_MAGIC = b"SNP1"
_MAGIC_PACKED = b"SNZ1"  # behind it stands the packed form of a snapshot
_SNAPSHOT = struct.Struct("<4s?IHI")  # magic, full, size of the memo, parts, messages
_PART = struct.Struct("<HQ")  # sizes of name and batch
_SIZE = struct.Struct("<Q")


def encode_snapshot(
    capture_full: bool,
    parts: Mapping[str, Batch],
    memo: bytes,
    messages: Sequence[Message],
    *,
    compress: bool = False,
) -> Pieces:
    """The binary form of a snapshot. Its columns are not copied, unless they are compressed."""
    pieces: list[Buffer] = [
        _SNAPSHOT.pack(_MAGIC, capture_full, len(memo), len(parts), len(messages)),
        memo,
    ]
    for name, batch in parts.items():
        raw_name, form = name.encode(), columns.pieces_of(batch)
        pieces += (_PART.pack(len(raw_name), sum(map(size_of, form))), raw_name, *form)
    for message in messages:
        form = message_pieces(message)
        pieces += (_SIZE.pack(sum(map(size_of, form))), *form)
    return Pieces([_MAGIC_PACKED, *pack(pieces, SMALL)] if compress else pieces)


def plain_snapshot(data: bytes) -> bytes:
    """The form of a snapshot without compression. To unpack a large one takes long; the rest does not."""
    if not data.startswith(_MAGIC_PACKED):
        return data
    with _damage_if_malformed("snapshot"):
        return unpack(memoryview(data)[len(_MAGIC_PACKED) :], SMALL)


def decode_snapshot(data: bytes) -> StoredSnapshot:
    """Read a snapshot from its binary form. Its columns are views of `data`, unless it was compressed."""
    with _damage_if_malformed("snapshot"):
        view = memoryview(plain_snapshot(data))
        magic, full, memo_size, part_count, message_count = _SNAPSHOT.unpack_from(view)
        if magic != _MAGIC:
            raise ObjectDamaged(f"not a snapshot: it begins with {magic!r}, not with {_MAGIC!r}")
        at = _SNAPSHOT.size + memo_size
        memo = bytes(view[_SNAPSHOT.size : at])
        parts: dict[str, Batch] = {}
        for _ in range(part_count):
            name_size, size = _PART.unpack_from(view, at)
            at += _PART.size + name_size
            parts[str(view[at - name_size : at], "utf-8")] = columns.decode(view[at : at + size])
            at += size
        messages = []
        for _ in range(message_count):
            (size,) = _SIZE.unpack_from(view, at)
            at += _SIZE.size
            messages.append(decode_message(view[at : at + size]))
            at += size
        if at != len(view):
            raise ObjectDamaged(f"a snapshot of {at} bytes is stored in {len(view)} bytes")
        return StoredSnapshot(full, parts, memo, tuple(messages))


@contextmanager
def _damage_if_malformed(what: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ObjectDamaged(f"these bytes are not a {what}: {error}") from error
