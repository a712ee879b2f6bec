"""How bytes on a connection are cut into frames, and the error for bytes that cannot be such frames.

A frame is a head of eight bytes and a body. The head names magic, version, kind and the size of the body;
the size is a multiple of eight, so every body, and every column in it, begins at a multiple of eight: a
receiver computes on columns where they arrived, and numpy is twice as fast on aligned ones.
"""

import struct
from typing import Final, NamedTuple, TypeAlias

from snapline.batch import Buffer
from snapline.errors import SnaplineError

MAGIC: Final = 0x4C53
VERSION: Final = 1
BODY_BYTES_MAX: Final = 1 << 30
"""The largest body of a frame; a larger size is garbage, or a batch that should have been cut."""

HEAD: Final = struct.Struct("<HBBI")  # magic, version, kind, size of the body

MESSAGE: Final = 1
MARKER: Final = 2
CREDIT: Final = 3
CONTROL: Final = 4

Body: TypeAlias = bytes | memoryview


class WireError(SnaplineError):
    """Bytes from a connection that break the rules of the wire format, or something too large to send."""


class Packet(NamedTuple):
    """A frame that is ready to be sent: buffers that nobody copies, and their total size."""

    size: int
    buffers: list[Buffer]


def padding(size: int) -> bytes:
    """The bytes that fill a size up to the next multiple of eight."""
    return b"\0" * (-size % 8)


def packet(kind: int, body: bytes) -> Packet:
    """A frame with a body of one piece, whose size is a multiple of eight."""
    check_size(len(body), BODY_BYTES_MAX)
    head = HEAD.pack(MAGIC, VERSION, kind, len(body))
    return Packet(HEAD.size + len(body), [head + body])


def check_size(size: int, size_max: int) -> None:
    """Refuse a body that is too large, or not a multiple of eight."""
    if size > size_max:
        raise WireError(f"a frame of {size} bytes is more than the {size_max} that are allowed")
    if size % 8:
        raise WireError(f"the size of a frame is a multiple of 8, not {size}")


def read_head(data: Body, at: int, size_max: int) -> tuple[int, int]:
    """The kind and the size of the body of the frame whose head stands at this place."""
    magic, version, kind, size = HEAD.unpack_from(data, at)
    if magic != MAGIC:
        raise WireError(f"a frame begins with {MAGIC:#x}, not with {magic:#x}")
    if version != VERSION:
        raise WireError(f"the peer speaks version {version}, this side version {VERSION}")
    if not MESSAGE <= kind <= CONTROL:
        raise WireError(f"there is no frame of kind {kind}")
    check_size(size, size_max)
    return kind, size
