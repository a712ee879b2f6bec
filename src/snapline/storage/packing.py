"""Compression of what is kept: snapshots, and messages in logs.

Bytes are packed block by block. So a large state is never copied as a whole, and other threads go on
meanwhile, because the codec lets go of the interpreter while it works on a block. A block that would not
become smaller stays as it is. Nothing here detects damage: frames and digests are made of the packed form.

There are two codecs, as pyarrow has them: one that is fast, for what a loop waits for, and one that makes
things smaller, for what is done beside it. Arrow takes time to load, so it is loaded with the first block:
a process that packs and unpacks nothing does not wait for it.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from snapline.batch import Buffer, bytes_of

BLOCK_BYTES: Final = 1 << 20
"""The most bytes in a block; all but the last of an object have so many."""

Codec: TypeAlias = Literal["lz4", "zstd"]
FAST: Final = "lz4"  # 64 KB of bids: 1,350 MB/s, to a fifth; zstd 280 MB/s, to an eighth
SMALL: Final = "zstd"  # 1 MB of counts: 570 MB/s, to a twelfth; lz4 640 MB/s, to a third

# Sizes of the bytes of a block, and of what is kept of them; equal sizes mean that these are the bytes.
_BLOCK = struct.Struct("<II")


def pack(pieces: Iterable[Buffer], codec: Codec) -> list[Buffer]:
    """The packed form of bytes that come in pieces."""
    import pyarrow

    packed: list[Buffer] = []
    for block in _blocks(pieces):
        smaller: bytes = pyarrow.compress(block, codec=codec, asbytes=True)
        kept = smaller if len(smaller) < len(block) else block
        packed += (_BLOCK.pack(len(block), len(kept)), kept)
    return packed


def _blocks(pieces: Iterable[Buffer]) -> Iterator[bytes]:
    parts: list[memoryview] = []
    room = BLOCK_BYTES
    for piece in pieces:
        rest = bytes_of(piece)
        while len(rest) >= room:
            yield b"".join([*parts, rest[:room]])
            parts, rest, room = [], rest[room:], BLOCK_BYTES
        parts.append(rest)
        room -= len(rest)
    if room < BLOCK_BYTES:
        yield b"".join(parts)


def unpack(data: memoryview, codec: Codec) -> bytes:
    """The bytes behind a packed form. Raises ValueError or struct.error if it is none."""
    blocks: list[bytes | memoryview] = []
    at = 0
    while at < len(data):
        size, kept = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        block = data[at : at + kept]
        if len(block) < kept or not kept <= size <= BLOCK_BYTES:
            raise ValueError(f"a packed block of {size} bytes is not whole")
        blocks.append(block if kept == size else _unpacked(block, size, codec))
        at += kept
    return b"".join(blocks)


def _unpacked(block: memoryview, size: int, codec: Codec) -> bytes:
    import pyarrow

    try:
        whole: bytes = pyarrow.decompress(block, decompressed_size=size, codec=codec, asbytes=True)
    except OSError as error:
        raise ValueError(f"a packed block of {size} bytes is damaged: {error}") from error
    return whole
